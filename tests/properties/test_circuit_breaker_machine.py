"""Any sequence of calls, results and pauses, against a breaker that keeps every result for ever.

Two breakers live through it. One is woken at each of its wake-ups, as by a shell with timers; the
other hears of time only when somebody calls. Both must say the same, always.
"""

from fractions import Fraction
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tidegate.core.circuit_breaker import CLOSED, TRANSITIONS, CircuitBreaker, State
from tidegate.core.outcome import (
    FAILURE,
    IGNORED,
    OVERLOADED,
    REJECTIONS,
    SUCCESS,
    TIMEOUT,
    Outcome,
    Permit,
    Reason,
)
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
# Mostly so short that a window can fill and a ramp is seen from inside.
STEPS = st.one_of(
    st.integers(0, 200 * MILLISECOND),
    st.sampled_from([0, 1, 99 * MILLISECOND, 500 * MILLISECOND]),
    st.sampled_from([SECOND, 2 * SECOND - 1, 2 * SECOND, 3 * SECOND, DAY]),
)
FAILURES = st.sampled_from([FAILURE, TIMEOUT, OVERLOADED])


class Ticket(NamedTuple):
    """One call that was let in, with its permit from either breaker."""

    lazy: Permit
    woken: Permit
    era: int
    number: int


class Naive:
    """The rules as the docs tell them. Every result is kept; nothing is counted ahead."""

    def __init__(self, given: settings.Breaker, seed: int) -> None:
        self.given = given
        self.luck = Random(seed)
        self.state, self.since, self.era = "closed", 0, 0
        self.results: list[tuple[int, bool]] = []  # since it was last closed: when, and failed?
        self.probes: dict[int, int] = {}  # those that are out, by number: when their lease ends
        self.good_probes = 0
        self.history: list[tuple[int, str, str]] = []

    def go(self, at: int, state: str) -> None:
        self.history.append((at, self.state, state))
        if (self.state, state) != ("ramping", "closed"):
            self.era += 1
        self.state, self.since = state, at
        self.probes, self.good_probes = {}, 0

    def pass_time(self, now: int) -> None:
        while True:
            if self.state == "open" and now >= self.since + self.given.open_for:
                self.go(self.since + self.given.open_for, "half-open")
            elif self.state == "ramping" and now >= self.since + self.given.ramp:
                self.go(self.since + self.given.ramp, "closed")
            elif self.probes and now >= min(self.probes.values()):
                self.go(min(self.probes.values()), "open")
            else:
                return

    def admit(self, now: int, number: int) -> Reason | None:
        self.pass_time(now)
        if self.state == "open":
            return Reason.CIRCUIT_OPEN
        if self.state == "held":
            return Reason.HELD
        if self.state == "half-open":
            if len(self.probes) + self.good_probes == self.given.probes:
                return Reason.CIRCUIT_PROBING
            self.probes[number] = now + self.given.lease
        if self.state == "ramping":
            done = Fraction(now - self.since, self.given.ramp)
            share = self.given.ramp_from + (1 - Fraction(self.given.ramp_from)) * done
            if self.luck.random() >= float(share):
                return Reason.CIRCUIT_RAMPING
        return None

    def settle(self, now: int, number: int, era: int, outcome: Outcome) -> None:
        self.pass_time(now)
        if era != self.era:
            return
        failed = outcome not in {SUCCESS, IGNORED}
        if self.state == "half-open":
            del self.probes[number]
            self.good_probes += outcome is SUCCESS
            if failed:
                self.go(now, "open")
            elif self.good_probes == self.given.probes:
                self.results = []
                self.go(now, "ramping")
        elif outcome is not IGNORED:
            self.results.append((now, failed))
            calls, failures = self.window(now)
            if failed and calls >= self.given.volume and failures >= calls * self.given.failures:
                self.go(now, "open")

    def window(self, now: int) -> tuple[int, int]:
        tenth = self.given.window // 10
        inside = [failed for at, failed in self.results if at // tenth > now // tenth - 10]
        return len(inside), sum(inside)


class CircuitBreakerMachine(RuleBasedStateMachine):
    @initialize(seed=st.integers(0, 2**32), now=st.integers(0, DAY), stage=st.integers(0, 4))
    def begin(self, seed: int, now: int, stage: int) -> None:
        self.lazy = CircuitBreaker(SMALL, Random(seed))
        self.woken = CircuitBreaker(SMALL, Random(seed))
        self.naive = Naive(SMALL, seed)
        self.now = now
        self.number = 0
        self.out: list[Ticket] = []  # let in and not yet ended
        self.told: list[tuple[int, str, str]] = []
        self.told_lazily: list[tuple[int, str, str]] = []
        self.live_through(stage)

    def live_through(self, stages: int) -> None:
        """Begin in any phase: by chance alone few runs would ever see a ramp."""
        life = [
            lambda: self.quick_calls([FAILURE] * SMALL.volume),
            lambda: self.wait(SMALL.open_for),
            lambda: self.quick_calls([SUCCESS] * SMALL.probes),
            lambda: self.wait(SMALL.ramp // 2),
        ]
        for step in life[:stages]:
            step()

    @rule(step=STEPS)
    def wait(self, step: int) -> None:
        idle = self.open_to_anybody() and not self.naive.probes
        self.now += step
        for _ in range(3):
            due = self.woken.next_wakeup()
            if due is not None and due <= self.now:
                self.woken.on_wakeup(due)
        self.naive.pass_time(self.now)
        assert not idle or self.open_to_anybody()  # time alone never makes it stricter

    def open_to_anybody(self) -> bool:
        return self.naive.state in {"closed", "half-open"}

    @rule(tries=st.integers(1, 8))
    def acquire(self, tries: int) -> None:
        self.out += self.let_in(tries)

    @rule(outcomes=st.lists(st.one_of(st.just(SUCCESS), FAILURES), min_size=1, max_size=8))
    def quick_calls(self, outcomes: list[Outcome]) -> None:
        for outcome in outcomes:
            for ticket in self.let_in(1):
                self.release(ticket, outcome)

    def let_in(self, tries: int) -> list[Ticket]:
        tickets = []
        for _ in range(tries):
            self.number += 1
            refused = self.naive.admit(self.now, self.number)
            lazy, woken = self.lazy.try_acquire(self.now), self.woken.try_acquire(self.now)
            if refused is None:
                assert isinstance(lazy, Permit)
                assert isinstance(woken, Permit)
                tickets.append(Ticket(lazy, woken, self.naive.era, self.number))
            else:
                assert lazy is woken is REJECTIONS[refused]
        return tickets

    @precondition(lambda self: self.out)
    @rule(data=st.data(), step=STEPS, outcome=st.sampled_from(Outcome), again=st.booleans())
    def release_later(
        self, data: st.DataObject, step: int, outcome: Outcome, *, again: bool
    ) -> None:
        ticket = self.out.pop(data.draw(st.integers(0, len(self.out) - 1)))
        self.wait(step)
        self.release(ticket, outcome)
        if again:
            self.lazy.release(self.now, ticket.lazy, outcome)
            self.woken.release(self.now, ticket.woken, outcome)

    def release(self, ticket: Ticket, outcome: Outcome) -> None:
        self.naive.settle(self.now, ticket.number, ticket.era, outcome)
        self.lazy.release(self.now, ticket.lazy, outcome)
        self.woken.release(self.now, ticket.woken, outcome)

    @rule()
    def hold(self) -> None:
        self.naive.pass_time(self.now)
        if self.naive.state != "held":
            self.naive.go(self.now, "held")
        for circuit in (self.lazy, self.woken):
            circuit.hold(self.now, "by hand")

    @precondition(lambda self: self.naive.state == "held")
    @rule()
    def free(self) -> None:
        if self.naive.state == "held":
            self.naive.go(self.now, "half-open")
        for circuit in (self.lazy, self.woken):
            circuit.free(self.now)

    @rule()
    def good_answers_bring_it_back(self) -> None:
        """Whatever state it is in: once freed, fed only successes, it ends up admitting all."""
        self.free()
        for _ in range(2 * SMALL.probes + 2):
            self.wait(max(SMALL.open_for, SMALL.lease, SMALL.ramp))
            for ticket in self.let_in(1):
                self.release(ticket, SUCCESS)
        self.wait(SMALL.ramp)
        assert self.lazy.state(self.now) is CLOSED

    @rule()
    def look(self) -> None:
        """Looking makes the lazy one notice the time, so it is not done after every step."""
        assert self.lazy.snapshot(self.now) == self.woken.snapshot(self.now)
        changes = self.lazy.drain_transitions()
        self.told_lazily += [(change.at, change.before, change.after) for change in changes]
        assert self.told_lazily == self.naive.history
        assert self.lazy._check()

    @invariant()
    def agrees(self) -> None:
        if not hasattr(self, "naive"):
            return
        self.naive.pass_time(self.now)
        seen = self.woken.snapshot(self.now)
        assert (seen.state, seen.generation) == (self.naive.state, self.naive.era)
        assert (seen.calls, seen.failed) == self.naive.window(self.now)
        assert (seen.probes_out, seen.probes_ok) == (
            len(self.naive.probes),
            self.naive.good_probes,
        )
        assert seen.probes_out <= SMALL.probes
        assert self.woken._check()

    @invariant()
    def tells_every_change_once_and_in_order(self) -> None:
        if not hasattr(self, "naive"):
            return
        changes = self.woken.drain_transitions()
        self.told += [(change.at, change.before, change.after) for change in changes]
        assert self.told == self.naive.history
        assert all(State(after) in TRANSITIONS[State(before)] for _, before, after in self.told)
        assert [at for at, _, _ in self.told] == sorted(at for at, _, _ in self.told)

    @invariant()
    def says_when_to_come_back(self) -> None:
        if hasattr(self, "naive"):
            places = SMALL.probes - len(self.naive.probes) - self.naive.good_probes
            may_start = self.naive.state == "closed" or (
                self.naive.state == "half-open" and places > 0
            )
            assert (self.woken.retry_after(self.now) == 0) == may_start


TestCircuitBreakerMachine = pytest.mark.slow(CircuitBreakerMachine.TestCase)  # a hundred runs
