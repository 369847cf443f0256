"""How do records get to the end of the log, and what if the disk does not take them?

What is appended goes in one write, all of it or nothing: what a short write has left is cut off.
A sync that fails is never tried again on the same file, since the system has forgotten by then
what it could not write and would call the next one good. What was to be synced is written anew, to
a new file, from memory; the old file is cut back to what was on disk.
"""

import errno
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple, final

from tidegate.errors import SpoolError, SpoolFull
from tidegate.spooler.log.files import Files
from tidegate.spooler.log.frame import (
    HEADER_SIZE,
    RECORD_OVERHEAD,
    Place,
    encode,
    encode_note,
    parse,
)
from tidegate.spooler.log.options import LogOptions
from tidegate.spooler.log.segment import Segment, footer, path_of
from tidegate.spooler.record import Record

__all__ = ["NO_SPACE", "Work", "Writer"]

NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Errors that say that there is no room: the disk's, a quota's, the limit of a file's size."""


_PARTS_MAX: Final = 1000  # one write takes 1,024 of them (IOV_MAX of Linux and macOS)


class Work(NamedTuple):
    """What a sync has to bring to disk: files, and whether their names."""

    files: list[tuple[Segment, int, int]]  # with their lengths and last numbers
    names: bool
    last: int


@final
class Writer:
    """Writes the segments of one log. Used under the lock of the log, but for `do`."""

    __slots__ = (
        "_directory",
        "_dirty",
        "_files",
        "_log",
        "_names_dirty",
        "_options",
        "_tail_since",
        "_unsynced",
        "last",
        "segments",
        "serial",
        "suspects",
        "tail",
    )

    def __init__(
        self, files: Files, directory: Path, log: int, options: LogOptions, segments: list[Segment]
    ) -> None:
        self._files: Final = files
        self._directory: Final = directory
        self._log: Final = log
        self._options: Final = options
        self.segments: Final = segments  # all of the log, the oldest first
        self.serial = 0  # of the newest segment
        self.last = 0  # the number that was given out last
        self.tail: Segment | None = None
        self.suspects = 0  # files whose sync has failed
        self._tail_since = 0
        self._dirty: list[Segment] = []  # written to since they were synced
        self._names_dirty = False
        self._unsynced: deque[tuple[int, list[Record]]] = deque()

    def append(self, records: Sequence[Record], now: int, note: str = "", first: int = 0) -> int:
        """Write these at the end; the number of the last. `SpoolFull` if there is no room.

        `first` is the number of the first one when they are not to get the next ones.
        """
        first = first or self.last + 1
        pieces = list(_pieces(records, self._options.frame))
        size = sum(size for size, _ in pieces)
        tail = self._room_for(size, now)
        try:
            self._write(tail, first, pieces, note)
        except SpoolFull as error:
            # A limit on the size of a file leaves room in the next one.
            if not isinstance(error.__cause__, OSError) or error.__cause__.errno != errno.EFBIG:
                raise
            if not tail.frames:
                raise
            self.roll()
            self._write(self._room_for(size, now), first, pieces, note)
        self.last = max(self.last, first + len(records) - 1)
        if self._options.durable != "never":
            self._unsynced.append((first, list(records)))
        return first + len(records) - 1

    def roll(self) -> None:
        """End the tail: nothing more is written to it but its footer."""
        tail = self.tail
        if tail is None:
            return
        self.tail = None
        if not tail.frames:
            self.drop(tail)
            return
        end = footer(tail, self._log)
        with suppress(OSError):  # without a footer it is scanned when the log is opened
            if self._files.write(tail.handle, [end], tail.size) == len(end):
                tail.size += len(end)
            else:
                self._files.truncate(tail.handle, tail.size)
        tail.sealed = True
        if self._options.durable == "never":
            self._close(tail)
        elif tail not in self._dirty:
            self._dirty.append(tail)

    @property
    def settled(self) -> bool:
        """Whether no sync has to see to any file."""
        return not self._dirty or self._options.durable == "never"

    def drop(self, segment: Segment) -> None:
        """Have nothing more to do with a segment; its file is the caller's."""
        self.segments.remove(segment)
        if segment is self.tail:
            self.tail = None
        self._close(segment)

    def begin(self) -> Work:
        """What a sync has to do now."""
        return Work([(s, s.size, s.last) for s in self._dirty], self._names_dirty, self.last)

    def do(self, work: Work) -> None:
        """Wait for the disk. Needs no lock."""
        for segment, size, last in work.files:
            self._files.sync(segment.handle)
            segment.synced, segment.synced_last = size, last
        if work.names:
            self._files.sync_directory(self._directory)

    def end(self, work: Work) -> None:
        """All of that is on disk now."""
        self._names_dirty = self._names_dirty and not work.names
        for segment, _, _ in work.files:
            if segment.synced == segment.size and segment in self._dirty:
                if segment.sealed:
                    self._close(segment)
                else:
                    self._dirty.remove(segment)
        while self._unsynced and self._unsynced[0][0] <= work.last:
            self._unsynced.popleft()

    def salvage(self, durable: int, now: int) -> None:
        """A sync has failed: write what is above `durable` to a new file, and sync that.

        If that fails too, what is above `durable` is gone, and the error is raised.
        """
        self._cut_back()
        again, self._unsynced = self._unsynced, deque()
        try:
            for first, records in again:
                if first + len(records) - 1 > durable:
                    self.append(records, now, first=first)
            work = self.begin()
            self.do(work)
        except (OSError, SpoolError):
            self._unsynced.clear()
            self._cut_back()
            raise
        self.end(work)

    def abandon(self) -> None:
        """Give the files back as they are, synced or not."""
        tail, self.tail = self.tail, None
        for segment in self._dirty.copy():
            self._close(segment)
        if tail is not None:
            self._close(tail)

    # Private parts.

    def _room_for(self, size: int, now: int) -> Segment:
        """The tail, or a new one if it is long or old enough."""
        tail = self.tail
        if tail is not None and tail.frames:
            full = tail.size + size > self._options.segment
            if full or now - self._tail_since >= self._options.age:
                self.roll()
        return self.tail or self._create(now)

    def _create(self, now: int) -> Segment:
        while True:
            self.serial += 1
            path = path_of(self._directory, self.serial)
            try:
                handle = self._files.create(path)
            except FileExistsError:
                continue  # nobody's, and not to be written over
            except OSError as error:
                raise self._refusal(error) from error
            break
        self.tail = tail = Segment(path, self.serial)
        tail.handle = handle
        # It may stay empty when the disk is full, and segments are looked up by their last numbers.
        tail.first, tail.last = self.last + 1, self.last
        self.segments.append(tail)
        self._names_dirty = True
        self._tail_since = now
        return tail

    def _write(
        self, tail: Segment, first: int, pieces: list[tuple[int, Sequence[Record]]], note: str
    ) -> None:
        """One write of all, or nothing."""
        place = Place(self._log, tail.serial)
        offset = tail.size
        parts: list[bytes] = []
        headers: list[bytes] = []
        if note:
            n = sum(len(piece) for _, piece in pieces)
            time = pieces[0][1][0].time
            frame = encode_note(note, first, n, time, place, offset, self._options.codec)
            offset += len(frame[0]) + len(frame[1])
            headers.append(frame[0])
            parts += frame
        for _, piece in pieces:
            frame = encode(piece, first, place, offset, self._options.codec)
            offset += len(frame[0]) + len(frame[1])
            first += len(piece)
            headers.append(frame[0])
            parts += frame
        if len(parts) > _PARTS_MAX:
            parts = [b"".join(parts)]
        try:
            written = self._files.write(tail.handle, parts, tail.size)
            if written < offset - tail.size:  # what stood in the way says the second write
                rest = b"".join(parts)[written:]
                written += self._files.write(tail.handle, [rest], tail.size + written)
        except OSError as error:
            self._take_back(tail)
            raise self._refusal(error) from error
        if written < offset - tail.size:
            self._take_back(tail)
            raise SpoolFull(f"there is no room on the disk of {self._directory}")
        for header in headers:
            head = parse(header)
            assert head is not None
            tail.take(head)
        if tail not in self._dirty:
            self._dirty.append(tail)

    def _take_back(self, tail: Segment) -> None:
        """Cut off what a write has left. Where that fails, nothing more is written to the file."""
        try:
            self._files.truncate(tail.handle, tail.size)
        except OSError:
            tail.sealed = True
            self.tail = None
            if not tail.frames:
                self.segments.remove(tail)
            if tail not in self._dirty:  # else the next sync closes it
                self._close(tail)

    def _cut_back(self) -> None:
        """Leave of each file that a sync has not brought to disk what an earlier one has."""
        for segment in self._dirty.copy():
            if segment.synced == segment.size:
                if segment.sealed:
                    self._close(segment)
                continue
            self.suspects += 1
            segment.sealed = True
            if segment is self.tail:
                self.tail = None
            # Where that fails too, the next opening finds there what was written once more.
            with suppress(OSError):
                self._files.truncate(segment.handle, segment.synced)
            self._close(segment)
            segment.records -= segment.last - segment.synced_last
            segment.last, segment.end, segment.size = segment.synced_last, *[segment.synced] * 2
            if not segment.synced:
                self.segments.remove(segment)
                with suppress(OSError):
                    self._files.unlink(segment.path)

    def _close(self, segment: Segment) -> None:
        if segment in self._dirty:
            self._dirty.remove(segment)
        if segment.handle >= 0:
            handle, segment.handle = segment.handle, -1
            with suppress(OSError):
                self._files.close(handle)

    def _refusal(self, error: OSError) -> SpoolError:
        if error.errno in NO_SPACE:
            return SpoolFull(f"there is no room on the disk of {self._directory}")
        return SpoolError(f"cannot write to {self._directory}: {error.strerror}")


def _pieces(records: Sequence[Record], most: int) -> Iterator[tuple[int, Sequence[Record]]]:
    """The records in pieces of about so many bytes, each with its size."""
    values, keys, _ = zip(*records, strict=True)
    total = RECORD_OVERHEAD * len(records) + sum(map(len, values)) + sum(map(len, keys))
    if total <= most:
        yield HEADER_SIZE + total, records
        return
    sizes = [RECORD_OVERHEAD + len(value) + len(key) for value, key, _ in records]
    start = size = 0
    for at, one in enumerate(sizes):
        if size and size + one > most:
            yield HEADER_SIZE + size, records[start:at]
            start, size = at, 0
        size += one
    yield HEADER_SIZE + size, records[start:]
