"""Any sequence of delays, against the law written down and the same luck."""

from fractions import Fraction
from random import Random

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tidegate.core.backoff import Backoff
from tidegate.settings import policies as settings
from tidegate.units import HOUR

DAY_MAX = 24 * HOUR


class BackoffMachine(RuleBasedStateMachine):
    @initialize(
        base=st.integers(0, HOUR),
        factor=st.sampled_from([1.0, 1.5, 2.0, 3.0, 100.0]),
        more=st.integers(0, HOUR),
        jitter=st.sampled_from(["full", "equal", "none", "decorrelated"]),
        seed=st.integers(0, 2**32),
    )
    def begin(
        self, base: int, factor: float, more: int, jitter: settings.Jitter, seed: int
    ) -> None:
        factor = 2.0 if jitter == "decorrelated" else factor
        self.given = settings.Backoff(base=base, factor=factor, max=base + more, jitter=jitter)
        self.before = 0  # the latest wait of one call, for decorrelated jitter
        self.rng, self.twin = Random(seed), Random(seed)
        self.policy = Backoff(self.given, self.rng)

    @rule(retry=st.one_of(st.integers(1, 12), st.integers(1, 10**9)))
    def delay(self, retry: int) -> None:
        given = self.given
        power = min(retry - 1, 200)  # 1.5^200 already takes a nanosecond beyond any maximum
        ceiling = min(Fraction(given.max), given.base * Fraction(given.factor) ** power)
        luck = Fraction(self.twin.random())
        expected = {
            "full": ceiling * luck,
            "equal": ceiling / 2 + ceiling / 2 * luck,
            "none": ceiling,
            "decorrelated": Fraction(0),
        }[given.jitter]
        if given.jitter == "decorrelated":
            high = 3 * max(given.base, self.before)
            expected = min(Fraction(given.max), given.base + (high - given.base) * luck)
        delay = self.policy.delay(retry, self.before)
        self.before = delay
        assert isinstance(delay, int)
        assert 0 <= delay <= given.max
        assert given.jitter != "decorrelated" or delay >= given.base
        assert delay == pytest.approx(float(expected), abs=1, rel=1e-12)

    @invariant()
    def each_delay_takes_one_draw(self) -> None:
        if hasattr(self, "rng"):
            assert self.rng.getstate() == self.twin.getstate()


TestBackoffMachine = pytest.mark.slow(BackoffMachine.TestCase)  # a hundred runs of fifty steps
