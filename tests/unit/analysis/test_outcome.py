"""Well again, still coming back, swinging or stuck: told on seconds of a tally and on one store."""

import pytest
from systems import stall, store

from tidegate.analysis.outcome import Watch, served_well, verdict_of, worst
from tidegate.sim.world import World
from tidegate.units import SECOND


def watched(*, attempts: int = 4, seconds: int = 120, rate: float = 140.0) -> Watch:
    """A store that stalled from 10 s to 20 s, seen `seconds` later."""
    world = World(store(attempts=attempts, rate=rate), seed=1, horizon=(21 + seconds) * SECOND)
    world.plan("stall", stall(10 * SECOND), 10 * SECOND)
    world.run((20 + seconds) * SECOND)
    return Watch(world, start=10 * SECOND, end=20 * SECOND, lag=SECOND)


def test_the_worst_of_several_outcomes_counts() -> None:
    assert worst(["unharmed", "sticks", "recovers"]) == "sticks"
    assert worst([]) == "unharmed"


@pytest.mark.parametrize(
    ("good", "offered", "well"),
    [
        (100, 100, True),
        (95, 100, True),
        (91, 100, True),
        (90, 100, False),
        (9, 10, True),
        (8, 10, False),
        (0, 0, True),
    ],
)
def test_a_second_of_ten_requests_may_lose_one(good: int, offered: int, well: bool) -> None:
    assert served_well(good, offered, 0.95) is well


def test_recovery_is_the_first_of_thirty_good_seconds() -> None:
    watch = watched(attempts=1)
    second = watch.recovered_at("shoppers")
    assert second is not None
    # 1,400 waiting less 100 that are still in time, at 60/s more than come: 22 s.
    assert second - watch.end == pytest.approx(22, abs=6)


def test_it_cannot_have_recovered_before_thirty_seconds_are_known() -> None:
    assert watched(attempts=1, rate=20.0, seconds=29).recovered_at("shoppers") is None
    assert watched(attempts=1, rate=20.0, seconds=45).recovered_at("shoppers") is not None


def test_a_growing_backlog_without_an_answer_is_hopeless() -> None:
    watch = watched()
    assert watch.hopeless()
    assert not watch.draining()
    assert verdict_of(watch).outcome == "sticks"


def test_it_is_not_hopeless_before_a_minute_has_passed() -> None:
    assert not watched(seconds=59).hopeless()


def test_a_falling_backlog_is_slow_to_drain_and_has_an_end() -> None:
    watch = watched(attempts=1, seconds=15)
    assert watch.draining()
    verdict = verdict_of(watch)
    assert verdict.outcome == "slow to drain"
    assert verdict.finishes_after is not None
    assert 15 < verdict.finishes_after < 60


def test_harm_is_more_than_a_second_or_two() -> None:
    assert watched().harmed("shoppers")
    world = World(store(rate=20.0), seed=1, horizon=100 * SECOND)
    world.run(90 * SECOND)
    calm = Watch(world, start=10 * SECOND, end=60 * SECOND, lag=SECOND)
    assert not calm.harmed("shoppers")


def test_goodput_that_comes_and_goes_swings() -> None:
    watch = watched(attempts=1, rate=20.0)
    tally = watch.world.clients["shoppers"].tally
    for second in range(watch.end, watch.seconds_known()):
        tally.good[second] = tally.offered[second] if second // 10 % 2 else 0
    assert watch.swings("shoppers")
    assert verdict_of(watch).outcome == "oscillates"
