"""While nothing fails a pipeline only counts: its policies cannot tell, and neither can its caller.

The reference is the same pipeline that never is calm, and so asks every policy every time.
"""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tidegate.core.circuit_breaker import CircuitBreaker
from tidegate.core.outcome import Outcome, Permit, Reason, Rejection
from tidegate.core.pipeline import Pipeline
from tidegate.settings.policies import Adaptive, Breaker, Budget, Limit
from tidegate.settings.system import Call
from tidegate.units import MILLISECOND, SECOND

CALLS = st.builds(
    Call,
    attempts=st.just(2),
    budget=st.none() | st.builds(Budget, window=st.sampled_from([SECOND, 5 * SECOND])),
    breaker=st.none()
    | st.builds(Breaker, volume=st.integers(1, 5), open_for=st.just(300 * MILLISECOND)),
    limit=st.none()
    | st.builds(Limit, max=st.integers(1, 4))
    | st.builds(Limit, adaptive=st.builds(Adaptive, start=st.integers(1, 6)))
    | st.builds(Limit, adaptive=st.just(Adaptive(latency=20 * MILLISECOND))),
)
# Mostly successes, in bursts and after pauses longer than every window.
PAUSES = st.one_of(
    st.integers(0, 50 * MILLISECOND), st.integers(0, 2 * SECOND), st.just(20 * SECOND)
)
OUTCOMES = st.sampled_from([Outcome.SUCCESS] * 6 + list(Outcome))
STEPS = st.lists(
    st.tuples(PAUSES, st.sampled_from(["admit", "settle", "retry"]), st.integers(0, 2), OUTCOMES),
    max_size=60,
)


def state(pipeline: Pipeline, now: int) -> list[object]:
    policies = (pipeline.budget, pipeline.breaker, pipeline.limiter)
    return [policy and policy.snapshot(now) for policy in policies]


def seen(answer: Permit | Rejection) -> tuple[object, ...]:
    if isinstance(answer, Rejection):
        return ("no", answer.reason)
    return ("yes", answer.start, answer.generation)


@given(CALLS, STEPS)
def test_counting_is_the_same_as_asking(
    settings: Call, steps: list[tuple[int, str, int, Outcome]]
) -> None:
    calm, asking = Pipeline(settings, Random(1)), Pipeline(settings, Random(1))
    asking._can_be_calm = False
    out: list[tuple[Permit, Permit]] = []
    now = 0
    for pause, what, number, outcome in steps:
        now += pause
        if what == "admit":
            here, there = calm.admit(now, number), asking.admit(now, number)
            assert seen(here) == seen(there)
            if isinstance(here, Permit) and isinstance(there, Permit):
                out.append((here, there))
        elif what == "settle" and out:
            one, other = out.pop(number % len(out))
            calm.settle(now, one, outcome)
            asking.settle(now, other, outcome)
        elif calm.budget is not None and asking.budget is not None:
            assert calm.budget.try_retry(now) == asking.budget.try_retry(now)
        assert calm.drain_transitions() == asking.drain_transitions()
        assert not asking.calm.until
        assert not asking.calm.shut_until
        if number == 2:  # looking now and then: it may itself slide a window
            assert state(calm, now) == state(asking, now)
    assert state(calm, now) == state(asking, now)


def test_a_failure_that_opens_the_circuit_ends_it() -> None:
    pipeline = Pipeline(Call(breaker=Breaker(volume=1)), Random(1))
    permit = pipeline.admit(0, 0)
    assert isinstance(permit, Permit)
    assert pipeline.calm.until > 0
    pipeline.settle(1, permit, Outcome.FAILURE)
    assert pipeline.calm.until == 0
    assert isinstance(pipeline.admit(2, 0), Rejection)


def test_views_that_share_their_policies_share_it() -> None:
    pipeline = Pipeline(Call(breaker=Breaker(volume=1)), Random(1))
    view = pipeline.adjusted(Call(breaker=Breaker(volume=1), attempts=5), Random(1))
    permit = pipeline.admit(0, 0)
    assert isinstance(permit, Permit)
    assert view.calm is pipeline.calm
    view.settle(1, permit, Outcome.FAILURE)
    assert isinstance(pipeline.admit(2, 0), Rejection)


def test_an_open_circuit_says_no_until_its_time_is_over() -> None:
    pipeline = Pipeline(Call(breaker=Breaker(volume=1, open_for=SECOND, probes=1)), Random(1))
    permit = pipeline.admit(0, 0)
    assert isinstance(permit, Permit)
    pipeline.settle(0, permit, Outcome.FAILURE)
    assert seen(pipeline.admit(1, 0)) == ("no", Reason.CIRCUIT_OPEN)
    assert pipeline.calm.shut_until == SECOND
    assert seen(pipeline.admit(SECOND - 1, 0)) == ("no", Reason.CIRCUIT_OPEN)
    assert pipeline.retry_after(SECOND - 1, Reason.CIRCUIT_OPEN) == 1
    probe = pipeline.admit(SECOND, 0)
    assert isinstance(probe, Permit)
    assert seen(pipeline.admit(SECOND, 0)) == ("no", Reason.CIRCUIT_PROBING)


def test_a_hold_ends_it() -> None:
    pipeline = Pipeline(Call(budget=Budget()), Random(1))
    pipeline.admit(0, 0)
    pipeline.hold()
    assert isinstance(pipeline.admit(1, 0), Rejection)
    pipeline.free()
    assert isinstance(pipeline.admit(2, 0), Permit)


def test_a_breaker_says_how_long_a_success_only_counts() -> None:
    breaker = CircuitBreaker(Breaker(volume=1, window=10 * SECOND, open_for=SECOND), Random(1))
    assert breaker.calm_until(0) == SECOND  # the end of the first of ten buckets
    assert breaker.calm_until(SECOND // 2) == SECOND
    assert breaker.shut_until(0) == 0
    breaker.settle(0, 0, breaker.admit(0), Outcome.FAILURE)
    assert breaker.calm_until(1) == 0
    assert breaker.shut_until(1) == SECOND
    assert breaker.shut_until(SECOND) == 0  # it is half-open by then
