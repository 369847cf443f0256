"""Any sequence of samples, against the law written in fractions over the list of all of them."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tidegate.core.limit.aimd import AimdLimit
from tidegate.core.outcome import OVERLOADED, SUCCESS, TIMEOUT, Outcome
from tidegate.settings import policies as settings
from tidegate.units import MILLISECOND, SECOND

LATENCY = 50 * MILLISECOND


class AimdMachine(RuleBasedStateMachine):
    @initialize(
        low=st.integers(1, 5),
        more=st.integers(0, 50),
        start=st.integers(0, 50),
        decrease=st.sampled_from(["0.1", "0.5", "0.7", "0.9"]),
    )
    def begin(self, low: int, more: int, start: int, decrease: str) -> None:
        high = low + more
        self.low, self.high, self.decrease = low, high, Fraction(decrease)
        self.limit = min(high, low + start)
        self.policy = AimdLimit(
            settings.Adaptive(
                min=low,
                max=high,
                start=self.limit,
                decrease=float(decrease),
                latency=LATENCY,
            )
        )
        self.now = SECOND
        self.cut_at = 0
        self.good = 0

    @rule(
        step=st.integers(0, 20 * MILLISECOND),
        rtt=st.integers(0, 100 * MILLISECOND),
        used=st.integers(0, 100),
        outcome=st.sampled_from(Outcome),
        times=st.integers(1, 30),
    )
    def samples(self, step: int, rtt: int, used: int, outcome: Outcome, times: int) -> None:
        self.now += step
        for _ in range(times):
            inflight = 1 + self.limit * used // 100
            self.expect(rtt, inflight, outcome)
            assert self.policy.on_sample(self.now, rtt, inflight, outcome) == self.limit

    def expect(self, rtt: int, inflight: int, outcome: Outcome) -> None:
        begun = self.now - rtt
        if begun < self.cut_at:
            return
        trouble = outcome in {TIMEOUT, OVERLOADED} or (outcome is SUCCESS and rtt > LATENCY)
        if trouble:
            self.limit = max(self.low, int(self.limit * self.decrease))
            self.cut_at, self.good = self.now, 0
        elif outcome is SUCCESS and Fraction(inflight, self.limit) >= Fraction(1, 2):
            self.good += 1
            if self.good == self.limit:
                self.good = 0
                self.limit = min(self.high, self.limit + 1)

    @rule()
    def good_times_lift_the_limit(self) -> None:
        """However low it has fallen: fed full round trips of successes, it comes back."""
        before = self.limit
        self.now += SECOND
        for _ in range(self.limit):
            self.expect(LATENCY, self.limit, SUCCESS)
            self.policy.on_sample(self.now, LATENCY, self.limit, SUCCESS)
        assert self.policy.limit == self.limit
        assert self.limit > before or self.limit == self.high

    @invariant()
    def stays_within_bounds(self) -> None:
        if hasattr(self, "policy"):
            assert self.low <= self.policy.limit <= self.high


TestAimdMachine = pytest.mark.slow(AimdMachine.TestCase)  # a hundred runs of fifty steps


@given(
    copies=st.integers(1, 8),
    start=st.integers(8, 60),
    trips=st.lists(st.sampled_from([SUCCESS] * 5 + [TIMEOUT]), max_size=80),
)
def test_copies_that_know_of_each_other_hold_together_what_one_would(
    copies: int, start: int, trips: list[Outcome]
) -> None:
    """Each round trip comes to all of them alike. What they round is less than one each a cut, and
    each keeps the one place that it must have."""
    alone = AimdLimit(settings.Adaptive(start=start))
    them = [AimdLimit(settings.Adaptive(start=start)) for _ in range(copies)]
    for policy in them:
        policy.on_others(0, copies - 1)
    for number, outcome in enumerate(trips, 1):
        now = number * SECOND
        for policy in (alone, *them):
            for _ in range(policy.limit if outcome is SUCCESS else 1):
                policy.on_sample(now, MILLISECOND, policy.limit, outcome)
        together = sum(policy.limit for policy in them)
        assert alone.limit - 5 * copies <= together <= alone.limit + 2 * copies


@given(st.integers(2, 100), st.lists(st.integers(0, 20), max_size=30))
def test_coming_and_going_neither_makes_places_nor_loses_them(
    start: int, others: list[int]
) -> None:
    policy = AimdLimit(settings.Adaptive(start=start, min=2, max=100))
    for number, count in enumerate(others):
        part = Fraction(start, count + 1)
        assert policy.on_others(number, count) == min(100, max(2, round(part)))
