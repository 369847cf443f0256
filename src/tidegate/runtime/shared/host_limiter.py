"""How do the processes of a host keep one fixed limit?

Each writes how many it has in flight into its row at every change, one word, so that the sum over
all rows is true at every moment; and it announces the next one before it reads the sum. A limit
that adapts needs none of this: each process has its part of it, and learns from its own answers.
"""

from typing import Final, final

from tidegate.core.concurrency_limiter import ConcurrencyLimiter, ConcurrencyLimiterSnapshot
from tidegate.core.outcome import Outcome
from tidegate.runtime.shared import table as t
from tidegate.runtime.shared.row import Row
from tidegate.units import Duration, Instant

__all__ = ["HostLimiter"]


@final
class HostLimiter:
    """At most `limit` in flight on the host: what the others have out takes places here."""

    indifferent: Final = 0  # a place given back is told to the host

    __slots__ = ("_row", "limit", "original")

    def __init__(self, original: ConcurrencyLimiter, limit: int, row: Row) -> None:
        self.original: Final = original
        self.limit: Final = limit
        self._row: Final = row

    def try_acquire(self, now: Instant) -> bool:
        """Take one of the host's places; False if all are taken."""
        row, original = self._row, self.original
        if not row.at:
            original.limit = self.limit
            return original.try_acquire(now)
        wanted = original.inflight + 1
        row.words[row.at + t.INFLIGHT] = wanted
        original.limit = self.limit - (sum(row.table.column(t.INFLIGHT)) - wanted)
        if original.try_acquire(now):
            return True
        self.tell()
        return False

    def release(self, now: Instant, rtt: Duration, outcome: Outcome) -> None:
        """Give a place back; told first, since who is interrupted after it would give it twice."""
        if self._row.at:
            self._row.words[self._row.at + t.INFLIGHT] = self.original.inflight - 1
        self.original.release(now, rtt, outcome)

    def tell(self) -> None:
        """Write how many we have out."""
        if self._row.at:
            self._row.words[self._row.at + t.INFLIGHT] = self.original.inflight

    @property
    def inflight(self) -> int:
        """How many this process has out."""
        return self.original.inflight

    def snapshot(self, now: Instant) -> ConcurrencyLimiterSnapshot:
        """What a person would ask of it: in flight here, of the host's limit."""
        return self.original.snapshot(now)._replace(limit=self.limit)
