"""Where does a lane keep its records, as its tasks see it?

On disk, in a log with a committer; in tests, in memory and in virtual time. Whatever may wait for a
disk is awaited, and done beside the event loop.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol, final

from tidegate.core.bounds import Drop
from tidegate.settings import spool as settings
from tidegate.spooler.log.committer import Ack, Committer, SyncTimes
from tidegate.spooler.log.files import Space
from tidegate.spooler.log.log import Log, Loss, Usage
from tidegate.spooler.log.options import options_of
from tidegate.spooler.log.ranges import Range
from tidegate.spooler.record import Batch, Record

__all__ = ["DiskKeep", "Keep"]


class Keep(Protocol):
    """What is kept, by number, until it is delivered."""

    @property
    def last(self) -> int:
        """The number that was given out last."""
        ...

    @property
    def pending(self) -> tuple[Range, ...]:
        """What is not delivered: ranges with both ends, the lowest first."""
        ...

    @property
    def full(self) -> bool:
        """Whether the disk has refused a write and takes none yet."""
        ...

    @property
    def recovered(self) -> str:
        """What opening has found, in words; empty if all was well."""
        ...

    def tell(self, grown: Callable[[], None]) -> None:
        """Call this on the loop, from now on, whenever there is more to read."""
        ...

    def now(self) -> int:
        """The time to give a record: nanoseconds since 1970."""
        ...

    async def append(self, records: Sequence[Record]) -> Ack:
        """Keep these, all or none, as durably as the lane says."""
        ...

    async def read(self, after: int, *, upto: int | None, max_bytes: int) -> Batch | None:
        """The next records above `after`."""
        ...

    async def delivered(self, first: int, last: int, *, fence: int) -> None:
        """The sink has these."""
        ...

    async def set_aside(self, first: int, last: int, why: str) -> None:
        """The sink will never take these."""
        ...

    async def drop_oldest(self, drop: Drop) -> Loss:
        """Drop what is too old, or too much."""
        ...

    def usage(self) -> Usage:
        """What is held."""
        ...

    def space(self) -> Space:
        """The disk."""
        ...

    def sync_times(self) -> SyncTimes | None:
        """How fast it is."""
        ...

    async def close(self) -> None:
        """Bring all to disk and give it back."""
        ...


@final
class DiskKeep:
    """A lane's log, in `directory`. Made on the loop that uses it."""

    __slots__ = ("_committer", "_grown", "_log", "_loop")

    def __init__(self, lane: settings.Lane, directory: Path, base: Path) -> None:
        self._loop: Final = asyncio.get_running_loop()
        self._grown: Callable[[], None] | None = None
        self._log: Final = Log.open(directory, options_of(lane, base))
        self._committer: Final = Committer(self._log, interval=lane.interval, grown=self._on_grown)

    @property
    def identity(self) -> int:
        """What tells this log from any other."""
        return self._log.identity

    @property
    def last(self) -> int:
        """The number that was given out last."""
        return self._log.last

    @property
    def pending(self) -> tuple[Range, ...]:
        """What is not delivered."""
        return self._log.pending

    @property
    def full(self) -> bool:
        """Whether the disk has refused a write and takes none yet."""
        return self._committer.full

    @property
    def recovered(self) -> str:
        """What opening has found."""
        return self._log.recovery.words

    def tell(self, grown: Callable[[], None]) -> None:
        """Call this whenever there is more to read."""
        self._grown = grown

    def now(self) -> int:
        """The time to give a record."""
        return self._log.now()

    async def append(self, records: Sequence[Record]) -> Ack:
        """Keep these, all or none."""
        return await self._committer.append(records)

    async def read(self, after: int, *, upto: int | None, max_bytes: int) -> Batch | None:
        """The next records above `after`."""
        return await self._committer.read(after, upto=upto, max_bytes=max_bytes)

    async def delivered(self, first: int, last: int, *, fence: int) -> None:
        """The sink has these."""
        await self._committer.delivered(first, last, fence=fence)

    async def set_aside(self, first: int, last: int, why: str) -> None:
        """The sink will never take these."""
        await asyncio.to_thread(self._log.set_aside, first, last, why)

    async def drop_oldest(self, drop: Drop) -> Loss:
        """Drop what is too old, or too much."""
        return await asyncio.to_thread(self._log.drop_oldest, drop)

    def usage(self) -> Usage:
        """What is held."""
        return self._log.usage()

    def space(self) -> Space:
        """The disk; one that cannot be asked (its directory is gone) has no room."""
        try:
            return self._log.space()
        except OSError:
            return Space(total=1, free=0)

    def sync_times(self) -> SyncTimes | None:
        """How fast it is."""
        return self._committer.sync_times()

    async def close(self) -> None:
        """Bring all to disk and give it back."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._committer.close()
        self._log.close()

    def _on_grown(self) -> None:
        """In the committer's thread."""
        if self._grown is not None:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._grown)
