"""Any sequence of takings and givings back, against the set of permits that are out."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
)

from tidegate.core.concurrency_limiter import ConcurrencyLimiter
from tidegate.core.limit.aimd import AimdLimit
from tidegate.core.outcome import IGNORED, Outcome
from tidegate.settings import policies as settings
from tidegate.units import DAY, SECOND


class ConcurrencyLimiterMachine(RuleBasedStateMachine):
    out = Bundle("out")

    @initialize(fixed=st.one_of(st.none(), st.integers(1, 20)), start=st.integers(1, 20))
    def begin(self, fixed: int | None, start: int) -> None:
        adaptive = settings.Adaptive(start=start, max=30)
        self.policy = ConcurrencyLimiter(
            settings.Limit(max=fixed) if fixed else settings.Limit(adaptive=adaptive)
        )
        self.fixed = fixed
        self.twin = AimdLimit(adaptive)
        self.now = 0
        self.inflight = 0
        self.refused = 0

    @rule(step=st.one_of(st.integers(0, SECOND), st.just(DAY)))
    def wait(self, step: int) -> None:
        before = self.policy.snapshot(self.now)
        self.now += step
        assert self.policy.snapshot(self.now) == before  # time alone changes nothing

    @rule(target=out, tries=st.integers(1, 25))
    def acquire(self, tries: int) -> object:
        begun = []
        for _ in range(tries):
            room = self.inflight < (self.fixed or self.twin.limit)
            assert self.policy.try_acquire(self.now) == room
            self.inflight += room
            self.refused += not room
            if room:
                begun.append(self.now)
        return multiple(*begun)

    @rule(begun=consumes(out), outcome=st.sampled_from(Outcome))
    def release(self, begun: int, outcome: Outcome) -> None:
        rtt = self.now - begun
        if outcome is not IGNORED:
            self.twin.on_sample(self.now, rtt, self.inflight, outcome)
        self.policy.release(self.now, rtt, outcome)
        self.inflight -= 1

    @invariant()
    def agrees(self) -> None:
        if hasattr(self, "policy"):
            limit = self.fixed or self.twin.limit
            assert self.policy.snapshot(self.now) == (self.inflight, limit, self.refused)

    @invariant()
    def an_empty_limiter_admits(self) -> None:
        if hasattr(self, "policy") and self.inflight == 0:
            assert self.policy.limit >= 1


TestConcurrencyLimiterMachine = pytest.mark.slow(ConcurrencyLimiterMachine.TestCase)
