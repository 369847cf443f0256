"""What is in a log, is it whole, and how does one get out of it what can be got?

For a person, beside a spool that runs or after one that does not. Nothing here writes to the log
that it looks at, and nothing waits for its lock: the last file of a log in use may end in the
middle of a write, and that is told as such.
"""

import base64
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from tidegate.errors import InputError
from tidegate.spooler.log.codec import CLEAR, Codec, DamagedError
from tidegate.spooler.log.cursor import CAUSES, SLOT_SIZE, Cursor, State, unpack
from tidegate.spooler.log.files import Files, read_past_errors
from tidegate.spooler.log.frame import NOTE, RECORDS, Damage, Frame, Place, decode, note_of, walk
from tidegate.spooler.log.options import LogOptions
from tidegate.spooler.log.quarantine import QUARANTINE_DIRECTORY
from tidegate.spooler.log.ranges import Range, Ranges
from tidegate.spooler.log.recovery import CURSOR
from tidegate.spooler.log.segment import Segment, load, log_of, path_of, serial_of
from tidegate.spooler.log.writer import Writer
from tidegate.spooler.record import Record

__all__ = ["Checked", "Repaired", "Stats", "Trouble", "check", "dump", "repair", "stats"]

_FILES: Final = Files()


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """Something in a file that is not as it was written.

    `records` is how many it costs, where that can be told. What is `unfinished` stands at the end
    of a file that was being written: a kill leaves it, and so does looking at a log in use.
    """

    file: str
    start: int  # offsets of bytes
    end: int
    records: int | None
    unfinished: bool = False


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """A log that was read through: every byte of it."""

    segments: int
    records: int
    bytes: int
    cursor: str  # "good", "half": one of its two slots; "lost": all is delivered again
    pending: list[Range]
    missing: int  # records that are to be delivered and are not there
    trouble: list[Trouble]

    @property
    def good(self) -> bool:
        """Whether all of it is as it was written."""
        damaged = any(not one.unfinished for one in self.trouble)
        return self.cursor != "lost" and not self.missing and not damaged


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """What a log holds, by its headers alone. Times are in nanoseconds since 1970."""

    segments: int
    frames: int
    records: int
    bytes: int  # on disk
    raw_bytes: int  # before compression
    first: int | None  # numbers
    last: int | None
    oldest: int | None
    newest: int | None
    pending: list[Range]
    pending_records: int
    lost: dict[str, int]  # since the log was begun, by cause
    fence: int
    keys: list[str]  # that its records are encrypted with
    quarantine_bytes: int


class Repaired(msgspec.Struct, frozen=True, kw_only=True):
    """What could be carried over into a new log."""

    records: int
    pending: int
    missing: int  # of those that were to be delivered
    trouble: list[Trouble]


def check(directory: Path, codec: Codec = CLEAR) -> Checked:
    """Read all of a log. `codec` needs the keys of an encrypted one.

    `InputError` if there is no log in this directory, `SpoolError` if the key is missing.
    """
    look = _Look(directory)
    trouble: list[Trouble] = []
    there = Ranges()
    records = size = 0
    for segment in look.segments():
        size += segment.size
        for found in look.frames(segment, codec):
            if isinstance(found, Trouble):
                trouble.append(found)
            elif found.head.kind == RECORDS:
                records += found.head.records
                there.add(found.head.first, found.head.last)
    pending, missing = look.pending(there)
    return Checked(
        segments=len(look.paths),
        records=records,
        bytes=size,
        cursor=look.cursor,
        pending=list(pending),
        missing=missing,
        trouble=trouble,
    )


