"""A share stays at home once more is wanted than twice what is accepted, and some always goes."""

from random import Random

import pytest

from tidegate.core.outcome import FAILURE, IGNORED, OVERLOADED, SUCCESS, TIMEOUT, Outcome
from tidegate.core.throttle import Throttle, ThrottleSnapshot
from tidegate.core.token_bucket import TokenBucket
from tidegate.settings import policies as settings
from tidegate.units import MILLISECOND, SECOND


def throttle(**given: object) -> Throttle:
    return Throttle(settings.Throttle(**given), Random(7))


def settled(policy: Throttle, now: int, outcome: Outcome, times: int) -> None:
    for _ in range(times):
        policy.settle(now, outcome)


def test_the_share_is_the_one_of_the_book() -> None:
    policy = throttle()
    settled(policy, 0, SUCCESS, 10)
    settled(policy, 0, OVERLOADED, 30)
    assert policy.snapshot(0) == ThrottleSnapshot(40, 10, (40 - 2 * 10) / 41, 0)


def test_up_to_twice_what_is_accepted_nothing_is_kept_back_and_no_luck_is_drawn() -> None:
    rng = Random(7)
    before = rng.getstate()
    policy = Throttle(settings.Throttle(), rng)
    settled(policy, 0, SUCCESS, 50)
    settled(policy, 0, TIMEOUT, 50)
    assert all(policy.try_acquire(0) for _ in range(100))
    assert rng.getstate() == before


def test_what_is_kept_back_counts_as_wanted() -> None:
    policy = throttle(most=1)
    settled(policy, 0, OVERLOADED, 1_000)
    kept = sum(not policy.try_acquire(0) for _ in range(100))
    assert kept == 100
    seen = policy.snapshot(0)
    assert (seen.requests, seen.accepts, seen.throttled) == (1_100, 0, 100)


def test_however_bad_it_is_some_go_out() -> None:
    policy = throttle()
    settled(policy, 0, TIMEOUT, 10_000)
    assert policy.snapshot(0).probability == 0.9
    let_out = sum(policy.try_acquire(0) for _ in range(1_000))
    assert let_out == pytest.approx(100, abs=30)


def test_a_few_calls_prove_nothing() -> None:
    policy = throttle(volume=20)
    settled(policy, 0, OVERLOADED, 19)
    assert policy.snapshot(0).probability == 0
    settled(policy, 0, OVERLOADED, 1)
    assert policy.snapshot(0).probability > 0


@pytest.mark.parametrize(
    ("outcome", "counts"),
    [
        (SUCCESS, (1, 1)),
        (FAILURE, (1, 1)),
        (TIMEOUT, (1, 0)),
        (OVERLOADED, (1, 0)),
        (IGNORED, (0, 0)),
    ],
)
def test_an_error_is_an_accept_and_a_timeout_is_none(
    outcome: Outcome, counts: tuple[int, int]
) -> None:
    policy = throttle()
    policy.settle(0, outcome)
    seen = policy.snapshot(0)
    assert (seen.requests, seen.accepts) == counts


def test_the_window_forgets() -> None:
    policy = throttle(window=10 * SECOND)
    settled(policy, 0, OVERLOADED, 100)
    assert policy.snapshot(10 * SECOND - 1).probability > 0
    assert policy.try_acquire(10 * SECOND)
    assert policy.snapshot(10 * SECOND) == ThrottleSnapshot(0, 0, 0, 0)


def test_a_service_that_can_take_some_is_sent_twice_that() -> None:
    """1,000 wanted per second, 100 accepted: 200 are sent, however long it lasts."""
    policy = throttle()
    service = TokenBucket(settings.RateLimit(rate=100, burst=10))
    sent = 0
    for number in range(60_000):
        now = number * MILLISECOND
        if policy.try_acquire(now):
            policy.settle(now, SUCCESS if service.try_acquire(now) else OVERLOADED)
            sent += now >= 30 * SECOND
    assert sent / 30 == pytest.approx(200, rel=0.05)
