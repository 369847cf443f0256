"""Who comes and goes on leave given in advance is counted as if he had asked and told.

The reference is a pipeline that is asked and told of everything, at once.
"""

from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tidegate.core.leaves import Leave, Leaves
from tidegate.core.outcome import SUCCESS, Outcome, Permit, Rejection
from tidegate.core.pipeline import Pipeline
from tidegate.settings.policies import Adaptive, Breaker, Budget, Limit
from tidegate.settings.system import Call
from tidegate.units import MILLISECOND, SECOND

NEVER = 1 << 62

CALLS = st.builds(
    Call,
    attempts=st.just(2),
    budget=st.none() | st.builds(Budget, window=st.sampled_from([SECOND, 5 * SECOND])),
    breaker=st.none()
    | st.builds(Breaker, volume=st.integers(1, 5), open_for=st.just(300 * MILLISECOND)),
    limit=st.none()
    | st.builds(Limit, max=st.integers(1, 6))
    | st.builds(Limit, adaptive=st.builds(Adaptive, start=st.integers(1, 20)))
    | st.builds(Limit, adaptive=st.just(Adaptive(latency=20 * MILLISECOND))),
)
PAUSES = st.one_of(
    st.integers(0, 5 * MILLISECOND), st.integers(0, 2 * SECOND), st.just(20 * SECOND)
)
OUTCOMES = st.sampled_from([SUCCESS] * 12 + list(Outcome))
STEPS = st.lists(
    st.tuples(
        PAUSES, st.sampled_from(["begin"] * 3 + ["end"] * 3 + ["look"]), st.integers(0, 9), OUTCOMES
    ),
    max_size=80,
)


class Shell:
    """What a shell does with its leaves, in one thread. `looks` is how long it may go unasked."""

    def __init__(self, settings: Call, looks: int) -> None:
        self.pipeline = Pipeline(settings, Random(1))
        self.leaves = Leaves()
        self.looks = looks
        self.unasked = 0
        self.totals = [0, 0, 0]

    def take_stock(self) -> None:
        self.totals = [a + b for a, b in zip(self.totals, self.leaves.take_stock(), strict=True)]

    def begin(self, now: int) -> Leave | Permit | Rejection:
        if self.leaves.left and now < self.leaves.until:
            self.unasked += 1
            return self.leaves.left.pop()
        self.take_stock()
        return self.pipeline.admit(now, 0)

    def end(self, now: int, start: int, leave: Leave | Permit, outcome: Outcome) -> None:
        leaves = self.leaves
        if isinstance(leave, Leave):
            if outcome is SUCCESS and now < leaves.until and leave is leaves.leave:
                leaves.ended.append(leave)
                return
            leave = leave.permit(start)
        self.take_stock()
        self.pipeline.settle(now, leave, outcome)
        if outcome is SUCCESS:
            leaves.hand_out(now, self.pipeline, now + self.looks)


def state(pipeline: Pipeline, now: int) -> list[object]:
    policies = (pipeline.budget, pipeline.breaker, pipeline.limiter)
    return [policy and policy.snapshot(now) for policy in policies]


@given(CALLS, STEPS, st.sampled_from([50 * MILLISECOND, NEVER]))
def test_what_comes_and_goes_unasked_is_as_if_it_had_asked(
    settings: Call, steps: list[tuple[int, str, int, Outcome]], looks: int
) -> None:
    shell, asking = Shell(settings, looks), Pipeline(settings, Random(1))
    out: list[tuple[int, Leave | Permit, Permit]] = []
    now = 0
    for pause, what, number, outcome in steps:
        now += pause
        if what == "begin":
            here, there = shell.begin(now), asking.admit(now, 0)
            if isinstance(there, Permit):
                assert not isinstance(here, Rejection)
                assert here.generation == there.generation
                out.append((now, here, there))
            else:
                assert here is there
        elif what == "end" and out:
            start, one, other = out.pop(number % len(out))
            shell.end(now, start, one, outcome)
            asking.settle(now, other, outcome)
        else:
            shell.take_stock()
            assert state(shell.pipeline, now) == state(asking, now)
    shell.take_stock()
    assert state(shell.pipeline, now) == state(asking, now)
    assert shell.totals[0] == shell.unasked


