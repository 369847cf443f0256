"""How are records found again by their numbers, in order, with memory that does not grow?

A reader goes forward from where it stopped, so it remembers for a few numbers where their frames
begin: the live end of a log and its backlog are read in turns. What cannot be read is passed over
and told; a number that is passed over once is never looked for again.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, final

from tidegate.spooler.log.codec import Codec, DamagedError
from tidegate.spooler.log.files import Files, read_past_errors
from tidegate.spooler.log.frame import RECORDS, Damage, Frame, Head, Place, decode, walk
from tidegate.spooler.log.segment import Segment
from tidegate.spooler.record import Record

__all__ = ["Found", "Reader", "Wanted"]

_POSITIONS_MAX: Final = 16
_HEADERS_WINDOW: Final = 1 << 16


class Found(NamedTuple):
    """Records from number `first` on; with none, `first` is beyond all that was looked through.

    So what lies between where the reader was told to begin and `first` cannot be read.
    """

    first: int
    records: list[Record]


class Wanted(NamedTuple):
    """What to read: numbers, and how much at most. One record is read however large it is."""

    first: int
    last: int
    bytes: int
    records: int


@final
class _Gathered:
    """What has been read so far, and whether more of it is wanted."""

    __slots__ = ("_size", "_wanted", "number", "records")

    def __init__(self, wanted: Wanted) -> None:
        self._wanted: Final = wanted
        self._size = 0
        self.number = wanted.first  # the next that is looked for
        self.records: list[Record] = []

    def may_go_to(self, first: int) -> bool:
        """Go on with this number, unless there would be a gap, or it is beyond what is wanted."""
        if first > self.number and not self.records:
            self.number = min(first, self._wanted.last + 1)
        return first <= self.number <= self._wanted.last

    def take(self, records: list[Record]) -> bool:
        """Take these, the first of which is the next; False when nothing more is wanted."""
        wanted = self._wanted
        for record in records:
            size = self._size + len(record.value) + len(record.key)
            if self.records and (size > wanted.bytes or len(self.records) == wanted.records):
                return False
            self._size = size
            self.records.append(record)
            self.number += 1
            if self.number > wanted.last:
                return False
        return True

    def found(self) -> Found:
        """The outcome."""
        first = self.number - len(self.records)
        return Found(first if self.records else self._wanted.last + 1, self.records)


@final
class Reader:
    """Reads one log. Used by one thread at a time."""

    __slots__ = ("_codec", "_files", "_handle", "_kept", "_log", "_open", "_positions")

    def __init__(self, files: Files, codec: Codec, log: int) -> None:
        self._files: Final = files
        self._codec: Final = codec
        self._log: Final = log
        self._open: Segment | None = None
        self._handle = -1
        self._positions: dict[int, tuple[int, int]] = {}  # number: segment, offset of its frame
        self._kept: tuple[Segment, Head, list[Record]] | None = None  # a frame read in part

    def read(self, segments: Sequence[Segment], wanted: Wanted) -> Found:
        """The next records that follow each other without a gap."""
        got = _Gathered(wanted)
        at = bisect_left(segments, wanted.first, key=lambda segment: segment.last)
        for segment in segments[at:]:
            if not got.may_go_to(segment.first):
                break
            if not self._take_kept(segment, got):
                return got.found()
            for frame in self._frames(segment, got.number, wanted.bytes):
                head = frame.head
                if head.last < got.number:
                    continue
                if not got.may_go_to(head.first):
                    self._remember(got.number, segment, head.offset)
                    return got.found()
                try:
                    records = decode(frame, self._codec)
                except DamagedError:
                    segment.damage.add(head.offset)
                    continue
                if not self._take(segment, head, records, got):
                    return got.found()
        return got.found()

    def _take(self, segment: Segment, head: Head, records: list[Record], got: _Gathered) -> bool:
        """Take what is wanted of a frame; keep it if something of it is left for the next time."""
        more = got.take(records[got.number - head.first :])
        left = got.number <= head.last
        self._kept = (segment, head, records) if left else None
        self._remember(got.number, segment, head.offset if left else head.end)
        return more

    def _take_kept(self, segment: Segment, got: _Gathered) -> bool:
        """Go on with the frame of which something was left, if it is the one; False: enough."""
        if self._kept is None:
            return True
        of, head, records = self._kept
        if of is not segment or not head.first <= got.number <= head.last:
            return True
        return self._take(segment, head, records, got)

    def forget(self, segment: Segment) -> None:
        """The file is about to go."""
        if self._open is segment:
            self.close()
        if self._kept is not None and self._kept[0] is segment:
            self._kept = None
        serial = segment.serial
        self._positions = {n: at for n, at in self._positions.items() if at[0] != serial}

    def clear(self) -> None:
        """Files have changed under the reader: it knows nothing any more."""
        self.close()
        self._positions.clear()
        self._kept = None

    def close(self) -> None:
        """Give the file back that was read last."""
        if self._open is not None:
            self._files.close(self._handle)
            self._open = None

    def _frames(self, segment: Segment, number: int, size: int) -> Iterator[Frame]:
        """The frames of a segment, from the one with this number or one not far before it."""
        if not self._use(segment):
            return
        start = self._locate(segment, number)
        place = Place(self._log, segment.serial)
        for found in walk(self._bytes, start, segment.end, place, window=size + _HEADERS_WINDOW):
            if isinstance(found, Damage):
                segment.damage.add(found.start)
            elif found.head.kind == RECORDS:
                yield found

    def _locate(self, segment: Segment, number: int) -> int:
        """Where to begin to read for this number."""
        serial, offset = self._positions.get(number, (0, 0))
        if serial == segment.serial:
            return offset
        if number <= segment.first:
            return 0
        known = [
            at for n, (of, at) in self._positions.items() if of == segment.serial and n < number
        ]
        start = max(known, default=0)
        place = Place(self._log, segment.serial)
        for found in walk(
            self._bytes, start, segment.end, place, payloads=False, window=_HEADERS_WINDOW
        ):
            if isinstance(found, Frame):
                if found.head.last >= number:
                    break
                start = found.head.end
        return start

    def _remember(self, number: int, segment: Segment, offset: int) -> None:
        self._positions.pop(number, None)
        self._positions[number] = (segment.serial, offset)
        if len(self._positions) > _POSITIONS_MAX:
            del self._positions[next(iter(self._positions))]

    def _use(self, segment: Segment) -> bool:
        """Have this segment's file open; False if somebody has taken it away."""
        if self._open is not segment:
            self.close()
            try:
                self._handle = self._files.open(segment.path)
            except FileNotFoundError:
                segment.damage.add(0)
                return False
            self._open = segment
        return True

    def _bytes(self, size: int, offset: int) -> bytes:
        return read_past_errors(self._files, self._handle, size, offset)
