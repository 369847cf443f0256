"""How do the processes of a host have one circuit, and pay nothing for it while it is closed?

A `HostBreaker` stands in a pipeline in the place of its breaker. Closed, its `admit` and `settle`
are the original's own methods. Otherwise a probe is announced before it is asked for, as a retry
is, and what came of it is on the table before its call returns.
"""

from collections.abc import Callable
from typing import Final, final

from tidegate.core.circuit_breaker import (
    CLOSED,
    HALF_OPEN,
    HELD,
    OPEN,
    RAMPING,
    CircuitBreaker,
    CircuitBreakerSnapshot,
    State,
)
from tidegate.core.outcome import Outcome, Transition
from tidegate.runtime.shared import table as t
from tidegate.runtime.shared.row import Row, faded
from tidegate.units import MILLISECOND, Duration, Instant

__all__ = ["STATES", "HostBreaker"]

STATES: Final = (CLOSED, OPEN, HALF_OPEN, RAMPING, HELD)
"""A breaker's state, by its number in a row."""

_NUMBERS: Final = {state: number for number, state in enumerate(STATES)}
_HELD: Final = _NUMBERS[HELD]  # a person's; each process goes by the hold itself
_GENERATION_MAX: Final = 1 << 62  # beyond it there is only damage
_SURE: Final = MILLISECOND  # a no is taken as true for so long


