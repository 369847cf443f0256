"""Any sequence of requests and retries, against a budget that remembers every one of them."""

from fractions import Fraction

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tidegate.core.retry_budget import RetryBudget
from tidegate.settings import policies as settings
from tidegate.units import DAY, SECOND

STEPS = st.one_of(
    st.just(0),
    st.integers(0, 100_000_000),
    st.integers(0, 15 * SECOND),
    st.sampled_from([SECOND - 1, SECOND, SECOND + 1, 10 * SECOND, 365 * DAY]),
)


class Naive:
    """All first attempts there ever were, and tokens as exact fractions, one deposit at a time."""

    def __init__(self, ratio: Fraction, window: int) -> None:
        self.ratio, self.width = ratio, window // 10
        self.requests: list[int] = []
        self.tokens = Fraction(1) if ratio else Fraction(0)

    def inside(self, now: int) -> int:
        latest = now // self.width
        return sum(1 for at in self.requests if at // self.width > latest - 10)

    def cap(self, now: int) -> Fraction:
        return max(Fraction(1) if self.ratio else Fraction(0), self.inside(now) * self.ratio)

    def settle(self, now: int) -> None:
        self.tokens = min(self.tokens, self.cap(now))

    def on_request(self, now: int) -> None:
        self.settle(now)
        self.requests.append(now)
        self.tokens = min(self.tokens + self.ratio, self.cap(now))

    def try_retry(self, now: int) -> bool:
        self.settle(now)
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


class RetryBudgetMachine(RuleBasedStateMachine):
    @initialize(
        ratio=st.sampled_from(["0", "0.05", "0.1", "0.2", "0.3", "1", "1.7"]),
        window=st.sampled_from([SECOND, 10 * SECOND]),
        now=st.integers(0, 10 * DAY),
    )
    def begin(self, ratio: str, window: int, now: int) -> None:
        self.policy = RetryBudget(settings.Budget(ratio=float(ratio), window=window))
        self.naive = Naive(Fraction(ratio), window)
        self.now = self.began = now
        self.retried = self.refused = 0

    @rule(step=STEPS)
    def wait(self, step: int) -> None:
        self.now += step

    @rule(step=STEPS)
    def wait_and_see(self, step: int) -> None:
        """Saved tokens fade, but never the last one: waiting makes nobody's retry impossible."""
        could = self.policy.tokens(self.now) >= 1
        self.now += step
        assert not could or self.policy.tokens(self.now) >= 1

    @rule(count=st.integers(1, 40))
    def request(self, count: int) -> None:
        for _ in range(count):
            self.policy.on_request(self.now)
            self.naive.on_request(self.now)

    @rule(count=st.integers(1, 10))
    def retry(self, count: int) -> None:
        for _ in range(count):
            granted = self.policy.try_retry(self.now)
            assert granted == self.naive.try_retry(self.now)
            self.retried += granted
            self.refused += not granted

    @rule()
    def look(self) -> None:
        """Looking makes it notice the time, so it is not done after every step."""
        self.naive.settle(self.now)
        snapshot = self.policy.snapshot(self.now)
        assert snapshot.tokens == pytest.approx(float(self.naive.tokens))
        assert snapshot.cap == pytest.approx(float(self.naive.cap(self.now)))
        assert snapshot.requests == self.naive.inside(self.now)
        assert (snapshot.retried, snapshot.refused) == (self.retried, self.refused)
        assert self.policy._check()

    @invariant()
    def retries_never_exceed_their_share_and_one(self) -> None:
        if hasattr(self, "policy"):
            assert self.retried <= 1 + self.naive.ratio * len(self.naive.requests)


TestRetryBudgetMachine = pytest.mark.slow(RetryBudgetMachine.TestCase)  # a hundred runs
