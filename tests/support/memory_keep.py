"""A lane's records in memory, and a sink that does what it is told: for lanes in virtual time."""

import asyncio
from collections.abc import Callable, Sequence

from tidegate.core.bounds import Drop
from tidegate.core.health import Health, Partition, View
from tidegate.core.outcome import Outcome
from tidegate.spooler.log.committer import Ack, SyncTimes
from tidegate.spooler.log.files import Space
from tidegate.spooler.log.log import Loss, Usage
from tidegate.spooler.log.ranges import Range, Ranges
from tidegate.spooler.record import Batch, Record
from tidegate.spooler.sinks.sink import DELIVERED, Sent
from tidegate.testing import ManualClock
from tidegate.units import SECOND, Duration

__all__ = ["MemoryKeep", "ScriptedSink"]

WHOLE = Health((View("a", partitions=(Partition("events-0", "a", 3, 3),)),))


class MemoryKeep:
    """Implements `Keep`. Every append is durable at once."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.records: dict[int, Record] = {}
        self.aside: list[int] = []
        self.lost: dict[str, int] = {}
        self.last = 0
        self.full = False
        self.recovered = ""
        self.closed = False
        self._pending = Ranges()
        self._grown: Callable[[], None] | None = None

    @property
    def pending(self) -> tuple[Range, ...]:
        return tuple(self._pending)

    def tell(self, grown: Callable[[], None]) -> None:
        self._grown = grown

    def now(self) -> int:
        return self.clock.now()

    async def append(self, records: Sequence[Record]) -> Ack:
        first = self.last + 1
        for record in records:
            self.last += 1
            self.records[self.last] = record
        self._pending.add(first, self.last)
        if self._grown is not None:
            self._grown()
        return Ack(first, self.last, "disk")

    async def read(self, after: int, *, upto: int | None, max_bytes: int) -> Batch | None:
        records: list[Record] = []
        number, size = after + 1, 0
        while number <= (self.last if upto is None else min(upto, self.last)):
            record = self.records[number]
            size += len(record.value) + len(record.key)
            if records and size > max_bytes:
                break
            records.append(record)
            number += 1
        return Batch(after + 1, records) if records else None

    async def delivered(self, first: int, last: int, *, fence: int) -> None:
        self._pending.remove(first, last)

    async def set_aside(self, first: int, last: int, why: str) -> None:
        self.aside += range(first, last + 1)
        self._pending.remove(first, last)

    async def drop_oldest(self, drop: Drop) -> Loss:
        records = 0
        for first, last in self.pending:
            for number in range(first, last + 1):
                old = drop.age is not None and self.now() - self.records[number].time > drop.age
                if old or records < drop.records:
                    records += self._pending.remove(number, number)
        self.lost[drop.cause] = self.lost.get(drop.cause, 0) + records
        return Loss(records, records, drop.cause)

    def usage(self) -> Usage:
        waiting = [self.records[n] for a, b in self._pending for n in range(a, b + 1)]
        size = sum(len(record.value) + len(record.key) for record in waiting)
        oldest = min((record.time for record in waiting), default=None)
        return Usage(size, 1, len(waiting), size, oldest, self.lost, 0, 0, 0, "")

    def space(self) -> Space:
        return Space(total=10**9, free=9 * 10**8)

    def sync_times(self) -> SyncTimes | None:
        return None

    async def close(self) -> None:
        self.closed = True


class ScriptedSink:
    """Takes a batch in `takes` and answers what `answer` says of it (None: delivered)."""

    def __init__(self, *, takes: Duration = SECOND // 100) -> None:
        self.takes = takes
        self.answer: Callable[[Batch], Sent | None] = lambda batch: None
        self.health_now = WHOLE
        self.got: list[int] = []
        self.offered: list[tuple[float, Batch]] = []
        self.closed = False

    async def send(self, batch: Batch, timeout: Duration) -> Sent:
        self.offered.append((asyncio.get_running_loop().time(), batch))
        await asyncio.sleep(self.takes / SECOND)
        sent = self.answer(batch) or DELIVERED
        if sent.outcome is Outcome.SUCCESS:
            self.got += range(batch.first, batch.last + 1)
        return sent

    async def health(self, timeout: Duration) -> Health:
        await asyncio.sleep(self.takes / SECOND)
        return self.health_now

    async def close(self) -> None:
        self.closed = True
