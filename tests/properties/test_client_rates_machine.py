"""Any sequence of requests by a few clients, against a bucket for each and a list of the kept."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tidegate.core.client_rates import ClientRates
from tidegate.core.token_bucket import TokenBucket
from tidegate.settings.admission import ClientRate
from tidegate.settings.policies import RateLimit
from tidegate.units import SECOND


class ClientRatesMachine(RuleBasedStateMachine):
    @initialize(
        rate=st.sampled_from([0.5, 3.0, 10.0, 95.0]),
        burst=st.one_of(st.none(), st.integers(1, 5)),
        most=st.integers(1, 4),
    )
    def begin(self, rate: float, burst: int | None, most: int) -> None:
        self.policy = ClientRates(ClientRate(rate=rate, burst=burst, clients=most))
        self.limit = RateLimit(rate=rate, burst=burst)
        self.most = most
        self.now = 0
        self.kept: dict[str, TokenBucket] = {}  # whoever was let in last stands last
        self.refused = self.forgotten = 0

    def is_full(self, client: str) -> bool:
        """Whether a whole burst is back, so that nothing is lost by forgetting."""
        found = self.kept[client].snapshot(self.now)
        return found.tokens >= found.burst

    def make_room(self) -> None:
        for _ in range(2):
            first = next(iter(self.kept), None)
            if first is None or not self.is_full(first):
                break
            del self.kept[first]
        if len(self.kept) >= self.most:
            del self.kept[next(iter(self.kept))]
            self.forgotten += 1

    @rule(step=st.integers(0, 3 * SECOND))
    def wait(self, step: int) -> None:
        self.now += step

    @rule(clients=st.lists(st.sampled_from("abcdef"), min_size=1, max_size=12))
    def ask(self, clients: list[str]) -> None:
        for client in clients:
            if client not in self.kept:
                self.make_room()
                self.kept[client] = TokenBucket(self.limit)
            bucket = self.kept[client]
            assert self.policy.retry_after(self.now, client) == bucket.retry_after(self.now)
            allowed = bucket.try_acquire(self.now)
            assert self.policy.try_acquire(self.now, client) == allowed
            self.refused += not allowed
            if allowed:
                self.kept[client] = self.kept.pop(client)

    @rule(client=st.sampled_from("abcdef"), cost=st.integers(2, 40))
    def ask_for_many(self, client: str, cost: int) -> None:
        """Let in where one is; then the bucket owes what it had not."""
        known = client in self.kept
        if not known:
            self.make_room()
            self.kept[client] = TokenBucket(self.limit)
        bucket = self.kept[client]
        allowed = bucket.try_acquire(self.now)
        assert self.policy.try_acquire(self.now, client, cost) == allowed
        self.refused += not allowed
        if allowed:
            bucket.on_others(bucket.arrival + (cost - 1) * bucket.interval)
            self.kept[client] = self.kept.pop(client)

    @invariant()
    def agrees(self) -> None:
        if hasattr(self, "policy"):
            found = self.policy.snapshot(self.now)
            assert found == (len(self.kept), self.most, self.refused, self.forgotten)
            assert self.policy._check()


TestClientRatesMachine = pytest.mark.slow(ClientRatesMachine.TestCase)
