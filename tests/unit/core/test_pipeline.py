"""The order of the policies, told in instants: throttle, rate, breaker, limit, and the budget."""

from random import Random

import msgspec
import pytest

from tidegate.core.circuit_breaker import OPEN
from tidegate.core.outcome import (
    FAILURE,
    IGNORED,
    OVERLOADED,
    SUCCESS,
    TIMEOUT,
    Permit,
    Reason,
    Rejection,
)
from tidegate.core.pipeline import Pipeline
from tidegate.settings.policies import Breaker, Budget, Hedge, Limit, RateLimit, Throttle
from tidegate.settings.system import Call
from tidegate.units import MILLISECOND, SECOND


def pipeline(**settings: object) -> Pipeline:
    return Pipeline(Call(**settings), Random(7))


def refused(answer: Permit | Rejection) -> Reason | None:
    return answer.reason if isinstance(answer, Rejection) else None


def test_with_nothing_to_ask_a_shell_may_skip_it() -> None:
    assert pipeline(attempts=3, retry_on=("timeout",)).plain
    assert not pipeline(budget=Budget()).plain
    assert not pipeline(throttle=Throttle()).plain
    assert not pipeline(breaker=Breaker()).plain
    assert not pipeline(limit=Limit(max=1)).plain
    assert not pipeline(rate_limit=RateLimit(rate=1)).plain


def test_what_is_kept_at_home_takes_nothing_from_the_others() -> None:
    line = pipeline(
        throttle=Throttle(volume=1, most=1),
        rate_limit=RateLimit(rate=1, burst=1),
        limit=Limit(max=1),
        budget=Budget(ratio=1.0),
    )
    assert line.throttle is not None
    assert line.budget is not None
    for _ in range(10_000):
        line.throttle.settle(0, OVERLOADED)
    assert {refused(line.admit(0, 0)) for _ in range(20)} == {Reason.THROTTLED}
    assert line.budget.snapshot(0).requests == 0
    later = 20 * SECOND
    assert [refused(line.admit(later, 0)) for _ in range(2)] == [None, Reason.RATE]
    assert line.throttle.snapshot(later).requests == 0, "a call that others refuse says nothing"


def test_the_rate_is_asked_before_the_limit() -> None:
    line = pipeline(rate_limit=RateLimit(rate=1, burst=1), limit=Limit(max=1))
    assert refused(line.admit(0, 0)) is None
    assert refused(line.admit(0, 0)) is Reason.RATE
    assert refused(line.admit(SECOND, 0)) is Reason.LIMIT


def test_a_call_refused_by_the_limit_leaves_no_trace_in_the_breaker() -> None:
    line = pipeline(breaker=Breaker(volume=1, probes=1), limit=Limit(max=1))
    held = line.admit(0, 0)
    assert isinstance(held, Permit)
    line.settle(1, held, FAILURE)
    assert line.breaker is not None
    assert line.breaker.state(1) is OPEN
    assert refused(line.admit(2, 0)) is Reason.CIRCUIT_OPEN
    half_open = 1 + Breaker().open_for
    probe = line.admit(half_open, 0)
    assert isinstance(probe, Permit)
    assert refused(line.admit(half_open, 0)) is Reason.CIRCUIT_PROBING
    line.settle(half_open, probe, IGNORED)
    again = line.admit(half_open, 0)
    assert isinstance(again, Permit), "an ignored probe gives its place to another"


def test_a_probe_that_the_limit_refuses_gives_its_place_back() -> None:
    line = pipeline(breaker=Breaker(volume=1, probes=1), limit=Limit(max=1))
    first, slow = line.admit(0, 0), None
    assert isinstance(first, Permit)
    line.settle(1, first, FAILURE)
    assert line.limiter is not None
    assert line.limiter.try_acquire(1)  # somebody else holds the only place
    half_open = 1 + Breaker().open_for
    assert refused(line.admit(half_open, 0)) is Reason.LIMIT
    line.limiter.release(half_open, MILLISECOND, SUCCESS)
    slow = line.admit(half_open, 0)
    assert isinstance(slow, Permit)


def test_only_a_request_that_is_no_retry_itself_deposits() -> None:
    line = pipeline(attempts=2, budget=Budget(ratio=1.0))
    assert line.budget is not None
    before = line.budget.tokens(0)
    line.admit(0, 1)
    assert line.budget.tokens(0) == before
    for _ in range(3):
        line.admit(0, 0)
    assert line.budget.tokens(0) > before


def test_an_attempt_is_settled_once() -> None:
    line = pipeline(limit=Limit(max=2))
    permit = line.admit(0, 0)
    line.admit(0, 0)
    assert isinstance(permit, Permit)
    line.settle(1, permit, TIMEOUT)
    line.settle(2, permit, TIMEOUT)
    assert line.limiter is not None
    assert line.limiter.snapshot(2).inflight == 1


def test_a_person_may_take_it_out_and_bring_it_back() -> None:
    line = pipeline()
    line.hold()
    assert not line.plain
    assert refused(line.admit(0, 0)) is Reason.HELD
    line.free()
    assert refused(line.admit(0, 0)) is None


