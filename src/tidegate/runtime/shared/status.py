"""What do the processes of a host know of a guard together, for a person to read?

Read from its table alone: nobody is asked, and nothing is written.
"""

from pathlib import Path
from typing import NamedTuple

from tidegate.core.circuit_breaker import CLOSED, HALF_OPEN, HELD, OPEN, RAMPING, State
from tidegate.runtime.shared import table as t
from tidegate.runtime.shared.hold import hold_in_force
from tidegate.runtime.shared.host_breaker import STATES
from tidegate.runtime.shared.owner import is_alive, this_process
from tidegate.runtime.shared.row import faded
from tidegate.runtime.shared.table import Hold, Table
from tidegate.units import SECOND, Duration, Instant

__all__ = ["GuardStatus", "status"]

_WINDOW = 10 * SECOND  # of what is told as recent
_STRANGER_LOST = 60 * SECOND


class GuardStatus(NamedTuple):
    """One guard on this host. `processes` run now and have it; the sums are since its table was
    made, also over processes that are gone. `retry_tokens` is None if no budget was ever asked.

    `seen` is how long ago one of them last looked, in nanoseconds; None if none has. `alone`
    counts how often a process found no row and went on by itself.
    """

    name: str
    state: State
    hold: Hold | None
    processes: int
    requests: int
    retries: int
    retries_refused: int
    retry_tokens: float
    calls: int
    failed: int
    inflight: int
    limit: int
    seen: Duration | None
    alone: int


def status(directory: Path, name: str, now: Instant) -> GuardStatus:
    """Raises InputError if the table is damaged, FileNotFoundError if there is none."""
    table = Table.open(directory, name, create=False)
    try:
        return _status(table, now)
    finally:
        table.close()


def _status(table: Table, now: Instant) -> GuardStatus:
    words, here = table.words, this_process()
    living, latest = [], 0
    calls = failed = 0
    for index in range(table.used):
        at, owner = table.row(index), table.owner(index)
        written = words[at + t.AT]
        latest = max(latest, written)
        if owner is None or words[at + t.KIND] != t.PROCESS:
            continue
        if is_alive(owner) if owner.namespace == here.namespace else now - written < _STRANGER_LOST:
            living.append(at)
        calls += faded(words[at + t.CALLS], now - written, _WINDOW)
        failed += faded(words[at + t.FAILED], now - written, _WINDOW)
    hold = hold_in_force(table, now)
    newest = max(living, key=lambda at: words[at + t.AT], default=None)
    return GuardStatus(
        name=table.name,
        state=HELD if hold is not None else _state(table, now),
        hold=hold,
        processes=len(living),
        requests=table.total(t.REQUESTS),
        retries=table.total(t.RETRIED),
        retries_refused=table.total(t.REFUSED),
        retry_tokens=0.0 if newest is None else words[newest + t.TOKENS] / 1_000_000,
        calls=calls,
        failed=failed,
        inflight=sum(table.column(t.INFLIGHT)),
        limit=0 if newest is None else words[newest + t.LIMIT],
        seen=now - latest if latest else None,
        alone=table.overflow,
    )


def _state(table: Table, now: Instant) -> State:
    """Where the furthest circuit is by now; a hold that is over leaves it half-open."""
    words, found, furthest = table.words, CLOSED, -1
    for index in range(table.used):
        at = table.row(index)
        generation, number = words[at + t.GENERATION], words[at + t.STATE]
        if generation <= furthest or number >= len(STATES):
            continue
        furthest, found = generation, STATES[number]
        if found is HELD or (found is OPEN and now >= words[at + t.DUE]):
            found = HALF_OPEN
        elif found is RAMPING and now >= words[at + t.DUE]:
            found = CLOSED
    return found
