"""Where are records kept that the sink would never take?

In files like those of the log, with the words of the sink before them, in a directory of their
own. It is bounded: when it is full, what comes is not kept, and counted as damage would be.
"""

from contextlib import suppress
from pathlib import Path
from typing import Final, final

from tidegate.errors import SpoolError
from tidegate.spooler.log.files import Files
from tidegate.spooler.log.options import LogOptions
from tidegate.spooler.log.segment import Segment, serial_of
from tidegate.spooler.log.writer import Writer
from tidegate.spooler.record import Batch

__all__ = ["QUARANTINE_DIRECTORY", "Quarantine"]

QUARANTINE_DIRECTORY: Final = "quarantine"


@final
class Quarantine:
    """Keeps what is set aside. Opened when the first record is."""

    __slots__ = ("_before", "_directory", "_files", "_most", "_writer", "size")

    def __init__(self, files: Files, directory: Path, log: int, options: LogOptions) -> None:
        self._files: Final = files
        self._directory: Final = directory / QUARANTINE_DIRECTORY
        self._most: Final = options.aside
        segments: list[Segment] = []
        self._writer: Final = Writer(
            files, self._directory, log, options._replace(durable="always"), segments
        )
        self._before = 0  # bytes that were there when it was opened
        for name in files.names(self._directory):
            serial = serial_of(name)
            if serial is not None:
                self._writer.serial = max(self._writer.serial, serial)
                with suppress(OSError):  # a file that cannot be opened is as good as none
                    handle = files.open(self._directory / name)
                    self._before += files.size(handle)
                    files.close(handle)
        self.size = self._before  # bytes on disk

    def keep(self, batch: Batch, why: str, now: int) -> bool:
        """Write these to disk with the reason; False if they cannot be kept."""
        if self.size + batch.size > self._most:
            return False
        writer = self._writer
        try:
            self._files.make_directory(self._directory)
            writer.append(batch.records, now, note=why, first=batch.first)
            work = writer.begin()
            writer.do(work)
            writer.end(work)
        except (OSError, SpoolError):
            writer.abandon()
            return False
        self.size = self._before + sum(segment.size for segment in writer.segments)
        return True

    def close(self) -> None:
        """End the file."""
        self._writer.roll()
        self._writer.abandon()