def test_a_rate_limit_comes_changes_and_goes_while_calls_are_under_way() -> None:
    line = pipeline()
    line.limit_rate(0, RateLimit(rate=1, burst=1))
    assert [refused(line.admit(0, 0)) for _ in range(2)] == [None, Reason.RATE]
    line.limit_rate(0, RateLimit(rate=1000, burst=1))
    assert [refused(line.admit(SECOND, 0)) for _ in range(2)] == [None, Reason.RATE]
    line.limit_rate(SECOND, None)
    assert {refused(line.admit(SECOND, 0)) for _ in range(5)} == {None}


@pytest.mark.parametrize("reason", ["timeout", "failure", "overloaded"])
def test_only_the_outcomes_that_are_named_may_be_repeated(reason: str) -> None:
    line = pipeline(attempts=2, retry_on=(reason,))
    assert [outcome.name.lower() for outcome in type(SUCCESS) if line.retryable[outcome]] == [
        reason
    ]


def test_transitions_are_drained_once_and_there_are_none_without_a_breaker() -> None:
    assert pipeline().drain_transitions() == []
    line = pipeline(breaker=Breaker(volume=1))
    permit = line.admit(0, 0)
    assert isinstance(permit, Permit)
    line.settle(5, permit, FAILURE)
    assert [(change.at, change.after) for change in line.drain_transitions()] == [(5, "open")]
    assert line.drain_transitions() == []


def test_what_must_not_be_done_twice_is_repeated_only_after_a_refusal() -> None:
    """A refused one was not done; one that failed or was given up may have been."""
    line = pipeline(attempts=2, idempotent=False)
    assert [outcome.name for outcome in type(SUCCESS) if line.retryable[outcome]] == ["OVERLOADED"]
    assert not any(pipeline(attempts=2, idempotent=False, retry_on=("timeout",)).retryable)


def test_a_refused_request_pays_nothing_into_the_budget() -> None:
    """Else an hour behind an open breaker would pay for a burst of retries when it closes."""
    line = pipeline(budget=Budget(ratio=1.0), rate_limit=RateLimit(rate=1, burst=1))
    assert line.budget is not None
    assert refused(line.admit(0, 0)) is None
    assert refused(line.admit(0, 0)) is Reason.RATE
    assert line.budget.snapshot(0).requests == 1


def test_adjusted_goes_on_with_the_policies_whose_settings_are_the_same():
    rng = Random(1)
    before = Pipeline(
        Call(
            attempts=2,
            budget=Budget(),
            throttle=Throttle(),
            breaker=Breaker(),
            limit=Limit(max=3),
        ),
        rng,
    )
    before.hold()
    after = before.adjusted(
        Call(attempts=5, budget=Budget(), throttle=Throttle(), breaker=Breaker(volume=7)), rng
    )
    assert after.throttle is before.throttle
    assert after.attempts == 5
    assert after.budget is before.budget
    assert after.breaker is not before.breaker
    assert after.limiter is None
    assert after.held


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("budget", {"budget": Budget(ratio=0.5)}),
        ("throttle", {"throttle": Throttle(ratio=3.0)}),
        ("breaker", {"breaker": None}),
        ("limiter", {"limit": Limit(max=4)}),
        ("rate", {"rate_limit": RateLimit(rate=9)}),
    ],
)
def test_one_that_differs_begins_anew_and_the_others_go_on(part: str, change: dict) -> None:
    rng = Random(1)
    call = Call(
        budget=Budget(),
        throttle=Throttle(),
        breaker=Breaker(),
        limit=Limit(max=3),
        rate_limit=RateLimit(rate=5),
    )
    before = Pipeline(call, rng)
    after = before.adjusted(msgspec.structs.replace(call, **change), rng)
    kept = {
        name
        for name in ("budget", "throttle", "breaker", "limiter", "rate")
        if getattr(after, name) is getattr(before, name)
    }
    assert kept == {"budget", "throttle", "breaker", "limiter", "rate"} - {part}


def test_a_budget_that_a_hedge_brings_goes_on_as_well() -> None:
    rng = Random(1)
    before = Pipeline(Call(hedge=Hedge(after=SECOND)), rng)
    assert before.adjusted(Call(hedge=Hedge(after=SECOND), attempts=3), rng).budget is before.budget
    assert before.adjusted(Call(), rng).budget is None


def test_retry_after_is_known_by_the_policy_that_refused():
    pipeline = Pipeline(
        Call(breaker=Breaker(volume=1, open_for=3 * SECOND), rate_limit=RateLimit(rate=2, burst=1)),
        Random(1),
    )
    permit = pipeline.admit(0, 0)
    assert pipeline.retry_after(0, Reason.RATE) == SECOND // 2
    pipeline.settle(SECOND, permit, FAILURE)
    assert pipeline.retry_after(2 * SECOND, Reason.CIRCUIT_OPEN) == 2 * SECOND
    assert pipeline.retry_after(0, Reason.LIMIT) is None


@pytest.mark.parametrize("calm", [False, True])
@pytest.mark.parametrize("limited", [False, True])
def test_a_permit_that_nobody_gets_keeps_no_place(
    monkeypatch: pytest.MonkeyPatch, calm: bool, limited: bool
) -> None:
    line = pipeline(limit=Limit(max=3) if limited else None, breaker=Breaker())
    if calm:
        permit = line.admit(0, 0)
        assert isinstance(permit, Permit)
        line.settle(0, permit, SUCCESS)

    def interrupted(*_: object) -> Permit:
        raise KeyboardInterrupt

    monkeypatch.setattr("tidegate.core.pipeline.Permit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        line.admit(1, 0)
    assert line.limiter is None or line.limiter.inflight == 0
