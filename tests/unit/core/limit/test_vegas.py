"""It keeps a few in the queue of the far side: more sent when there are fewer, less when more."""

import pytest
from one_service import Station

from tidegate.core.concurrency_limiter import ConcurrencyLimiter
from tidegate.core.limit.vegas import VegasLimit
from tidegate.core.outcome import SUCCESS, TIMEOUT
from tidegate.settings import policies as settings
from tidegate.units import MILLISECOND, MINUTE, SECOND

MS = MILLISECOND


def limit(**changes: object) -> VegasLimit:
    return VegasLimit(settings.Vegas(**{"samples": 1, **changes}))


def steady(policy: VegasLimit, start: int, rtt: int, times: int) -> int:
    """So many rounds with all places in use, one a second."""
    for number in range(times):
        policy.on_sample(start + number * SECOND, rtt, policy.limit, SUCCESS)
    return policy.limit


def known(policy: VegasLimit) -> None:
    """Ten rounds of 10 ms with one in flight: the limit stays, and the least latency is known."""
    for second in range(1, 11):
        policy.on_sample(second * SECOND, 10 * MS, 1, SUCCESS)
    assert policy.least == 10 * MS


def test_with_nothing_in_the_queue_it_grows_by_beta() -> None:
    policy = limit(start=10)
    assert [steady(policy, n * SECOND, 10 * MS, 1) for n in (1, 2)] == [16, 23]  # log10(16) is 1.2
    assert policy.least == 10 * MS


@pytest.mark.parametrize(
    ("rtt", "change"),
    [
        (11, 6),  # 10 x (1 - 10/11) is 0.9, so one waits: nothing to speak of
        (12, 1),  # two wait, fewer than alpha
        (14, 0),  # three
        (20, 0),  # five
        (40, -1),  # eight, more than beta
    ],
)
def test_the_queue_decides(rtt: int, change: int) -> None:
    policy = limit(start=10)
    known(policy)
    policy.on_sample(MINUTE, rtt * MS, 10, SUCCESS)
    assert policy.limit == 10 + change


def test_the_steps_are_longer_for_a_large_limit() -> None:
    policy = limit(start=1000, max=10_000)
    assert steady(policy, SECOND, 10 * MS, 1) == 1000 + 6 * 3
    for second in range(2, 20):
        policy.on_sample(second * SECOND, 10 * MS, 1, SUCCESS)
    assert steady(policy, MINUTE, 100 * MS, 1) == 1000 + 6 * 3 - 4  # less 3.008


def test_trouble_takes_one_step() -> None:
    policy = limit(start=10)
    policy.on_sample(SECOND, MS, 10, TIMEOUT)
    assert policy.limit == 9
    for number in range(20):
        policy.on_sample((2 + number) * SECOND, MS, 10, TIMEOUT)
    assert policy.limit == 1


def test_a_limit_that_nobody_needs_proves_nothing() -> None:
    policy = limit(start=20)
    for number in range(50):
        policy.on_sample((1 + number) * SECOND, 10 * MS, 9, SUCCESS)
    assert policy.limit == 20


def test_it_stays_within_its_bounds() -> None:
    assert steady(limit(start=20, max=22), SECOND, MS, 100) == 22
    policy = limit(start=20, min=19)
    for number in range(10):
        policy.on_sample((1 + number) * SECOND, MS, 20, TIMEOUT)
    assert policy.limit == 19


def test_a_single_fast_round_is_not_taken_for_an_empty_queue() -> None:
    policy = limit(start=20, max=20)
    steady(policy, SECOND, 10 * MS, 50)
    steady(policy, MINUTE, MS, 1)
    assert policy.least == pytest.approx(9.1 * MS)


def test_the_least_latency_is_forgotten_in_halves() -> None:
    policy = limit(start=20, max=20, baseline=10 * MINUTE)
    known(policy)
    for second in range(11, 1200):
        policy.on_sample(second * SECOND, 20 * MS, 20, SUCCESS)
        if second <= 600:
            assert policy.least == 10 * MS
    assert policy.least == pytest.approx(20 * MS, rel=0.01)


def test_after_a_pause_longer_than_the_baseline_nothing_is_remembered() -> None:
    policy = limit(start=20, max=20, baseline=10 * MINUTE)
    known(policy)
    policy.on_sample(60 * MINUTE, 20 * MS, 1, SUCCESS)
    assert policy.least == pytest.approx(11 * MS)  # what is smoothed still holds some of it


def test_until_ten_rounds_have_been_seen_their_mean_is_the_least() -> None:
    policy = limit(start=20, max=20)
    steady(policy, SECOND, 10 * MS, 1)
    steady(policy, 2 * SECOND, 20 * MS, 1)
    assert policy.least == 15 * MS


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_it_finds_the_knee_of_a_busy_service(seed: int) -> None:
    """Ten workers of 10 ms, half as much again offered: nearly all used, with a short queue."""
    limiter = ConcurrencyLimiter(settings.Limit(vegas=settings.Vegas()))
    station = Station(limiter, workers=10, rate=1500, seed=seed)
    served = station.run(30)
    assert 20 <= limiter.limit <= 90
    assert sum(served[10:]) / 20 == pytest.approx(1000, rel=0.04)


def test_it_falls_with_a_slow_service_and_comes_back_with_it() -> None:
    limiter = ConcurrencyLimiter(settings.Limit(vegas=settings.Vegas()))
    station = Station(limiter, workers=10, rate=900, seed=4)
    station.run(20)
    before = limiter.limit
    station.slower = 5.0
    station.run(30)
    assert limiter.limit < before
    station.slower = 1.0
    served = station.run(30)
    assert sum(served[20:]) / 10 == pytest.approx(900, rel=0.05)
