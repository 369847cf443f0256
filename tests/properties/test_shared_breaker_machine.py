"""Any calls through four copies of one circuit: together they let in no more than one would."""

from random import Random
from typing import NamedTuple

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tidegate.core.circuit_breaker import (
    CLOSED,
    HALF_OPEN,
    HELD,
    OPEN,
    CircuitBreaker,
    CircuitBreakerTotals,
)
from tidegate.core.outcome import FAILURE, SUCCESS, Outcome
from tidegate.settings import policies as settings
from tidegate.units import DAY, MILLISECOND, SECOND

SMALL = settings.Breaker(
    failures=0.5,
    window=SECOND,
    volume=4,
    open_for=2 * SECOND,
    probes=3,
    lease=3 * SECOND,
    ramp=SECOND,
    ramp_from=0.25,
)
N = 4
COPIES = st.integers(0, N - 1)
STEPS = st.one_of(
    st.integers(0, 200 * MILLISECOND),
    st.sampled_from([SECOND, 2 * SECOND, 3 * SECOND, DAY]),
)


class Ticket(NamedTuple):
    who: int
    life: int
    start: int
    generation: int


class SharedBreakerMachine(RuleBasedStateMachine):
    """A board on which each copy writes its totals. Around a probe each writes before it reads, so
    that of two that want the last place at least one sees the other.
    """

    @initialize(seed=st.integers(0, 99), now=st.integers(0, DAY))
    def begin(self, seed: int, now: int) -> None:
        self.seed, self.now = seed, now
        self.copies = [CircuitBreaker(SMALL, Random(seed + who)) for who in range(N)]
        self.lives = [0] * N
        self.board: list[CircuitBreakerTotals | None] = [None] * N
        self.out: list[Ticket] = []

    # What the exchange does in a process.

    def write(self, who: int, more: int = 0) -> None:
        own = self.copies[who].totals(self.now)
        self.board[who] = own._replace(probes_out=own.probes_out + more)

    def read(self, who: int) -> None:
        copy = self.copies[who]
        for row in self.rows(who):
            if row.state is not HELD:
                copy.adopt(self.now, row.generation, row.state, row.due)
        same = [row for row in self.rows(who) if row.generation == copy.totals(self.now).generation]
        copy.on_others(
            self.now,
            calls=sum(row.calls for row in same),
            failed=sum(row.failed for row in same),
            probes_out=sum(row.probes_out for row in same),
            probes_ok=sum(row.probes_ok for row in same),
            lease=min((row.lease for row in same if row.lease), default=0),
        )
        assert copy._check()

    def rows(self, who: int) -> list[CircuitBreakerTotals]:
        return [row for other, row in enumerate(self.board) if other != who and row is not None]

    def exchange(self, who: int) -> None:
        self.write(who)
        self.read(who)
        self.write(who)

    def admit(self, who: int) -> Ticket | None:
        copy = self.copies[who]
        if copy.state(self.now) is not CLOSED:
            self.read(who)
            self.write(who, more=1)
            self.read(who)
        generation = copy.admit(self.now)
        self.write(who)
        if generation < 0:
            return None
        return Ticket(who, self.lives[who], self.now, generation)

    def settle(self, ticket: Ticket, outcome: Outcome) -> None:
        copy = self.copies[ticket.who]
        if ticket.life == self.lives[ticket.who]:
            copy.settle(self.now, ticket.start, ticket.generation, outcome)
            self.exchange(ticket.who)

    # What may happen.

    @rule(step=STEPS)
    def wait(self, step: int) -> None:
        self.now += step

    @rule(who=COPIES, tries=st.integers(1, 5))
    def acquire(self, who: int, tries: int) -> None:
        self.out += [t for t in (self.admit(who) for _ in range(tries)) if t is not None]

    @rule(who=COPIES, outcomes=st.lists(st.sampled_from([SUCCESS, FAILURE]), max_size=6))
    def quick_calls(self, who: int, outcomes: list[Outcome]) -> None:
        for outcome in outcomes:
            ticket = self.admit(who)
            if ticket is not None:
                self.settle(ticket, outcome)

    @precondition(lambda self: self.out)
    @rule(data=st.data(), outcome=st.sampled_from(Outcome))
    def release(self, data: st.DataObject, outcome: Outcome) -> None:
        self.settle(self.out.pop(data.draw(st.integers(0, len(self.out) - 1))), outcome)

    @rule(who=COPIES)
    def look(self, who: int) -> None:
        self.exchange(who)

    @rule(who=COPIES)
    def die_and_be_followed(self, who: int) -> None:
        """What was out is lost, and its places are free; the state stays on the board."""
        self.lives[who] += 1
        self.copies[who] = CircuitBreaker(SMALL, Random(self.seed))
        row = self.board[who]
        if row is not None:
            self.board[who] = row._replace(probes_out=0, lease=0)
            if row.state is not HELD:
                self.copies[who].adopt(self.now, row.generation, row.state, row.due)
        self.exchange(who)

    @rule(who=COPIES)
    def hold(self, who: int) -> None:
        self.copies[who].hold(self.now, "by hand")
        self.exchange(who)

    @rule(who=COPIES)
    def free(self, who: int) -> None:
        self.copies[who].free(self.now)
        self.exchange(who)

    @rule(who=COPIES)
    def failures_in_all_of_them_open_all_of_them(self, who: int) -> None:
        """One failure in each is enough, though none has seen the volume by itself."""
        for copy in range(N):
            self.exchange(copy)
        if any(copy.state(self.now) is not CLOSED for copy in self.copies):
            return
        for copy in range(N):
            self.fail_once(copy)
        self.exchange(who)
        calls, failed = self.seen(who)
        self.fail_once(who)
        if failed + 1 >= (calls + 1) * SMALL.failures:
            for copy in range(N):
                self.exchange(copy)
                assert self.copies[copy].state(self.now) is OPEN

    def fail_once(self, who: int) -> None:
        """Whatever state the others' failures have brought it into."""
        ticket = self.admit(who)
        if ticket is not None:
            self.settle(ticket, FAILURE)

    def seen(self, who: int) -> tuple[int, int]:
        row = self.copies[who].totals(self.now)
        same = [other for other in self.rows(who) if other.generation == row.generation]
        calls = row.calls + sum(other.calls for other in same)
        return calls, row.failed + sum(other.failed for other in same)

    @rule()
    def good_answers_bring_all_back(self) -> None:
        for who in range(N):
            self.free(who)
        for _ in range(2 * SMALL.probes + 2):
            self.wait(max(SMALL.open_for, SMALL.lease, SMALL.ramp))
            for who in range(N):
                ticket = self.admit(who)
                if ticket is not None:
                    self.settle(ticket, SUCCESS)
        self.wait(SMALL.ramp)
        for who in range(N):
            self.exchange(who)
            assert self.copies[who].state(self.now) is CLOSED

    @invariant()
    def no_more_probes_than_one_breaker_would_send(self) -> None:
        if not hasattr(self, "copies"):
            return
        totals = [copy.totals(self.now) for copy in self.copies]
        latest = max(row.generation for row in totals)
        probing = [r for r in totals if r.generation == latest and r.state is HALF_OPEN]
        assert sum(row.probes_out + row.probes_ok for row in probing) <= SMALL.probes

    @rule()
    def all_that_have_heard_agree(self) -> None:
        for who in range(N):
            self.free(who)
        for who in (*range(N), *range(N)):
            self.exchange(who)
        seen = {(row.generation, row.state) for row in (c.totals(self.now) for c in self.copies)}
        assert len(seen) == 1


TestSharedBreakerMachine = pytest.mark.slow(SharedBreakerMachine.TestCase)  # a hundred runs
