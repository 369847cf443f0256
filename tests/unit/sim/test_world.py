"""A described system comes to life: what is built, and how it is driven."""

from itertools import pairwise

import pytest
from stories import MS, Story, ms

from tidegate.errors import SettingsError
from tidegate.settings.policies import Budget
from tidegate.settings.system import Action, Call, Client, Service, System, Time, Trigger
from tidegate.sim.invariants import check
from tidegate.sim.log import EventLog
from tidegate.sim.world import World
from tidegate.units import SECOND


def test_every_caller_replica_has_policies_of_its_own() -> None:
    services = {
        "hub": Service(replicas=3, calls={"leaf": Call(budget=Budget())}),
        "leaf": Service(),
    }
    world = Story(services).world
    budgets = {id(site.pipeline.budget) for site in world.sites["leaf"]}
    assert len(world.sites["leaf"]) == len(budgets) == 3
    assert len(world.sites["ask"]) == 1


def test_default_protection_is_written_out() -> None:
    world = Story({"shop": Service()}, {"ask": Call(to="shop", protect="default")}).world
    pipeline = world.sites["ask"][0].pipeline
    assert (pipeline.attempts, pipeline.timeout) == (2, 10 * SECOND)
    assert pipeline.breaker is not None


def test_the_backlog_is_what_was_inside_when_the_second_began() -> None:
    story = Story({"shop": Service(workers=1, time=ms(300))})
    story.ask(500, 600, 700)
    story.until(3000)
    assert story.world.services["shop"].tally.backlog[:4] == [0, 2, 0, 0]


def test_a_second_belongs_to_what_begins_in_it() -> None:
    story = Story({"shop": Service()})
    story.ask(0, 999, 1000, 2000)
    story.until(2500)
    assert story.me.offered[:4] == [2, 1, 1, 0]
    assert story.world.services["shop"].tally.served[:4] == [2, 1, 1, 0]


def test_between_two_seconds_the_counts_are_those_so_far() -> None:
    story = Story({"shop": Service()})
    story.ask(1100, 1200, 1300)
    assert story.until(1250).me.offered[:2] == [0, 2]
    assert story.until(1999).me.offered[:2] == [0, 3]


def test_it_ends_at_its_horizon() -> None:
    world = World(
        System(
            clients={"me": Client(rate=9.0, calls={"shop": Call()})}, services={"shop": Service()}
        ),
        seed=1,
        horizon=1500 * MS,
    )
    world.run(1500 * MS)
    check(world)
    with pytest.raises(AssertionError, match="beyond the horizon"):
        world.run(1501 * MS)


def test_triggers_and_actions_stand_in_the_log() -> None:
    log = EventLog()
    story = Story({"shop": Service()}, log=log)
    story.world.plan("slow", Trigger(service="shop", slowdown=2.0, for_=5 * MS), 10 * MS)
    story.until(20)
    story.world.act("calm down", Action(client="me", load=0.5))
    assert [line.strip().split("\t")[1:] for line in log.tail] == [
        ["trigger", "begins", "slow"],
        ["trigger", "ends", "slow"],
        ["action", "taken", "calm down"],
    ]


def notified(per_request: float, *, time: Time | None = None) -> System:
    """A shop notifies a ledger, which calls it back; nobody waits for either."""
    back = Call(to="shop", per_request=per_request, optional=True, wait=False)
    notify = Call(to="ledger", optional=True, wait=False)
    return System(
        clients={"people": Client(rate=10.0, calls={"shop": Call(timeout=SECOND)})},
        services={
            "shop": Service(time=time, calls={"notify": notify}),
            "ledger": Service(time=time, calls={"back": back}),
            "idle": Service(calls={"also": Call(to="shop")}),
        },
    )


@pytest.mark.parametrize("time", [None, ms(10)])
def test_a_circle_that_fades_is_followed_to_its_end(time: Time | None) -> None:
    """Nine in ten lead to another round: ten rounds in all, the first included."""
    world = World(notified(0.9, time=time), seed=1, horizon=60 * SECOND)
    world.run(60 * SECOND)
    check(world)
    rounds = world.calls["notify"].sent.count / sum(world.clients["people"].tally.offered)
    assert rounds == pytest.approx(10, rel=0.15)


@pytest.mark.parametrize("per_request", [1.0, 3.0, 1000.0])
def test_a_circle_that_does_not_is_refused(per_request: float) -> None:
    with pytest.raises(SettingsError, match="never end: ledger, shop"):
        World(notified(per_request), seed=1, horizon=SECOND)


def test_a_long_chain_is_no_circle() -> None:
    names = [f"s{index}" for index in range(60)]
    services = {
        name: Service(time=ms(1), calls={f"to {below}": Call(to=below, per_request=2)})
        for name, below in pairwise(names)
    }
    one = Call(to="s0", timeout=SECOND)
    system = System(
        clients={"people": Client(rate=1.0, calls={"ask": one})},
        services={**services, names[-1]: Service()},
    )
    assert World(system, seed=1, horizon=SECOND).now == 0
