"""Each promise, broken by hand once, is seen to be broken."""

from collections.abc import Callable

import pytest

from tidegate.errors import InvariantError
from tidegate.settings.policies import Budget, Limit
from tidegate.settings.system import Call, Client, Service, System, Time
from tidegate.sim.invariants import check
from tidegate.sim.log import EventLog
from tidegate.sim.world import World
from tidegate.units import MILLISECOND, SECOND


def world(log: EventLog | None = None) -> World:
    """Somewhat overloaded, and in the middle of things."""
    call = Call(
        timeout=200 * MILLISECOND, attempts=2, budget=Budget(ratio=0.5), limit=Limit(max=50)
    )
    system = System(
        clients={"people": Client(rate=50.0, calls={"shop": call})},
        services={"shop": Service(workers=2, time=Time(mean=50 * MILLISECOND), limit=Limit(max=9))},
    )
    made = World(system, seed=41, horizon=10 * SECOND, log=log)
    made.run(5 * SECOND + 1)
    check(made)
    return made


def break_it(world: World, how: str) -> None:
    shop, people, call = world.services["shop"], world.clients["people"], world.calls["shop"]
    replica, site = shop.replicas[0], world.sites["shop"][0]
    assert site.pipeline.limiter is not None
    assert site.pipeline.budget is not None
    assert replica.limiter is not None
    ways: dict[str, Callable[[], object]] = {
        "offered: the seconds": lambda: people.tally.offered.__setitem__(1, 1),
        "second 2: ": lambda: people.tally.good.__setitem__(2, 10_000),
        "arrived, and": lambda: setattr(shop.tally, "dropped", shop.tally.dropped + 1),
        "a count out of range": lambda: setattr(shop.tally.wasted, "count", -1),
        "a series: the seconds": lambda: setattr(
            shop.tally.wasted, "count", shop.tally.wasted.count + 1
        ),
        "refusing": lambda: setattr(replica, "calling", -1),
        "gone of a line": lambda: setattr(replica.line, "gone", -1),
        "workers rest": lambda: setattr(replica, "workers", 99),
        "the limit counts": lambda: setattr(replica.limiter, "inflight", 3_000),
        "attempts sent": lambda: setattr(call, "timeouts", 10_000),
        "calls of at most": lambda: setattr(site, "attempts_most", 1),
        "calls: the seconds": lambda: setattr(call.begun, "count", call.begun.count + 1),
        "attempts: the seconds": lambda: call.attempts.__setitem__(9, -1),
        "a budget holds": lambda: setattr(site.pipeline.budget, "_saved", -(10**12)),
        "the budget let": lambda: setattr(site.pipeline.budget, "_retried", 10_000),
        "in flight": lambda: setattr(site.pipeline.limiter, "inflight", 49),
    }
    ways[how]()


@pytest.mark.parametrize(
    "how",
    [
        "offered: the seconds",
        "second 2: ",
        "arrived, and",
        "a count out of range",
        "a series: the seconds",
        "refusing",
        "gone of a line",
        "workers rest",
        "the limit counts",
        "attempts sent",
        "calls of at most",
        "calls: the seconds",
        "attempts: the seconds",
        "a budget holds",
        "the budget let",
        "in flight",
    ],
)
def test_a_broken_promise_is_seen(how: str) -> None:
    broken = world()
    break_it(broken, how)
    with pytest.raises(InvariantError, match=how) as error:
        check(broken)
    assert "seed 41" in str(error.value)
    assert "at 5s" in str(error.value)


def test_the_last_events_are_shown_if_they_were_kept() -> None:
    log = EventLog()
    broken = world(log)
    broken.services["shop"].tally.dropped += 1
    with pytest.raises(InvariantError) as error:
        check(broken)
    assert str(error.value).endswith("".join(log.tail))


def test_retries_beyond_a_budget_of_nothing_are_seen() -> None:
    system = System(
        clients={"people": Client(rate=50.0, calls={"shop": Call(budget=Budget(ratio=0.0))})},
        services={"shop": Service()},
    )
    none = World(system, seed=1, horizon=SECOND)
    none.run(SECOND)
    check(none)
    budget = none.sites["shop"][0].pipeline.budget
    assert budget is not None
    budget._retried = 1
    with pytest.raises(InvariantError, match="the budget let 1 retry"):
        check(none)
