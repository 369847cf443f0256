"""The flat path of a call that succeeds at once and the full machine take the same decisions.

One script of calls, each with its instant and how its attempts will end, goes through both: every
call an `Execution` from its start, and `Pipeline.admit` with an `Execution` only from the first
failure on. Every step, at every instant, and what the policies remember must be the same.
"""

from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.core.execution import ATTEMPT, WAIT, Execution, Step
from tidegate.core.outcome import SUCCESS, Outcome, Rejection
from tidegate.core.pipeline import Pipeline
from tidegate.settings.policies import (
    Backoff,
    Breaker,
    Budget,
    Gradient,
    Jitter,
    Limit,
    RateLimit,
    Throttle,
    Vegas,
)
from tidegate.settings.system import Call
from tidegate.units import MILLISECOND, SECOND

pytestmark = pytest.mark.slow  # 200 scripts of up to 40 calls

LAWS = st.sampled_from(
    [
        Limit(gradient=Gradient(start=3, samples=2, queue=1)),
        Limit(vegas=Vegas(start=3, samples=2)),
    ]
)
CALLS = st.builds(
    Call,
    attempts=st.integers(1, 4),
    timeout=st.none() | st.just(50 * MILLISECOND),
    backoff=st.none() | st.builds(Backoff, jitter=st.sampled_from(get_args(Jitter))),
    retry_on=st.sampled_from([("timeout",), ("timeout", "failure"), ("overloaded", "failure")]),
    budget=st.none() | st.builds(Budget, ratio=st.sampled_from([0.0, 0.1, 0.5])),
    throttle=st.none() | st.builds(Throttle, volume=st.integers(1, 5), most=st.just(0.6)),
    breaker=st.none() | st.builds(Breaker, volume=st.integers(1, 5), probes=st.integers(1, 2)),
    limit=st.none() | st.builds(Limit, max=st.integers(1, 4)) | LAWS,
    rate_limit=st.none() | st.builds(RateLimit, rate=st.sampled_from([5.0, 50.0])),
)
ATTEMPTS = st.lists(
    st.tuples(st.integers(0, 200 * MILLISECOND), st.sampled_from(Outcome)), min_size=4, max_size=4
)
SCRIPTS = st.lists(st.tuples(st.integers(0, SECOND), st.integers(0, 1), ATTEMPTS), max_size=40)

Script = list[tuple[int, int, list[tuple[int, Outcome]]]]


class Driver:
    """A shell in virtual time that notes every step of every call."""

    def __init__(self, settings: Call, *, flat: bool) -> None:
        self.pipeline = Pipeline(settings, Random(7))
        self.flat = flat
        self.steps: list[tuple[Any, ...]] = []
        self.events: list[tuple[Any, ...]] = []
        self.order = count()

    def play(self, script: Script) -> None:
        for number, (at, depth, ends) in enumerate(script):
            self.later(at, self.begin, number, depth, iter(ends))
        while self.events:
            now, _, do, arguments = heappop(self.events)
            do(now, *arguments)

    def later(self, at: int, do: Any, *arguments: Any) -> None:
        heappush(self.events, (at, next(self.order), do, arguments))

    def begin(self, now: int, call: int, depth: int, ends: Any) -> None:
        if not self.flat:
            execution = Execution(self.pipeline, None, depth)
            self.step(now, call, execution, execution.start(now), ends)
            return
        permit = None if self.pipeline.plain else self.pipeline.admit(now, depth)
        if type(permit) is Rejection:
            self.note(now, call, Step.REJECT, permit.reason, None)
            return
        self.note(now, call, ATTEMPT, None, self.pipeline.timeout)
        took, outcome = next(ends)
        self.later(now + took, self.end_flat, call, depth, permit, outcome, ends)

    def end_flat(
        self, now: int, call: int, depth: int, permit: Any, outcome: Outcome, ends: Any
    ) -> None:
        if outcome is SUCCESS:
            if permit is not None:
                self.pipeline.settle(now, permit, outcome)
            self.note(now, call, Step.COMPLETE, None, None)
            return
        execution = Execution.resume(self.pipeline, permit, None, depth)
        self.step(now, call, execution, execution.settle(now, outcome), ends)

    def step(self, now: int, call: int, execution: Execution, step: Step, ends: Any) -> None:
        shown = {ATTEMPT: execution.timeout, WAIT: execution.until}.get(step)
        self.note(now, call, step, execution.stopped_by, shown)
        if step is ATTEMPT:
            took, outcome = next(ends)
            self.later(now + took, self.end, call, execution, outcome, ends)
        elif step is WAIT:
            self.later(execution.until, self.wake, call, execution, ends)

    def end(self, now: int, call: int, execution: Execution, outcome: Outcome, ends: Any) -> None:
        self.step(now, call, execution, execution.settle(now, outcome), ends)

    def wake(self, now: int, call: int, execution: Execution, ends: Any) -> None:
        self.step(now, call, execution, execution.wake(now), ends)

    def note(self, *step: Any) -> None:
        self.steps.append(step)

    def memory(self, now: int) -> list[Any]:
        """What the policies remember."""
        parts = ("budget", "throttle", "breaker", "limiter", "rate")
        policies = [getattr(self.pipeline, part) for part in parts]
        return [policy and policy.snapshot(now) for policy in policies]


@given(CALLS, SCRIPTS)
def test_both_roads_lead_through_the_same_steps(settings: Call, script: Script) -> None:
    machine, flat = Driver(settings, flat=False), Driver(settings, flat=True)
    machine.play(script)
    flat.play(script)
    assert flat.steps == machine.steps
    assert flat.memory(60 * SECOND) == machine.memory(60 * SECOND)


@given(CALLS, SCRIPTS)
def test_no_call_makes_more_attempts_than_it_may(settings: Call, script: Script) -> None:
    driver = Driver(settings, flat=False)
    driver.play(script)
    sent = [step[1] for step in driver.steps if step[2] is ATTEMPT]
    assert all(sent.count(call) <= settings.tries for call in set(sent))
    limiter = driver.pipeline.limiter
    assert limiter is None or limiter.snapshot(60 * SECOND).inflight == 0
