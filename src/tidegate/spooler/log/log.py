"""How does a lane keep its records until they are delivered?

Records get numbers, 1, 2, 3 and on, in the order in which they are appended. They are on disk when
`sync` has returned; they are read by their numbers, as often as it takes; they go when they are
`delivered`. Any of it may end at any moment, by a kill or a loss of power, and `open` finds what
was promised.

May be used by several threads. Nobody who asks what there is waits for the disk: appends wait for
each other, reads for each other, and a sync for nothing but the disk.
"""

from bisect import bisect_left
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Final, final

from tidegate.core.bounds import Cause, Drop
from tidegate.errors import SpoolError, SpoolFull
from tidegate.spooler.log.calendar import Calendar
from tidegate.spooler.log.cursor import State
from tidegate.spooler.log.files import Files, Space
from tidegate.spooler.log.ledger import Ledger
from tidegate.spooler.log.options import DEFAULT, LogOptions
from tidegate.spooler.log.quarantine import Quarantine
from tidegate.spooler.log.ranges import Range
from tidegate.spooler.log.reader import Reader, Wanted
from tidegate.spooler.log.recovery import Recovered, recover, set_file_aside
from tidegate.spooler.log.segment import Segment
from tidegate.spooler.log.usage import Loss, Usage, estimate
from tidegate.spooler.log.writer import NO_SPACE, Writer
from tidegate.spooler.record import Batch, Record

__all__ = ["Log", "Loss", "Usage"]

_RESERVE: Final = 1 << 20
"""Numbers that are taken at once where records are delivered before they are on disk. A loss of
power may lose the numbers that were given out, and none of them must ever name another record:
after it the log goes on above all that it may have given out (as PostgreSQL's sequences do)."""
_PROBE: Final = "probe"
_WORTH: Final = 1 << 20  # bytes of a file that it is worth to begin another for
_REAL: Final = Files()


