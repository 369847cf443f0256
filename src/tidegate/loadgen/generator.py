"""How are requests sent on time when the answers are not?

One task walks the plan and starts each request at its instant, whatever became of those before; a
request is a task of its own. Nothing is ever held back: a start that comes late is sent late and
counted, and one for which there is no room is counted as missed. So a generator that cannot keep
up says so, instead of being kind to what it measures.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, Protocol

from tidegate.loadgen.record import Record
from tidegate.runtime.clock import MONOTONIC, Clock
from tidegate.units import SECOND, Duration, Instant

__all__ = ["IN_FLIGHT_MAX", "Attempts", "Caller", "drive"]

IN_FLIGHT_MAX: Final = 800
"""Requests out at once: each holds a socket, and many systems allow a process 1,024 of them."""

_LINGER: Final = 2 * SECOND  # after the last start and a client's patience, for what is still out


class Attempts(Protocol):
    """What a caller tells of the attempts that it makes for one request."""

    def sent(self, *, retry: bool) -> None:
        """One leaves now."""
        ...

    def ended(self, outcome: str) -> None:
        """One has ended."""
        ...

    def rejected(self) -> None:
        """The request was refused on this side: nothing was sent, or nothing more."""
        ...


Caller = Callable[[Attempts], Awaitable[bool]]
"""Makes one request with all its attempts; whether it was answered well."""


class _Noted:
    """Writes into the record at the instants of the clock."""

    __slots__ = ("_now", "_record", "_zero")

    def __init__(self, record: Record, zero: Instant, now: Callable[[], Instant]) -> None:
        self._record = record
        self._zero = zero
        self._now = now

    def sent(self, *, retry: bool) -> None:
        self._record.on_attempt(self._now() - self._zero, retry=retry)

    def ended(self, outcome: str) -> None:
        self._record.on_outcome(outcome)

    def rejected(self) -> None:
        self._record.rejected += 1


async def drive(
    starts: Iterable[Duration],
    caller: Caller,
    record: Record,
    *,
    zero: Instant,
    clock: Clock = MONOTONIC,
    in_flight_max: int = IN_FLIGHT_MAX,
) -> Record:
    """Start one request at `zero` plus each of `starts`; answers when all have ended.

    What is still out some seconds after the last start is cut off and counted as `unfinished`. A
    caller that raises ends the run: the error is passed on, and nothing is left behind.
    """
    noted = _Noted(record, zero, clock.now)
    out: set[asyncio.Task[None]] = set()
    failed: list[BaseException] = []

    async def one(at: Duration) -> None:
        record.on_start(at, clock.now() - zero)
        if await caller(noted):
            record.on_answer(at, clock.now() - zero)

    def over(task: asyncio.Task[None]) -> None:
        out.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            failed.append(error)

    try:
        for at in starts:
            # Also with nothing to wait for: those that are out must get their turn.
            await clock.wait(max(0, zero + at - clock.now()))
            if failed:
                break
            if len(out) >= in_flight_max:
                record.on_missed(at)
                continue
            task = asyncio.create_task(one(at))
            out.add(task)
            task.add_done_callback(over)
        await _ended(out, failed, record.patience + _LINGER, clock)
        record.unfinished += len(out)
    finally:
        await _cut_off(out)
    if failed:
        raise failed[0]
    return record


async def _ended(
    out: set[asyncio.Task[None]], failed: list[BaseException], most: Duration, clock: Clock
) -> None:
    """Wait for what is out, but not longer than `most`, nor beyond a failure."""
    end = asyncio.create_task(clock.wait(most))
    try:
        while out and not failed and not end.done():
            await asyncio.wait({*out, end}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.sleep(0)  # lets `over` note what has ended
    finally:
        end.cancel()


async def _cut_off(out: set[asyncio.Task[None]]) -> None:
    left = list(out)
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
