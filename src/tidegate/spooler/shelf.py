"""What is to be sent next, of what is new and of what was left behind?

A border parts the numbers of a lane: above it records are live and go first, what is pending at or
below it is the backlog. In peace the border stands still behind everything. When a sink is well
again after more than a second's worth has gathered, the border jumps to the end of the log, and all
that waited becomes backlog: a whole fleet comes back at the same moment, and what each of them
sends then is on top of what is live. With `order: kept` the border follows the end for as long as
there is a backlog, so nothing overtakes.
"""

from typing import Final, final

from tidegate.core.bisection import Bisection
from tidegate.runtime.clock import current
from tidegate.spooler.keep import Keep
from tidegate.spooler.record import Batch

__all__ = ["Shelf"]

_HARDLY: Final = 16_000  # bytes: a lane with little to say need not wait for a gate for it


@final
class Shelf:
    """One lane's records that wait. `batch` is the most bytes to send at once."""

    __slots__ = ("_batch", "_keep", "_kept", "_record", "bisection", "border")

    def __init__(self, keep: Keep, *, batch: int, in_order: bool) -> None:
        self._keep: Final = keep
        self._batch: Final = batch
        self._kept: Final = in_order
        self._record = 1000.0  # bytes, on average; learned
        self.bisection: Final = Bisection()
        self.border = 0
        self.measure()
        self.on_well(0.0)

    # What happens.

    def measure(self) -> None:
        """Learn how large records are on average, from what is on disk."""
        usage = self._keep.usage()
        if usage.backlog_records:
            self._record = max(1.0, usage.backlog_bytes / usage.backlog_records)

    def on_well(self, live: float) -> None:
        """The sink is well again: what has gathered is backlog, but for a second's worth.

        `live` is how many bytes come in per second.
        """
        if self.waiting > min(self._batch, max(_HARDLY, live)):
            self.border = self._keep.last

    def on_grown(self) -> None:
        """Records have come in: behind a backlog that is kept in order they belong to it."""
        if self._kept and self.backlog:
            self.border = self._keep.last

    # What follows.

    @property
    def waiting(self) -> int:
        """Bytes of live records that wait, about."""
        return self._bytes(self.border, self._keep.last)

    @property
    def backlog(self) -> int:
        """Bytes of the backlog, about."""
        return self._bytes(0, self.border)

    async def next_live(self, *, canary: bool = False) -> Batch | None:
        """The next live records, if any may be sent; with `canary` one of them."""
        return await self._next(self.border, self._keep.last, 1 if canary else self._batch)

    async def next_backlog(self, most: int) -> Batch | None:
        """The next of the backlog, of `most` bytes (but always one record)."""
        return await self._next(0, self.border, min(most, self._batch))

    async def next_canary(self) -> Batch | None:
        """One record of the backlog to try a sick sink with, when nothing live waits."""
        return await self.next_backlog(1)

    # Private parts.

    def _bytes(self, above: int, upto: int) -> int:
        count = 0
        for first, last in self._keep.pending:
            count += max(0, min(last, upto) - max(first, above + 1) + 1)
        return int(count * self._record)

    async def _next(self, above: int, upto: int, most: int) -> Batch | None:
        now, pending = current().now(), self._keep.pending
        for first, last in pending:
            if last <= above or first > upto:
                continue
            part = self.bisection.cut(now, max(first, above + 1), min(last, upto))
            if part is None:
                continue
            batch = await self._keep.read(part[0] - 1, upto=part[1], max_bytes=most)
            if batch is None and self._keep.pending != pending:
                break  # what could not be read is lost, and counted; there may be more behind it
            return batch
        else:
            return None
        return await self._next(above, upto, most)