def stats(directory: Path) -> Stats:
    """What a log holds. Reads headers alone, and needs no key."""
    look = _Look(directory)
    there = Ranges()
    frames = records = size = raw = 0
    times: list[int] = []
    keys: set[int] = set()
    for segment in look.segments():
        size += segment.size
        for found in look.walk(segment, payloads=False):
            if isinstance(found, Frame) and found.head.kind == RECORDS:
                head = found.head
                frames, records, raw = frames + 1, records + head.records, raw + head.raw
                there.add(head.first, head.last)
                times = [min([head.oldest, *times]), max([head.newest, *times])]
                keys.add(head.key_id)
    pending, _ = look.pending(there)
    ranges = list(there)
    state = look.state or State(0)
    return Stats(
        segments=len(look.paths),
        frames=frames,
        records=records,
        bytes=size,
        raw_bytes=raw,
        first=ranges[0][0] if ranges else None,
        last=ranges[-1][1] if ranges else None,
        oldest=times[0] if times else None,
        newest=times[1] if times else None,
        pending=list(pending),
        pending_records=pending.total,
        lost={cause.value: n for cause, n in zip(CAUSES, state.lost, strict=True) if n},
        fence=state.fence,
        keys=[f"{key:08x}" for key in sorted(keys - {0})],
        quarantine_bytes=_size_of(directory / QUARANTINE_DIRECTORY),
    )


def dump(
    directory: Path,
    codec: Codec = CLEAR,
    *,
    pending: bool = False,
    quarantine: bool = False,
    after: int = 0,
) -> Iterator[str]:
    """The records of a log, each as a line of JSON: number, time, key, value.

    What is no UTF-8 comes in base64, as `value_base64` or `key_base64`. With `pending` those alone
    that are not delivered; with `quarantine` those that were set aside, each group of them after a
    line that says `why`. What cannot be read is left out: `check` tells of it.
    """
    look = _Look(directory)
    known = look.state
    if quarantine:
        look = _Look(directory / QUARANTINE_DIRECTORY, log=look.log)
    for segment in look.segments():
        for found in look.frames(segment, codec):
            if isinstance(found, Trouble):
                continue
            head = found.head
            if head.kind == NOTE:
                yield _json({"why": note_of(found, codec), "first": head.first})
                continue
            for number, record in enumerate(decode(found, codec), head.first):
                waits = not pending or _waits(known, number)
                if number > after and waits:
                    yield _json(_row(number, record))


def repair(directory: Path, to: Path, codec: Codec = CLEAR) -> Repaired:
    """Make a new log in `to` of all that can be read of the one in `directory`.

    Records keep their numbers, and those that were delivered stay so if the cursor can be read.
    The old log is not changed. Frames are taken wherever they stand, so a file that has lost bytes
    in its middle, or that was put together by hand, gives what it has. Needs room for a copy, and
    memory for one file at a time.
    """
    look = _Look(directory)
    if look.log is None:
        raise InputError(f"nothing in {directory} can be read")
    if _FILES.names(to):
        raise InputError(f"{to} is not empty; give a directory that is, or none yet")
    _FILES.make_directory(to)
    writer = Writer(_FILES, to, look.log, LogOptions(codec=codec), [])
    there = Ranges()
    trouble: list[Trouble] = []
    for segment in sorted(look.segments(), key=look.lowest):
        frames: list[Frame] = []
        for found in look.frames(segment, codec, anywhere=True):
            if isinstance(found, Trouble):
                trouble.append(found)
            elif found.head.kind == RECORDS:
                frames.append(found)
        for frame in sorted(frames, key=lambda frame: frame.head.first):
            _carry(writer, there, frame.head.first, decode(frame, codec))
    writer.roll()
    work = writer.begin()
    writer.do(work)
    writer.end(work)
    pending, missing = look.pending(there)
    state = look.state or State(look.log)
    highest = max([state.last, state.reserved, *(last for _, last in there)])
    handle, _ = Cursor.open(
        _FILES,
        to / CURSOR,
        state._replace(last=highest, serial=writer.serial, pending=tuple(pending)),
    )
    handle.close()
    _FILES.sync_directory(to)
    return Repaired(records=there.total, pending=pending.total, missing=missing, trouble=trouble)


def _carry(writer: Writer, there: Ranges, first: int, records: list[Record]) -> None:
    """Write those of these records that come after all that is there."""
    start = max(first, writer.last + 1)
    records = records[start - first :]
    if records:
        last = writer.append(records, 0, first=start)
        there.add(start, last)


