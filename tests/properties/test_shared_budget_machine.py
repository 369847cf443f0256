"""Any exchange between copies of one budget: together they keep the bound of a single one."""

from fractions import Fraction
from math import ceil

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tidegate.core.retry_budget import RetryBudget, RetryBudgetTotals
from tidegate.settings import policies as settings
from tidegate.units import DAY, SECOND

COPIES = st.integers(0, 3)
STEPS = st.one_of(
    st.just(0),
    st.integers(0, SECOND // 5),
    st.integers(0, 15 * SECOND),
    st.sampled_from([SECOND, 10 * SECOND, 3600 * SECOND]),
)


class SharedBudgetMachine(RuleBasedStateMachine):
    """Four copies and a board on which each writes its totals, as in a table of a host.

    `races` counts the tokens that somebody took between another's look at the board and its try:
    each may be one too many, and no more than one.
    """

    @initialize(
        ratio=st.sampled_from(["0", "0.05", "0.1", "1"]),
        now=st.integers(0, DAY),
    )
    def begin(self, ratio: str, now: int) -> None:
        self.ratio = Fraction(ratio)
        self.window = 10 * SECOND
        given = settings.Budget(ratio=float(ratio), window=self.window)
        self.given = given
        self.copies = [RetryBudget(given) for _ in range(4)]
        # What earlier owners of the four places have left: requests and retries.
        self.left = [RetryBudgetTotals(0, 0, 0, 0, 0, 0)] * 4
        self.board = [RetryBudgetTotals(0, 0, 0, 0, 0, 0)] * 4
        self.now = now
        self.requests = self.retried = self.races = 0

    def write(self, who: int) -> None:
        own, left = self.copies[who].totals(self.now), self.left[who]
        self.board[who] = own._replace(
            requests=own.requests + left.requests,
            deposited=own.deposited + left.deposited,
            retried=own.retried + left.retried,
        )

    def read(self, who: int) -> None:
        self.copies[who].on_others(
            self.now,
            deposited=sum(row.deposited for row in self.board),
            retried=sum(row.retried for row in self.board),
            recent=sum(row.recent for other, row in enumerate(self.board) if other != who),
            forfeited=max(row.forfeited for row in self.board),
        )
        assert self.copies[who]._check()

    def exchange(self, who: int) -> None:
        self.write(who)
        self.read(who)
        self.write(who)

    @rule(step=STEPS)
    def wait(self, step: int) -> None:
        self.now += step

    @rule(who=COPIES, count=st.integers(1, 60))
    def request(self, who: int, count: int) -> None:
        for _ in range(count):
            self.copies[who].on_request(self.now)
        self.requests += count

    @rule(who=COPIES)
    def look(self, who: int) -> None:
        self.exchange(who)

    @rule(who=COPIES, count=st.integers(1, 20))
    def retry(self, who: int, count: int) -> None:
        for _ in range(count):
            self.exchange(who)
            self.retried += self.copies[who].try_retry(self.now)
            self.write(who)

    @rule(one=COPIES, other=COPIES)
    def race(self, one: int, other: int) -> None:
        self.exchange(one)
        self.exchange(other)
        taken = sum(self.copies[who].try_retry(self.now) for who in {one, other})
        self.write(one)
        self.write(other)
        self.retried += taken
        self.races += taken > 1

    @rule(who=COPIES)
    def die_and_be_followed(self, who: int) -> None:
        """What was not written is lost; the next owner goes on from what is on the board."""
        self.requests -= self.copies[who].totals(self.now).requests + self.left[who].requests
        self.requests += self.board[who].requests
        self.left[who] = self.board[who]
        self.copies[who] = RetryBudget(self.given)
        self.exchange(who)

    @rule(who=COPIES)
    def deposits_end_every_debt(self, who: int) -> None:
        if not self.ratio:
            return
        self.exchange(who)
        short = 1 - Fraction(round(self.copies[who].tokens(self.now) * 10**6), 10**6)
        self.request(who, max(0, ceil(short / self.ratio)))
        self.exchange(who)
        assert self.copies[who].tokens(self.now) >= 1

    @rule(one=COPIES, other=COPIES)
    def who_has_heard_the_same_says_the_same(self, one: int, other: int) -> None:
        for who in (one, other, one):
            self.exchange(who)
        both = {self.copies[who].tokens(self.now) for who in (one, other)}
        assert len(both) == 1

    @invariant()
    def together_they_hold_the_bound_of_one(self) -> None:
        if hasattr(self, "ratio"):
            first = 1 if self.ratio else 0
            assert self.retried <= first + self.ratio * self.requests + self.races


TestSharedBudgetMachine = pytest.mark.slow(SharedBudgetMachine.TestCase)  # a hundred runs
