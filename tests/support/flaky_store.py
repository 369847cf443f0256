"""A store in memory behind a network that is late, loses questions, and loses answers."""

import asyncio
from collections.abc import Iterator
from random import Random

from tidegate.runtime.clock import current
from tidegate.spooler.coordinators.coordinator import CoordinatorLost
from tidegate.spooler.coordinators.store import Entry
from tidegate.units import Duration, Instant


class Records:
    """What the server keeps; several stores share it."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.words: dict[str, tuple[bytes, Instant]] = {}
        self.version = 0
        self.silent = False  # nobody is answered, and nothing arrives


class FlakyStore:
    """Each question may arrive late, be lost, or be answered too late to be of use.

    A question whose asker has gone still arrives: that is what a network does.
    """

    where = "the test's server"

    def __init__(self, records: Records, luck: Random, *, trouble: float = 0.0) -> None:
        self.records = records
        self.luck = luck
        self.trouble = trouble
        self.late: set[asyncio.Task[None]] = set()

    async def read(self, key: str) -> Entry | None:
        await self._way()
        entry = self.records.entries.get(key)
        await self._way()
        return entry

    async def write(self, key: str, value: bytes, version: int) -> int | None:
        if self.luck.random() < self.trouble:
            self._arrives_later(key, value, version)
            await self._lost()
        await self._way()
        written = self._write(key, value, version)
        await self._way()
        if self.luck.random() < self.trouble:
            await self._lost()
        return written

    async def say(self, who: str, value: bytes, kept: Duration) -> None:
        await self._way()
        self.records.words[who] = (value, current().now() + kept)

    async def said(self) -> list[bytes]:
        await self._way()
        return list(self._standing())

    async def close(self) -> None:
        pass

    def _standing(self) -> Iterator[bytes]:
        for value, end in self.records.words.values():
            if current().now() < end:
                yield value

    def _write(self, key: str, value: bytes, version: int) -> int | None:
        records = self.records
        before = records.entries.get(key)
        if (0 if before is None else before.version) != version:
            return None
        records.version += 1
        records.entries[key] = Entry(value, records.version)
        return records.version

    async def _way(self) -> None:
        if self.records.silent:
            await asyncio.sleep(3600)
        await asyncio.sleep(self.luck.choice((0.0, 0.001, 0.05, 0.4)))

    async def _lost(self) -> None:
        if self.luck.random() < 0.5:
            raise CoordinatorLost("the test's server has hung up")
        await asyncio.sleep(3600)

    def _arrives_later(self, key: str, value: bytes, version: int) -> None:
        async def arrive() -> None:
            await asyncio.sleep(self.luck.uniform(0, 30))
            self._write(key, value, version)

        task = asyncio.create_task(arrive())
        self.late.add(task)
        task.add_done_callback(self.late.discard)
