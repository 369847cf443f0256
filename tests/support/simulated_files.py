"""A file system in memory that loses power, fills up and fails, as a test asks.

It keeps for each file what is on disk and what was written since. A sync brings one over. A loss
of power (`after_power_loss`) leaves of each unsynced write any part: luck decides, sector by
sector or torn at any byte. Names are on disk once their directory is synced; before that a file
that was made may not be there, and one that was removed or moved may be back.
"""

import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from tidegate.spooler.log.files import Files, Space

__all__ = ["SimulatedFiles"]


class _File:
    def __init__(self, data: bytes = b"") -> None:
        self.data = bytearray(data)
        self.disk = bytes(data)  # as of the last sync
        self.writes: list[tuple[int, bytes] | int] = []  # since: writes, or lengths cut to

    def apply(self, what: tuple[int, bytes] | int) -> None:
        self.writes.append(what)
        put(self.data, what)


def put(data: bytearray, what: tuple[int, bytes] | int) -> None:
    if isinstance(what, int):
        if what <= len(data):
            del data[what:]
        else:
            data.extend(bytes(what - len(data)))
        return
    offset, new = what
    if offset > len(data):
        data.extend(bytes(offset - len(data)))
    data[offset : offset + len(new)] = new


class SimulatedFiles(Files):
    """As `Files`. Beside it there is what a test may do to it.

    `capacity` is how many bytes fit, `file_most` how long a file may be. `failing` is asked with
    the name of an operation and its file before each one, and answers with an errno to raise, or
    None; `steps` counts the operations that change something, and at `power_until` of them every
    one raises `PowerLost`.
    """

    __slots__ = (
        "capacity",
        "failing",
        "file_most",
        "files",
        "handles",
        "locked",
        "names_on_disk",
        "power_until",
        "steps",
        "syncs",
    )

    def __init__(self) -> None:
        self.files: dict[Path, _File] = {}
        self.names_on_disk: dict[Path, _File] = {}
        self.handles: dict[int, tuple[Path, _File]] = {}
        self.locked: set[int] = set()
        self.capacity: int | None = None
        self.file_most: int | None = None
        self.failing: Callable[[str, Path], int | None] = lambda operation, path: None
        self.power_until: int | None = None
        self.steps = 0
        self.syncs = 0

    # What a test does.

    def after_power_loss(self, luck: Random) -> "SimulatedFiles":
        """The disk as the next start finds it."""
        found = SimulatedFiles()
        for path in sorted(self.files.keys() | self.names_on_disk.keys()):
            now, then = self.files.get(path), self.names_on_disk.get(path)
            file = now if now is then else luck.choice([now, then])
            if file is not None:
                found.files[path] = _File(_torn(file, luck))
        found.names_on_disk = dict(found.files)
        return found

    def after_kill(self) -> "SimulatedFiles":
        """The files as the next process finds them: what the last one wrote is all there."""
        found = SimulatedFiles()
        found.files, found.names_on_disk = self.files, self.names_on_disk
        found.steps, found.power_until = self.steps, self.power_until
        return found

    def used(self) -> int:
        return sum(len(file.data) for file in self.files.values())

    def _step(self, operation: str, path: Path) -> None:
        if self.power_until is not None and self.steps >= self.power_until:
            raise PowerLostError
        self.steps += 1
        self._ask(operation, path)

    def _ask(self, operation: str, path: Path) -> None:
        if self.power_until is not None and self.steps > self.power_until:
            raise PowerLostError
        number = self.failing(operation, path)
        if number is not None:
            raise OSError(number, os.strerror(number))

    # As `Files`.

    def make_directory(self, path: Path) -> None:
        pass

    def names(self, directory: Path) -> list[str]:
        return [path.name for path in self.files if path.parent == directory]

    def create(self, path: Path) -> int:
        if path in self.files:
            raise FileExistsError
        self._step("create", path)
        self.files[path] = _File()
        return self._handle(path)

    def open(self, path: Path, *, write: bool = False) -> int:
        if path not in self.files:
            raise FileNotFoundError
        self._ask("open", path)
        return self._handle(path)

    def lock(self, path: Path) -> int | None:
        if path not in self.files:
            self.close(self.create(path))
        file = self.files[path]
        if any(self.handles[handle][1] is file for handle in self.locked):
            return None
        handle = self._handle(path)
        self.locked.add(handle)
        return handle

    def size(self, handle: int) -> int:
        return len(self.handles[handle][1].data)

    def read(self, handle: int, size: int, offset: int) -> bytes:
        path, file = self.handles[handle]
        self._ask("read", path)
        return bytes(file.data[offset : offset + size])

    def write(self, handle: int, parts: Sequence[bytes], offset: int) -> int:
        path, file = self.handles[handle]
        self._step("write", path)
        data = b"".join(parts)
        if self.file_most is not None and offset + len(data) > self.file_most:
            if offset >= self.file_most:
                raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
            data = data[: self.file_most - offset]
        if self.capacity is not None:
            room = self.capacity - self.used() + max(0, len(file.data) - offset)
            if room <= 0 < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            data = data[:room]
        file.apply((offset, data))
        return len(data)

    def truncate(self, handle: int, size: int) -> None:
        path, file = self.handles[handle]
        self._step("truncate", path)
        file.apply(size)

    def sync(self, handle: int) -> None:
        path, file = self.handles[handle]
        self._step("sync", path)
        self.syncs += 1
        file.disk, file.writes = bytes(file.data), []

    def sync_directory(self, path: Path) -> None:
        self._step("sync_directory", path)
        self.names_on_disk = {
            name: file for name, file in self.names_on_disk.items() if name.parent != path
        } | {name: file for name, file in self.files.items() if name.parent == path}

    def close(self, handle: int) -> None:
        del self.handles[handle]
        self.locked.discard(handle)

    def unlink(self, path: Path) -> None:
        self._step("unlink", path)
        self.files.pop(path, None)

    def rename(self, path: Path, to: Path) -> None:
        self._step("rename", path)
        if path not in self.files:
            raise FileNotFoundError
        self.files[to] = self.files.pop(path)

    def space(self, directory: Path) -> Space:
        total = self.capacity if self.capacity is not None else 10**15
        return Space(total, total - self.used())

    def _handle(self, path: Path) -> int:
        handle = max(self.handles, default=2) + 1
        self.handles[handle] = (path, self.files[path])
        return handle


class PowerLostError(BaseException):
    """The machine is off. Not an `Exception`: nothing of the code that was running goes on."""


def _torn(file: _File, luck: Random) -> bytes:
    """What the disk holds: each write that was not synced in whole, in part, or not at all."""
    data = bytearray(file.disk)
    for what in file.writes:
        fate = luck.random()
        if isinstance(what, int):
            if fate < 0.5:
                put(data, what)
        elif fate < 0.4:
            put(data, what)
        elif fate < 0.8:
            offset, new = what
            put(data, (offset, new[: luck.randint(0, len(new))]))
            if fate < 0.6 and len(new) > 1:  # the length got there, and not all of the bytes
                start = luck.randrange(len(new))
                end = min(len(new), start + luck.choice([1, 512, 4096]))
                put(data, what)
                put(data, (offset + start, bytes(end - start)))
    return bytes(data)
