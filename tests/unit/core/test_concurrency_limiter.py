"""So many in flight, and each place given back once."""

import pytest

from tidegate.core.concurrency_limiter import ConcurrencyLimiter
from tidegate.core.outcome import IGNORED, SUCCESS, TIMEOUT
from tidegate.settings import policies as settings
from tidegate.units import MILLISECOND, SECOND

RTT = 10 * MILLISECOND


def fixed(limit: int) -> ConcurrencyLimiter:
    return ConcurrencyLimiter(settings.Limit(max=limit))


def adaptive(start: int) -> ConcurrencyLimiter:
    return ConcurrencyLimiter(settings.Limit(adaptive=settings.Adaptive(start=start)))


def test_a_full_limiter_refuses_until_one_comes_back() -> None:
    limiter = fixed(2)
    assert [limiter.try_acquire(0) for _ in range(3)] == [True, True, False]
    limiter.release(RTT, RTT, SUCCESS)
    assert [limiter.try_acquire(RTT) for _ in range(2)] == [True, False]
    assert limiter.snapshot(RTT) == (2, 2, 2)


def test_an_adaptive_limit_follows_what_comes_back() -> None:
    limiter = adaptive(10)
    for _ in range(10):
        assert limiter.try_acquire(0)
    limiter.release(RTT, RTT, TIMEOUT)
    assert (limiter.limit, limiter.inflight) == (7, 9)


def test_a_limit_below_what_is_out_waits_for_it_to_come_back() -> None:
    limiter = adaptive(10)
    for _ in range(10):
        limiter.try_acquire(0)
    limiter.release(RTT, RTT, TIMEOUT)
    assert not limiter.try_acquire(RTT)
    limiter.release(RTT, RTT, TIMEOUT)
    limiter.release(RTT, RTT, TIMEOUT)
    assert not limiter.try_acquire(RTT)  # seven are out, of seven
    limiter.release(RTT, RTT, TIMEOUT)
    assert limiter.try_acquire(RTT)


def test_a_cancelled_call_gives_its_place_back_and_teaches_nothing() -> None:
    limiter = adaptive(1)
    for second in range(20):
        assert limiter.try_acquire(second * SECOND)
        limiter.release(second * SECOND + RTT, RTT, IGNORED)
    assert (limiter.limit, limiter.inflight) == (1, 0)


def test_giving_back_what_was_not_taken_is_a_bug() -> None:
    with pytest.raises(AssertionError):
        fixed(2).release(RTT, RTT, SUCCESS)


def test_only_a_limit_that_goes_by_trouble_is_parted() -> None:
    parted = adaptive(20)
    parted.on_others(0, 3)
    assert (parted.limit, parted.indifferent) == (5, 3)
    for law in ({"max": 20}, {"gradient": settings.Gradient()}, {"vegas": settings.Vegas()}):
        limiter = ConcurrencyLimiter(settings.Limit(**law))
        limiter.on_others(0, 3)
        assert limiter.limit == 20
