"""How do the lanes of one process live together?

They share a directory (and so a disk, of which each may have a share), a name among their fleet,
and one event loop. `Spool` opens them, runs them, and is what the door and a program talk to.
"""

import asyncio
import logging
import os
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Final, Self, final

from tidegate._version import __version__
from tidegate.core.bounds import promised
from tidegate.errors import SettingsError
from tidegate.runtime.clock import current
from tidegate.settings import spool as settings
from tidegate.spooler.bell import Bell
from tidegate.spooler.coordinators.choose import open_coordinator
from tidegate.spooler.courier import Sinks
from tidegate.spooler.door.keeper import Accepted, Refused
from tidegate.spooler.keep import DiskKeep
from tidegate.spooler.lane import Lane
from tidegate.spooler.lane_status import lane_status
from tidegate.spooler.record import Record
from tidegate.spooler.sinks.choose import open_sink
from tidegate.spooler.sinks.sink import Sink
from tidegate.spooler.status import SpoolStatus
from tidegate.units import SECOND

__all__ = ["LINGER_S", "Spool"]

LINGER_S: Final = 5.0
"""How long the end waits for what is on its way; the rest is on disk and goes the next time."""

_log: Final = logging.getLogger("tidegate.spool")


@final
class Spool:
    """The lanes of a process: `async with Spool(settings, base) as spool`.

    Paths in the settings begin at `base`. `listen` is shown in the status.
    """

    def __init__(self, spool: settings.Spool, base: Path, *, linger_s: float = LINGER_S) -> None:
        self._settings: Final = spool
        self._base: Final = base
        self._linger_s: Final = linger_s
        self._lanes: Final[dict[str, Lane]] = {}
        self._tasks: Final[list[asyncio.Task[None]]] = []
        self._began = current().now()
        self.died: Callable[[], None] | None = None
        """Called when a lane has died of a bug; what it died of is raised at the end."""
        self.collector: Final = spool.collector or socket.gethostname()
        self.directory: Final = base / spool.directory

    async def __aenter__(self) -> Self:
        """Open every lane, or none."""
        async with AsyncExitStack() as undo:
            for name, lane in self._settings.lanes.items():
                opened = await self._open(name, lane)
                undo.push_async_callback(opened.close)
                self._lanes[name] = opened
            undo.pop_all()
        for lane_at_work in self._lanes.values():
            task = asyncio.create_task(lane_at_work.run(), name=f"lane {lane_at_work.name}")
            task.add_done_callback(self._on_end)
            self._tasks.append(task)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let go what goes at once, then stop. Raises what a lane has died of."""
        async with AsyncExitStack() as closing:
            for lane in self._lanes.values():
                closing.push_async_callback(lane.close)
            await asyncio.gather(*map(self._linger, self._lanes.values()))
            for lane in self._lanes.values():
                lane.stop()
            _, late = await asyncio.wait(self._tasks, timeout=self._linger_s)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        for task in self._tasks:
            if not task.cancelled() and (died := task.exception()) is not None and error is None:
                raise died

    # What the door asks.

    @property
    def lanes(self) -> Sequence[str]:
        """Their names."""
        return tuple(self._lanes)

    def refuses(self, lane: str) -> Refused | None:
        """Why this lane takes nothing now; None if it does."""
        return self._lanes[lane].refuses()

    async def accept(self, lane: str, records: Sequence[Record]) -> Accepted | Refused:
        """Keep all of these, durably, or none."""
        return await self._lanes[lane].accept(records)

    def status(self) -> SpoolStatus:
        """What there is to know now."""
        now = current().now()
        return SpoolStatus(
            collector=self.collector,
            version=__version__,
            pid=os.getpid(),
            up_s=(now - self._began) / SECOND,
            directory=str(self.directory),
            listen=self._settings.listen,
            lanes=[lane_status(lane, now) for lane in self._lanes.values()],
        )

    def hold(self, lane: str, why: str) -> None:
        """Send nothing to the lane's sink until it is released."""
        self._lanes[lane].hold(why)

    def release(self, lane: str) -> None:
        """Let the lane go on."""
        self._lanes[lane].release()

    # Private parts.

    async def _open(self, name: str, lane: settings.Lane) -> Lane:
        path = ("spool", "lanes", name)
        if lane.pace.speed == "at_once":
            raise SettingsError(
                "`at_once` is for simulations; expected gentle, normal or fast",
                path=(*path, "pace", "speed"),
            )
        keep = DiskKeep(lane, self.directory / name, self._base)
        try:
            sinks = Sinks(*(self._sink(name, lane, keep, purpose) for purpose in Sinks._fields))
            coordinator = open_coordinator(lane.turns, name, self.collector, self._base)
        except BaseException as error:
            await keep.close()
            if isinstance(error, SettingsError):
                raise error.under(*path) from None
            raise
        return Lane(
            name,
            lane,
            keep=keep,
            sinks=sinks,
            coordinator=coordinator,
            collector=self.collector,
            rng=Random(),
            bell=Bell(),
            promised=lambda total: self._promised(name, total),
            wall=time.time_ns,
        )

    def _sink(self, name: str, lane: settings.Lane, keep: DiskKeep, purpose: str) -> Sink:
        sender = f"{self.collector}/{name}"
        return open_sink(lane, sender=sender, log=keep.identity, purpose=purpose, base=self._base)

    def _promised(self, name: str, total: int) -> int:
        """How much of the disk belongs to the other lanes and is not used yet."""
        shares = {
            other: (lane.settings.share, lane.keep.usage().bytes)
            for other, lane in self._lanes.items()
            if lane.settings.share
        }
        return promised(name, total, shares)

    async def _linger(self, lane: Lane) -> None:
        """Wait for what is on its way, where there is a way."""
        try:
            async with asyncio.timeout(self._linger_s):
                await lane.drained()
        except TimeoutError:
            pass

    def _on_end(self, task: "asyncio.Task[None]") -> None:
        """A lane ends by itself only of a bug of ours: say so, and let nobody think it works."""
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("%s has died, and its records are only kept: %r", task.get_name(), error)
            if self.died is not None:
                self.died()