class _Look:
    """A directory that may hold a log, read and not written."""

    def __init__(self, directory: Path, *, log: int | None = None) -> None:
        found = sorted(s for name in _FILES.names(directory) if (s := serial_of(name)) is not None)
        self.paths: Final = {serial: path_of(directory, serial) for serial in found}
        self.cursor, self.state = _cursor(directory / CURSOR)
        said = [one for path in self.paths.values() if (one := log_of(_FILES, path)) is not None]
        if self.state is not None and said and self.state.log not in said:
            self.cursor, self.state = "lost", None  # another log's
        if log is None and self.state is not None:
            log = self.state.log
        self.log: Final = log or next(iter(said), None)
        if not self.paths and log is None:
            raise InputError(f"there is no log in {directory}")

    def segments(self) -> Iterator[Segment]:
        for serial, path in self.paths.items():
            segment, _ = load(_FILES, path, serial, self.log or 0)
            yield segment

    def lowest(self, segment: Segment) -> int:
        """The lowest number in a file, wherever it stands."""
        found = self.walk(segment, payloads=False, anywhere=True)
        return min((one.head.first for one in found if isinstance(one, Frame)), default=0)

    def walk(
        self, segment: Segment, *, payloads: bool = True, anywhere: bool = False
    ) -> Iterator[Frame | Damage]:
        by_scan = not segment.sealed and (anywhere or not segment.frames)
        end = segment.size if by_scan else segment.end
        with _reading(segment.path) as read:
            yield from walk(
                read,
                0,
                end,
                Place(self.log or 0, segment.serial),
                payloads=payloads,
                anywhere=anywhere,
            )

    def frames(
        self, segment: Segment, codec: Codec, *, anywhere: bool = False
    ) -> Iterator[Frame | Trouble]:
        """The frames that can be read in every respect, and what else there is."""
        for found in self.walk(segment, anywhere=anywhere):
            bad = found
            if isinstance(found, Frame):
                try:
                    if found.head.kind == RECORDS:
                        decode(found, codec)
                except DamagedError:
                    bad = Damage(found.head.offset, found.head.end, found.head)
                else:
                    yield found
                    continue
            assert isinstance(bad, Damage)
            lost = bad.head.records if bad.head is not None else None
            yield Trouble(file=segment.path.name, start=bad.start, end=bad.end, records=lost)
        if segment.torn and segment.frames and not anywhere:
            yield Trouble(
                file=segment.path.name,
                start=segment.end,
                end=segment.end + segment.torn,
                records=None,
                unfinished=True,
            )

    def pending(self, there: Ranges) -> tuple[Ranges, int]:
        """What is to be delivered of what is there, and how much of it is not there."""
        pending = Ranges()
        state = self.state
        for first, last in state.pending if state is not None else ():
            for a, b in there.common(first, last):
                pending.add(a, b)
        missing = sum(b - a + 1 for a, b in state.pending) - pending.total if state else 0
        for first, last in there:
            pending.add(max(first, (state.last if state is not None else 0) + 1), last)
        return pending, missing


def _cursor(path: Path) -> tuple[str, State | None]:
    try:
        handle = _FILES.open(path)
    except FileNotFoundError:
        return "lost", None
    try:
        slots = [unpack(_FILES.read(handle, SLOT_SIZE, SLOT_SIZE * slot)) for slot in (0, 1)]
    finally:
        _FILES.close(handle)
    whole = [slot for slot in slots if slot is not None]
    if not whole:
        return "lost", None
    return ("good" if len(whole) == 2 else "half"), max(whole)[1]


@contextmanager
def _reading(path: Path) -> Iterator[Callable[[int, int], bytes]]:
    handle = _FILES.open(path)
    try:
        yield lambda size, offset: read_past_errors(_FILES, handle, size, offset)
    finally:
        _FILES.close(handle)


def _size_of(directory: Path) -> int:
    return sum((directory / name).stat().st_size for name in _FILES.names(directory))


def _waits(state: State | None, number: int) -> bool:
    if state is None or number > state.last:
        return True
    return any(first <= number <= last for first, last in state.pending)


def _row(number: int, record: Record) -> dict[str, object]:
    time = datetime.fromtimestamp(record.time / 1e9, UTC).isoformat()
    row: dict[str, object] = {"number": number, "time": time}
    for name, data in (("key", record.key), ("value", record.value)):
        if name == "key" and not data:
            continue
        try:
            row[name] = data.decode()
        except UnicodeDecodeError:
            row[f"{name}_base64"] = base64.b64encode(data).decode()
    return row


def _json(row: dict[str, object]) -> str:
    return msgspec.json.encode(row).decode()
