"""How does one kind of records get from its callers to its sink, through the log?

What is accepted is in the log before anything else happens to it. From there `courier.py` takes it
on; this module takes it in, asks the sink how it is, runs the errands to the fleet's coordinator,
and each second sees to what is too old or too much.

Nothing is decided here: `core.Replay` says what may go, `core.Bounds` what may be kept.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from random import Random
from typing import Final, final

from tidegate.core.bounds import Bounds, Stock
from tidegate.core.errands import Errand, Look, Publish, Release, Renew, Say, Take
from tidegate.core.lane import LaneState
from tidegate.core.leases import Answer
from tidegate.core.outcome import Transition
from tidegate.core.replay import Replay
from tidegate.errors import SpoolFull
from tidegate.runtime.clock import current
from tidegate.settings import spool as settings
from tidegate.spooler.bell import Bell
from tidegate.spooler.coordinators.coordinator import Coordinator, CoordinatorLost
from tidegate.spooler.courier import Courier, Sinks, Tally
from tidegate.spooler.door.keeper import Accepted, Refused
from tidegate.spooler.keep import Keep
from tidegate.spooler.record import Record
from tidegate.spooler.shelf import Shelf
from tidegate.units import MILLISECOND, SECOND, Instant

__all__ = ["Lane"]

_FRESH: Final = 50 * MILLISECOND  # a narrow bound must not fill between two looks
_LEAST: Final = 10 * MILLISECOND  # between two errands that nobody has woken
_PEACE: Final = 2  # looks are so many times rarer while nothing waits, and none is stale
_SMOOTH: Final = 0.2  # of the last second, in a rate that a person reads

_log: Final = logging.getLogger("tidegate.spool")


@final
class Lane:
    """One lane at work, on one event loop. `run` is its life; `accept` may be called during it.

    `promised` says how much of the disk belongs to other lanes. `wall` is the wall clock, in
    nanoseconds, which only turns by slots of time go by.
    """

    def __init__(
        self,
        name: str,
        lane: settings.Lane,
        *,
        keep: Keep,
        sinks: Sinks,
        coordinator: Coordinator,
        collector: str,
        rng: Random,
        bell: Bell,
        promised: Callable[[int], int] = lambda total: 0,  # noqa: ARG005 - a lone lane's
        wall: Callable[[], int],
    ) -> None:
        self.name: Final = name
        self.settings: Final = lane
        self.keep: Final = keep
        self.replay: Final = Replay(lane, rng, collector)
        self.bounds: Final = Bounds(lane.bounds, rng, current().now())
        self.shelf: Final = Shelf(keep, batch=lane.batch, in_order=lane.order == "kept")
        self.tally: Final = Tally()
        self.began: Final = current().now()
        self.accepted = 0
        self.refused = 0
        self.replay_rate = 0.0  # bytes a second, smoothed
        self._replayed_before = 0
        self._coming = self._coming_records = 0  # being written
        self._sinks: Final = sinks
        self._coordinator: Final = coordinator
        self._bell: Final = bell
        self._promised: Final = promised
        self._wall: Final = wall
        self._courier: Final = Courier(
            keep,
            self.shelf,
            sinks,
            replay=self.replay,
            bounds=self.bounds,
            bell=bell,
            changed=self._changed,
            timeout=lane.timeout,
            tally=self.tally,
        )
        self._looked = self.began
        keep.tell(self.on_grown)
        self.bounds.on_stock(self.began, self._stock())

    # What comes in.

    async def accept(self, records: Sequence[Record]) -> Accepted | Refused:
        """Keep all of these or none; answers when they are as durable as the lane says."""
        now = current().now()
        size = sum(len(record.value) + len(record.key) for record in records)
        self._look(now)
        no = self.bounds.try_accept(now, size, len(records))
        if no is not None:
            self.refused += len(records)
            return Refused(no.why, self.bounds.retry_after(now) if no.passes else None)
        time = self.keep.now()
        stamped = [Record(record.value, record.key, time) for record in records]
        self._coming += size
        self._coming_records += len(records)
        try:
            ack = await self.keep.append(stamped)
        except SpoolFull as full:
            now = current().now()
            self.refused += len(records)
            if self.keep.full:
                self.bounds.on_no_space(now)
            return Refused(str(full), self.bounds.retry_after(now))
        finally:
            self._coming -= size
            self._coming_records -= len(records)
        self.accepted += len(records)
        self.replay.on_live(current().now(), size)
        return Accepted(ack.first, ack.durable)

    def refuses(self) -> Refused | None:
        """Why nothing is taken now; None if something is."""
        now = current().now()
        self._look(now)
        no = self.bounds.full
        if no is None:
            return None
        return Refused(no.why, self.bounds.retry_after(now) if no.passes else None)

    def on_grown(self) -> None:
        """There is more to read."""
        self.shelf.on_grown()
        self._bell.ring()

    # What a person may do.

    def hold(self, why: str) -> None:
        """Let nothing leave until `release`."""
        self.replay.hold(current().now(), why)
        self._changed()

    def release(self) -> None:
        """Let it go on, as after any pause: by a few, and the backlog through its gate."""
        self.replay.free(current().now())
        self._courier.on_freed()
        self._changed()

    # Its life.

    async def run(self) -> None:
        """Take records to the sink until `stop`; what is under way then may end."""
        async with asyncio.TaskGroup() as tasks:
            others = [
                tasks.create_task(self._look_after()),
                tasks.create_task(self._watch_sink()),
                tasks.create_task(self._run_errands()),
            ]
            live = tasks.create_task(self._courier.send_live())
            backlog = tasks.create_task(self._courier.send_backlog())
            await asyncio.wait((live, backlog))
            for task in others:
                task.cancel()

    async def drained(self) -> None:
        """Return when nothing waits."""
        while self.keep.pending:
            await self._bell.heard(self._bell.rings, current().now() + SECOND)

    def stop(self) -> None:
        """Begin nothing more."""
        self._courier.stop()

    async def close(self) -> None:
        """Give the sinks, the turn and the log back."""
        for part in (self._coordinator, self._sinks.live, self._sinks.replay, self.keep):
            await part.close()

    async def _look_after(self) -> None:
        """Each second: what is kept, what is to go, what has changed."""
        while True:
            now = current().now()
            await self._take_stock(now)
            self.shelf.measure()
            if self.settings.turns.through == "slots":
                self.replay.on_wall(now, self._wall())
            replayed = self.tally.replayed_bytes - self._replayed_before
            self._replayed_before = self.tally.replayed_bytes
            self.replay_rate += _SMOOTH * (replayed - self.replay_rate)
            self._changed()
            await current().wait(SECOND)

    def _look(self, now: Instant) -> None:
        """Take stock if the last is old: what has left since then has left its room."""
        if now - self._looked >= _FRESH:
            self._looked = now
            self.bounds.on_stock(now, self._stock())

    async def _take_stock(self, now: Instant) -> None:
        self.bounds.on_stock(now, self._stock())
        while (drop := self.bounds.to_drop()) is not None:
            gone = await self.keep.drop_oldest(drop)
            if not gone.records and not gone.bytes:
                break
            _log.warning("%s: %d records lost: %s", self.name, gone.records, gone.cause.value)
            pending = self.keep.pending
            oldest = pending[0][0] if pending else self.keep.last + 1
            self.shelf.bisection.on_gone(1, oldest - 1)
            self.bounds.on_stock(current().now(), self._stock())
        if not self.keep.full:
            self.bounds.on_space(current().now())

    def _stock(self) -> Stock:
        usage, space = self.keep.usage(), self.keep.space()
        oldest = None if usage.oldest is None else max(0, self.keep.now() - usage.oldest)
        return Stock(
            # What was let in and is not written yet has its place already.
            bytes=usage.bytes + self._coming,
            records=usage.backlog_records + self._coming_records,
            oldest=oldest,
            free=space.free,
            total=space.total,
            promised=self._promised(space.total),
        )

    async def _watch_sink(self) -> None:
        """Ask the sink how it is: often while something waits, and now and then in peace."""
        while True:
            began = current().now()
            health = await self._sinks.replay.health(self.settings.gate.look)
            now = current().now()
            self.replay.on_health(now, health, now - began)
            self._changed()
            await self._until_next_look(began)

    async def _until_next_look(self, began: Instant) -> None:
        while True:
            rings, now = self._bell.rings, current().now()
            peace = self.replay.state(now) is LaneState.DIRECT
            due = began + self.settings.gate.look * (_PEACE if peace else 1)
            if now >= due:
                return
            await self._bell.heard(rings, due)

    async def _run_errands(self) -> None:
        """Ask the fleet's coordinator what the lane wants to know, one question at a time."""
        while True:
            rings, now = self._bell.rings, current().now()
            errand = self.replay.errand(now)
            if errand is None:
                due = self.replay.next_wakeup(now)
                await self._bell.heard(rings, None if due is None else max(due, now + _LEAST))
                continue
            try:
                answer = await _run(self._coordinator, errand)
            except CoordinatorLost:
                self.replay.on_lost(current().now())
            else:
                self.replay.on_errand(current().now(), errand, answer)
            self._bell.ring()

    def _changed(self) -> None:
        """Tell the log what has changed, and wake whoever waits for it."""
        now = current().now()
        self.replay.on_backlog(now, self.shelf.backlog)
        for change in self.replay.drain_transitions() + self.bounds.drain_transitions():
            _tell(self.name, change)
        self._bell.ring()


def _tell(lane: str, change: Transition) -> None:
    _log.info(
        "%s: %s %s -> %s: %s", lane, change.policy, change.before, change.after, change.reason
    )


async def _run(coordinator: Coordinator, errand: Errand) -> Answer:
    match errand:
        case Take():
            return await coordinator.take(errand.slot, errand.ttl)
        case Renew():
            return await coordinator.renew(errand.slot, errand.fence, errand.ttl)
        case Release():
            await coordinator.release(errand.slot, errand.fence)
        case Say():
            await coordinator.report(errand.report)
        case Look():
            return await coordinator.reports(), await coordinator.budget()
        case Publish():
            return await coordinator.publish(errand.budget)
    return None
