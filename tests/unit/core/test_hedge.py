"""One call that is asked again while its answer is awaited, told in instants."""

from random import Random

import pytest

from tidegate.core.execution import ATTEMPT, COMPLETE, LISTEN, REJECT, WAIT
from tidegate.core.hedge import Race
from tidegate.core.outcome import FAILURE, IGNORED, OVERLOADED, SUCCESS, TIMEOUT, Outcome, Reason
from tidegate.core.pipeline import Pipeline
from tidegate.settings.policies import Backoff, Breaker, Budget, Hedge, Limit, RateLimit
from tidegate.settings.system import Call
from tidegate.units import MILLISECOND

MS = MILLISECOND


def race(deadline: int | None = None, **said: object) -> Race:
    settings = Call(**{"hedge": Hedge(after=100 * MS), "budget": Budget(ratio=1.0), **said})
    return Race(Pipeline(settings, Random(7)), deadline)


def retried(call: Race) -> int:
    budget = call.execution.pipeline.budget
    assert budget is not None
    return budget.snapshot(0).retried


def test_an_answer_in_time_needs_no_second() -> None:
    call = race()
    assert call.start(0) is ATTEMPT
    assert (call.sent, call.hedge_at) == (1, 100 * MS)
    assert call.settle(50 * MS, 1, SUCCESS) is COMPLETE
    assert (call.execution.outcome, call.hedge_at, call.out) == (SUCCESS, None, 0)
    assert retried(call) == 0


@pytest.mark.parametrize("winner", [1, 2])
def test_the_first_good_answer_wins_and_the_other_says_nothing(winner: int) -> None:
    call = race(breaker=Breaker(volume=1), limit=Limit(max=5))
    call.start(0)
    assert call.hedge(100 * MS) is ATTEMPT
    assert (call.sent, call.out, call.hedge_at) == (2, 2, None)
    assert call.settle(120 * MS, winner, SUCCESS) is COMPLETE
    assert call.out == 0
    assert retried(call) == 1
    pipeline = call.execution.pipeline
    assert pipeline.limiter is not None
    assert pipeline.breaker is not None
    assert pipeline.limiter.inflight == 0
    assert pipeline.breaker.snapshot(120 * MS).calls == 1


def test_a_leg_that_fails_leaves_it_to_the_other() -> None:
    call = race(breaker=Breaker(volume=2))
    call.start(0)
    call.hedge(100 * MS)
    assert call.settle(110 * MS, 1, FAILURE) is LISTEN
    assert call.settle(120 * MS, 2, SUCCESS) is COMPLETE
    assert call.execution.outcome is SUCCESS
    breaker = call.execution.pipeline.breaker
    assert breaker is not None
    assert breaker.snapshot(120 * MS)[3:5] == (2, 1), "two calls, of which one failed"


def test_when_all_have_failed_it_goes_on_as_any_call() -> None:
    call = race(attempts=2, backoff=Backoff(base=50 * MS, jitter="none"), budget=Budget(ratio=9.0))
    call.start(0)
    call.hedge(100 * MS)
    assert call.settle(110 * MS, 2, TIMEOUT) is LISTEN
    assert call.settle(120 * MS, 1, OVERLOADED) is WAIT
    assert call.execution.until == 170 * MS
    assert call.wake(170 * MS) is ATTEMPT
    assert (call.sent, call.out, call.hedge_at) == (3, 1, 270 * MS)
    assert call.hedge(270 * MS) is ATTEMPT
    assert call.settle(280 * MS, 3, FAILURE) is LISTEN
    assert call.settle(290 * MS, 4, FAILURE) is COMPLETE
    assert call.execution.stopped_by is Reason.ATTEMPTS
    assert retried(call) == 3


def test_what_may_not_be_repeated_ends_it_for_all() -> None:
    call = race(retry_on=("timeout",), limit=Limit(max=5))
    call.start(0)
    call.hedge(100 * MS)
    assert call.settle(110 * MS, 2, FAILURE) is COMPLETE
    assert (call.execution.outcome, call.out) == (FAILURE, 0)
    assert call.execution.pipeline.limiter is not None
    assert call.execution.pipeline.limiter.inflight == 0


def test_without_a_token_it_waits_for_the_one_that_is_out() -> None:
    call = race(budget=Budget(ratio=0.0))
    call.start(0)
    assert call.hedge(100 * MS) is LISTEN
    assert (call.out, call.hedge_at) == (1, None)
    again = race()
    again.start(0)
    assert again.hedge(100 * MS, paid=False) is LISTEN
    assert retried(again) == 0


def test_a_call_that_hedges_has_a_budget_in_any_case() -> None:
    call = race(budget=None)
    call.start(0)
    assert [call.hedge(100 * MS), call.out] == [ATTEMPT, 2], "the one token of a rare caller"
    other = Race(call.execution.pipeline)
    other.start(0)
    assert other.hedge(100 * MS) is LISTEN


def test_what_the_policies_refuse_is_not_sent() -> None:
    call = race(rate_limit=RateLimit(rate=1, burst=1))
    assert call.start(0) is ATTEMPT
    assert call.hedge(100 * MS) is LISTEN
    other = Race(call.execution.pipeline)
    assert other.start(100 * MS) is REJECT
    assert other.execution.stopped_by is Reason.RATE


def test_each_more_waits_as_long_again_up_to_so_many() -> None:
    call = race(hedge=Hedge(after=100 * MS, max=2), budget=Budget(ratio=9.0))
    pipeline = call.execution.pipeline
    for _ in range(5):
        assert pipeline.budget is not None
        pipeline.budget.on_request(0)
    call.start(0)
    assert call.hedge(100 * MS) is ATTEMPT
    assert call.hedge_at == 200 * MS
    assert call.hedge(200 * MS) is ATTEMPT
    assert (call.sent, call.hedge_at) == (3, None)


def test_nothing_is_sent_after_the_deadline_and_the_timeout_is_cut_to_it() -> None:
    call = race(150 * MS, timeout=120 * MS)
    call.start(0)
    assert call.timeout == 120 * MS
    assert call.hedge(100 * MS) is ATTEMPT
    assert call.timeout == 50 * MS
    late = race(150 * MS)
    late.start(0)
    assert late.hedge(150 * MS) is LISTEN
    soon = race(100 * MS)
    soon.start(0)
    assert soon.hedge_at is None


@pytest.mark.parametrize("outcome", [IGNORED, TIMEOUT])
def test_a_user_who_leaves_frees_all_places(outcome: Outcome) -> None:
    call = race(limit=Limit(max=5), breaker=Breaker(volume=2))
    call.start(0)
    call.hedge(100 * MS)
    assert call.cancel(110 * MS, outcome) is COMPLETE
    assert (call.out, call.hedge_at, call.execution.outcome) == (0, None, outcome)
    pipeline = call.execution.pipeline
    assert pipeline.limiter is not None
    assert pipeline.breaker is not None
    assert pipeline.limiter.inflight == 0
    assert pipeline.breaker.snapshot(110 * MS).failed == (2 if outcome is TIMEOUT else 0)


def test_what_must_not_be_done_twice_is_not_hedged() -> None:
    pipeline = Pipeline(Call(hedge=Hedge(after=MS), idempotent=False), Random(7))
    assert (pipeline.hedge, pipeline.budget) == (None, None)
