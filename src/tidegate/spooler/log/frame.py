"""How does a block of records lie on disk, and how is it found among damaged ones?

A frame is a header of fixed size and a payload. Each has a checksum of its own: the header's says
that its numbers can be trusted, so that a reader passes over a bad payload to the next frame. When
a header is bad too, the reader looks for the next magic number whose header is whole *and* names
this log, this segment and the place where it stands. A copy of a frame inside a record, or what an
earlier life of the file has left, does not.

All numbers are little-endian. docs/spool/format.md shows every byte.
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Final, NamedTuple, final
from zlib import crc32

from tidegate.spooler.log.codec import Codec, DamagedError
from tidegate.spooler.record import Record

__all__ = [
    "HEADER_SIZE",
    "MAGIC",
    "NOTE",
    "RECORDS",
    "RECORD_OVERHEAD",
    "VERSION",
    "Damage",
    "Frame",
    "Head",
    "Place",
    "decode",
    "encode",
    "encode_note",
    "note_of",
    "parse",
    "walk",
]

MAGIC: Final = b"\xf5TgF"  # 0xf5 is in no UTF-8 text
VERSION: Final = 1
RECORDS: Final = 1
NOTE: Final = 2
"""Kinds of frames: records, and words about the records that follow."""

#   magic, version, kind, flags, -, key id, log, segment, offset,
#   first, count, length, raw length, oldest, newest | payload CRC, header CRC
_HEAD: Final = struct.Struct("<4sBBBxIQIIQIIIqq")
_SUMS: Final = struct.Struct("<II")
_SUM: Final = struct.Struct("<I")
HEADER_SIZE: Final = _HEAD.size + _SUMS.size  # 72
RECORD_OVERHEAD: Final = 16  # time, length of the key, length of the value
_WINDOW: Final = 1 << 20


class Place(NamedTuple):
    """Where a frame stands: in which log, in which of its segments."""

    log: int
    segment: int


class Head(NamedTuple):
    """What a header says. `length` is the payload's on disk, `raw` before it was packed."""

    version: int
    kind: int
    flags: int
    key_id: int
    log: int
    segment: int
    offset: int
    first: int
    records: int
    length: int
    raw: int
    oldest: int
    newest: int
    crc: int = 0

    @property
    def last(self) -> int:
        """The number of its last record."""
        return self.first + self.records - 1

    @property
    def end(self) -> int:
        """Where the next frame begins."""
        return self.offset + HEADER_SIZE + self.length


class Frame(NamedTuple):
    """A frame that was found whole. `bound` is what encryption holds the payload to."""

    head: Head
    payload: bytes
    bound: bytes


class Damage(NamedTuple):
    """Bytes from `start` to `end` that are no whole frame.

    `head` is there when the header could be read and only the payload is bad.
    """

    start: int
    end: int
    head: Head | None = None


def encode(
    records: Sequence[Record], first: int, place: Place, offset: int, codec: Codec
) -> tuple[bytes, bytes]:
    """A frame of these records as its header and its payload."""
    values, keys, times = zip(*records, strict=True)
    n = len(records)
    raw = b"".join(
        (
            struct.pack(f"<{n}q", *times),
            struct.pack(f"<{n}I", *map(len, keys)),
            struct.pack(f"<{n}I", *map(len, values)),
            *keys,
            *values,
        )
    )
    span = (min(times), max(times))
    return _encode(RECORDS, raw, (first, n), span, place, offset, codec)


def encode_note(
    note: str, first: int, count: int, time: int, place: Place, offset: int, codec: Codec
) -> tuple[bytes, bytes]:
    """A frame of words about the records that follow."""
    raw = note.encode()
    return _encode(NOTE, raw, (first, count), (time, time), place, offset, codec)


def _encode(
    kind: int,
    raw: bytes,
    numbers: tuple[int, int],
    span: tuple[int, int],
    place: Place,
    offset: int,
    codec: Codec,
) -> tuple[bytes, bytes]:
    flags, packed = codec.pack(raw)
    length = codec.length(len(packed))
    bound = _HEAD.pack(
        MAGIC,
        VERSION,
        kind,
        flags,
        codec.key_id,
        *place,
        offset,
        *numbers,
        length,
        len(raw),
        *span,
    )
    payload = codec.seal(packed, bound)
    header = bound + _SUM.pack(crc32(payload))
    return header + _SUM.pack(crc32(header)), payload


