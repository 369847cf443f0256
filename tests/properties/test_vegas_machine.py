"""Any sequence of rounds, against the law written out over the list of all of them."""

import math

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tidegate.core.limit.vegas import VegasLimit
from tidegate.core.outcome import SUCCESS, TIMEOUT
from tidegate.settings import policies as settings
from tidegate.units import MILLISECOND, SECOND

HALF = 5 * SECOND


class VegasMachine(RuleBasedStateMachine):
    @initialize(
        low=st.integers(1, 5),
        more=st.integers(0, 500),
        start=st.integers(0, 500),
        alpha=st.integers(1, 4),
        wider=st.integers(0, 4),
    )
    def begin(self, low: int, more: int, start: int, alpha: int, wider: int) -> None:
        self.given = settings.Vegas(
            min=low,
            max=low + more,
            start=min(low + start, low + more),
            alpha=alpha,
            beta=alpha + wider,
            samples=1,
            baseline=2 * HALF,
        )
        self.policy = VegasLimit(self.given)
        self.limit = float(self.given.start)
        self.now = SECOND
        self.smooth = 0.0
        self.rounds = 0
        self.halves: list[tuple[int, list[float]]] = []  # when each began, what it has seen

    @rule(
        step=st.one_of(st.integers(0, SECOND), st.integers(HALF, 3 * HALF)),
        rtt=st.integers(1, 100 * MILLISECOND),
        used=st.integers(0, 100),
        times=st.integers(1, 12),
    )
    def answered(self, step: int, rtt: int, used: int, times: int) -> None:
        self.now += step
        for _ in range(times):
            self.now += rtt
            inflight = 1 + self.policy.limit * used // 100
            least = self.learn(rtt)
            if inflight >= self.limit / 2:
                self.limit = self.moved(least, rtt)
            assert self.policy.on_sample(self.now, rtt, inflight, SUCCESS) == int(self.limit)
            assert self.policy.least == pytest.approx(least)

    @rule(times=st.integers(1, 12))
    def given_up(self, times: int) -> None:
        for _ in range(times):
            self.now += SECOND
            self.limit = self.within(self.limit - self.scale())
            assert self.policy.on_sample(self.now, SECOND, 1, TIMEOUT) == int(self.limit)

    def scale(self) -> float:
        return max(1.0, math.log10(self.limit))

    def within(self, limit: float) -> float:
        return min(float(self.given.max), max(float(self.given.min), limit))

    def learn(self, rtt: int) -> float:
        if not self.halves or self.now >= self.halves[-1][0] + HALF:
            self.halves.append((self.now, []))
        self.rounds = min(10, self.rounds + 1)
        self.smooth += (rtt - self.smooth) / self.rounds
        if self.rounds == 10:
            self.halves[-1][1].append(self.smooth)
        began, seen = self.halves[-1]
        if len(self.halves) > 1 and began < self.halves[-2][0] + 2 * HALF:
            seen = seen + self.halves[-2][1]
        return min(seen, default=self.smooth)

    def moved(self, least: float, rtt: int) -> float:
        queue = math.ceil(self.limit * (1 - least / rtt))
        if queue <= self.scale():
            return self.within(self.limit + self.given.beta * self.scale())
        if queue < self.given.alpha * self.scale():
            return self.within(self.limit + self.scale())
        if queue > self.given.beta * self.scale():
            return self.within(self.limit - self.scale())
        return self.limit

    @invariant()
    def stays_within_bounds(self) -> None:
        if hasattr(self, "policy"):
            assert self.given.min <= self.policy.limit <= self.given.max


TestVegasMachine = pytest.mark.slow(VegasMachine.TestCase)  # a hundred runs of fifty steps
