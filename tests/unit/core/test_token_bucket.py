"""GCRA: at 10/s and a burst of 3, one every 100 ms, and three after a pause."""

import pytest

from tidegate.core.token_bucket import TokenBucket
from tidegate.settings import policies as settings
from tidegate.units import HOUR, MILLISECOND, SECOND

TEN_PER_SECOND = settings.RateLimit(rate=10, burst=3)


def admitted(bucket: TokenBucket, now: int, tries: int = 1000) -> int:
    return sum(bucket.try_acquire(now) for _ in range(tries))


def test_a_burst_comes_at_once_and_then_one_per_interval() -> None:
    bucket = TokenBucket(TEN_PER_SECOND)
    assert admitted(bucket, 0) == 3
    assert admitted(bucket, 99 * MILLISECOND) == 0
    assert admitted(bucket, 100 * MILLISECOND) == 1
    assert admitted(bucket, 350 * MILLISECOND) == 2
    assert admitted(bucket, HOUR) == 3


def test_refusing_takes_nothing() -> None:
    bucket = TokenBucket(TEN_PER_SECOND)
    assert admitted(bucket, 0, tries=1_000_000 // 100) == 3
    assert bucket.try_acquire(100 * MILLISECOND)


def test_it_says_when_to_come_back_and_keeps_its_word() -> None:
    bucket = TokenBucket(TEN_PER_SECOND)
    assert bucket.retry_after(0) == 0
    admitted(bucket, 0)
    assert bucket.retry_after(30 * MILLISECOND) == 70 * MILLISECOND
    assert not bucket.try_acquire(100 * MILLISECOND - 1)
    assert bucket.try_acquire(100 * MILLISECOND)


def test_a_cost_is_taken_whole_or_not_at_all() -> None:
    bucket = TokenBucket(TEN_PER_SECOND)
    assert bucket.try_acquire(0, 2)
    assert not bucket.try_acquire(0, 2)
    assert bucket.try_acquire(0, 1)
    assert not bucket.try_acquire(HOUR, 4)  # more than the burst never comes
    with pytest.raises(AssertionError):
        bucket.try_acquire(HOUR, 0)


@pytest.mark.parametrize(("rate", "burst"), [(600.0, 60), (5.0, 1), (1 / 3600, 1), (1e7, 10**6)])
def test_the_burst_is_a_tenth_of_a_second_unless_said(rate: float, burst: int) -> None:
    bucket = TokenBucket(settings.RateLimit(rate=rate))
    assert bucket.snapshot(0) == (burst, burst, rate)


@pytest.mark.parametrize(("rate", "loss"), [(7.0, 1e-6), (999.0, 1e-6), (9.9e6, 0.01)])
def test_whole_nanoseconds_cost_little_of_the_rate(rate: float, loss: float) -> None:
    bucket = TokenBucket(settings.RateLimit(rate=rate, burst=1))
    assert bucket.try_acquire(0)
    interval = bucket.retry_after(0)
    assert 1 - loss <= SECOND / interval / rate <= 1


def test_a_change_of_limits_keeps_what_was_taken() -> None:
    bucket = TokenBucket(settings.RateLimit(rate=10, burst=10))
    admitted(bucket, 0, tries=6)
    bucket.reconfigure(0, settings.RateLimit(rate=1000, burst=8))
    assert bucket.snapshot(0) == (2, 8, 1000)


def test_a_higher_limit_helps_at_once() -> None:
    bucket = TokenBucket(settings.RateLimit(rate=1 / 3600, burst=1))
    assert bucket.try_acquire(0)
    assert bucket.retry_after(0) == HOUR
    bucket.reconfigure(0, settings.RateLimit(rate=1000, burst=1))
    assert bucket.retry_after(0) == MILLISECOND


def test_a_lower_limit_binds_at_once_and_asks_no_more_than_a_full_refill() -> None:
    bucket = TokenBucket(settings.RateLimit(rate=1000, burst=100))
    admitted(bucket, 0)
    bucket.reconfigure(0, TEN_PER_SECOND)
    assert admitted(bucket, 0) == 0
    assert bucket.retry_after(0) == 100 * MILLISECOND


def test_an_idle_bucket_is_full_after_a_change() -> None:
    bucket = TokenBucket(TEN_PER_SECOND)
    bucket.reconfigure(HOUR, settings.RateLimit(rate=5, burst=4))
    assert admitted(bucket, HOUR) == 4


def test_copies_that_are_told_of_each_other_are_one_bucket() -> None:
    one, other = TokenBucket(TEN_PER_SECOND), TokenBucket(TEN_PER_SECOND)
    assert admitted(one, 0, 2) == 2
    other.on_others(one.arrival)
    assert admitted(other, 0) == 1
    assert other.arrival == 3 * other.interval
    one.on_others(other.arrival)
    assert admitted(one, 0) == 0
    assert one.retry_after(0) == 100 * MILLISECOND
