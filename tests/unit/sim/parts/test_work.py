"""What travels is small, and is gone when nobody needs it."""

import gc
import sys
from collections import Counter

import pytest
from stories import MS

from tidegate.settings.policies import Backoff, Limit, Queue
from tidegate.settings.system import Call, Client, Service, System, Time, Trigger
from tidegate.sim.parts.work import OVER, Attempt, Frame, Request
from tidegate.sim.world import World
from tidegate.units import SECOND


def test_an_attempt_that_waits_in_a_storm_takes_less_than_200_bytes() -> None:
    attempt = Attempt(None, None, SECOND, 2 * SECOND, 0, None)
    instants = sys.getsizeof(attempt.sent) + sys.getsizeof(attempt.leaves_at)
    assert sys.getsizeof(attempt) + instants + 8 <= 200  # and its place in the queue


@pytest.mark.slow  # some forty thousand attempts
@pytest.mark.parametrize("abandoned", ["finish", "skip", "cancel"])
def test_when_a_storm_is_over_nothing_is_left_of_it(abandoned: str) -> None:
    """Without the collector of cycles, which does not run during a simulation."""
    calls = {
        "leaf": Call(timeout=80 * MS, attempts=3, backoff=Backoff(base=10 * MS)),
        "other": Call(to="leaf", timeout=90 * MS, limit=Limit(max=50), deadline=100 * MS),
    }
    ask = Call(to="hub", timeout=100 * MS, attempts=3, propagate=True)
    leaf = {"abandoned": abandoned, "queue": Queue(order="lifo")}
    system = System(
        clients={"people": Client(rate=400.0, calls={"ask": ask})},
        services={
            "hub": Service(parallel=True, abandoned=abandoned, calls=calls),
            "leaf": Service(workers=5, time=Time(mean=10 * MS), **leaf),
        },
    )
    gc.collect()
    gc.disable()
    try:
        world = World(system, seed=1, horizon=1000 * SECOND)
        world.run(20 * SECOND)
        world.begin("stop", Trigger(client="people", load=0.0))
        while world.services["leaf"].in_system:
            world.run(world.now + SECOND)
        world.run(world.now + SECOND)
        kinds = Counter(type(thing) for thing in gc.get_objects())
    finally:
        gc.enable()
    assert sum(call.sent.count for call in world.calls.values()) > 20_000
    assert [kinds[kind] for kind in (Attempt, Frame, Request)] == [0, 0, 0]


def test_the_mark_of_what_is_over_says_so() -> None:
    assert repr(OVER) == "OVER"
