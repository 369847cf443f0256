"""What three layers that all try again do to the last, and what holds them.

SRE book chapter 22: four attempts at each of three layers are 64 at the database. Chapter 21: a
retry budget of 10 % holds the load near what people want. Chapter 22 again: who is told how much
time is left works for nobody who has gone.
"""

import pytest
from stories import MS, Story, ms

from tidegate.settings.policies import Budget
from tidegate.settings.system import Call, Client, Service, System
from tidegate.sim.invariants import check
from tidegate.sim.world import World
from tidegate.units import SECOND


def layers(rate: float, **call: object) -> System:
    """People, front, middle, database; the database fails whatever it is asked."""
    tries = {"attempts": 4, "timeout": SECOND} | call
    return System(
        clients={"people": Client(rate=rate, calls={"front": Call(**tries)})},
        services={
            "front": Service(calls={"middle": Call(**tries)}),
            "middle": Service(calls={"database": Call(**tries)}),
            "database": Service(errors=1.0),
        },
    )


def per_request(system: System) -> list[float]:
    world = World(system, seed=1, horizon=101 * SECOND)
    world.run(100 * SECOND)
    check(world)
    offered = sum(world.clients["people"].tally.offered)
    return [world.calls[name].sent.count / offered for name in ("front", "middle", "database")]


def test_four_attempts_at_each_of_three_layers_are_sixty_four() -> None:
    assert per_request(layers(1.0)) == [4, 16, 64]


@pytest.mark.slow  # ten thousand requests, all of which fail
def test_with_a_budget_at_each_layer_they_add_and_do_not_multiply() -> None:
    """1.1, 1.2 and 1.3: only requests that are nobody's retry deposit."""
    attempts = per_request(layers(100.0, budget=Budget(ratio=0.1)))
    assert attempts == pytest.approx([1.1, 1.2, 1.3], abs=0.01)


def test_where_one_layer_alone_tries_again_all_are_asked_four_times() -> None:
    front = Call(attempts=4, timeout=SECOND)
    system = System(
        clients={"people": Client(rate=1.0, calls={"front": front})},
        services=layers(1.0, attempts=1).services,
    )
    assert per_request(system) == [4, 4, 4]


def told(*, propagate: bool) -> list[int]:
    """A allows B ten seconds, B needs eight and allows C twenty: when is C done with it?

    C is asked at 8 s and works for 15 s; it stops when B gives up.
    """
    services = {
        "b": Service(time=ms(8000), calls={"c": Call(timeout=20_000 * MS, propagate=propagate)}),
        "c": Service(time=ms(15_000), abandoned="cancel"),
    }
    story = Story(services, {"ask": Call(to="b", timeout=10_000 * MS, propagate=propagate)})
    story.ask(0)
    return [story.until(at).world.services["c"].in_system for at in (8_001, 9_999, 10_001, 22_999)]


def test_two_seconds_are_left_and_fifteen_are_worked() -> None:
    assert told(propagate=False) == [1, 1, 1, 1]
    assert told(propagate=True) == [1, 1, 0, 0]


def test_what_remains_shrinks_from_layer_to_layer() -> None:
    """Thirty at the top, seven spent: 23 are passed on; four more: 19."""
    services = {
        "a": Service(time=ms(7000), calls={"b": Call(propagate=True)}),
        "b": Service(time=ms(4000), calls={"c": Call(propagate=True)}),
        "c": Service(time=ms(1)),
    }
    story = Story(services, {"ask": Call(to="a", timeout=30_000 * MS, propagate=True)})
    seen: list[int] = []
    for name in ("b", "c"):
        site = story.world.sites[name][0]
        arrive = site.target.arrive
        site.target.arrive = lambda now, attempt, go=arrive: (
            seen.append((attempt.leaves_at - now) // SECOND),
            go(now, attempt),
        )
    story.ask(0)
    assert story.until(12_000).served == 1
    assert seen == [23, 19]
