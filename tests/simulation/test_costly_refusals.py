"""Refusals that cost work turn a limit set too low into an outage that only two cures together end.

A tenth of a core service: 120/s of work, a demand of 70/s, a limit wrongly set to 60/s, nine
attempts, a second between two (jittered: with a constant gap the retries lock on to the limiter),
timeout 1 s, places for 1.5 s of work; a late answer is ignored. If refusing were free, p^9 = 1/7 of
the users would fail, p = 0.806 of the attempts be refused, and attempts be 4.41-fold. With a cost r
of each refusal, in served requests, work runs out at r = (120 - 60) / (308.6 - 60) = 0.241: it is a
cliff. Here it comes a little earlier, since refusals go before requests, who wait twice as long.
"""

from functools import cache

import pytest

from tidegate.settings.policies import Backoff, Queue, RateLimit
from tidegate.settings.system import Action, Call, Client, Service, System, Time, Trigger
from tidegate.sim.invariants import check
from tidegate.sim.world import World
from tidegate.units import MILLISECOND, SECOND

pytestmark = pytest.mark.slow  # half a second for each run of eight minutes

STUCK_AT = 250  # seconds; by then a system that falls has fallen
END_AT = 450


def core(cost: float, places: int = 180) -> System:
    call = Call(
        timeout=SECOND,
        attempts=9,
        backoff=Backoff(base=2 * SECOND, factor=1.0, jitter="full"),  # from 0 to 2 s, mean 1 s
    )
    return System(
        clients={"people": Client(rate=70.0, calls={"core": call})},
        services={
            "core": Service(
                workers=12,
                time=Time(mean=100 * MILLISECOND),
                queue=Queue(limit=places),
                refusal_cost=cost,
            )
        },
        triggers={"wrong limit": Trigger(service="core", rate_limit=RateLimit(rate=60.0))},
        actions={
            "roll back": Action(ends="wrong limit"),
            "scale out": Action(service="core", capacity=2.0),
        },
    )


@cache
def figures(cost: float, *actions: str, places: int = 180) -> tuple[float, float]:
    """The share of users that fail and attempts per request, over 130 s.

    The actions are taken when the limit has been wrong for four minutes.
    """
    system = core(cost, places)
    world = World(system, seed=1, horizon=END_AT * SECOND)
    world.begin("wrong limit", system.triggers["wrong limit"])
    world.run(STUCK_AT * SECOND)
    for name in actions:
        world.act(name, system.actions[name])
    world.run(END_AT * SECOND)
    check(world)
    last = slice(END_AT - 150, END_AT - 20)  # nine attempts take some 10 s, 18 if all time out
    tally, attempts = world.clients["people"].tally, world.calls["core"].attempts
    offered = sum(tally.offered[last])
    return 1 - sum(tally.eventual[last]) / offered, sum(attempts[last]) / offered


@pytest.mark.parametrize("cost", [0.0, 0.1, 0.2])
def test_below_the_cliff_only_the_surplus_fails(cost: float) -> None:
    """1/7 with a spread of 1 % over 130 s; 4.41-fold. Nothing depends on the cost."""
    failed, attempts = figures(cost)
    assert failed == pytest.approx(1 / 7, abs=0.03)
    assert attempts == pytest.approx(4.41, abs=0.2)


@pytest.mark.parametrize("cost", [0.26, 0.5])
def test_beyond_it_everybody_does(cost: float) -> None:
    failed, attempts = figures(cost)
    assert failed > 0.99
    assert attempts == pytest.approx(9, abs=0.2)


def test_the_right_limit_alone_changes_nothing() -> None:
    assert figures(0.26, "roll back")[0] > 0.99


def test_twice_the_capacity_alone_leaves_the_surplus_failing() -> None:
    assert figures(0.26, "scale out")[0] == pytest.approx(1 / 7, abs=0.03)


def test_both_restore_everybody() -> None:
    failed, attempts = figures(0.26, "roll back", "scale out")
    assert failed < 0.001
    assert attempts < 1.01


def test_the_pair_is_needed_because_the_queue_is_longer_than_the_timeout() -> None:
    """With places for 0.9 s the right limit alone heals it; for 2.5 s not even both do."""
    assert figures(0.26, places=108)[0] > 0.99
    assert figures(0.26, "roll back", places=108)[0] < 0.1  # still healing in the first seconds
    assert figures(0.26, "roll back", "scale out", places=300)[0] > 0.99


def test_a_refusal_without_a_place_says_nothing() -> None:
    """At 0 the worker is taken until 100 ms, at 1 ms the place, at 2 ms there is neither."""
    call = Call(timeout=SECOND)
    service = Service(
        workers=1,
        time=Time(constant=100 * MILLISECOND),
        queue=Queue(limit=1),
        rate_limit=RateLimit(rate=1.0, burst=1),
        refusal_cost=0.5,
    )
    system = System(
        clients={"people": Client(rate=1e-6, calls={"core": call})}, services={"core": service}
    )
    world = World(system, seed=1, horizon=10 * SECOND)
    for instant in (0, 1, 2):
        world.loop.at(instant * MILLISECOND, world.clients["people"].request)
    world.run(140 * MILLISECOND)
    tally, core = world.calls["core"], world.services["core"].tally
    assert (tally.successes, tally.overloaded, tally.timeouts) == (1, 0, 0)
    world.run(160 * MILLISECOND)
    assert (tally.successes, tally.overloaded, tally.timeouts) == (1, 1, 0)
    world.run(2 * SECOND)
    assert (tally.successes, tally.overloaded, tally.timeouts) == (1, 1, 1)
    assert (core.finished.count, core.refusals.count, core.dropped) == (1, 1, 1)
