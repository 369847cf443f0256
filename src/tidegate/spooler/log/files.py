"""What does a log need of a file system?

All of it goes through one small object, so that a test can put a file system in its place that
loses power, fills up or fails. A handle is a descriptor; offsets are explicit and nothing seeks.
Errors are those of the system (`OSError`), and a write may be short: who writes looks.
"""

import errno
import fcntl
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["Files", "Space", "read_past_errors"]

_DIRECTORY_MODE: Final = 0o700
_SECTOR: Final = 4096
_FILE_MODE: Final = 0o600  # records are their owner's; nobody else reads them


class Space(NamedTuple):
    """Bytes of a disk: all, and those that this user may still fill."""

    total: int
    free: int


class Files:
    """The file system of this machine."""

    __slots__ = ()

    def make_directory(self, path: Path) -> None:
        """Make it, and what leads to it, unless it is there; for its owner alone, and to stay."""
        for missing in [one for one in (path, *path.parents) if not one.exists()][::-1]:
            missing.mkdir(mode=_DIRECTORY_MODE, exist_ok=True)
            with suppress(PermissionError):  # one may make a directory where one may not look
                self.sync_directory(missing.parent)
        if not path.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))

    def names(self, directory: Path) -> list[str]:
        """What is in a directory, in no order; nothing where there is none."""
        try:
            return [path.name for path in directory.iterdir()]
        except FileNotFoundError:
            return []

    def create(self, path: Path) -> int:
        """A new file to write and read. `FileExistsError` if there is one."""
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _FILE_MODE)

    def open(self, path: Path, *, write: bool = False) -> int:
        """A file that exists, to read or also to write."""
        return os.open(path, (os.O_RDWR if write else os.O_RDONLY) | os.O_CLOEXEC)

    def lock(self, path: Path) -> int | None:
        """Make the file unless it is there and lock it for this process; None: another has it.

        The lock ends with the descriptor, so it dies with its owner however that died.
        """
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _FILE_MODE)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        except BaseException:
            os.close(handle)
            raise
        return handle

    def size(self, handle: int) -> int:
        """How long the file is."""
        return os.fstat(handle).st_size

    def read(self, handle: int, size: int, offset: int) -> bytes:
        """So many bytes from there, fewer only at the end of the file."""
        data = os.pread(handle, size, offset)
        if len(data) in (0, size):
            return data
        parts = [data]
        have = len(data)
        while have < size and data:  # Linux gives at most 2 GB at once, and a signal may cut it
            data = os.pread(handle, size - have, offset + have)
            parts.append(data)
            have += len(data)
        return b"".join(parts)

    def write(self, handle: int, parts: Sequence[bytes], offset: int) -> int:
        """Write the parts one after the other; how many bytes went, which may be too few."""
        return os.pwritev(handle, parts, offset)

    def truncate(self, handle: int, size: int) -> None:
        """Cut the file there."""
        os.ftruncate(handle, size)

    def sync(self, handle: int) -> None:
        """Return when what was written, and the length, would outlive a loss of power."""
        _fdatasync(handle)

    def sync_directory(self, path: Path) -> None:
        """The same for the names in a directory."""
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def close(self, handle: int) -> None:
        """Give the handle back."""
        os.close(handle)

    def unlink(self, path: Path) -> None:
        """Remove a file; nothing happens where there is none."""
        path.unlink(missing_ok=True)

    def rename(self, path: Path, to: Path) -> None:
        """Move a file within its disk."""
        path.rename(to)

    def space(self, directory: Path) -> Space:
        """How large the disk of this directory is, and what is free on it."""
        disk = os.statvfs(directory)
        return Space(disk.f_blocks * disk.f_frsize, disk.f_bavail * disk.f_frsize)


def read_past_errors(files: Files, handle: int, size: int, offset: int) -> bytes:
    """Read, and where a sector of the disk cannot be read take zeros for it.

    When none of them can be read it is the disk that has gone, and not what is on it: that raises.
    """
    try:
        return files.read(handle, size, offset)
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        sectors = [
            _sector(files, handle, min(_SECTOR, offset + size - at), at)
            for at in range(offset, offset + size, _SECTOR)
        ]
        if all(sector is None for sector in sectors):
            raise
    return b"".join(bytes(_SECTOR) if sector is None else sector for sector in sectors)


def _sector(files: Files, handle: int, size: int, offset: int) -> bytes | None:
    try:
        return files.read(handle, size, offset)
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        return None


_FULL_SYNC: Final[int | None] = getattr(fcntl, "F_FULLFSYNC", None)


def _fdatasync(handle: int) -> None:
    # macOS has no fdatasync, and its fsync does not wait for the disk: F_FULLFSYNC does.
    if _FULL_SYNC is None:
        os.fdatasync(handle)
    else:
        fcntl.fcntl(handle, _FULL_SYNC)