@final
class HostBreaker:
    """A circuit that is one for the host. `changes` is the original's list of what is not told."""

    __slots__ = ("_row", "_sure_until", "_window", "admit", "changes", "original", "settle")

    def __init__(self, original: CircuitBreaker, window: Duration, row: Row) -> None:
        self.original: Final = original
        self.changes: Final = original.changes
        self._window: Final = window
        self._row: Final = row
        self._sure_until: Instant = 0
        self.admit: Callable[[Instant], int] = self._admit
        self.settle: Callable[[Instant, Instant, int, Outcome], None] = self._settle

    def aim(self, now: Instant) -> None:
        """Go the short way while the circuit is closed, and only then."""
        closed = self.original.state(now) is CLOSED
        self.admit = self.original.admit if closed else self._admit
        self.settle = self.original.settle if closed else self._settle

    def _admit(self, now: Instant) -> int:
        original = self.original
        if original.state(now) is not HALF_OPEN or not self._row.is_ours(now):
            return original.admit(now)
        if now < self._sure_until and original.retry_after(now):
            return original.admit(now)
        self._tell(now, announced=1)
        self.hear(now)
        answer = original.admit(now)
        self._tell(now, announced=0)
        if answer < 0:
            self._sure_until = now + _SURE
        return answer

    def _settle(self, now: Instant, start: Instant, generation: int, outcome: Outcome) -> None:
        original = self.original
        probing = original.state(now) is HALF_OPEN
        original.settle(now, start, generation, outcome)
        if (probing or self.changes) and self._row.is_ours(now):
            self.exchange(now)
        self.aim(now)

    # The exchange.

    def exchange(self, now: Instant) -> None:
        """Write where we stand, hear where the others are, and write where that has brought us."""
        self._tell(now, announced=0)
        before = self._row.words[self._row.at + t.GENERATION]
        self.hear(now)
        if self.original.totals(now).generation != before:
            self._tell(now, announced=0)

    def _tell(self, now: Instant, *, announced: int) -> None:
        words, at = self._row.words, self._row.at
        told = self.original.totals(now)
        words[at + t.AT] = now
        words[at + t.VERSION] |= 1  # odd while we write
        words[at + t.GENERATION] = told.generation
        words[at + t.STATE] = _NUMBERS[told.state]
        words[at + t.DUE] = told.due
        words[at + t.CALLS] = told.calls
        words[at + t.FAILED] = told.failed
        words[at + t.PROBES_OUT] = told.probes_out + announced
        words[at + t.PROBES_OK] = told.probes_ok
        words[at + t.LEASE] = told.lease
        words[at + t.VERSION] += 1

    def take_over(self, now: Instant) -> None:
        """Go on from what the row's last owner knew, perhaps alone. Before we write to it."""
        row = self._read(self._row.at)
        if row is not None and row[0] < _GENERATION_MAX and row[1] < _HELD:
            self.original.adopt(now, row[0], STATES[row[1]], row[2])

    def hear(self, now: Instant) -> None:
        """Go where the furthest of the others is; count with those who are where we are.

        When all are closed together, as nearly always, their rows are read by column: ten looks in
        a second at 64 rows would else take 2 ms of it.
        """
        mine = self.original.totals(now)
        column = self._row.table.column
        generations, states = column(t.GENERATION).tolist(), column(t.STATE).tolist()
        ours = mine.generation
        pairs = zip(generations, states, strict=True)
        others_differ = max(generations) > ours or any(
            state for generation, state in pairs if generation == ours
        )
        if mine.state is not CLOSED or others_differ:
            self._hear_each(now)
            return
        counts = column(t.CALLS).tolist()
        counts[self._row.index] = 0
        calls = failed = 0
        for index, count in enumerate(counts):
            if count and generations[index] == ours:
                at = self._row.table.row(index)
                age = now - self._row.words[at + t.AT]
                calls += faded(count, age, self._window)
                failed += faded(self._row.words[at + t.FAILED], age, self._window)
        self.original.on_others(now, calls=calls, failed=failed, probes_out=0, probes_ok=0, lease=0)

    def _hear_each(self, now: Instant) -> None:
        words, original = self._row.words, self.original
        mine = original.totals(now).generation
        same: list[tuple[int, ...]] = []
        for at in self._row.others():
            if not mine <= words[at + t.GENERATION] < _GENERATION_MAX:
                continue
            row = self._read(at)
            if row is None:
                continue
            generation, state, due = row[:3]
            if state < _HELD:
                original.adopt(now, generation, STATES[state], due)
                after = original.totals(now).generation
                if after != mine:
                    mine = after
                    same.clear()
            if generation == mine:
                same.append((at, *row[3:]))
        self._count(now, same)

    def _count(self, now: Instant, same: list[tuple[int, ...]]) -> None:
        calls = failed = out = ok = lease = 0
        for at, row_calls, row_failed, row_out, row_ok, row_lease in same:
            age = now - self._row.words[at + t.AT]
            calls += faded(row_calls, age, self._window)
            failed += faded(row_failed, age, self._window)
            ok += row_ok
            if row_out and not self._row.is_dead(now, at):
                out += row_out
                lease = min(lease, row_lease) if lease and row_lease else lease or row_lease
        self.original.on_others(
            now, calls=calls, failed=failed, probes_out=out, probes_ok=ok, lease=lease
        )

    def _read(self, at: int) -> tuple[int, ...] | None:
        """Generation, state, due, calls, failed, out, ok and lease, all of one moment.

        None if the row is being written, or was when its owner died.
        """
        words = self._row.words
        for _ in range(3):
            version = words[at + t.VERSION]
            what = words[at + t.GENERATION : at + t.DUE + 1].tolist()
            counts = words[at + t.CALLS : at + t.LEASE + 1].tolist()
            if version == words[at + t.VERSION] and not version & 1:
                return (*what, *counts) if what[1] <= _HELD else None
        return None

    # All else is the original's.

    def shut_until(self, now: Instant) -> Instant:
        """Until when every answer is the same no."""
        return self.original.shut_until(now)

    def calm_until(self, now: Instant) -> Instant:
        """Until when a success changes nothing but its count."""
        return self.original.calm_until(now)

    def state(self, now: Instant) -> State:
        """Where it stands now."""
        return self.original.state(now)

    def retry_after(self, now: Instant) -> Duration:
        """How long until another try is worth it."""
        return self.original.retry_after(now)

    def drain_transitions(self) -> list[Transition]:
        """What changed since the last call, oldest first."""
        return self.original.drain_transitions()

    def snapshot(self, now: Instant) -> CircuitBreakerSnapshot:
        """What a person would ask of it."""
        return self.original.snapshot(now)

    def hold(self, now: Instant, reason: str) -> None:
        """Let nobody in until `free`."""
        self.original.hold(now, reason)
        self.aim(now)

    def free(self, now: Instant) -> None:
        """Undo `hold`."""
        self.original.free(now)
        self.aim(now)
