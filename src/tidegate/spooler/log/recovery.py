"""What is left of a log after whatever has happened to it?

Opening never fails for damage. A file of which nothing can be read is moved aside, what a kill or a
loss of power has torn off the end is passed over, and a cursor that is lost means that everything
that is there is delivered again. All of it is told. Opening fails for what a person has to decide:
another process has the log, or the key of what is in it is missing.
"""

import errno
import os
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from tidegate.core.bounds import Cause
from tidegate.errors import SpoolError
from tidegate.spooler.log.cursor import CAUSES, Cursor, State
from tidegate.spooler.log.files import Files
from tidegate.spooler.log.frame import HEADER_SIZE, VERSION, parse
from tidegate.spooler.log.options import LogOptions
from tidegate.spooler.log.ranges import Ranges
from tidegate.spooler.log.segment import Segment, footer, load, log_of, path_of, serial_of

__all__ = [
    "CURSOR",
    "DAMAGED_DIRECTORY",
    "Recovered",
    "Recovery",
    "recover",
    "set_file_aside",
]

DAMAGED_DIRECTORY: Final = "damaged"
CURSOR: Final = "cursor"
_LOCK: Final = "lock"
# How many files a process may have written to since its last sync: an append ends one at most.
_UNSYNCED_MAX: Final = 8


class Recovery(NamedTuple):
    """What opening a log has found. `words` says it to a person, and is empty if all was well."""

    segments: int = 0
    scanned: int = 0  # files without a footer, read through
    torn: int = 0  # bytes behind the last whole block: what was being written when it ended
    damaged: int = 0  # stretches of bytes between blocks that are none
    missing: int = 0  # records that were not delivered and are not there
    aside: tuple[str, ...] = ()  # files of which nothing could be read, moved to `damaged`
    cursor_lost: bool = False  # so everything is delivered again

    @property
    def words(self) -> str:
        """One line."""
        said = []
        if self.cursor_lost:
            said.append("the cursor was lost, so what is kept is delivered again")
        if self.aside:
            said.append(f"moved aside as unreadable: {', '.join(self.aside)}")
        if self.damaged:
            where = "one place" if self.damaged == 1 else f"{self.damaged} places"
            said.append(f"damaged in {where}")
        if self.missing:
            said.append(f"{self.missing} records are missing")
        if self.torn:
            said.append(f"{self.torn} bytes of an unfinished write were passed over")
        return "; ".join(said)


class Recovered(NamedTuple):
    """A log that is locked and known."""

    lock: int
    cursor: Cursor
    state: State  # as it is now: with what was found missing
    segments: list[Segment]
    pending: Ranges
    recovery: Recovery


def recover(files: Files, directory: Path, options: LogOptions) -> Recovered:
    """Lock the log in this directory, or begin one, and find out what is in it."""
    try:
        files.make_directory(directory)
        lock = files.lock(directory / _LOCK)
    except OSError as error:
        raise SpoolError(f"cannot open {directory}: {error.strerror}") from None
    if lock is None:
        raise SpoolError(f"{directory} is in use by another process")
    try:
        return _recover(files, directory, options, lock)
    except OSError as error:
        files.close(lock)
        raise SpoolError(f"cannot open {directory}: {error.strerror}") from error
    except BaseException:
        files.close(lock)
        raise


def set_file_aside(files: Files, path: Path) -> None:
    """Move a file of a log where nobody reads it but a person."""
    aside = path.parent / DAMAGED_DIRECTORY
    files.make_directory(aside)
    files.rename(path, aside / path.name)


def _recover(files: Files, directory: Path, options: LogOptions, lock: int) -> Recovered:
    serials = sorted(s for name in files.names(directory) if (s := serial_of(name)) is not None)
    paths = {serial: path_of(directory, serial) for serial in serials}
    fresh = State(_log_of_files(files, paths) or _new_log())
    cursor, found = Cursor.open(files, directory / CURSOR, fresh)
    try:
        if found is not None and not _is_of(files, paths, found.log):
            found = None  # another log's cursor
        state = found or fresh
        segments, recovery = _segments(files, paths, state.log)
        for segment in segments:
            options.codec.readable(segment.flags, segment.key_id)
        _clip(segments)
        pending, missing = _pending(segments, found)
        lost = list(state.lost)
        lost[CAUSES.index(Cause.DAMAGED)] += missing
        state = state._replace(
            last=max([state.last, state.reserved, *(segment.last for segment in segments)]),
            serial=max([state.serial, *serials]),
            lost=tuple(lost),
        )
        _finish(files, segments, pending, state.log)
        files.sync_directory(directory)
    except BaseException:
        cursor.close()
        raise
    recovery = recovery._replace(
        missing=missing, cursor_lost=found is None and any(s.records for s in segments)
    )
    return Recovered(lock, cursor, state, segments, pending, recovery)


