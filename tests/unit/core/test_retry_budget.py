"""Retries as a share of requests: the default is 10 % of the last ten seconds, at least one."""

import pytest

from tidegate.core.retry_budget import RetryBudget
from tidegate.settings import policies as settings
from tidegate.units import DAY, MILLISECOND, SECOND


def budget(ratio: float = 0.1, *, requests: int = 0) -> RetryBudget:
    policy = RetryBudget(settings.Budget(ratio=ratio))
    for _ in range(requests):
        policy.on_request(0)
    return policy


def granted(policy: RetryBudget, now: int, tries: int = 1000) -> int:
    return sum(policy.try_retry(now) for _ in range(tries))


def test_it_starts_with_one_token() -> None:
    assert granted(budget(), 0) == 1


def test_ten_requests_pay_for_one_retry_and_nine_do_not() -> None:
    policy = budget()
    assert policy.try_retry(0)
    for _ in range(9):
        policy.on_request(0)
    assert not policy.try_retry(0)
    policy.on_request(0)
    assert policy.try_retry(0)  # with floats the tenth tenth falls short of one


def test_a_rare_caller_saves_one_and_no_more() -> None:
    assert granted(budget(requests=9), 0) == 1


def test_a_busy_caller_saves_its_share_of_the_window() -> None:
    assert granted(budget(requests=200), 0) == 20


def test_a_refused_retry_takes_nothing() -> None:
    policy = budget()
    assert policy.try_retry(0)
    assert granted(policy, 0) == 0
    for _ in range(10):
        policy.on_request(0)
    assert policy.try_retry(0)


def test_deposits_leave_with_their_window() -> None:
    policy = budget(requests=200)
    assert policy.tokens(9_999 * MILLISECOND) == 20
    assert policy.tokens(10 * SECOND) == 1


def test_deposits_are_of_the_second_they_came_in_though_nobody_asks() -> None:
    policy = budget(requests=100)
    for _ in range(100):
        policy.on_request(SECOND)
    assert policy.tokens(10 * SECOND) == 10  # the first hundred have left, the second have not
    assert policy.snapshot(10 * SECOND).requests == 100


def test_an_outage_costs_a_tenth_and_no_more() -> None:
    # 100 requests a second for a minute; each fails and wants three retries.
    policy = budget()
    retries = 0
    for tenth in range(600):
        now = tenth * 100 * MILLISECOND
        for _ in range(10):
            policy.on_request(now)
            retries += granted(policy, now, tries=3)
    assert retries == 600


def test_a_quiet_week_does_not_pay_for_a_storm() -> None:
    policy = budget(requests=100_000)
    assert granted(policy, 7 * DAY) == 1


def test_the_shares_of_nested_layers_add_and_do_not_multiply() -> None:
    # The inner layer hears of the outer's retry as depth 1 and gets no deposit for it.
    outer, inner = budget(1.0), budget(1.0)
    sent = 0
    for request in range(1000):
        now = request * MILLISECOND
        outer.on_request(now)
        inner.on_request(now)
        sent += 1 + inner.try_retry(now)
        if outer.try_retry(now):
            sent += 1 + inner.try_retry(now)
    assert sent == 1000 * 3  # and four times if the inner counted the outer's retries


def test_nought_per_cent_means_no_retry_at_all() -> None:
    assert granted(budget(0.0, requests=1000), 0) == 0


def test_more_than_a_retry_each_is_possible() -> None:
    assert granted(budget(2.0, requests=10), 0) == 20


def test_a_now_from_before_counts_as_the_latest() -> None:
    policy = budget()
    policy.on_request(5 * SECOND)
    policy.on_request(2 * SECOND)  # lost a race to the lock
    assert policy.snapshot(5 * SECOND).requests == 2


def test_the_snapshot_says_what_was_saved_and_spent() -> None:
    policy = budget(requests=25)
    assert granted(policy, 0, tries=3) == 2
    assert policy.snapshot(0) == (pytest.approx(0.5), 2.5, 25, 2, 1)
    assert policy._check()


def exchanged(now: int, *copies: RetryBudget) -> None:
    """Each of the copies hears of all the others, as they stand before."""
    told = [copy.totals(now) for copy in copies]
    for copy in copies:
        own = copy.totals(now).recent
        copy.on_others(
            now,
            deposited=sum(totals.deposited for totals in told),
            retried=sum(totals.retried for totals in told),
            recent=sum(totals.recent for totals in told) - own,
            forfeited=max(totals.forfeited for totals in told),
        )


def test_copies_share_one_first_token() -> None:
    one, other = budget(), budget()
    assert one.try_retry(0)
    exchanged(0, one, other)
    assert granted(one, 0) + granted(other, 0) == 0


def test_copies_spend_what_the_others_saved() -> None:
    one, other = budget(requests=60), budget(requests=40)
    exchanged(0, one, other)
    assert one.tokens(0) == other.tokens(0) == 10
    assert granted(one, 0) == 10
    exchanged(0, one, other)
    assert granted(other, 0) == 0


def test_hearing_of_others_notices_the_time() -> None:
    policy = budget(requests=60)
    policy.on_others(DAY, deposited=20_000_000, retried=0, recent=0, forfeited=0)
    assert policy.snapshot(DAY) == (1.0, 1.0, 0, 0, 0)


def test_what_was_taken_twice_is_owed_and_repaid() -> None:
    one, other = budget(), budget()
    assert one.try_retry(0)
    assert other.try_retry(0)  # before they have heard of each other
    exchanged(0, one, other)
    assert one.tokens(0) == other.tokens(0) == -1
    for _ in range(20):
        one.on_request(0)
    exchanged(0, one, other)
    assert granted(other, 0) == 1


def test_savings_of_all_copies_leave_with_the_window() -> None:
    one, other = budget(requests=100), budget(requests=100)
    exchanged(0, one, other)
    assert one.tokens(0) == 20
    exchanged(20 * SECOND, one, other)  # each still believes in the other's window,
    exchanged(20 * SECOND, one, other)  # and now they know
    assert one.tokens(20 * SECOND) == other.tokens(20 * SECOND) == 1


def test_a_copy_that_comes_late_is_given_no_token_of_its_own() -> None:
    one = budget()
    assert one.try_retry(0)
    late = budget()
    exchanged(0, late, one)
    assert granted(late, 0) == 0


def test_copies_with_different_ratios_spend_the_same_tokens() -> None:
    """As while a new setting is rolled out."""
    old, new = budget(0.2, requests=50), budget(0.1, requests=100)
    exchanged(0, old, new)
    assert old.tokens(0) == 21  # the first, and ten by each
    assert new.tokens(0) == 15  # its own cap: 10 % of 150 requests
    exchanged(0, old, new)
    assert old.tokens(0) == new.tokens(0) == 15
