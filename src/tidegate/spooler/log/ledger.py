"""What became of the records of a log, and how is that remembered?

Which of them wait, how many are lost and why, and the highest fence that a delivery came with: all
that is not in the segments themselves. It changes under the lock of the log; it is written by one
thread at a time, and not under that lock, which nobody holds who may wait for the disk.
"""

from pathlib import Path
from typing import Final, final

from tidegate.core.bounds import Cause
from tidegate.errors import SpoolError
from tidegate.spooler.log.cursor import CAUSES, Cursor, State
from tidegate.spooler.log.ranges import Ranges

__all__ = ["Ledger"]


@final
class Ledger:
    """The state of one log, and its cursor.

    `dirty` says that something has changed that is not on disk; `trouble` in words why the cursor
    could not be written last, and is empty when it could.
    """

    __slots__ = (
        "_cursor",
        "_directory",
        "_log",
        "dirty",
        "fence",
        "lost",
        "pending",
        "reserved",
        "trouble",
    )

    def __init__(self, cursor: Cursor, directory: Path, state: State, pending: Ranges) -> None:
        self._cursor: Final = cursor
        self._directory: Final = directory
        self._log: Final = state.log
        self.pending: Final = pending
        self.lost: Final = dict(zip(CAUSES, state.lost, strict=True))
        self.fence = state.fence
        self.reserved = 0
        self.dirty = False
        self.trouble = ""

    def lose(self, cause: Cause, records: int) -> None:
        """So many records are not delivered and will not be."""
        if records:
            self.lost[cause] += records
            self.dirty = True

    def state(self, last: int, serial: int) -> State:
        """What there is to remember of numbers up to `last`."""
        pending = tuple((a, min(b, last)) for a, b in self.pending if a <= last)
        lost = tuple(self.lost.values())
        return State(self._log, last, self.reserved, serial, self.fence, lost, pending)

    def write(self, state: State) -> None:
        """Remember it for this process. Never raises."""
        try:
            self._cursor.write(state)
        except OSError as error:
            self._troubled(error)

    def sync(self, state: State) -> None:
        """Remember it for the machine; `SpoolError` if the disk fails."""
        try:
            self._cursor.write(state)
            self._cursor.sync()
        except OSError as error:
            self.dirty = True
            raise self._troubled(error) from error
        self.trouble = ""

    def close(self) -> None:
        """Give the file back."""
        self._cursor.close()

    def _troubled(self, error: OSError) -> SpoolError:
        self.trouble = f"cannot write the cursor of {self._directory}: {error.strerror}"
        return SpoolError(self.trouble)
