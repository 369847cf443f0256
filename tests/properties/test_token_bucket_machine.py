"""Any sequence of arrivals, against a bucket that is refilled in exact fractions of a token."""

from fractions import Fraction
from math import ceil

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tidegate.core.token_bucket import TokenBucket
from tidegate.settings import policies as settings
from tidegate.units import DAY, SECOND

RATES = st.sampled_from([1 / 3600, 0.5, 1.0, 3.0, 10.0, 600.0, 12_345.0])
BURSTS = st.integers(1, 50)


class Naive:
    """Tokens that drip in: one per interval, up to the burst."""

    def __init__(self, now: int, interval: int, burst: int) -> None:
        self.at, self.interval, self.burst = now, interval, burst
        self.tokens = Fraction(burst)

    def drip(self, now: int) -> None:
        self.tokens = min(
            Fraction(self.burst), self.tokens + Fraction(now - self.at, self.interval)
        )
        self.at = now

    def try_acquire(self, now: int, cost: int) -> bool:
        self.drip(now)
        if self.tokens < cost:
            return False
        self.tokens -= cost
        return True

    def reconfigure(self, now: int, interval: int, burst: int) -> None:
        self.drip(now)
        taken = ceil(self.burst - self.tokens)
        self.interval, self.burst = interval, burst
        self.tokens = Fraction(max(0, burst - taken))


class TokenBucketMachine(RuleBasedStateMachine):
    @initialize(rate=RATES, burst=BURSTS, now=st.integers(0, DAY))
    def begin(self, rate: float, burst: int, now: int) -> None:
        self.policy = TokenBucket(settings.RateLimit(rate=rate, burst=burst))
        self.now = now
        self.measure_from_here(ceil(SECOND / rate), burst)
        self.naive = Naive(now, self.interval, burst)

    def measure_from_here(self, interval: int, burst: int) -> None:
        self.interval, self.burst = interval, burst
        self.began, self.admitted = self.now, 0

    @rule(step=st.one_of(st.just(0), st.integers(0, SECOND), st.integers(0, DAY)))
    def wait(self, step: int) -> None:
        before = self.policy.snapshot(self.now).tokens
        self.now += step
        assert self.policy.snapshot(self.now).tokens >= before

    @rule(fraction=st.integers(0, 4))
    def wait_for_a_part_of_an_interval(self, fraction: int) -> None:
        self.now += self.interval * fraction // 4

    @rule(cost=st.integers(1, 5), times=st.integers(1, 20))
    def acquire(self, cost: int, times: int) -> None:
        for _ in range(times):
            admitted = self.policy.try_acquire(self.now, cost)
            assert admitted == self.naive.try_acquire(self.now, cost)
            self.admitted += cost * admitted

    @rule()
    def come_back_when_told(self) -> None:
        wait = self.policy.retry_after(self.now)
        if wait:
            assert not self.policy.try_acquire(self.now + wait - 1)
        self.now += wait
        self.acquire(1, 1)
        assert self.naive.at == self.now

    @rule(rate=RATES, burst=BURSTS)
    def reconfigure(self, rate: float, burst: int) -> None:
        self.policy.reconfigure(self.now, settings.RateLimit(rate=rate, burst=burst))
        self.naive.reconfigure(self.now, ceil(SECOND / rate), burst)
        self.measure_from_here(ceil(SECOND / rate), burst)

    @invariant()
    def agrees(self) -> None:
        if hasattr(self, "naive"):
            self.naive.drip(self.now)
            assert self.policy.snapshot(self.now).tokens == pytest.approx(float(self.naive.tokens))

    @invariant()
    def never_more_than_the_burst_and_the_rate_allow(self) -> None:
        if hasattr(self, "naive"):
            passed = Fraction(self.now - self.began, self.interval)
            assert self.admitted <= self.burst + passed


TestTokenBucketMachine = pytest.mark.slow(TokenBucketMachine.TestCase)  # a hundred runs
