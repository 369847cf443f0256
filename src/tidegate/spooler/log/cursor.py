"""Where did we stop, and how is that remembered when even the disk is full?

A file of 8 kB that is there from the start and never grows: freeing space must not need any. It
has two slots of 4 kB. One is known to be on disk and stays untouched; the other is written over
until a sync has made it the one that is on disk. So whatever a loss of power leaves of a write,
the other slot is whole. A write without a sync outlives the process, not the machine: after a loss
of power some records go twice, none is missed.
"""

import errno
import struct
from pathlib import Path
from typing import Final, NamedTuple, final
from zlib import crc32

from tidegate.core.bounds import Cause
from tidegate.spooler.log.files import Files
from tidegate.spooler.log.ranges import Range, Ranges

__all__ = ["CAUSES", "RANGES_MAX", "SLOT_SIZE", "Cursor", "State", "unpack"]

SLOT_SIZE: Final = 4096
_MAGIC: Final = b"TGcursor"
_VERSION: Final = 1
CAUSES: Final = (
    Cause.EXPIRED,
    Cause.DROPPED_OLDEST,
    Cause.QUARANTINED,
    Cause.DISCARDED,
    Cause.DAMAGED,
)
"""The places of the counters on disk: a new cause goes behind the others."""
assert set(CAUSES) == set(Cause)
_CAUSES_MAX: Final = 12  # places for counters on disk; the causes have the first ones
#   magic, version, ranges, log, generation, last, reserved, serial, fence, losses
_HEAD: Final = struct.Struct(f"<8sIIQQQQQQ{_CAUSES_MAX}Q")
_SUM: Final = struct.Struct("<I")
RANGES_MAX: Final = (SLOT_SIZE - _HEAD.size - _SUM.size) // 16
assert len(CAUSES) <= _CAUSES_MAX


class State(NamedTuple):
    """What the cursor remembers.

    `pending` is what is not delivered of the records up to `last`; all above it are not delivered
    either. Numbers up to `reserved` may have been given out. `serial` is the highest number of a
    segment, `fence` the highest that a delivery came with, `lost` counts records as `CAUSES` does.
    """

    log: int
    last: int = 0
    reserved: int = 0
    serial: int = 0
    fence: int = 0
    lost: tuple[int, ...] = (0,) * len(CAUSES)
    pending: tuple[Range, ...] = ()


def pack(state: State, generation: int) -> bytes:
    """One slot."""
    ranges = Ranges(state.pending).few(RANGES_MAX)
    causes = state.lost + (0,) * (_CAUSES_MAX - len(state.lost))
    head = _HEAD.pack(
        _MAGIC,
        _VERSION,
        len(ranges),
        state.log,
        generation,
        state.last,
        state.reserved,
        state.serial,
        state.fence,
        *causes,
    )
    numbers = [number for both in ranges for number in both]
    body = head + struct.pack(f"<{len(numbers)}Q", *numbers)
    body = body.ljust(SLOT_SIZE - _SUM.size, b"\0")
    return body + _SUM.pack(crc32(body))


def unpack(slot: bytes) -> tuple[int, State] | None:
    """Generation and state of a slot; None if it is not whole."""
    if len(slot) != SLOT_SIZE or slot[:8] != _MAGIC:
        return None
    if crc32(slot[: -_SUM.size]) != _SUM.unpack_from(slot, SLOT_SIZE - _SUM.size)[0]:
        return None
    _, version, count, log, generation, last, reserved, serial, fence, *lost = _HEAD.unpack_from(
        slot
    )
    if version != _VERSION or count > RANGES_MAX:
        return None
    numbers = struct.unpack_from(f"<{2 * count}Q", slot, _HEAD.size)
    pending = tuple(zip(numbers[::2], numbers[1::2], strict=True))
    losses = tuple(lost[: len(CAUSES)])
    return generation, State(log, last, reserved, serial, fence, losses, pending)


@final
class Cursor:
    """The file. `write` is for the process, `sync` for the machine; one thread at a time."""

    __slots__ = ("_files", "_generation", "_handle", "_stable")

    def __init__(self, files: Files, handle: int) -> None:
        self._files: Final = files
        self._handle: Final = handle
        self._stable = 0  # the slot that is on disk
        self._generation = 0

    @classmethod
    def open(cls, files: Files, path: Path, fresh: State) -> tuple["Cursor", State | None]:
        """The cursor and what it remembers: None if it is new, or nothing of it can be read.

        In both cases it holds `fresh` now.
        """
        try:
            cursor, new = cls(files, files.open(path, write=True)), False
        except FileNotFoundError:
            cursor, new = cls(files, files.create(path)), True
        try:
            state = None if new else cursor._read()
            if state is None:
                cursor._begin(fresh)
            else:
                files.sync(cursor._handle)  # what a killed process wrote may not be on disk
        except BaseException:
            cursor.close()
            raise
        return cursor, state

    def write(self, state: State) -> None:
        """Remember it, as far as this process goes.

        Needs no space: it writes over the slot that is not known to be on disk.
        """
        self._generation += 1
        self._put(1 - self._stable, state)

    def sync(self) -> None:
        """Wait until what was written last is on disk; from then on the other slot is written over.

        The descriptor is used on after a failed sync: a slot is written anew, as a whole, before
        each sync, so no sync can be good for bytes that the one before has given up.
        """
        self._files.sync(self._handle)
        self._stable = 1 - self._stable

    def close(self) -> None:
        """Give the file back."""
        self._files.close(self._handle)

    def _read(self) -> State | None:
        found = [
            unpack(self._files.read(self._handle, SLOT_SIZE, SLOT_SIZE * slot)) for slot in (0, 1)
        ]
        best = None
        for slot, one in enumerate(found):
            if one is not None and one[0] > self._generation:
                self._generation, best = one
                self._stable = slot
        return best

    def _begin(self, state: State) -> None:
        for slot in (1, 0):
            self._generation += 1
            self._put(slot, state)
        self._files.sync(self._handle)
        self._stable = 0

    def _put(self, slot: int, state: State) -> None:
        data = pack(state, self._generation)
        written = self._files.write(self._handle, [data], slot * SLOT_SIZE)
        if written < len(data):
            raise OSError(errno.EIO, "a part of it could be written")
