"""Any sequence of samples, against the law written out over the list of all of them."""

import math

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tidegate.core.limit.gradient import GradientLimit
from tidegate.core.outcome import OVERLOADED, SUCCESS, TIMEOUT, Outcome
from tidegate.settings import policies as settings
from tidegate.units import MILLISECOND, MINUTE, SECOND


class GradientMachine(RuleBasedStateMachine):
    @initialize(
        low=st.integers(1, 5),
        more=st.integers(0, 50),
        start=st.integers(0, 50),
        samples=st.integers(1, 5),
        tolerance=st.sampled_from([1.0, 1.5, 3.0]),
        smoothing=st.sampled_from([0.1, 0.2, 1.0]),
    )
    def begin(
        self, low: int, more: int, start: int, samples: int, tolerance: float, smoothing: float
    ) -> None:
        self.given = settings.Gradient(
            min=low,
            max=low + more,
            start=min(low + start, low + more),
            samples=samples,
            tolerance=tolerance,
            smoothing=smoothing,
            baseline=MINUTE,
        )
        self.policy = GradientLimit(self.given)
        self.exact = float(self.given.start)
        self.now = SECOND
        self.began = self.learnt_at = 0
        self.round: list[tuple[int, int, Outcome]] = []  # rtt, inflight, outcome
        self.means = 0
        self.long = 0.0

    @rule(
        step=st.integers(0, 2 * SECOND),
        rtt=st.integers(0, 100 * MILLISECOND),
        used=st.integers(0, 100),
        outcome=st.sampled_from(Outcome),
        times=st.integers(1, 12),
    )
    def samples(self, step: int, rtt: int, used: int, outcome: Outcome, times: int) -> None:
        self.now += step
        for _ in range(times):
            inflight = 1 + self.policy.limit * used // 100
            self.expect(rtt, inflight, outcome)
            got = self.policy.on_sample(self.now, rtt, inflight, outcome)
            # An error of the last bit must not decide where the limit is whole.
            assert got == self.policy.limit
            assert abs(got - self.exact) <= 1

    def expect(self, rtt: int, inflight: int, outcome: Outcome) -> None:
        fresh = self.now - rtt >= self.began
        if outcome not in {SUCCESS, TIMEOUT, OVERLOADED} or (outcome is not SUCCESS and not fresh):
            return
        self.round.append((rtt, inflight, outcome))
        if not fresh or len(self.round) < self.given.samples:
            return
        took = [rtt for rtt, _, outcome in self.round if outcome is SUCCESS]
        self.judge(
            max(1, sum(took)) / len(took) if took else 0.0,
            max(inflight for _, inflight, _ in self.round),
            len(took) < len(self.round),
        )
        self.round, self.began = [], self.now

    def judge(self, short: float, most: int, trouble: bool) -> None:
        given = self.given
        if short:
            self.means += 1
            pause = self.now - self.learnt_at
            share = 1 / self.means
            if self.means > 10:
                share = min(0.1, 1 - math.exp(-pause / given.baseline))
            self.long += share * (short - self.long)
            self.learnt_at = self.now
            if self.long > 2 * short:
                self.long *= 0.9
        if trouble:
            new = 0.5 * self.exact
        elif most < self.exact / 2:
            return
        else:
            slower = given.tolerance * self.long / short
            new = min(1.0, max(0.5, slower)) * self.exact + given.queue
        new = (1 - given.smoothing) * self.exact + given.smoothing * new
        self.exact = min(given.max, max(given.min, new))

    @invariant()
    def stays_within_bounds(self) -> None:
        if hasattr(self, "policy"):
            assert self.given.min <= self.policy.limit <= self.given.max
            assert self.policy.baseline == pytest.approx(self.long)


TestGradientMachine = pytest.mark.slow(GradientMachine.TestCase)  # a hundred runs of fifty steps
