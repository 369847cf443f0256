"""What is in one file of the log, without reading it?

A segment is frames and, once nothing more is written to it, a footer that says what they are. So
opening a log reads a footer of each file and scans only what has none: the tail of a process that
did not end well, or a file whose footer is damaged.
"""

import errno
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final, final
from zlib import crc32

from tidegate.spooler.log.files import Files, read_past_errors
from tidegate.spooler.log.frame import (
    HEADER_SIZE,
    RECORDS,
    VERSION,
    Damage,
    Frame,
    Head,
    Place,
    parse,
    walk,
)

__all__ = ["FOOTER_SIZE", "SUFFIX", "Segment", "footer", "load", "log_of", "path_of", "serial_of"]

SUFFIX: Final = ".seg"
_DIGITS: Final = 10
_MAGIC: Final = b"\xf5TgE"
#   magic, version, flags, -, key id, log, segment, offset, end, frames,
#   first, last, oldest, newest, records | CRC
_FOOTER: Final = struct.Struct("<4sBBHIQIIIIQQqqQ")
_SUM: Final = struct.Struct("<I")
FOOTER_SIZE: Final = _FOOTER.size + _SUM.size  # 84


@final
class Segment:
    """One file: where it is, which numbers it has, how long it is."""

    __slots__ = (
        "damage",
        "end",
        "first",
        "flags",
        "frames",
        "handle",
        "key_id",
        "last",
        "newest",
        "oldest",
        "path",
        "records",
        "sealed",
        "serial",
        "size",
        "synced",
        "synced_last",
        "torn",
    )

    def __init__(self, path: Path, serial: int) -> None:
        self.path: Final = path
        self.serial: Final = serial
        self.first = self.last = 0  # zero: none yet
        self.oldest = self.newest = 0
        self.records = self.frames = 0
        self.flags = self.key_id = 0
        self.end = 0  # of the last whole frame
        self.size = 0  # of the file
        self.sealed = False
        self.synced = self.synced_last = 0  # how much of it is known to be on disk, up to which
        self.handle = -1  # to write; -1 when nothing more is written
        self.damage: set[int] = set()  # where bytes begin that are no whole frame, as was seen
        self.torn = 0  # bytes after the last whole frame

    @property
    def damaged(self) -> int:
        """How many stretches of bytes are no whole frame, as far as was seen."""
        return len(self.damage)

    def take(self, head: Head) -> None:
        """A frame with this header stands at `end` now, or further on."""
        if not self.frames:
            self.first, self.oldest, self.newest = head.first, head.oldest, head.newest
        self.last = head.last
        self.oldest = min(self.oldest, head.oldest)
        self.newest = max(self.newest, head.newest)
        self.frames += 1
        self.records += head.records if head.kind == RECORDS else 0
        self.flags |= head.flags
        self.key_id = head.key_id or self.key_id
        self.end = head.end
        self.size = max(self.size, self.end)


def path_of(directory: Path, serial: int) -> Path:
    """The file of the segment with this number."""
    return directory / f"{serial:0{_DIGITS}d}{SUFFIX}"


def serial_of(name: str) -> int | None:
    """The number of the segment whose file has this name; None if it is no segment's."""
    stem = name.removesuffix(SUFFIX)
    right = stem != name and len(stem) == _DIGITS and stem.isascii() and stem.isdecimal()
    return int(stem) if right else None


def footer(segment: Segment, log: int) -> bytes:
    """What to write at the end of the file, at `segment.size`."""
    body = _FOOTER.pack(
        _MAGIC,
        VERSION,
        segment.flags,
        0,
        segment.key_id,
        log,
        segment.serial,
        segment.size,
        segment.end,
        segment.frames,
        segment.first,
        segment.last,
        segment.oldest,
        segment.newest,
        segment.records,
    )
    return body + _SUM.pack(crc32(body))


def load(files: Files, path: Path, serial: int, log: int) -> tuple[Segment, list[Damage]]:
    """What is in a file: by its footer if it has a whole one, else by its frames.

    The damage is told only of a file that was read through. What lies after its last whole frame
    is told apart (`torn`): a process that was killed, or a disk that lost its power, leaves that.
    """
    handle = files.open(path)
    try:
        segment = Segment(path, serial)
        segment.size = files.size(handle)
        if _read_footer(files, handle, segment, log):
            return segment, []
        damage = list(_scan(files, handle, segment, log))
    finally:
        files.close(handle)
    if damage and damage[-1].end == segment.size:
        segment.torn = segment.size - segment.end
        while damage and damage[-1].start >= segment.end:
            damage.pop()
    segment.damage = {one.start for one in damage}
    return segment, damage


def log_of(files: Files, path: Path) -> int | None:
    """Which log a file says that it belongs to; None if it cannot be read."""
    handle = files.open(path)
    try:
        head = parse(_read(files, handle, HEADER_SIZE, 0))
        if head is not None:
            return head.log
        size = files.size(handle)
        found = _parse_footer(_read(files, handle, FOOTER_SIZE, max(0, size - FOOTER_SIZE)))
        return None if found is None else int(found[5])
    finally:
        files.close(handle)


def _read(files: Files, handle: int, size: int, offset: int) -> bytes:
    """A header or a footer; nothing where the disk gives nothing."""
    try:
        return read_past_errors(files, handle, size, offset)
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        return b""


def _scan(files: Files, handle: int, segment: Segment, log: int) -> Iterator[Damage]:
    def read(size: int, offset: int) -> bytes:
        return read_past_errors(files, handle, size, offset)

    for found in walk(read, 0, segment.size, Place(log, segment.serial)):
        if isinstance(found, Frame):
            segment.take(found.head)
        else:
            yield found


def _parse_footer(data: bytes) -> tuple[int, ...] | None:
    if len(data) != FOOTER_SIZE or data[:4] != _MAGIC:
        return None
    if crc32(data[: _FOOTER.size]) != _SUM.unpack_from(data, _FOOTER.size)[0]:
        return None
    return _FOOTER.unpack_from(data)


def _read_footer(files: Files, handle: int, segment: Segment, log: int) -> bool:
    """Take what the footer says; False if there is none that is of this file."""
    at = segment.size - FOOTER_SIZE
    found = _parse_footer(_read(files, handle, FOOTER_SIZE, at)) if at >= 0 else None
    if found is None:
        return False
    _, version, flags, _, key_id, of_log, serial, offset, end, frames, *rest = found
    if (version, of_log, serial, offset) != (VERSION, log, segment.serial, at) or end > at:
        return False
    segment.first, segment.last, segment.oldest, segment.newest, segment.records = rest
    segment.flags, segment.key_id = flags, key_id
    segment.end, segment.frames, segment.torn = end, frames, at - end
    segment.sealed = True
    return True
