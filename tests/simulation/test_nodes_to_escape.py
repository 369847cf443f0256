"""How many nodes it takes to escape is not how many it takes to serve.

A tenth of a token service: four nodes of 10/s, 24/s, a surge to 44/s for ten minutes, then 30/s;
timeout 10 s, four attempts in all, each a second after the timeout before it; one unbounded queue
for all nodes, and a late answer is ignored. Three nodes would serve 30/s, but once it is stuck
every request comes four times: 120/s. From there the drain law holds: goodput is back after
(backlog - capacity x 10 s) / (capacity - 120/s), and with twelve nodes or fewer never.
"""

from functools import cache

import pytest

from tidegate.settings.policies import Backoff, Queue
from tidegate.settings.system import Action, Call, Client, Service, System, Time, Trigger
from tidegate.sim.invariants import check
from tidegate.sim.world import World
from tidegate.units import MILLISECOND, SECOND

pytestmark = pytest.mark.slow  # a hundred thousand attempts before anything is tried

HELP_AT = 1300  # seconds: the surge is over for five minutes, and it is stuck


def tokens(queue: Queue = Queue(), propagate: bool = False) -> System:  # noqa: B008 - frozen
    call = Call(
        to="tokens",
        timeout=10 * SECOND,
        attempts=4,
        backoff=Backoff(base=SECOND, factor=1.0, jitter="none"),
        propagate=propagate,
    )
    return System(
        clients={"apps": Client(rate=24.0, calls={"token": call})},
        services={
            "tokens": Service(
                workers=1,
                replicas=4,
                time=Time(mean=100 * MILLISECOND),
                balance="shared_queue",
                queue=queue,
            )
        },
        triggers={
            "surge": Trigger(client="apps", load=44 / 24, for_=600 * SECOND),
            "growth": Trigger(client="apps", load=30 / 24),
        },
    )


def after_surge(system: System) -> World:
    world = World(system, seed=1, horizon=20_000 * SECOND)
    world.plan("surge", system.triggers["surge"], 400 * SECOND)
    world.plan("growth", system.triggers["growth"], 1000 * SECOND)
    world.run(HELP_AT * SECOND)
    return world


def served(world: World, first: int, last: int) -> float:
    tally = world.clients["apps"].tally
    return sum(tally.eventual[first:last]) / sum(tally.offered[first:last])


@cache
def back_after(nodes: int, horizon: int) -> tuple[float, float | None]:
    """Seconds by the drain law, and those until nine in ten of ten seconds are served."""
    world = after_surge(tokens())
    backlog, rate = world.services["tokens"].in_system, 10 * nodes
    world.act("add nodes", Action(service="tokens", capacity=nodes / 4))
    law = (backlog - rate * 10) / (rate - 120) if rate > 120 else float("inf")
    tally = world.clients["apps"].tally
    for second in range(HELP_AT, HELP_AT + horizon, 10):
        world.run((second + 60) * SECOND)  # the fate of these is known by then
        if sum(tally.eventual[second : second + 10]) > 0.9 * sum(
            tally.offered[second : second + 10]
        ):
            check(world)
            return law, float(second - HELP_AT)
    check(world)
    return law, None


def test_three_nodes_would_serve_it_and_four_never_escape() -> None:
    world = after_surge(tokens())
    assert served(world, 900, HELP_AT - 60) == 0
    attempts = world.calls["token"].attempts
    assert sum(attempts[1200:1300]) / 100 == pytest.approx(120, rel=0.05)


def test_twelve_nodes_never_escape() -> None:
    assert back_after(12, 2500) == (float("inf"), None)


@pytest.mark.parametrize("nodes", [16, 24])
def test_more_nodes_escape_by_the_drain_law(nodes: int) -> None:
    law, seen = back_after(nodes, 6000)
    # Requests of the last half minute before have attempts left, and one of them is in time.
    assert seen == pytest.approx(law, rel=0.1, abs=40)


@pytest.mark.golden
def test_thirteen_nodes_escape_after_hours() -> None:
    law, seen = back_after(13, 18_000)
    assert law > 2 * 3600
    assert seen == pytest.approx(law, rel=0.1)


@pytest.mark.parametrize("full", ["refuse", "silence"])
def test_a_second_of_queue_escapes_at_once(full: str) -> None:
    world = after_surge(tokens(Queue(limit=10, full=full)))  # ten places for each of four nodes
    assert served(world, 420, 980) == pytest.approx(40 / 44, abs=0.03)
    assert served(world, 1010, 1200) > 0.98


def test_work_that_cannot_finish_in_time_is_better_dropped() -> None:
    """Five service times before the deadline, which the callee must be told."""
    world = after_surge(tokens(Queue(late=True), propagate=True))
    assert served(world, 420, 980) == pytest.approx(40 / 44, abs=0.05)
    assert served(world, 1010, 1200) > 0.98
    untold = after_surge(tokens(Queue(late=True)))
    assert served(untold, 1010, 1200) == 0
