"""It grows while answers are as fast as they used to be, and shrinks as they become slower."""

import pytest
from one_service import Station

from tidegate.core.concurrency_limiter import ConcurrencyLimiter
from tidegate.core.limit.gradient import GradientLimit
from tidegate.core.outcome import SUCCESS, TIMEOUT
from tidegate.settings import policies as settings
from tidegate.units import HOUR, MILLISECOND, MINUTE, SECOND

MS = MILLISECOND


def limit(**changes: object) -> GradientLimit:
    return GradientLimit(settings.Gradient(**{"samples": 1, **changes}))


def rounds(policy: GradientLimit, start: int, rtt: int, times: int) -> int:
    """So many rounds with all places in use, one a second."""
    for number in range(times):
        policy.on_sample(start + number * SECOND, rtt, policy.limit, SUCCESS)
    return policy.limit


def test_while_latency_is_the_usual_one_each_round_adds_a_share_of_the_queue() -> None:
    policy = limit(start=20)
    assert rounds(policy, SECOND, 10 * MS, 1) == 20  # 20.8
    assert rounds(policy, 2 * SECOND, 10 * MS, 9) == 28  # ten times 0.8
    assert policy.baseline == 10 * MS


def test_up_to_the_tolerance_latency_counts_as_the_usual_one() -> None:
    policy = limit(start=20)
    rounds(policy, SECOND, 10 * MS, 20)
    before = policy.limit
    assert rounds(policy, 30 * SECOND, 14 * MS, 5) == before + 4


def test_slower_answers_take_what_they_are_slower_by() -> None:
    policy = limit(start=100, baseline=HOUR)
    rounds(policy, SECOND, 10 * MS, 50)
    before = policy.limit
    assert before == 140
    # gradient 1.5 x 10 / 20 = 0.75: 140 x (1 - 0.2 x 0.25) + 0.8, and a trifle of the baseline
    assert rounds(policy, 60 * SECOND, 20 * MS, 1) == 133


def test_a_round_takes_a_tenth_at_most() -> None:
    policy = limit(start=100)
    rounds(policy, SECOND, MS, 11)
    assert policy.limit == 108
    assert rounds(policy, 60 * SECOND, 10 * SECOND, 1) == 98  # 108.8 x 0.9 + 0.8


def test_trouble_takes_a_tenth_and_leaves_no_queue() -> None:
    policy = limit(start=100)
    policy.on_sample(SECOND, 10 * MS, 100, TIMEOUT)
    assert policy.limit == 90
    for number in range(100):
        policy.on_sample((2 + number) * SECOND, MS, 1, TIMEOUT)
    assert policy.limit == 1
    assert policy.baseline == 0


def test_a_limit_that_nobody_needs_proves_nothing() -> None:
    policy = limit(start=20)
    for number in range(50):
        policy.on_sample((1 + number) * SECOND, 10 * MS, 9, SUCCESS)
    assert policy.limit == 20
    assert policy.baseline == 10 * MS


def test_it_stays_within_its_bounds() -> None:
    assert rounds(limit(start=20, max=22), SECOND, MS, 100) == 22
    policy = limit(start=20, min=18)
    for number in range(10):
        policy.on_sample((1 + number) * SECOND, MS, 20, TIMEOUT)
    assert policy.limit == 18


def test_the_usual_latency_follows_a_lasting_change_in_minutes() -> None:
    policy = limit(start=20, max=20, baseline=10 * MINUTE)
    rounds(policy, SECOND, 10 * MS, 60)
    rounds(policy, MINUTE, 20 * MS, 600)
    assert policy.baseline == pytest.approx((10 + 10 * 0.63) * MS, rel=0.02)


def test_when_a_long_slowness_is_over_the_usual_latency_is_soon_the_old_one() -> None:
    policy = limit(start=20, max=20)
    rounds(policy, SECOND, 100 * MS, 60)
    rounds(policy, HOUR, 10 * MS, 30)
    assert policy.baseline < 21 * MS


def test_one_round_after_a_pause_does_not_make_a_new_usual_latency() -> None:
    policy = limit(start=20)
    rounds(policy, SECOND, 10 * MS, 20)
    rounds(policy, 100 * HOUR, 20 * MS, 1)
    assert policy.baseline == pytest.approx(11 * MS)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_it_finds_the_knee_of_a_busy_service(seed: int) -> None:
    """Ten workers of 10 ms, half as much again offered: all of it is used, with a short queue."""
    limiter = ConcurrencyLimiter(settings.Limit(gradient=settings.Gradient()))
    station = Station(limiter, workers=10, rate=1500, seed=seed)
    served = station.run(30)
    assert 15 <= limiter.limit <= 60
    assert sum(served[10:]) / 20 == pytest.approx(1000, rel=0.03)


def test_it_falls_with_a_slow_service_and_comes_back_with_it() -> None:
    limiter = ConcurrencyLimiter(settings.Limit(gradient=settings.Gradient()))
    station = Station(limiter, workers=10, rate=900, seed=4)
    station.run(20)
    station.slower = 5.0
    station.run(20)
    slow = limiter.limit
    assert slow <= 45, "five times slower, a tenth of a round at a time"
    station.slower = 1.0
    served = station.run(30)
    assert limiter.limit >= 15
    assert sum(served[20:]) / 10 == pytest.approx(900, rel=0.05)
