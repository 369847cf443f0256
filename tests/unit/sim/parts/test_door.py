"""The door of a simulated service, told in instants: the same admission as of a real server."""

from typing import Any

import pytest
from stories import MS, Story, ms

from tidegate.settings.admission import Admission
from tidegate.settings.policies import Limit, Queue
from tidegate.settings.system import Call, Client, Restart, Service, System, Trigger
from tidegate.sim.invariants import check
from tidegate.sim.parts.work import NEVER, Attempt, Request
from tidegate.sim.world import World
from tidegate.units import SECOND


def behind(limit: int = 1, *, service: object = None, **door: Any) -> dict[str, Service]:
    """One worker with 100 ms of work, behind a door that lets one in, unless told otherwise."""
    admission = Admission(limit=Limit(max=limit), **({"order": "fifo"} | door))
    extra = service if isinstance(service, dict) else {}
    return {"shop": Service(**({"workers": 1, "time": ms(100), "admission": admission} | extra))}


def test_who_finds_the_house_full_waits_at_the_door_and_is_refused_when_that_is_full() -> None:
    story = Story(behind(queue=1))
    story.ask(0, 1, 2)
    assert story.until(2).call() == (3, 0, 0, 0, 1)
    assert story.service("shop") == {"refused": 1, "inside": 2}
    assert story.until(200).served == 2
    assert story.service("shop") == {"served": 2, "refused": 1}


def test_a_free_worker_takes_who_comes_in_though_there_is_no_line() -> None:
    story = Story(behind(service={"queue": Queue(limit=0)}))
    story.ask(0, 1)
    assert story.until(200).served == 2


def test_a_door_that_lets_in_more_than_there_are_workers_fills_the_line() -> None:
    story = Story(behind(3, queue=0))
    story.ask(0, 1, 2, 3)
    assert story.until(3).call() == (4, 0, 0, 0, 1)
    assert story.until(300).served == 3


def test_whoever_finds_the_line_full_after_the_door_makes_room_at_it() -> None:
    """Three may come in, and there is one worker and one place: the third goes out again."""
    story = Story(behind(3, service={"queue": Queue(limit=1)}))
    story.ask(0, 1, 2, 3, 150)
    assert story.until(3).call() == (4, 0, 0, 0, 2)
    assert story.until(300).served == 3


def test_nobody_waits_at_the_door_for_longer_than_he_may() -> None:
    story = Story(behind(wait=30 * MS))
    story.ask(0, 1, 5)
    assert story.until(30).call() == (3, 0, 0, 0, 0)
    assert story.until(31).call() == (3, 0, 0, 0, 1)
    assert story.until(35).call() == (3, 0, 0, 0, 2)
    assert story.until(100).served == 1


def test_a_frozen_server_sends_nobody_away_until_it_thaws() -> None:
    story = Story(behind(wait=30 * MS))
    story.ask(0, 1)
    story.until(10)
    freeze = story.begin(service="shop", freeze=True)
    assert story.until(50).call() == (2, 0, 0, 0, 0)
    story.end(freeze)
    assert story.until(100).call() == (2, 0, 0, 0, 1)


def test_a_retry_finds_no_place_where_a_first_attempt_still_does() -> None:
    story = Story(behind(5, queue=0, service={"workers": 5}))
    story.ask(0, 0, 0, 0)
    story.until(1)
    (replica,) = story.world.services["shop"].replicas
    assert replica.door is not None
    request = Request(story.world.clients["me"], MS)
    first, retry = (
        Attempt(story.world.sites["ask"][0], request, MS, NEVER, depth, None) for depth in (0, 1)
    )
    assert replica.door.ask(MS, retry) is False
    assert replica.door.ask(MS, first) is True


@pytest.mark.parametrize(
    ("abandoned", "found"),
    [
        ("finish", {"served": 3, "late": 3}),
        ("skip", {"served": 2, "late": 2, "dropped": 1}),  # the second has left at his turn
        ("cancel", {"cancelled": 3}),
    ],
)
def test_who_leaves_while_he_waits_at_the_door(abandoned: str, found: dict[str, int]) -> None:
    calls = {"ask": Call(to="shop", timeout=60 * MS)}
    story = Story(behind(service={"abandoned": abandoned}, wait=SECOND), calls)
    story.ask(0, 10, 90)
    story.until(50)
    assert story.service("shop") == {"inside": 2}
    assert story.until(400).service("shop") == found


