"""Who asks, how often, and whether they were served in their own eyes."""

from itertools import pairwise
from statistics import fmean, stdev

import pytest
from stories import MS, Story, ms

from tidegate.settings.policies import Queue
from tidegate.settings.system import Action, Call, Client, Service, System, Time, Trigger
from tidegate.sim.log import EventLog
from tidegate.sim.world import World
from tidegate.units import SECOND


def world(client: Client, service: Service | None = None) -> World:
    system = System(clients={"people": client}, services={"shop": service or Service()})
    return World(system, seed=3, horizon=1000 * SECOND)


def offered(it: World, start: int, end: int) -> list[int]:
    it.run(end * SECOND)
    return it.clients["people"].tally.offered[start:end]


ASK = {"ask": Call(to="shop", timeout=SECOND)}


def test_an_open_client_sends_at_its_rate_whatever_happens() -> None:
    """Poisson: of 400 seconds of 50 each, the mean and the variance are 50."""
    counts = offered(world(Client(rate=50.0, calls=ASK)), 0, 400)
    assert fmean(counts) == pytest.approx(50, abs=1.5)
    assert stdev(counts) ** 2 == pytest.approx(50, abs=15)


def test_its_gaps_are_exponential() -> None:
    lines: list[str] = []
    log = EventLog(lines.append)
    it = World(world(Client(rate=10.0, calls=ASK)).system, seed=3, horizon=400 * SECOND, log=log)
    it.run(400 * SECOND)
    sent = [int(line.split("\t")[0]) for line in lines if line.split("\t")[2] == "sent"]
    gaps = [(b - a) / SECOND for a, b in pairwise(sent)]
    assert fmean(gaps) == pytest.approx(0.1, abs=0.007)
    assert stdev(gaps) == pytest.approx(0.1, abs=0.01)


def test_load_changes_at_once_and_zero_is_silence() -> None:
    it = world(Client(rate=50.0, calls=ASK))
    assert sum(offered(it, 0, 100)) == pytest.approx(5000, abs=300)
    it.act("surge", Action(client="people", load=3.0))
    assert sum(offered(it, 100, 200)) == pytest.approx(15_000, abs=500)
    it.act("stop", Action(client="people", load=0.0))
    assert sum(offered(it, 200, 300)) == 0
    it.act("again", Action(client="people", load=1.0))
    assert sum(offered(it, 300, 400)) == pytest.approx(5000, abs=300)


def test_closed_users_wait_for_their_answer_then_think() -> None:
    """Ten users, 100 ms of answer and 400 ms of thought: 20/s and never more than ten inside."""
    client = Client(users=10, think=Time(constant=400 * MS), calls=ASK)
    it = world(client, Service(time=ms(100)))
    assert sum(offered(it, 1, 101)) == pytest.approx(2000, abs=20)
    assert max(it.services["shop"].tally.backlog) <= 10


def test_closed_users_who_get_no_answer_ask_for_nothing_more() -> None:
    it = world(Client(users=10, think=Time(constant=400 * MS), calls={"ask": Call(to="shop")}))
    it.begin("stop", Trigger(service="shop", freeze=True))
    assert sum(offered(it, 0, 100)) == 10


def test_users_come_and_go_with_the_load() -> None:
    client = Client(users=10, think=Time(constant=SECOND), calls=ASK)
    it = world(client)
    double = Trigger(client="people", load=2.0)
    it.run(10 * SECOND)
    it.begin("double", double)
    assert sum(offered(it, 12, 22)) == pytest.approx(200, abs=1)
    it.end("double", double)
    assert sum(offered(it, 24, 34)) == pytest.approx(100, abs=1)
    it.act("leave", Action(client="people", load=0.0))
    assert sum(offered(it, 36, 46)) == 0


# Served well?


def test_an_answer_after_the_clients_own_timeout_is_no_goodput_but_a_late_success() -> None:
    story = Story(
        {"shop": Service(workers=1, time=ms(70))},
        {"ask": Call(to="shop", timeout=100 * MS, attempts=2)},
    )
    story.ask(0, 0)  # the second is given up at 100 and, begun at 140, answered at 210: too late
    story.until(500)
    assert (sum(story.me.good), story.served, story.failed) == (1, 1, 1)
    story = Story(
        {"shop": Service(workers=1, time=ms(70), abandoned="cancel")},
        {"ask": Call(to="shop", timeout=100 * MS, attempts=2)},
    )
    story.ask(0, 0)  # cancelled at 100 and begun anew, it is answered at 170
    story.until(500)
    assert (sum(story.me.good), story.served, story.failed) == (1, 2, 0)


def test_it_is_counted_in_the_second_in_which_it_came() -> None:
    story = Story({"shop": Service(time=ms(500))})
    story.ask(900)
    story.until(2000)
    assert (story.me.offered[:2], story.me.good[:2]) == ([1, 0], [1, 0])


RETRIED = {"to": "shop", "timeout": 150 * MS, "attempts": 2}


@pytest.mark.parametrize(
    ("calls", "answered", "good"),
    [
        ({"a": Call(**RETRIED)}, 250, 0),
        ({"a": Call(deadline=260 * MS, **RETRIED)}, 250, 1),
        ({"a": Call(**RETRIED), "b": Call(to="shop", timeout=190 * MS)}, 350, 0),
        ({"a": Call(**RETRIED), "b": Call(to="shop", timeout=210 * MS)}, 350, 1),
        ({"a": Call(per_request=2, **RETRIED)}, 350, 0),
        ({"a": Call(per_request=3, **RETRIED)}, 450, 1),
        ({"a": Call(**RETRIED), "b": Call(to="shop")}, 350, 1),
        ({"a": Call(**RETRIED), "b": Call(to="shop", optional=True, wait=False)}, 250, 0),
    ],
)
def test_a_client_waits_for_what_its_calls_may_take_once_each(
    calls: dict[str, Call], answered: int, good: int
) -> None:
    """The first attempt is given up at 150, since the way was long until 140; the rest is quick."""
    story = Story({"shop": Service(time=ms(100))}, calls)
    slow = story.begin(call="a", latency=60 * MS)
    story.ask(0)
    story.until(140)
    story.end(slow)
    assert story.until(answered - 1).served == 0
    assert story.until(answered).served == 1
    assert sum(story.me.good) == good


def test_an_answer_without_an_optional_part_is_degraded() -> None:
    for more in ({}, {"also": Call(to="shop", timeout=SECOND)}):
        calls = {"ask": Call(to="shop", timeout=50 * MS, optional=True)} | more
        story = Story({"shop": Service(time=ms(100))}, calls)
        story.ask(0)
        story.until(500)
        assert (story.served, story.me.degraded) == (1, 1)


def test_a_request_of_no_call_is_served_at_once() -> None:
    story = Story({"shop": Service()}, {"ask": Call(to="shop", per_request=0)})
    story.ask(0)
    assert story.until(0).served == 1


def test_users_who_never_think_and_are_refused_at_once_let_time_pass() -> None:
    """Nine of ten find no place, at once and again: each asks a thousand times a second."""
    client = Client(users=10, think=Time(constant=0), calls=ASK)
    it = world(client, Service(workers=1, time=ms(100), queue=Queue(limit=0)))
    assert offered(it, 1, 3) == pytest.approx([9010] * 2, abs=20)
    assert sum(it.clients["people"].tally.good[1:3]) == pytest.approx(20, abs=1)
