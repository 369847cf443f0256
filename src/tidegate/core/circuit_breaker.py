"""Is it worth calling at all, and if it was not, how do we come back without a second blow?

    closed     everybody in; the outcomes of the last `window` are counted
    open       nobody in, for `open_for`
    half-open  `probes` calls in, each with a lease; they decide for all
    ramping    as closed, but only a share is let in, growing to all over `ramp`
    held       nobody in, until a person frees it

Five rules, each against a way in which breakers have failed their users:

- Half-open lets in `probes` calls and not one more, however many wait: the crowd would break again
  what has just come up. All of them must succeed; one failure opens again.
- A probe has a lease. If it has not ended by then it counts as failed, so a call that hangs for
  ever cannot keep the circuit shut for ever; what it says later is ignored.
- A result counts only in the era (`generation`) in which its call was let in. A late success does
  not close a circuit that has opened since, and a late failure does not open a fresh one.
- Back from half-open, load comes back as a ramp and not as a step.
- IGNORED says nothing: it is not counted, and a probe that ends so gives its place to another.

It opens on a failure only, never on a success that happens to complete the volume, and never on
the mere passing of time. What time itself brings (the end of `open_for`, of a lease, of the ramp)
happens at its own instant, whenever it is noticed: a shell that arms `next_wakeup` and one that
never does see the same states and transitions.

Processes that share one circuit each keep a copy. The copy that is furthest, by its generation, is
right, and the others `adopt` what it says; copies of one generation count their evidence, and the
places of their probes, together (`on_others`).
"""

from random import Random
from typing import Final, final

from tidegate.core.circuit import (
    CLOSED,
    HALF_OPEN,
    HELD,
    OPEN,
    RAMPING,
    TRANSITIONS,
    CircuitBreakerSnapshot,
    CircuitBreakerTotals,
    State,
)
from tidegate.core.outcome import (
    IGNORED,
    REJECTIONS,
    SUCCESS,
    Outcome,
    Permit,
    Reason,
    Rejection,
    Transition,
)
from tidegate.core.window import Window
from tidegate.settings import policies as settings
from tidegate.units import Duration, Instant

__all__ = [
    "CLOSED",
    "HALF_OPEN",
    "HELD",
    "OPEN",
    "RAMPING",
    "TRANSITIONS",
    "CircuitBreaker",
    "CircuitBreakerSnapshot",
    "CircuitBreakerTotals",
    "State",
]


# Two copies that left one state at once, each for another: the more careful one is right. A ramp
# and its end are of one generation, and each copy comes to the end by itself.
_CARE: Final = {CLOSED: 0, RAMPING: 0, HALF_OPEN: 1, OPEN: 2}

_NEVER: Final = 1 << 62  # later than any clock: 146 years of nanoseconds

# More than a shell that drains after each decision sees, and a bound for one that never does.
_TRANSITIONS_MAX: Final = 64

# `admit` answers with a generation or with one of these, all below zero.
_IS_OPEN: Final = ~int(Reason.CIRCUIT_OPEN)
_IS_PROBING: Final = ~int(Reason.CIRCUIT_PROBING)
_IS_RAMPING: Final = ~int(Reason.CIRCUIT_RAMPING)
_IS_HELD: Final = ~int(Reason.HELD)


