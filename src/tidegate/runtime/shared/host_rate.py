"""How do the processes of a host keep one rate?

A bucket's theoretical arrival time is the sum of the intervals that were taken and of the time that
was left unused. Each process writes how much it has taken and the most that it has seen unused; the
sum of the first over all rows and the largest of the second are the host's arrival time. As for a
retry, what is wanted is announced before the others are read.

Processes that go by another rate, while a setting is rolled out, are another bucket: an interval of
an hour, once taken, would else keep those at a thousand a second waiting for it.
"""

from typing import Final, final

from tidegate.core.token_bucket import TokenBucket, TokenBucketSnapshot
from tidegate.runtime.shared import table as t
from tidegate.runtime.shared.row import Row
from tidegate.settings.policies import RateLimit
from tidegate.units import Duration, Instant

__all__ = ["HostRate"]


@final
class HostRate:
    """At most so many in a second from this host, and at most one burst."""

    __slots__ = ("_claims", "_others_differ", "_row", "original")

    def __init__(self, original: TokenBucket, row: Row) -> None:
        self.original: Final = original
        self._row: Final = row
        self._claims = 0
        self._others_differ = False  # as of the last look

    def try_acquire(self, now: Instant, cost: int = 1) -> bool:
        """Let `cost` of them come now, all or none, if the host may have as many."""
        row, original = self._row, self.original
        if not row.at:
            return original.try_acquire(now, cost)
        if self._claims != row.claims:
            self.tell()
        words, at, wanted = row.words, row.at, cost * original.interval
        words[at + t.TAKEN] += wanted
        taken, unused = self._host()
        original.on_others(taken - wanted + unused)
        if original.try_acquire(now, cost):
            words[at + t.UNUSED] = original.arrival - taken
            return True
        words[at + t.TAKEN] -= wanted
        return False

    def _host(self) -> tuple[int, int]:
        """What the processes at our rate have taken, and the most that one has seen unused."""
        table = self._row.table
        if not self._others_differ:
            return table.sane_sum(t.TAKEN), table.sane_max(t.UNUSED)
        words, interval = table.words, self.original.interval
        intervals = table.column(t.INTERVAL).tolist()
        rows = [table.row(index) for index, each in enumerate(intervals) if each == interval]
        return sum(words[at + t.TAKEN] for at in rows), max(words[at + t.UNUSED] for at in rows)

    def tell(self) -> None:
        """Write at which rate we are, and see whether others are at another.

        What was taken at another is none of ours.
        """
        row = self._row
        self._claims = row.claims
        words, at = row.words, row.at
        if words[at + t.INTERVAL] != self.original.interval:
            words[at + t.TAKEN] = words[at + t.UNUSED] = 0
            words[at + t.INTERVAL] = self.original.interval
        others = set(row.table.column(t.INTERVAL))
        self._others_differ = not others <= {0, self.original.interval}

    def retry_after(self, now: Instant) -> Duration:
        """Nanoseconds until one would be let in, if nobody on the host comes."""
        return self.original.retry_after(now)

    def reconfigure(self, now: Instant, settings: RateLimit) -> None:
        """Change the limits of a bucket in use; it is another bucket for the others then."""
        self.original.reconfigure(now, settings)
        if self._row.at:
            self.tell()

    def snapshot(self, now: Instant) -> TokenBucketSnapshot:
        """What a person would ask of it, as of the last that came from this process."""
        return self.original.snapshot(now)