def _new_log() -> int:
    return int.from_bytes(os.urandom(8), "big") or 1


def _log_of_files(files: Files, paths: dict[int, Path]) -> int | None:
    """Which log the files say that they are of: what the first says that can be read."""
    return next((log for path in paths.values() if (log := _said(files, path)) is not None), None)


def _is_of(files: Files, paths: dict[int, Path], log: int) -> bool:
    """Whether a cursor of this log belongs to the files: to one of them, or nobody knows."""
    said = (_said(files, path) for path in paths.values())
    known = False
    for one in said:
        if one == log:
            return True
        known = known or one is not None
    return not known


def _said(files: Files, path: Path) -> int | None:
    try:
        return log_of(files, path)
    except OSError:
        return None


def _segments(files: Files, paths: dict[int, Path], log: int) -> tuple[list[Segment], Recovery]:
    """What can be read of the files, and what cannot."""
    segments: list[Segment] = []
    aside: list[str] = []
    scanned = torn = damaged = 0
    for serial, path in paths.items():
        try:
            segment, damage = load(files, path, serial, log)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            set_file_aside(files, path)
            aside.append(path.name)
            continue
        if not segment.frames:
            if segment.size:
                _refuse_newer(files, path)
                set_file_aside(files, path)
                aside.append(path.name)
            else:
                files.unlink(path)
            continue
        if not segment.sealed:
            scanned += 1
            torn += segment.torn
            damaged += len(damage)
        segments.append(segment)
    return segments, Recovery(len(segments), scanned, torn, damaged, 0, tuple(aside))


def _refuse_newer(files: Files, path: Path) -> None:
    """A file that a later version has written is not damaged."""
    handle = files.open(path)
    try:
        head = parse(files.read(handle, HEADER_SIZE, 0))
    finally:
        files.close(handle)
    if head is not None and head.version > VERSION:
        raise SpoolError(f"{path} was written by a newer version (format {head.version})")


def _clip(segments: list[Segment]) -> None:
    """Where two files have the same numbers, the later has what the earlier could not sync."""
    for earlier, later in pairwise(segments):
        earlier.last = min(earlier.last, later.first - 1)


def _pending(segments: list[Segment], state: State | None) -> tuple[Ranges, int]:
    """What is still to be delivered, and how much that was is not there."""
    known = Ranges(state.pending if state is not None else ())
    last = state.last if state is not None else 0
    pending = Ranges()
    for segment in segments:
        for first, end in known.common(segment.first, segment.last):
            pending.add(first, end)
    missing = known.total - pending.total
    for segment in segments:
        pending.add(max(segment.first, last + 1), segment.last)
    return pending, missing


def _finish(files: Files, segments: list[Segment], pending: Ranges, log: int) -> None:
    """Let go of what is delivered, and bring to disk what a process may have left in memory.

    A file that cannot be sealed or synced is read all the same: it is what there is.
    """
    for segment in segments.copy():
        if not pending.meets(segment.first, segment.last):
            segments.remove(segment)
            files.unlink(segment.path)
    for segment in segments[-_UNSYNCED_MAX:]:
        with suppress(OSError):
            handle = files.open(segment.path, write=True)
            try:
                if not segment.sealed:
                    _seal(files, handle, segment, log)
                files.sync(handle)
            finally:
                files.close(handle)
    for segment in segments:
        segment.sealed = True
        segment.synced, segment.synced_last = segment.size, segment.last


def _seal(files: Files, handle: int, segment: Segment, log: int) -> None:
    end = footer(segment, log)
    if files.write(handle, [end], segment.size) == len(end):
        segment.size += len(end)
    else:
        files.truncate(handle, segment.size)
