"""Any sequence of calls, against a throttle that remembers every one of them."""

from random import Random

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tidegate.core.outcome import FAILURE, IGNORED, SUCCESS, Outcome
from tidegate.core.throttle import Throttle
from tidegate.settings import policies as settings
from tidegate.units import DAY, SECOND


class ThrottleMachine(RuleBasedStateMachine):
    @initialize(
        ratio=st.sampled_from([1.0, 1.1, 2.0, 10.0]),
        window=st.sampled_from([SECOND, 10 * SECOND]),
        volume=st.integers(1, 30),
        most=st.sampled_from([0.1, 0.9, 1.0]),
        seed=st.integers(0, 2**32),
        now=st.integers(0, 10 * DAY),
    )
    def begin(
        self, ratio: float, window: int, volume: int, most: float, seed: int, now: int
    ) -> None:
        self.given = settings.Throttle(ratio=ratio, window=window, volume=volume, most=most)
        self.luck, self.twin = Random(seed), Random(seed)
        self.policy = Throttle(self.given, self.luck)
        self.now = now
        self.seen: list[tuple[int, bool]] = []  # of each that counts: when, and if accepted
        self.kept = 0

    def counts(self) -> tuple[int, int]:
        width = self.given.window // 10
        inside = [ok for at, ok in self.seen if at // width > self.now // width - 10]
        return len(inside), sum(inside)

    def probability(self) -> float:
        requests, accepts = self.counts()
        if requests < self.given.volume:
            return 0.0
        share = (requests - self.given.ratio * accepts) / (requests + 1)
        return min(self.given.most, max(0.0, share))

    @rule(step=st.one_of(st.integers(0, SECOND), st.sampled_from([SECOND, 10 * SECOND, DAY])))
    def wait(self, step: int) -> None:
        self.now += step

    @rule(outcome=st.sampled_from(Outcome), times=st.integers(1, 20))
    def settle(self, outcome: Outcome, times: int) -> None:
        for _ in range(times):
            self.policy.settle(self.now, outcome)
            if outcome is not IGNORED:
                self.seen.append((self.now, outcome in {SUCCESS, FAILURE}))

    @rule(times=st.integers(1, 10))
    def acquire(self, times: int) -> None:
        for _ in range(times):
            probability = self.probability()
            kept = probability > 0 and self.twin.random() < probability
            assert self.policy.try_acquire(self.now) is not kept
            if kept:
                self.kept += 1
                self.seen.append((self.now, False))

    @rule()
    def look(self) -> None:
        """Looking makes it notice the time, so it is not done after every step."""
        requests, accepts = self.counts()
        seen = self.policy.snapshot(self.now)
        assert seen == (requests, accepts, pytest.approx(self.probability()), self.kept)

    @invariant()
    def holds(self) -> None:
        if hasattr(self, "policy"):
            assert self.policy._check()


TestThrottleMachine = pytest.mark.slow(ThrottleMachine.TestCase)  # a hundred runs