def parse(data: bytes, at: int = 0) -> Head | None:
    """The header that begins there, if one does and it is whole."""
    if len(data) - at < HEADER_SIZE or data[at : at + 4] != MAGIC:
        return None
    payload_crc, header_crc = _SUMS.unpack_from(data, at + _HEAD.size)
    if crc32(data[at : at + HEADER_SIZE - 4]) != header_crc:
        return None
    return Head._make((*_HEAD.unpack_from(data, at)[1:], payload_crc))


def decode(frame: Frame, codec: Codec) -> list[Record]:
    """The records of a frame; `DamagedError` if they are not what the header says."""
    head = frame.head
    raw = codec.unseal(head.flags, head.key_id, frame.payload, frame.bound, head.raw)
    n = head.records
    base = RECORD_OVERHEAD * n
    if len(raw) < base:
        raise DamagedError
    times = struct.unpack_from(f"<{n}q", raw)
    sizes = struct.unpack_from(f"<{2 * n}I", raw, 8 * n)  # of the keys, then of the values
    if base + sum(sizes) != len(raw):
        raise DamagedError
    parts = [raw[a:b] for a, b in pairwise(accumulate(sizes, initial=base))]
    return list(map(Record, parts[n:], parts[:n], times))


def note_of(frame: Frame, codec: Codec) -> str:
    """The words of a note; `DamagedError` if they are not what was written."""
    head = frame.head
    raw = codec.unseal(head.flags, head.key_id, frame.payload, frame.bound, head.raw)
    return raw.decode(errors="replace")


@final
class _Window:
    """A view of a file that reads large pieces of it."""

    __slots__ = ("_data", "_read", "_size", "_start")

    def __init__(self, read: Callable[[int, int], bytes], size: int) -> None:
        self._read: Final = read
        self._size: Final = size
        self._start = 0
        self._data = b""

    def bytes(self, offset: int, size: int) -> bytes:
        """So many bytes from there, or fewer at the end of the file."""
        at = offset - self._start
        if at < 0 or at + size > len(self._data):
            self._data = self._read(max(size, self._size), offset)
            self._start, at = offset, 0
        return self._data[at : at + size]

    def find(self, offset: int, end: int) -> int:
        """Where the next magic number begins, or `end`."""
        while offset + len(MAGIC) <= end:
            if len(self.bytes(offset, len(MAGIC))) < len(MAGIC):
                break
            found = self._data.find(MAGIC, offset - self._start)
            if found >= 0:
                return min(end, self._start + found)
            offset = self._start + len(self._data) - (len(MAGIC) - 1)  # it may lie on the edge
        return end


def walk(
    read: Callable[[int, int], bytes],
    start: int,
    end: int,
    place: Place,
    *,
    payloads: bool = True,
    window: int = _WINDOW,
    anywhere: bool = False,
) -> Iterator[Frame | Damage]:
    """All frames between two offsets of a file, and the damage between them.

    `read` is given a size and an offset. Without `payloads` the frames are found by their headers
    alone: payloads are neither checked nor given. `window` is how much is read at a time. With
    `anywhere` frames are taken wherever they stand, of any segment of the log: for a file that has
    lost bytes, where a person looks at what comes of it.
    """
    view = _Window(read, window)
    bad = start  # where the damage began, if this is not where we are
    while start < end:
        header = view.bytes(start, HEADER_SIZE)
        head = parse(header)
        after = start + HEADER_SIZE + head.length if head is not None else end
        if head is None or after > end or not _belongs(head, place, None if anywhere else start):
            start = view.find(start + 1, end)
            continue
        if bad < start:
            yield Damage(bad, start)
        payload = view.bytes(start + HEADER_SIZE, head.length) if payloads else b""
        if payloads and (len(payload) < head.length or crc32(payload) != head.crc):
            yield Damage(start, after, head)
        else:
            yield Frame(head, payload, header[: _HEAD.size])
        bad = start = after
    if bad < end:
        yield Damage(bad, end)


def _belongs(head: Head, place: Place, offset: int | None) -> bool:
    if head.log != place.log or head.version != VERSION or not head.records:
        return False
    return offset is None or (head.segment == place.segment and head.offset == offset)
