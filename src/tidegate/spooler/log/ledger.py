"""What became of the records of a log, and how is that remembered?

Which of them wait, how many are lost and why, and the highest fence that a delivery came with: all
that is not in the segments themselves. Used under the lock of the log, but for `sync`.
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

    `trouble` says in words why the cursor could not be written last; empty when it could.
    """

    __slots__ = (
        "_cursor",
        "_directory",
        "_log",
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
        self.trouble = ""

    @property
    def dirty(self) -> bool:
        """Whether there is something that is not on disk."""
        return self._cursor.dirty

    def touch(self) -> None:
        """Something else has changed that wants a sync."""
        self._cursor.dirty = True

    def lose(self, cause: Cause, records: int) -> None:
        """So many records are not delivered and will not be."""
        if records:
            self.lost[cause] += records
            self.touch()

    def write(self, last: int, serial: int) -> None:
        """Remember all that concerns numbers up to `last`, for this process. Never raises."""
        try:
            self._cursor.write(self._state(last, serial))
        except OSError as error:
            self._troubled(error)

    def begin_sync(self, last: int, serial: int) -> None:
        """The same, and hold still for a `sync`."""
        try:
            self._cursor.begin_sync(self._state(last, serial))
        except OSError as error:
            raise self._troubled(error) from error

    def sync(self) -> None:
        """Wait for the disk."""
        self._cursor.sync()

    def end_sync(self, error: OSError | None) -> None:
        """It is on disk, or this is why it is not: then `SpoolError`."""
        self._cursor.end_sync(done=error is None)
        if error is not None:
            raise self._troubled(error) from error
        self.trouble = ""

    def close(self) -> None:
        """Give the file back."""
        self._cursor.close()

    def _state(self, last: int, serial: int) -> State:
        pending = tuple((a, min(b, last)) for a, b in self.pending if a <= last)
        lost = tuple(self.lost.values())
        return State(self._log, last, self.reserved, serial, self.fence, lost, pending)

    def _troubled(self, error: OSError) -> SpoolError:
        self.trouble = f"cannot write the cursor of {self._directory}: {error.strerror}"
        return SpoolError(self.trouble)
