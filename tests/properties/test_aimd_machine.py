"""Any sequence of samples, against the law written in fractions over the list of all of them."""

from fractions import Fraction

import pytest
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