@final
class CircuitBreaker:
    """The circuit of all calls to one dependency.

    Two ways to use it, which may be mixed. With permits: `try_acquire`, then `release`, once. Or
    flat, for a pipeline that has a permit of its own: `admit`, then `settle` with the start and
    the generation, once; it allocates nothing. Closed, on CPython 3.11, a success costs 363 ns the
    first way and 31 + 109 ns the second (`benchmarks/policies.py`).
    """

    __slots__ = (
        "_calls_start",
        "_calls_window",
        "_due",
        "_ends",
        "_failed",
        "_failed_start",
        "_failed_window",
        "_generation",
        "_leases",
        "_lost",
        "_others_calls",
        "_others_failed",
        "_others_lease",
        "_others_ok",
        "_others_out",
        "_probes_ok",
        "_random",
        "_reason",
        "_settings",
        "_state",
        "calls",
        "changes",
    )

    def __init__(self, settings: settings.Breaker, rng: Random) -> None:
        self._settings: Final = settings
        self._random: Final = rng.random
        self._state = CLOSED
        self._reason = ""
        self._generation = 0
        self._due: Instant = _NEVER  # when time alone changes the state
        self._leases: list[Instant] = []  # of the probes that are out; at most `probes`
        self._probes_ok = 0
        self.changes: Final[list[Transition]] = []  # not drained yet
        self._lost = 0
        # What the copies in other processes have, in this generation.
        self._others_calls = self._others_failed = 0
        self._others_out = self._others_ok = 0
        self._others_lease: Instant = _NEVER
        # The window of outcomes: two counters that only grow, and what they were at its start.
        self.calls = self._calls_start = 0
        self._failed = self._failed_start = 0
        self._calls_window = Window(settings.window)
        self._failed_window = Window(settings.window)
        self._ends: Instant = 0  # of the windows' present bucket

    # May it start?

    def try_acquire(self, now: Instant) -> Permit | Rejection:
        """A permit, to be given to `release` once; or why not."""
        answer = self.admit(now)
        if answer < 0:
            return REJECTIONS[~answer]
        lease = now + self._settings.lease if self._state is HALF_OPEN else 0
        return Permit(now, answer, lease)

    def admit(self, now: Instant) -> int:
        """The generation in which the call is let in, for `settle`; or, below zero, ~Reason.

        In the state of nearly every call this is one comparison.
        """
        if self._state is CLOSED:
            return self._generation
        return self._admit_unless(self.state(now), now)

    # How did it end?

    def release(self, now: Instant, permit: Permit, outcome: Outcome) -> None:
        """The call of this permit has ended. A second time changes nothing."""
        if not permit.settled:
            permit.settled = True
            self.settle(now, permit.start, permit.generation, outcome)

    def settle(self, now: Instant, start: Instant, generation: int, outcome: Outcome) -> None:
        """The call let in at `start` in `generation` has ended: to be told once.

        Flat for a success in the closed state; `admit` has the reason.
        """
        if now >= self._due:
            self._advance(now)
        if generation != self._generation:
            return
        if self._state is HALF_OPEN:
            self._settle_probe(now, start + self._settings.lease, outcome)
            return
        if outcome is IGNORED:
            return
        if now >= self._ends:
            self._slide(now)
        self.calls += 1
        if outcome is not SUCCESS:
            self._failed += 1
            self._judge(now)

    @property
    def original(self) -> "CircuitBreaker":
        """Itself; what stands in for it, as for all processes of a host, names it here."""
        return self

    def calm_until(self, now: Instant) -> Instant:
        """Until when a success does no more than to add one to `calls`; zero if it does more.

        Closed, that is the end of this bucket of the window, unless a failure opens it before.
        Whoever knows it may add the one himself.
        """
        if self._state is not CLOSED:
            return 0
        if now >= self._ends:
            self._slide(now)
        return self._ends

    def shut_until(self, now: Instant) -> Instant:
        """Until when every answer is CIRCUIT_OPEN, unless a hand or a copy moves it; else zero."""
        return self._due if self.state(now) is OPEN else 0

    # By hand.

    def hold(self, now: Instant, reason: str) -> None:
        """Let nobody in until `free`: a person's decision, and `reason` is theirs."""
        self._advance(now)
        if self._state is HELD:
            self._reason = reason
        else:
            self._move(now, HELD, reason)

    def free(self, now: Instant) -> None:
        """Undo `hold`: it comes back by probes and ramp. Without a hold nothing happens."""
        if self._state is HELD:
            self._move(now, HALF_OPEN, "freed by hand")

    # Its copies in other processes.

    def adopt(self, now: Instant, generation: int, state: State, due: Instant) -> None:
        """A copy is at `generation`, in `state` until `due`: go there, unless this one is further.

        What a person holds here stays held. A `due` that is further away than this breaker would
        set itself is cut to that, so that no copy can shut the circuit for longer.
        """
        self._advance(now)
        if self._state is HELD or generation < self._generation:
            return
        if generation == self._generation:
            if _CARE[state] <= _CARE[self._state]:
                return
            generation += 1  # calls of either state are out: their results count no more
        before = self._state
        self._enter(generation, state, "another process has seen it")
        if state is OPEN:
            self._due = min(due, now + self._settings.open_for)
        elif state is RAMPING:
            self._due = min(due, now + self._settings.ramp)
        self._forget()
        if state is not before:
            self._note(Transition(now, "circuit_breaker", before.value, state.value, self._reason))
        self._advance(now)

    def on_others(
        self,
        now: Instant,
        *,
        calls: int,
        failed: int,
        probes_out: int,
        probes_ok: int,
        lease: Instant,
    ) -> None:
        """What the copies of this very generation have together, this one not included.

        `lease` is the earliest of their probes' (0: none is out). Their probes take places of
        this one, and its last success may be the last of all.
        """
        self._advance(now)
        self._others_calls, self._others_failed = calls, failed
        if self._state is HALF_OPEN:
            self._others_out, self._others_ok = probes_out, probes_ok
            self._others_lease = lease or _NEVER
            self._count_probes(now)

    def totals(self, now: Instant) -> CircuitBreakerTotals:
        """What the copies need to know of this one."""
        self._advance(now)
        if now >= self._ends:
            self._slide(now)
        timed = self._state is OPEN or self._state is RAMPING
        return CircuitBreakerTotals(
            generation=self._generation,
            state=self._state,
            due=self._due if timed else 0,
            calls=self.calls - self._calls_start,
            failed=self._failed - self._failed_start,
            probes_out=len(self._leases),
            probes_ok=self._probes_ok,
            lease=min(self._leases, default=0),
        )

    # Time passing on its own.

    def next_wakeup(self) -> Instant | None:
        """When time alone will change the state; None if it will not."""
        return None if self._due == _NEVER else self._due

    def on_wakeup(self, now: Instant) -> None:
        """Do what is due. Too early, or when something else has come between, it does nothing."""
        self._advance(now)

    # Being seen.

    def state(self, now: Instant) -> State:
        """Where it stands now."""
        self._advance(now)
        return self._state

    def retry_after(self, now: Instant) -> Duration:
        """How long until another try is worth it; zero if it is now.

        Known while open and ramping. Where it depends on somebody else (probes that are out, a
        person who holds it) nobody knows, and it is one `open_for`.
        """
        state = self.state(now)
        if state is OPEN or state is RAMPING:
            return self._due - now
        if state is HELD or (state is HALF_OPEN and not self._has_place()):
            return self._settings.open_for
        return 0

    def drain_transitions(self) -> list[Transition]:
        """What changed since the last call, oldest first, each at its own instant."""
        drained = self.changes[:]
        self.changes.clear()  # the list stays the same: a shell may keep it at hand
        return drained

    def snapshot(self, now: Instant) -> CircuitBreakerSnapshot:
        """What a person would ask of it."""
        self._advance(now)
        if now >= self._ends:
            self._slide(now)
        return CircuitBreakerSnapshot(
            state=self._state,
            reason=self._reason,
            generation=self._generation,
            calls=self.calls - self._calls_start,
            failed=self._failed - self._failed_start,
            probes_out=len(self._leases),
            probes_ok=self._probes_ok,
            until=self.next_wakeup(),
            transitions_lost=self._lost,
        )

    # Private parts: closed and ramping.

    def _admit_unless(self, state: State, now: Instant) -> int:
        if state is OPEN:
            return _IS_OPEN
        if state is HELD:
            return _IS_HELD
        if state is HALF_OPEN:
            return self._admit_probe(now)
        if state is RAMPING and self._random() >= self._share(now):
            return _IS_RAMPING
        return self._generation

    def _judge(self, now: Instant) -> None:
        """After a failure: is it enough?"""
        calls = self.calls - self._calls_start + self._others_calls
        failed = self._failed - self._failed_start + self._others_failed
        # A quotient, since 7 / 100 >= 0.07 holds in floats and 7 >= 0.07 * 100 does not.
        if calls >= self._settings.volume and failed / calls >= self._settings.failures:
            self._open(now, f"{failed} of the last {calls} calls failed")

    def _share(self, now: Instant) -> float:
        """The share that is let in while ramping: a straight line, as Envoy's aggression of 1."""
        done = 1 - (self._due - now) / self._settings.ramp
        return self._settings.ramp_from + (1 - self._settings.ramp_from) * done

    def _slide(self, now: Instant) -> None:
        self._calls_start = self._calls_window.slide(now, self.calls)
        self._failed_start = self._failed_window.slide(now, self._failed)
        self._ends = self._calls_window.ends

    def _forget(self) -> None:
        """Begin to count anew: what failed before a pause is no evidence after it."""
        self._calls_window = Window(self._settings.window, self.calls)
        self._failed_window = Window(self._settings.window, self._failed)
        self._ends = 0  # so that the next result slides them, to a start that is now

    # Private parts: half-open.

    def _has_place(self) -> bool:
        """Whether one more probe may go out.

        Those that have succeeded keep their places. Filling them again would favour the fast: with
        enough draws even a dependency that hangs three times in four shows three good answers.
        """
        others = self._others_out + self._others_ok
        return self._probes_ok + len(self._leases) + others < self._settings.probes

    def _admit_probe(self, now: Instant) -> int:
        if not self._has_place():
            return _IS_PROBING
        self._leases.append(now + self._settings.lease)
        self._due = min(*self._leases, self._others_lease)
        return self._generation

    def _settle_probe(self, now: Instant, lease: Instant, outcome: Outcome) -> None:
        if lease not in self._leases:
            return  # told twice
        self._leases.remove(lease)
        if outcome is SUCCESS:
            self._probes_ok += 1
        elif outcome is not IGNORED:
            self._open(now, f"a probe ended in {outcome.name.lower()}")
            return
        self._count_probes(now)

    def _count_probes(self, now: Instant) -> None:
        """Those that are out set the time, and the last that succeeds closes the circuit."""
        self._due = min(self._leases, default=_NEVER)
        self._due = min(self._due, self._others_lease)
        if self._probes_ok + self._others_ok >= self._settings.probes:
            self._close(now)

    # Private parts: moving.

    def _advance(self, now: Instant) -> None:
        """Do what is due by `now`, each at its own instant. Never more than two steps."""
        while now >= self._due:
            if self._state is OPEN:
                self._move(self._due, HALF_OPEN, "time to probe")
            elif self._state is HALF_OPEN:
                self._open(self._due, "a probe did not end within its lease")
            else:
                self._move(self._due, CLOSED, "the ramp is over")

    def _open(self, at: Instant, reason: str) -> None:
        self._move(at, OPEN, reason)
        self._due = at + self._settings.open_for

    def _close(self, now: Instant) -> None:
        reason = f"{self._settings.probes} probes succeeded"
        self._forget()
        if self._settings.ramp and self._settings.ramp_from < 1:
            self._move(now, RAMPING, reason)
            self._due = now + self._settings.ramp
        else:
            self._move(now, CLOSED, reason)

    def _move(self, at: Instant, after: State, reason: str) -> None:
        assert after in TRANSITIONS[self._state]
        before = self._state
        # The end of a ramp opens no new era: the same calls count on.
        same = before is RAMPING and after is CLOSED
        self._enter(self._generation + (not same), after, reason)
        self._note(Transition(at, "circuit_breaker", before.value, after.value, reason))
        assert self._check()

    def _enter(self, generation: int, state: State, reason: str) -> None:
        if generation != self._generation:
            self._others_calls = self._others_failed = 0
        self._others_out = self._others_ok = 0
        self._others_lease = _NEVER
        self._generation = generation
        self._state = state
        self._reason = reason
        self._due = _NEVER
        self._leases.clear()
        self._probes_ok = 0

    def _note(self, transition: Transition) -> None:
        if len(self.changes) == _TRANSITIONS_MAX:
            del self.changes[0]
            self._lost += 1
        self.changes.append(transition)

    def _check(self) -> bool:
        """What always holds. In tests after every step, here only where the state moves."""
        calls = self.calls - self._calls_start
        failed = self._failed - self._failed_start
        assert 0 <= failed <= calls
        assert len(self._leases) + self._probes_ok <= self._settings.probes
        assert self._state is HALF_OPEN or not (self._leases or self._probes_ok)
        assert self._state not in {CLOSED, HELD} or self._due == _NEVER
        assert len(self.changes) <= _TRANSITIONS_MAX
        return True
