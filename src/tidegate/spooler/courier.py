"""How do records leave a lane: the new ones at once, the backlog as it may?

Two loops, one for each, with one batch of each under way at a time. What may go and how much of it
is `core.Replay`'s to say; what became of it is told to it, and to the bisection if the batch was
refused for what it is. Nothing is ever sent again from here: what was not delivered still waits,
and is read again when it may go.
"""

from collections.abc import Callable
from typing import Final, NamedTuple, final

from tidegate.core.bounds import Bounds
from tidegate.core.lane import SPILL
from tidegate.core.outcome import SUCCESS, Permit, Rejection
from tidegate.core.replay import Replay
from tidegate.runtime.clock import current
from tidegate.spooler.bell import Bell
from tidegate.spooler.keep import Keep
from tidegate.spooler.record import Batch
from tidegate.spooler.shelf import Shelf
from tidegate.spooler.sinks.sink import Sent, Sink
from tidegate.units import MILLISECOND, Duration, Instant

__all__ = ["Courier", "Sinks", "Tally"]

_LEAST: Final = 10 * MILLISECOND  # between two looks of a loop that nobody has woken


class Sinks(NamedTuple):
    """Two of one kind, under names that the far side can tell apart."""

    live: Sink
    replay: Sink


class Tally:
    """What has left since the start: records but for `failed`, which counts batches."""

    __slots__ = ("delivered", "failed", "last_error", "replayed", "replayed_bytes", "resent")

    def __init__(self) -> None:
        self.delivered = 0
        self.replayed = 0
        self.replayed_bytes = 0
        self.resent = 0
        self.failed = 0
        self.last_error = ""


@final
class Courier:
    """Takes what waits on the shelf to the sinks."""

    __slots__ = (
        "_bell",
        "_bounds",
        "_changed",
        "_failing",
        "_keep",
        "_replay",
        "_shelf",
        "_sinks",
        "_stopping",
        "_tally",
        "_timeout",
    )

    def __init__(
        self,
        keep: Keep,
        shelf: Shelf,
        sinks: Sinks,
        *,
        replay: Replay,
        bounds: Bounds,
        bell: Bell,
        changed: Callable[[], None],
        timeout: Duration,
        tally: Tally,
    ) -> None:
        self._keep: Final = keep
        self._shelf: Final = shelf
        self._sinks: Final = sinks
        self._replay: Final = replay
        self._bounds: Final = bounds
        self._bell: Final = bell
        self._changed: Final = changed
        self._timeout: Final = timeout
        self._tally: Final = tally
        self._stopping = False
        self._failing = False  # live batches, or held, since the last that was taken

    def stop(self) -> None:
        """Begin nothing more. What is under way may end."""
        self._stopping = True
        self._bell.ring()

    def on_freed(self) -> None:
        """What has gathered while the lane was held is a backlog, as after an outage."""
        self._failing = True

    async def send_live(self) -> None:
        """Send what is new until told to stop."""
        while not self._stopping:
            rings, now = self._bell.rings, current().now()
            if self._replay.is_live_shut(now):  # each record wakes this: nothing is read for it
                await self._bell.heard(rings, _later(now, self._replay.next_wakeup(now)))
                continue
            batch = await self._shelf.next_live(canary=self._failing)
            if batch is None and self._replay.state(now) is SPILL:
                # Somebody has to try the sink, and nothing new comes: a full lane takes nothing.
                batch = await self._shelf.next_canary()
            if batch is None:
                await self._bell.heard(rings, self._shelf.bisection.next_wakeup(now))
                continue
            now = current().now()
            permit = self._replay.try_live(now)
            if isinstance(permit, Rejection):
                await self._bell.heard(rings, _later(now, self._replay.next_wakeup(now)))
            else:
                self._after_live(await self._send(self._sinks.live, batch, permit))

    async def send_backlog(self) -> None:
        """Send what was left behind until told to stop, as much as may go and when it may."""
        while not self._stopping:
            rings, now = self._bell.rings, current().now()
            self._tell(now)
            most = self._replay.allowance(now)
            if most <= 0:
                await self._bell.heard(rings, _later(now, self._replay.next_wakeup(now)))
                continue
            batch = await self._shelf.next_backlog(most)
            if batch is None:
                await self._bell.heard(rings, self._shelf.bisection.next_wakeup(now))
                continue
            now = current().now()
            if self._replay.allowance(now) > 0:  # it may have ended while the disk was asked
                permit = self._replay.on_sent(now, batch.size)
                await self._send(self._sinks.replay, batch, permit, replayed=True)

    # Private parts.

    def _after_live(self, sent: Sent) -> None:
        """With the first batch that is taken after an outage, what has gathered becomes backlog."""
        if sent.outcome is not SUCCESS:
            self._failing = self._failing or not sent.poison
        elif self._failing:
            self._failing = False
            self._shelf.on_well(self._replay.live_rate(current().now()))
            self._changed()

    def _tell(self, now: Instant) -> None:
        self._replay.on_waiting(self._shelf.waiting)
        self._replay.on_backlog(now, self._shelf.backlog)

    async def _send(
        self, sink: Sink, batch: Batch, permit: Permit, *, replayed: bool = False
    ) -> Sent:
        sent = await sink.send(batch, self._timeout)
        now = current().now()
        self._replay.on_answer(
            now,
            permit,
            sent.outcome,
            starved=sent.starved,
            poison=sent.poison,
            throttled=sent.throttled,
            retry_after=sent.retry_after,
        )
        if sent.outcome is SUCCESS:
            await self._delivered(batch, now, replayed=replayed)
        elif sent.poison:
            await self._refused(batch, sent.why, now)
        else:
            self._tally.failed += 1
            self._tally.resent += len(batch.records)
            self._tally.last_error = sent.why
        self._changed()
        return sent

    async def _delivered(self, batch: Batch, now: Instant, *, replayed: bool) -> None:
        fence = self._replay.member.fence if replayed else 0
        await self._keep.delivered(batch.first, batch.last, fence=fence)
        self._shelf.bisection.on_taken(now, batch.first, batch.last)
        self._bounds.on_delivered(now, batch.size)
        self._tally.delivered += len(batch.records)
        if replayed:
            self._tally.replayed += len(batch.records)
            self._tally.replayed_bytes += batch.size

    async def _refused(self, batch: Batch, why: str, now: Instant) -> None:
        self._tally.last_error = why
        found = self._shelf.bisection.on_refused(now, batch.first, batch.last, why)
        if found is not None:
            await self._keep.set_aside(found.number, found.number, found.why)


def _later(now: Instant, due: Instant | None) -> Instant | None:
    """When to look again: not at once, where what is due is another task's."""
    return None if due is None else max(due, now + _LEAST)