def test_who_is_called_off_at_the_door_leaves_it_at_once() -> None:
    calls = {"calm": Call(to="shop", timeout=SECOND), "hasty": Call(to="shop", timeout=60 * MS)}
    clients = {name: Client(rate=1e-6, calls={name: call}) for name, call in calls.items()}
    services = behind(service={"abandoned": "cancel"}, queue=10)
    world = World(System(clients=clients, services=services), seed=1, horizon=10 * SECOND)
    world.loop.at(0, world.clients["calm"].request)
    world.loop.at(MS, world.clients["hasty"].request)
    (replica,) = world.services["shop"].replicas
    assert replica.door is not None
    world.run(60 * MS)
    assert replica.door.waiting == 1
    world.run(62 * MS)
    check(world)
    assert replica.door.waiting == 0
    assert world.services["shop"].tally.cancelled == 1
    world.run(200 * MS)
    check(world)
    assert world.calls["calm"].successes == 1


def test_a_restart_and_a_flush_send_away_who_waits_at_the_door() -> None:
    story = Story(behind(service={"restart": Restart(backlog=100, down=10 * MS)}))
    story.ask(0, 1, 2)
    story.until(5)
    (replica,) = story.world.services["shop"].replicas
    replica.restart(story.world.now, 10 * MS)
    assert story.until(6).call() == (3, 0, 3, 0, 0)
    story.ask(20, 21)
    story.until(30)
    replica.flush(story.world.now)
    assert story.until(200).call() == (5, 1, 4, 0, 0)


def test_replicas_with_one_line_have_one_door() -> None:
    service = {"replicas": 2, "balance": "shared_queue"}
    story = Story(behind(service=service, queue=1))
    story.ask(0, 1, 2, 3, 4)
    assert story.until(4).call() == (5, 0, 0, 0, 1)
    assert len({replica.door for replica in story.world.services["shop"].replicas}) == 1
    assert story.until(100).served == 1
    assert story.until(101).served == 2
    assert story.until(200).served == 3
    assert story.until(201).served == 4


def test_calls_that_share_a_service_take_turns() -> None:
    calls = {"hog": Call(to="shop", timeout=SECOND), "small": Call(to="shop", timeout=SECOND)}
    clients = {name: Client(rate=1e-6, calls={name: call}) for name, call in calls.items()}
    services = behind(queue=100)
    world = World(System(clients=clients, services=services), seed=1, horizon=10 * SECOND)
    for _ in range(6):
        world.loop.at(0, world.clients["hog"].request)
    world.loop.at(MS, world.clients["small"].request)
    world.run(250 * MS)
    check(world)
    assert world.calls["small"].successes == 0
    world.run(301 * MS)
    assert world.calls["small"].successes == 1  # after two of the hog, not after six


def test_in_a_storm_it_serves_what_there_is_and_is_well_at_once_after_it() -> None:
    """Without it nobody is served again: 560 attempts a second for 200 that can be worked on."""

    def goodput(admission: Admission | None) -> tuple[float, float]:
        system = System(
            clients={"users": Client(rate=140, calls={"shop": Call(timeout=500 * MS, attempts=4)})},
            services={"shop": Service(workers=8, time=ms(40), admission=admission)},
            triggers={
                "slow": Trigger(service="shop", slowdown=3, at=10 * SECOND, for_=10 * SECOND)
            },
        )
        world = World(system, seed=7, horizon=40 * SECOND)
        slow = system.triggers["slow"]
        assert slow.at is not None
        world.plan("slow", slow, slow.at)
        world.run(40 * SECOND)
        check(world)
        good = world.clients["users"].tally.good
        return sum(good[12:20]) / 8, sum(good[25:35]) / 10

    during, after = goodput(None)
    assert during < 5
    assert after < 5
    during, after = goodput(Admission(limit=Limit(max=8)))
    assert during > 0.95 * 8 / 0.120
    assert after > 0.95 * 140
