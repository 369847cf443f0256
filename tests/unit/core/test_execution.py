"""One call from its start to its end, told in instants."""

from random import Random

import pytest

from tidegate.core.execution import ATTEMPT, COMPLETE, REJECT, WAIT, Execution
from tidegate.core.outcome import FAILURE, IGNORED, OVERLOADED, SUCCESS, TIMEOUT, Outcome, Reason
from tidegate.core.pipeline import Pipeline
from tidegate.settings.policies import Backoff, Breaker, Budget, Limit
from tidegate.settings.system import Call
from tidegate.units import MILLISECOND, SECOND

MS = MILLISECOND
STEADY = Backoff(base=100 * MS, jitter="none")


def execution(deadline: int | None = None, **settings: object) -> Execution:
    return Execution(Pipeline(Call(**settings), Random(7)), deadline)


def test_a_success_is_the_end() -> None:
    call = execution(attempts=3)
    assert call.start(0) is ATTEMPT
    assert call.settle(5 * MS, SUCCESS) is COMPLETE
    assert (call.number, call.outcome, call.stopped_by) == (1, SUCCESS, None)


def test_without_backoff_the_next_attempt_leaves_at_once_until_all_are_used() -> None:
    call = execution(attempts=3, timeout=50 * MS)
    assert call.start(0) is ATTEMPT
    assert call.settle(50 * MS, TIMEOUT) is ATTEMPT
    assert call.settle(100 * MS, TIMEOUT) is ATTEMPT
    assert call.settle(150 * MS, TIMEOUT) is COMPLETE
    assert (call.number, call.outcome, call.stopped_by) == (3, TIMEOUT, Reason.ATTEMPTS)


def test_with_backoff_it_waits_longer_each_time() -> None:
    call = execution(attempts=3, backoff=STEADY)
    call.start(0)
    assert call.settle(0, FAILURE) is WAIT
    assert call.until == 100 * MS
    assert call.wake(100 * MS) is ATTEMPT
    assert call.settle(100 * MS, FAILURE) is WAIT
    assert call.until == 300 * MS


def test_decorrelated_jitter_goes_by_the_wait_before_and_not_by_what_was_asked_for() -> None:
    decorrelated = Backoff(base=100 * MS, jitter="decorrelated")
    call = execution(attempts=9, backoff=decorrelated)
    call.start(0)
    before = 100 * MS
    for number in range(1, 9):
        assert call.settle(0, FAILURE, 19 * SECOND if number == 4 else 0) is WAIT
        assert number == 4 or call.until == call.waited
        assert 100 * MS <= call.waited <= 3 * before
        before = call.waited
        call.wake(0)


def test_what_may_not_be_repeated_ends_the_call() -> None:
    call = execution(attempts=3, retry_on=("timeout",))
    call.start(0)
    assert call.settle(1, FAILURE) is COMPLETE
    assert call.stopped_by is Reason.NOT_RETRYABLE


def test_a_call_of_one_attempt_was_not_stopped_from_a_second() -> None:
    call = execution(attempts=1)
    call.start(0)
    assert call.settle(1, FAILURE) is COMPLETE
    assert call.stopped_by is None


def test_a_spent_budget_is_known_before_the_wait() -> None:
    call = execution(attempts=3, backoff=STEADY, budget=Budget(ratio=0.0))
    call.start(0)
    assert call.settle(0, FAILURE) is COMPLETE
    assert call.stopped_by is Reason.BUDGET


# Deadlines.


def test_the_last_timeout_is_cut_to_fit_and_nothing_starts_after_the_deadline() -> None:
    call = execution(attempts=9, timeout=400 * MS, deadline=SECOND)
    assert (call.start(0), call.timeout) == (ATTEMPT, 400 * MS)
    assert (call.settle(400 * MS, TIMEOUT), call.timeout) == (ATTEMPT, 400 * MS)
    assert (call.settle(800 * MS, TIMEOUT), call.timeout) == (ATTEMPT, 200 * MS)
    assert call.settle(SECOND, TIMEOUT) is COMPLETE
    assert call.stopped_by is Reason.DEADLINE


def test_a_wait_that_would_end_too_late_is_not_begun() -> None:
    call = execution(150 * MS, attempts=3, backoff=STEADY)
    call.start(0)
    assert call.settle(50 * MS, FAILURE) is COMPLETE
    assert call.stopped_by is Reason.DEADLINE


def test_a_shell_that_wakes_late_finds_no_time_left() -> None:
    call = execution(150 * MS, attempts=3, backoff=STEADY)
    call.start(0)
    assert call.settle(0, FAILURE) is WAIT
    assert call.wake(150 * MS) is COMPLETE
    assert call.stopped_by is Reason.DEADLINE


@pytest.mark.parametrize(
    ("inherited", "own", "timeout"),
    [(300 * MS, None, 300 * MS), (None, 200 * MS, 200 * MS), (300 * MS, 200 * MS, 200 * MS)],
)
def test_the_smaller_of_two_deadlines_counts(
    inherited: int | None, own: int | None, timeout: int
) -> None:
    given = None if inherited is None else SECOND + inherited
    call = Execution(Pipeline(Call(deadline=own), Random(7)), given)
    assert call.start(SECOND) is ATTEMPT
    assert call.timeout == timeout


