"""How do many callers share one sync, and each be told when its records are safe?

A thread of its own writes what has gathered while the last sync was under way, and syncs again: a
group commit without a timer, so a group is as large as the disk is slow (DeWitt et al. 1984; as
PostgreSQL's and InnoDB's). At a disk of 0.1 ms a record waits for 0.3 ms, at one of 10 ms for 20.

When there is no room, all that comes is refused at once, without asking the disk, until a trial
write of some size has gone well: a lane that is full must neither keep its callers waiting nor
accept one record for each that has gone.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from threading import Condition, Thread
from typing import Any, Final, Literal, NamedTuple, final

from tidegate.errors import SpoolError, SpoolFull
from tidegate.spooler.log.log import Log
from tidegate.spooler.record import Batch, Record
from tidegate.units import MILLISECOND, SECOND, Duration

__all__ = ["Ack", "Committer", "SyncTimes"]

_GROUP: Final = 8 << 20  # bytes that one write takes at most: a sync of it is 5 ms on a fast disk
_PROBE_EVERY: Final[Duration] = SECOND
_PROBE: Final = 1 << 20
_REMEMBER_EVERY: Final[Duration] = SECOND  # what is delivered twice after a loss of power, at most
_CLOSED: Final = "the spool is closed"
_IDLE_S: Final = 1.0
_TIMES: Final = 1000
_TIME_MAX: Final = 2**63


class Ack(NamedTuple):
    """Records `first` to `last` are kept: on `disk`, or by the `system` as long as it runs."""

    first: int
    last: int
    durable: Literal["disk", "system"]


class SyncTimes(NamedTuple):
    """How long the last thousand syncs took, in seconds."""

    p50_s: float
    p99_s: float


class _Waiting(NamedTuple):
    """Records that somebody waits for. `loop` is None when that is a thread."""

    records: Sequence[Record]
    size: int
    loop: asyncio.AbstractEventLoop | None
    done: "asyncio.Future[Ack] | Future[Ack]"


@final
class Committer:
    """Writes to one log on behalf of everybody.

    `interval` is how often a log with `durable: interval` is synced. At most `waiting` bytes wait
    for the disk; who comes then is refused. `grown` is called in the committer's thread after each
    group that was written (with `always`: and synced).
    """

    __slots__ = (
        "_bytes",
        "_changed",
        "_closing",
        "_full",
        "_grown",
        "_interval",
        "_last_remembered",
        "_last_sync",
        "_log",
        "_most",
        "_next_probe",
        "_queue",
        "_reads",
        "_thread",
        "_times",
        "_unsynced",
    )

    def __init__(
        self,
        log: Log,
        *,
        interval: Duration = 100 * MILLISECOND,
        waiting: int = 64 << 20,
        grown: Callable[[], None] | None = None,
    ) -> None:
        self._log: Final = log
        self._interval: Final = interval
        self._most: Final = waiting
        self._grown: Final = grown
        self._queue: deque[_Waiting] = deque()
        self._bytes = 0  # that wait
        self._changed: Final = Condition()
        self._closing = False
        self._full = ""  # why nothing is taken
        self._unsynced = False
        now = time.monotonic_ns()
        self._last_sync = self._last_remembered = self._next_probe = now
        self._times: deque[float] = deque(maxlen=_TIMES)
        self._reads: Final = ThreadPoolExecutor(1, f"reads of {log.directory.name}")
        self._thread: Final = Thread(
            target=self._run, name=f"writes of {log.directory.name}", daemon=True
        )
        self._thread.start()

    @property
    def full(self) -> bool:
        """Whether the disk has refused a write and no trial has gone well since."""
        return bool(self._full)

    async def append(self, records: Sequence[Record]) -> Ack:
        """Keep these, all or none, and answer when they are as safe as the lane says.

        `SpoolFull` when there is no room, `SpoolError` when the disk fails; `TypeError` or
        `ValueError` for what is no record. Who is cancelled here does not know whether they are
        kept: it may be either.
        """
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Ack] = loop.create_future()
        self._enqueue(records, loop, done)
        return await done

    def append_blocking(self, records: Sequence[Record], timeout: float | None = None) -> Ack:
        """The same from a thread. After `timeout` seconds `TimeoutError`: they may be kept."""
        done: Future[Ack] = Future()
        self._enqueue(records, None, done)
        return done.result(timeout)

    async def read(
        self, after: int, *, upto: int | None = None, max_bytes: int = 1 << 20
    ) -> Batch | None:
        """`Log.read` beside the event loop, for what may have to come from the disk."""
        return await asyncio.get_running_loop().run_in_executor(
            self._reads, lambda: self._log.read(after, upto=upto, max_bytes=max_bytes)
        )

    async def delivered(self, first: int, last: int, *, fence: int = 0) -> None:
        """`Log.delivered` beside the event loop, since it removes files."""
        await asyncio.get_running_loop().run_in_executor(
            self._reads, lambda: self._log.delivered(first, last, fence=fence)
        )

    def sync_times(self) -> SyncTimes | None:
        """How fast the disk is; None before the first sync."""
        times = sorted(self._times)
        if not times:
            return None
        return SyncTimes(times[len(times) // 2], times[min(len(times) - 1, len(times) * 99 // 100)])

    def close(self) -> None:
        """Write what waits, then end the threads. The log stays open. Blocks for a sync or two."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()
        self._reads.shutdown()

    def _enqueue(
        self,
        records: Sequence[Record],
        loop: asyncio.AbstractEventLoop | None,
        done: "asyncio.Future[Ack] | Future[Ack]",
    ) -> None:
        size = _size(records)
        with self._changed:
            if self._closing:
                raise SpoolError(_CLOSED)
            if self._full:
                raise SpoolFull(self._full)
            if self._bytes and self._bytes + size > self._most:
                raise SpoolFull("more waits for the disk than it can write")
            self._queue.append(_Waiting(records, size, loop, done))
            self._bytes += size
            self._changed.notify()

    # The thread.

    def _run(self) -> None:
        try:
            self._work()
        finally:  # a bug of ours must not leave callers waiting for ever
            with self._changed:
                self._closing = True
                group = list(self._queue)
                self._queue.clear()
            self._tell([(one, SpoolError(_CLOSED)) for one in group])

    def _work(self) -> None:
        while True:
            with self._changed:
                if not self._queue and not self._closing:
                    self._changed.wait(self._until_next())
                group = self._take()
                if not group and self._closing:
                    break
            if group:
                try:
                    self._commit(group)
                except BaseException:  # ours: see `_run`
                    self._tell([(one, SpoolError(_CLOSED)) for one in group])
                    raise
            self._look_after()
        with suppress(SpoolError):
            self._sync()

    def _take(self) -> list[_Waiting]:
        """What one write takes. At least one, however large."""
        group: list[_Waiting] = []
        size = 0
        while self._queue and (not group or size + self._queue[0].size <= _GROUP):
            one = self._queue.popleft()
            group.append(one)
            size += one.size
        self._bytes -= size
        return group

    def _until_next(self) -> float | None:
        """Seconds until there is something to do without being asked; None: nothing will be."""
        due: list[int] = []
        if self._full:
            due.append(self._next_probe)
        if self._unsynced and self._log.options.durable == "interval":
            due.append(self._last_sync + self._interval)
        if self._log.unremembered:
            due.append(self._last_remembered + _REMEMBER_EVERY)
        elif not due:
            return _IDLE_S  # deliveries do not wake this thread
        return max(0, min(due) - time.monotonic_ns()) / SECOND

    def _commit(self, group: list[_Waiting]) -> None:
        """Write a group, sync it if the lane is to have it so, and tell who waits."""
        records = [record for one in group for record in one.records]
        try:
            last = self._log.append(records)
            self._unsynced = True
            durable = self._log.options.durable
            if durable == "always":
                self._sync()
        except SpoolError as error:
            if isinstance(error, SpoolFull):
                self._fill(str(error))
            self._tell([(one, error) for one in group])
            return
        where: Literal["disk", "system"] = "disk" if durable == "always" else "system"
        first = last - len(records) + 1
        told: list[tuple[_Waiting, Ack | SpoolError]] = []
        for one in group:
            told.append((one, Ack(first, first + len(one.records) - 1, where)))
            first += len(one.records)
        self._tell(told)
        if self._grown is not None:
            self._grown()

    def _sync(self) -> None:
        began = time.perf_counter()
        self._unsynced = False
        self._log.sync()
        self._times.append(time.perf_counter() - began)
        self._last_sync = time.monotonic_ns()

    def _fill(self, why: str) -> None:
        """There is no room: refuse who comes, and who waits already."""
        with self._changed:
            self._full = why
            self._next_probe = time.monotonic_ns() + _PROBE_EVERY
            group, self._bytes = list(self._queue), 0
            self._queue.clear()
        self._tell([(one, SpoolFull(why)) for one in group])

    def _look_after(self) -> None:
        """What is due without anybody having asked."""
        now = time.monotonic_ns()
        interval = self._log.options.durable == "interval"
        if self._unsynced and interval and now - self._last_sync >= self._interval:
            self._last_sync = now
            with suppress(SpoolError):  # it is counted as lost, and `Usage.trouble` says so
                self._sync()
        if now - self._last_remembered >= _REMEMBER_EVERY:
            self._last_remembered = now
            with suppress(OSError, SpoolError):  # `Usage.trouble` says so
                self._log.make_room()
                self._log.checkpoint()
        if self._full and now >= self._next_probe:
            if self._log.has_room(_PROBE):
                self._full = ""
            self._next_probe = time.monotonic_ns() + _PROBE_EVERY

    def _tell(self, told: "list[tuple[_Waiting, Ack | SpoolError]]") -> None:
        """Answer, with one call into each loop however many wait there."""
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[_Waiting, Ack | SpoolError]]] = {}
        for one, answer in told:
            if one.loop is None:
                _answer(one, answer)
            else:
                by_loop.setdefault(one.loop, []).append((one, answer))
        for loop, answers in by_loop.items():
            with suppress(RuntimeError):  # the loop has ended, and with it who waited
                loop.call_soon_threadsafe(_answer_all, answers)


def _size(records: Sequence[Any]) -> int:
    """Bytes of the records. What cannot be written is refused here, where it is one caller's."""
    size = 0
    for value, key, time_ns in records:
        if not isinstance(value, bytes) or not isinstance(key, bytes):
            kind = type(key if isinstance(value, bytes) else value).__name__
            raise TypeError(f"the value and the key of a record are bytes, not {kind}")
        if not -_TIME_MAX <= time_ns < _TIME_MAX:
            raise ValueError(f"the time of a record is in nanoseconds since 1970, not {time_ns}")
        size += len(value) + len(key)
    return size


def _answer_all(told: "list[tuple[_Waiting, Ack | SpoolError]]") -> None:
    for one, answer in told:
        _answer(one, answer)


def _answer(one: _Waiting, answer: Ack | SpoolError) -> None:
    if one.done.done():  # cancelled, or given up
        return
    if isinstance(answer, Ack):
        one.done.set_result(answer)
    else:
        # An exception of its own for each, since each gets the traceback of who waits for it.
        one.done.set_exception(type(answer)(*answer.args))