@final
class Log:
    """The records of one lane. Made by `Log.open`.

    `recovery` is what opening has found; its `words` are empty when all was well.
    """

    __slots__ = (
        "_appended",
        "_aside",
        "_calendar",
        "_damaged",
        "_files",
        "_handle",
        "_ledger",
        "_lock",
        "_marking",
        "_quarantine",
        "_reader",
        "_reading",
        "_removing",
        "_syncing",
        "_writer",
        "_writing",
        "directory",
        "durable",
        "identity",
        "options",
        "recovery",
    )

    def __init__(
        self,
        directory: Path,
        found: Recovered,
        options: LogOptions,
        files: Files,
        calendar: Calendar,
    ) -> None:
        state = found.state
        self._files: Final = files
        self.directory: Final = directory
        self.identity: Final = state.log
        """A number by chance that tells this log from any other, also from one that was here."""
        self.options: Final = options
        self._calendar: Final = calendar
        self._handle: Final = found.lock
        self._ledger: Final = Ledger(found.cursor, directory, state, found.pending)
        self._writer: Final = Writer(files, directory, state.log, options, found.segments)
        self._writer.last, self._writer.serial = state.last, state.serial
        self._reader: Final = Reader(files, options.codec, state.log)
        self._quarantine: Final = Quarantine(files, directory, state.log, options)
        self._removing: Final[list[Segment]] = []  # done with; their files go with the next sync
        self._damaged = found.recovery.damaged - sum(s.damaged for s in found.segments)
        self._aside = 0  # bytes of damaged files that were kept
        # In the order in which they are taken. Who only asks takes the last alone.
        self._syncing: Final = Lock()  # a sync of records is under way
        self._writing: Final = Lock()  # the writer
        self._marking: Final = Lock()  # a sync of the cursor is under way
        self._reading: Final = Lock()  # the reader
        self._lock: Final = Lock()  # the ledger, and which segments there are
        self._appended = state.last
        self.durable = state.last  # all numbers up to it are on disk, or gone
        self.recovery: Final = found.recovery

    @classmethod
    def open(
        cls,
        directory: Path,
        options: LogOptions = DEFAULT,
        files: Files = _REAL,
        calendar: Calendar | None = None,
    ) -> "Log":
        """Open the log in this directory, or begin one there.

        `SpoolError` if another process has it, if what is in it cannot be read for want of a key
        or of a package, or if the directory cannot be used. Never for damage.
        """
        found = recover(files, directory, options)
        log = cls(directory, found, options, files, calendar or Calendar())
        try:
            if options.durable != "always":
                log._reserve()
            log.checkpoint()
        except BaseException:
            log._abandon()
            raise
        return log

    @property
    def first(self) -> int:
        """The lowest number that is still on disk; one above `last` if none is."""
        with self._lock:
            segments = self._writer.segments
            return next((s.first for s in segments if s.frames), self._writer.last + 1)

    @property
    def last(self) -> int:
        """The number that was given out last; zero if none was."""
        return self._appended

    @property
    def pending(self) -> tuple[Range, ...]:
        """The numbers that are not delivered: ranges with both ends, the lowest first."""
        with self._lock:
            return tuple(self._ledger.pending)

    @property
    def fence(self) -> int:
        """The highest fence that a delivery came with."""
        return self._ledger.fence

    @property
    def unremembered(self) -> bool:
        """Whether a `checkpoint` would have something to do."""
        return self._ledger.dirty

    def now(self) -> int:
        """The time to give a record that is accepted now: nanoseconds since 1970, no steps."""
        return self._calendar.now()

    def append(self, records: Sequence[Record]) -> int:
        """Write these at the end, all of them or none; the number of the last.

        They are on disk when a `sync` begun after this has returned. Raises `SpoolFull` when there
        is no room and `SpoolError` when the disk fails; either leaves the log as it was.
        """
        if not records:
            return self._appended
        with self._writing:
            if self._ledger.reserved and self._appended + len(records) > self._ledger.reserved:
                self._reserve(len(records))
            last = self._writer.append(records, self._calendar.now())
            with self._lock:
                self._ledger.pending.add(last - len(records) + 1, last)
                self._appended = last
            return last

    def sync(self) -> int:
        """Wait until all that has been appended is on disk; the last number that is.

        When the disk fails to, it is written to another file. When that fails too, what was
        appended since the last good sync is gone, and this raises. With `never` it does nothing.
        """
        if self.options.durable == "never":
            return self._appended
        with self._syncing:
            with self._writing:
                work = self._writer.begin()
            try:
                self._writer.do(work)
            except OSError:
                with self._writing, self._reading, self._lock:
                    self._salvage()
                return self.durable
            with self._writing, self._lock:
                self._writer.end(work)
                self.durable = max(self.durable, work.last)
                for segment, _, last in work.files:
                    self._take_done(segment.first, last)
                return self.durable

    def read(
        self,
        after: int,
        *,
        upto: int | None = None,
        max_bytes: int = 1 << 20,
        max_records: int = 10_000,
    ) -> Batch | None:
        """The next records above `after`, delivered or not, that follow each other without a gap.

        At most up to the number `upto`, and no more than so many bytes or records, but always one.
        None if there are none. What should be there and cannot be read is counted as lost.
        """
        with self._reading:
            with self._lock:
                end = self.durable if self.options.durable == "always" else self._appended
                segments = self._writer.segments.copy()
            end = end if upto is None else min(upto, end)
            try:
                first, records = self._reader.read(
                    segments, Wanted(after + 1, end, max_bytes, max_records)
                )
            except OSError as error:
                raise SpoolError(f"cannot read {self.directory}: {error.strerror}") from error
            if first > after + 1:
                with self._lock:
                    lost = self._ledger.pending.remove(after + 1, min(first - 1, end))
                    self._ledger.lose(Cause.DAMAGED, lost)
            return Batch(first, records) if records else None

    def delivered(self, first: int, last: int, *, fence: int = 0) -> None:
        """The sink has these: they need not be kept.

        Remembered at once for this process, and on disk with the next `checkpoint`; a file of
        which all is delivered is removed after one. Needs no space. A disk that fails here costs
        that they are delivered again after a restart: that is told as `trouble` and not raised.
        """
        with self._lock:
            self._ledger.fence = max(self._ledger.fence, fence)
            self._ledger.pending.remove(first, last)
            self._take_done(first, last)
            self._ledger.dirty = True
        with self._marking:
            with self._lock:
                state = self._state()
            self._ledger.write(state)
        if self._removing:
            with suppress(SpoolError):
                self.checkpoint()

    def set_aside(self, first: int, last: int, why: str) -> None:
        """Keep these in the quarantine, with the words of whoever would not take them.

        Then they are done with. Those that the quarantine has no room for are discarded; both are
        counted.
        """
        number = first - 1
        while (batch := self.read(number, upto=last)) is not None:
            with self._marking:
                kept = self._quarantine.keep(batch, why, self._calendar.now())
            with self._lock:
                waiting = self._ledger.pending.common(batch.first, batch.last)
                count = sum(b - a + 1 for a, b in waiting)
                self._ledger.lose(Cause.QUARANTINED if kept else Cause.DISCARDED, count)
            self.delivered(batch.first, batch.last)
            number = batch.last

    def drop_oldest(self, drop: Drop) -> Loss:
        """Drop whole files of what is oldest: those that are too old, or until enough is freed.

        The file that is being written stays; one that is all too old is ended, and goes with a
        later call. Nothing is too old in the first minute after opening.
        """
        with self._writing, self._lock:
            before = None if drop.age is None else self._calendar.older_than(drop.age)
            if drop.age is not None and before is None:
                return Loss(0, 0, drop.cause)
            tail = self._writer.tail
            if before is not None and tail is not None and tail.frames and tail.newest < before:
                self._writer.roll()
            records = freed = 0
            segments = [s for s in self._writer.segments if s.sealed and s.handle < 0]
            for segment in segments:
                if before is not None and segment.newest >= before:
                    break
                if before is None and freed >= drop.bytes and records >= drop.records:
                    break
                records += self._ledger.pending.remove(segment.first, segment.last)
                freed += segment.size
                self._remove(segment)
            self._ledger.lose(drop.cause, records)
        if freed:
            with suppress(SpoolError):
                self.checkpoint()
        return Loss(records, freed, drop.cause)

    def checkpoint(self) -> None:
        """Bring to disk what is delivered and lost, then remove the files that are done with.

        In this order: a file that the cursor still asks for must be there.
        """
        with self._marking:
            with self._lock:
                if not self._ledger.dirty:
                    return
                gone, state = self._removing.copy(), self._state()
                self._ledger.dirty = False
            self._ledger.sync(state)
            with self._lock:
                self._removing[:] = [one for one in self._removing if one not in gone]
            with self._reading:
                for segment in gone:
                    self._reader.forget(segment)
            for segment in gone:
                self._unlink(segment)

    def make_room(self) -> None:
        """Let go of the file that is written to, where the disk has less left than it takes.

        Only of one in which all is delivered. Else a small disk stays full of what nobody waits
        for: a record finds no room, and only a record would end the file. It goes with the next
        `checkpoint`.
        """
        free = self.space().free
        with self._writing, self._lock:
            tail = self._writer.tail
            if tail is None or tail.size < _WORTH or tail.size <= free:
                return
            if self._writer.settled and not self._ledger.pending.meets(tail.first, tail.last):
                self._remove(tail)

    def has_room(self, size: int) -> bool:
        """Whether so many bytes can be written: tried, since quotas and limits tell nobody."""
        path = self.directory / _PROBE
        try:
            self._files.unlink(path)
            handle = self._files.create(path)
            try:
                return self._files.write(handle, [bytes(size)], 0) == size
            finally:
                self._files.close(handle)
                self._files.unlink(path)
        except OSError:
            return False

    def space(self) -> Space:
        """The disk that the log is on."""
        return self._files.space(self.directory)

    def usage(self) -> Usage:
        """What the log holds now. Looks at each segment once."""
        with self._lock:
            segments = self._writer.segments.copy()
            parts = [estimate(segments, first, last) for first, last in self._ledger.pending]
            return Usage(
                bytes=sum(segment.size for segment in segments + self._removing),
                segments=len(segments),
                backlog_records=self._ledger.pending.total,
                backlog_bytes=sum(size for size, _ in parts),
                oldest=parts[0][1] if parts else None,
                lost={cause.value: lost for cause, lost in self._ledger.lost.items() if lost},
                damaged=self._damaged + sum(segment.damaged for segment in segments),
                suspects=self._writer.suspects,
                aside=self._quarantine.size,
                trouble=self._ledger.trouble,
            )

    def close(self) -> None:
        """Sync, remember where it stopped, give everything back. What fails is raised at the end.

        With `never` the records are left to the system, as always.
        """
        try:
            self.sync()
            with self._writing, self._lock:
                self._writer.roll()
                self._ledger.reserved = 0
                self._ledger.dirty = True
            self.sync()
            with self._lock:
                self._take_done(0, self._appended)
            self.checkpoint()
        finally:
            self._abandon()

    # Private parts, called under the lock.

    def _abandon(self) -> None:
        """Give the handles back, as a kill would. Not under the lock."""
        with self._writing, self._reading, self._lock:
            self._reader.close()
            self._quarantine.close()
            self._writer.abandon()
            self._ledger.close()
            self._files.close(self._handle)

    def _take_done(self, first: int, last: int) -> None:
        """Remove the segments with any of these numbers of which all is delivered."""
        segments = self._writer.segments
        at = bisect_left(segments, first, key=lambda segment: segment.last)
        while at < len(segments) and segments[at].first <= last:
            segment = segments[at]
            ended = segment.sealed and segment.handle < 0
            if ended and not self._ledger.pending.meets(segment.first, segment.last):
                self._remove(segment)
            else:
                at += 1

    def _remove(self, segment: Segment) -> None:
        self._damaged += segment.damaged
        self._writer.drop(segment)
        self._removing.append(segment)
        self._ledger.dirty = True

    def _unlink(self, segment: Segment) -> None:
        """Remove the file of a segment; one that was damaged is kept for a person, within bounds.

        What fails is made up for when the log is opened.
        """
        with suppress(OSError):
            if segment.damaged and self._aside + segment.size <= self.options.aside:
                set_file_aside(self._files, segment.path)
                self._aside += segment.size
            else:
                self._files.unlink(segment.path)

    def _state(self) -> State:
        """What the cursor is to remember: with `always` nothing of what may not be on disk."""
        last = self.durable if self.options.durable == "always" else self._appended
        return self._ledger.state(last, self._writer.serial)

    def _reserve(self, count: int = 0) -> None:
        """Take numbers ahead, on disk before the first of them is given out. Not under the lock."""
        before = self._ledger.reserved
        self._ledger.reserved = self._appended + count + _RESERVE
        self._ledger.dirty = True
        try:
            self.checkpoint()
        except SpoolError:
            self._ledger.reserved = before
            raise

    def _salvage(self) -> None:
        """A sync has failed."""
        self._reader.clear()
        try:
            self._writer.salvage(self.durable, self._calendar.now())
        except (OSError, SpoolError) as error:
            gone = self._ledger.pending.remove(self.durable + 1, self._appended)
            if self.options.durable != "always":  # they had been acknowledged
                self._ledger.lose(Cause.DAMAGED, gone)
            if isinstance(error, SpoolError):
                raise
            if error.errno in NO_SPACE:
                raise SpoolFull(f"there is no room on the disk of {self.directory}") from error
            raise SpoolError(f"cannot write to {self.directory}: {error.strerror}") from error
        finally:
            self.durable = self._appended