def test_what_comes_too_late_never_starts() -> None:
    call = execution(SECOND, limit=Limit(max=1))
    assert call.start(SECOND) is REJECT
    assert call.rejection is not None
    assert (call.number, call.rejection.reason, call.stopped_by) == (0, *2 * [Reason.DEADLINE])
    assert call.pipeline.limiter is not None
    assert call.pipeline.limiter.snapshot(SECOND).inflight == 0


# Refusals and cancels.


def test_a_refusal_has_its_reason_and_no_attempt() -> None:
    call = execution(limit=Limit(max=1))
    other = Execution(call.pipeline)
    assert other.start(0) is ATTEMPT
    assert call.start(0) is REJECT
    assert call.rejection is not None
    assert (call.rejection.reason, call.stopped_by) == (Reason.LIMIT, Reason.LIMIT)
    assert call.number == 0


def test_a_circuit_that_opens_meanwhile_refuses_the_retry() -> None:
    call = execution(attempts=2, breaker=Breaker(volume=1))
    call.start(0)
    assert call.settle(1, FAILURE) is REJECT
    assert (call.number, call.stopped_by) == (1, Reason.CIRCUIT_OPEN)


@pytest.mark.parametrize("during", ["attempt", "wait"])
def test_a_user_who_leaves_frees_the_place_and_says_nothing(during: str) -> None:
    call = execution(attempts=2, backoff=STEADY, limit=Limit(max=1), breaker=Breaker(volume=2))
    call.start(0)
    if during == "wait":
        assert call.settle(1, OVERLOADED) is WAIT
    assert call.cancel(2) is COMPLETE
    assert call.outcome is IGNORED
    assert call.pipeline.limiter is not None
    assert call.pipeline.breaker is not None
    assert call.pipeline.limiter.snapshot(2).inflight == 0
    assert call.pipeline.breaker.snapshot(2).calls == (1 if during == "wait" else 0)


@pytest.mark.parametrize("outcome", [SUCCESS, IGNORED])
def test_neither_a_success_nor_a_cancel_is_ever_repeated(outcome: Outcome) -> None:
    call = execution(attempts=5)
    call.start(0)
    assert call.settle(1, outcome) is COMPLETE
    assert call.stopped_by is None


def test_it_takes_over_where_the_flat_path_ended() -> None:
    pipeline = Pipeline(Call(attempts=2, timeout=50 * MS), Random(7))
    call = Execution.resume(pipeline, None, None, 0)
    assert call.settle(50 * MS, TIMEOUT) is ATTEMPT
    assert call.settle(100 * MS, TIMEOUT) is COMPLETE
    assert call.stopped_by is Reason.ATTEMPTS


@pytest.mark.parametrize(
    ("asked", "leaves"), [(0, 100), (99, 100), (100, 100), (101, 101), (20_000, 20_000)]
)
def test_the_next_attempt_leaves_no_earlier_than_the_far_side_asks(asked: int, leaves: int) -> None:
    call = execution(attempts=2, backoff=STEADY)
    call.start(0)
    assert call.settle(MS, OVERLOADED, asked * MS) is WAIT
    assert call.until == MS + leaves * MS


@pytest.mark.parametrize("backoff", [None, Backoff(base=MS, max=20 * SECOND)])
def test_asked_to_stay_away_for_too_long_it_gives_up_and_takes_no_token(
    backoff: Backoff | None,
) -> None:
    call = execution(attempts=2, backoff=backoff, budget=Budget())
    call.start(0)
    assert call.settle(MS, OVERLOADED, 20 * SECOND + 1) is COMPLETE
    assert (call.number, call.stopped_by) == (1, Reason.RETRY_AFTER)
    assert call.pipeline.budget is not None
    assert call.pipeline.budget.snapshot(MS).retried == 0


def test_without_backoff_it_waits_as_long_as_it_is_asked_to() -> None:
    call = execution(attempts=2)
    call.start(0)
    assert call.settle(0, FAILURE, SECOND) is WAIT
    assert call.until == SECOND


def test_a_wait_that_is_asked_for_must_end_before_the_deadline() -> None:
    call = execution(SECOND, attempts=2)
    call.start(0)
    assert call.settle(0, OVERLOADED, SECOND) is COMPLETE
    assert call.stopped_by is Reason.DEADLINE


def test_a_deadline_further_out_may_say_that_the_attempt_was_too_slow() -> None:
    call = execution(breaker=Breaker(volume=1))
    call.start(0)
    assert call.cancel(SECOND, TIMEOUT) is COMPLETE
    assert call.outcome is TIMEOUT
    assert call.pipeline.breaker is not None
    assert call.pipeline.breaker.snapshot(SECOND).failed == 1


def test_without_a_token_of_the_outermost_layer_there_is_no_retry() -> None:
    call = Execution(Pipeline(Call(attempts=3), Random(1)))
    call.start(0)
    assert call.settle(1, FAILURE, paid=True) is ATTEMPT
    assert call.settle(2, FAILURE, paid=False) is COMPLETE
    assert call.stopped_by is Reason.BUDGET
