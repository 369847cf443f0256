"""How do records end in a file, one a line?

`to: file:PATH`. For trying a spool out, for tests, and for handing on by other means. A batch is on
disk, as a whole, before it counts as delivered; what a crash leaves of one is cut off.
"""

import asyncio
import os
from pathlib import Path
from typing import Final, final

from tidegate.core.health import Health, View
from tidegate.core.outcome import FAILURE
from tidegate.spooler.record import Batch
from tidegate.spooler.sinks.sink import DELIVERED, Sent
from tidegate.units import Duration

__all__ = ["FileSink"]

_POISON: Final = Sent(FAILURE, "a record holds a line feed, and a line holds a record", poison=True)


@final
class FileSink:
    """Appends each record and a line feed. The file is for its owner alone when it is made here."""

    __slots__ = ("_path",)

    def __init__(self, path: Path) -> None:
        self._path: Final = path

    async def send(self, batch: Batch, timeout: Duration) -> Sent:  # noqa: ARG002 - the protocol's
        """Append and sync; all of it or nothing. A disk takes its time: `timeout` is not kept."""
        if any(b"\n" in record.value for record in batch.records):
            return _POISON
        data = b"".join(record.value + b"\n" for record in batch.records)
        try:
            await asyncio.to_thread(self._append, data)
        except OSError as error:
            return Sent(FAILURE, f"cannot write {self._path}: {error.strerror}")
        return DELIVERED

    async def health(self, timeout: Duration) -> Health:  # noqa: ARG002
        """Whether its folder is there and can be written."""
        name = str(self._path)
        if os.access(self._path.parent, os.W_OK | os.X_OK):
            return Health((View(seen_from=name),))
        return Health((), (name,))

    async def close(self) -> None:
        """Nothing is held open between batches, so that the file may be moved away."""

    def _append(self, data: bytes) -> None:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            end = os.fstat(descriptor).st_size
            try:
                written = 0
                while written < len(data):
                    written += os.write(descriptor, data[written:])
                os.fdatasync(descriptor)
            except OSError:
                os.ftruncate(descriptor, end)
                raise
        finally:
            os.close(descriptor)
