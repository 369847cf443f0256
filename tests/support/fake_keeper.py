"""A spool without a disk, for its door: it keeps what it is given, and says what it is told."""

import asyncio
from collections.abc import Sequence

from sample_spool import lane, spool

from tidegate.spooler.door.keeper import Accepted, Refused
from tidegate.spooler.record import Record
from tidegate.spooler.status import SpoolStatus


class FakeKeeper:
    """`kept` is what was accepted, by lane; `takes_s` how long a write takes."""

    def __init__(self, *lanes: str, takes_s: float = 0.0) -> None:
        self.lanes = lanes or ("events", "clicks")
        self.kept: dict[str, list[Record]] = {name: [] for name in self.lanes}
        self.requests = 0
        self.refused: dict[str, Refused] = {}
        self.late: Refused | Exception | None = None  # what a lane says that took before
        self.takes_s = takes_s
        self.held: dict[str, str] = {}

    def refuses(self, lane: str) -> Refused | None:
        return self.refused.get(lane)

    async def accept(self, lane: str, records: Sequence[Record]) -> Accepted | Refused:
        if self.takes_s:
            await asyncio.sleep(self.takes_s)
        if isinstance(self.late, Exception):
            raise self.late
        if self.late is not None:
            return self.late
        self.requests += 1
        first = len(self.kept[lane]) + 1
        self.kept[lane] += records
        return Accepted(first, "disk")

    def status(self) -> SpoolStatus:
        return spool(*(lane(name=name) for name in self.lanes))

    def hold(self, lane: str, why: str) -> None:
        self.held[lane] = why

    def release(self, lane: str) -> None:
        self.held.pop(lane, None)

    def values(self, lane: str = "events") -> list[bytes]:
        return [record.value for record in self.kept[lane]]