def calm(settings: Call) -> tuple[Pipeline, Leaves]:
    """A pipeline that has just ended a call well, and has handed out leave."""
    pipeline, leaves = Pipeline(settings, Random(1)), Leaves()
    permit = pipeline.admit(0, 0)
    assert isinstance(permit, Permit)
    pipeline.settle(1, permit, SUCCESS)
    leaves.hand_out(1, pipeline, SECOND)
    return pipeline, leaves


def test_as_much_leave_is_given_as_can_be_out_with_nothing_to_decide() -> None:
    _, leaves = calm(Call(limit=Limit(adaptive=Adaptive(start=20))))
    assert len(leaves.left) == 9  # with ten of twenty out a success begins to count
    _, leaves = calm(Call(limit=Limit(max=5)))
    assert len(leaves.left) == 5
    _, leaves = calm(Call(budget=Budget(), attempts=2))
    assert len(leaves.left) == 64
    _, leaves = calm(Call(limit=Limit(adaptive=Adaptive(start=2))))
    assert (leaves.left, leaves.until) == ([], 0)


def test_taking_stock_takes_back_what_is_left_and_counts_the_rest() -> None:
    pipeline, leaves = calm(Call(limit=Limit(max=5)))
    assert pipeline.limiter is not None
    taken = [leaves.left.pop() for _ in range(3)]
    leaves.ended.append(taken.pop())
    assert leaves.take_stock() == (3, 1, 0)
    assert (leaves.left, leaves.ended, leaves.until) == ([], [], 0)
    assert pipeline.limiter.inflight == 2
    assert leaves.take_stock() == (0, 0, 0)


def test_who_ends_with_leave_of_an_era_that_is_over_gives_his_place_back_and_no_more() -> None:
    pipeline, leaves = calm(Call(breaker=Breaker(), limit=Limit(max=5)))
    assert pipeline.limiter is not None
    assert pipeline.breaker is not None
    late = leaves.left.pop()
    leaves.take_stock()
    pipeline.calm.generation += 1
    leaves.hand_out(2, pipeline, SECOND)
    calls = pipeline.breaker.calls
    leaves.ended.extend([late, leaves.left.pop()])
    assert leaves.take_stock() == (1, 2, 0)
    assert pipeline.limiter.inflight == 0
    assert pipeline.breaker.calls == calls + 1


def test_an_open_circuit_says_how_long_its_one_answer_holds() -> None:
    pipeline, leaves = calm(Call(breaker=Breaker(volume=1, open_for=3 * SECOND)))
    leaves.take_stock()
    permit = pipeline.admit(2, 0)
    assert isinstance(permit, Permit)
    pipeline.settle(2, permit, Outcome.FAILURE)
    pipeline.admit(3, 0)
    leaves.hand_out(3, pipeline, 2 * SECOND)
    assert (leaves.left, leaves.until, leaves.shut_until) == ([], 0, 2 * SECOND)
    leaves.refused.append(None)
    assert leaves.take_stock() == (0, 0, 1)
    assert (leaves.refused, leaves.shut_until) == ([], 0)


def test_without_a_limit_there_is_no_place_to_give_back() -> None:
    pipeline, leaves = calm(Call(breaker=Breaker()))
    late = leaves.left.pop()
    leaves.take_stock()
    pipeline.calm.generation += 1
    leaves.hand_out(2, pipeline, SECOND)
    leaves.ended.append(late)
    assert leaves.take_stock() == (0, 1, 0)


class Snatched(list[Leave]):
    """Somebody is quicker to take the last one."""

    def __delitem__(self, index: Any) -> None:
        last = len(self) == 1
        super().__delitem__(index)
        if last:
            raise IndexError


def test_who_takes_a_leave_while_stock_is_taken_is_counted() -> None:
    pipeline, leaves = calm(Call(limit=Limit(max=5)))
    assert pipeline.limiter is not None
    object.__setattr__(leaves, "left", Snatched(leaves.left))
    assert leaves.take_stock() == (1, 0, 0)
    assert pipeline.limiter.inflight == 1
