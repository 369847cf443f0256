"""What is in the memory that the processes of a host share for one guard, and who writes where?

One file, mapped by every process that has the guard: a head, and a row for each process. Each row
has one writer, its owner, who alone changes it; everybody reads all. So nobody waits for anybody,
and a process that is killed or stopped at any instant leaves what it wrote. Numbers are whole words
of 64 bits, which the hardware stores at once; what must be read together (a breaker's state with
its instants, a hold with its words) has a version beside it that is odd while it is written.

Counters only grow and stay in the row when its owner dies: who takes the row over goes on from
them. So a sum over all rows never falls, whoever comes and goes.

A lock is taken only to claim or to give up a row, and to write a hold; it is one of the kernel's,
which a death releases. A process that starts waits for it for a few milliseconds, once, and if it
still has none does without for the moment.
"""

import fcntl
import mmap
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple, final

from tidegate.errors import InputError
from tidegate.runtime.clock import MONOTONIC
from tidegate.runtime.shared import place
from tidegate.runtime.shared.owner import Owner, is_alive
from tidegate.units import MILLISECOND, Instant

__all__ = ["ROWS_MAX", "Hold", "Table", "names"]

ROWS_MAX: Final = 256

_MAGIC: Final = int.from_bytes(b"tidegate", "big")
ROW: Final = 32  # words: 256 bytes, four cache lines that no other owner writes to
_HEAD: Final = 512  # words: one page
_SIZE: Final = (_HEAD + ROWS_MAX * ROW) * 8

# Words of the head.
_H_MAGIC, _H_SIZE, _H_USED, _H_OVERFLOW, _H_NAME_LENGTH = range(5)
_H_HOLD_VERSION, _H_HELD, _H_UNTIL, _H_SINCE_WALL, _H_UNTIL_WALL, _H_REASON, _H_AUTHOR = range(
    8, 15
)
_H_COMMAND = 15
_NAME_AT, _REASON_AT, _AUTHOR_AT = 512, 1536, 2560  # bytes
_TEXT_MAX: Final = 1024
# How often a lock is tried, a millisecond apart. Claims take a tenth of one, so eight workers that
# start together are all served within a few; who holds it longer is stopped, and not waited for.
_AT_ONCE, _FOR_A_CLAIM, _FOR_A_COMMAND = 1, 20, 2_000

# Words of a row. From PID to GONE they describe its present owner and go with him.
VERSION, KIND, PID, STARTED, NAMESPACE, AT = range(6)  # AT: when it was last written
INFLIGHT, RECENT, CALLS, FAILED, PROBES_OUT, PROBES_OK, LEASE, TOKENS, LIMIT = range(6, 15)
GONE: Final = 15
REQUESTS, DEPOSITED, RETRIED, FORFEITED, REFUSED = range(16, 21)
GENERATION, STATE, DUE = range(21, 24)
INTERVAL, TAKEN, UNUSED = range(24, 27)  # of a rate, in nanoseconds

PROCESS, OTHER_HOSTS = 0, 1
"""Kinds of rows. What other hosts have counted has a row of its own, which no process of this one
ever takes over: it would pass the counts of others off as its own, and they would come back."""

DAMAGED: Final = 1 << 62

BUSY, FULL = -2, -1  # no row: others are claiming just now; all are taken

_OVERFLOW_MAX: Final = (1 << 63) - 1


class Hold(NamedTuple):
    """A guard is held open by hand. `until` is an instant of the monotonic clock (0: until it is
    released) and decides; the two wall times, in seconds since 1970, are for people.
    """

    reason: str
    author: str
    until: Instant
    since_wall: float
    until_wall: float


# Claims of threads of one process: the kernel's lock is one for the whole process.
_claiming = threading.Lock()


def _after_fork() -> None:
    global _claiming  # noqa: PLW0603 - the thread that held it is not in the child
    _claiming = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


@final
class Table:
    """The table of one guard, mapped. `words` are its 64-bit words; `row(i)` is where row i begins.

    `open` makes it if it is not there, and replaces it if it is none; `replaced` says why, once.
    """

    __slots__ = ("_map", "_path", "directory", "inode", "name", "replaced", "words")

    def __init__(self, directory: Path, name: str, mapped: mmap.mmap, inode: int) -> None:
        self.directory: Final = directory
        self.name: Final = name
        self.inode: Final = inode
        self._map = mapped
        self.words = memoryview(mapped).cast("Q")
        self.replaced = ""

    @classmethod
    def open(cls, directory: Path, name: str, *, create: bool = True) -> "Table":
        """Raises InputError where it cannot be had; FileNotFoundError unless it may be made."""
        place.check_name(name)
        fault = ""
        with place.home(directory, create=create) as home:
            for _ in range(4):  # somebody else may put another in its place meanwhile
                try:
                    found = cls._mapped(directory, home, name)
                except FileNotFoundError:
                    if not create:
                        raise
                    _write_new(home, name, replace=False)
                    continue
                if isinstance(found, Table):
                    found.replaced = fault
                    return found
                fault = found
                if not create:
                    break
                _write_new(home, name, replace=True)
        raise InputError(f"the table of {name!r} in {directory} is damaged: {fault}")

    @classmethod
    def _mapped(cls, directory: Path, home: int, name: str) -> "Table | str":
        """The table in the file of this name, or why it is none."""
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            fd = os.open(place.filename(name), flags, dir_fd=home)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise InputError(f"cannot open the table of {name!r}: {error.strerror}") from None
        try:
            seen = os.fstat(fd)
            if seen.st_size != _SIZE:
                return f"it has {seen.st_size} bytes and not {_SIZE}"
            table = cls(directory, name, mmap.mmap(fd, _SIZE), seen.st_ino)
        except OSError as error:
            raise InputError(f"cannot map the table of {name!r}: {error.strerror}") from None
        finally:
            os.close(fd)
        words = table.words
        if (words[_H_MAGIC], words[_H_SIZE]) != (_MAGIC, _SIZE) or words[_H_USED] > ROWS_MAX:
            table.close()
            return "its head is not that of a table"
        if table._text(_NAME_AT, _H_NAME_LENGTH) != name:
            table.close()
            return "it is of another guard"
        return table

    def close(self) -> None:
        """Unmap it."""
        self.words.release()
        self._map.close()

    def is_current(self) -> bool:
        """Whether the file by this name is still this one: it may have been removed or replaced."""
        try:
            with place.home(self.directory, create=False) as home:
                return os.stat(place.filename(self.name), dir_fd=home).st_ino == self.inode
        except (OSError, InputError):
            return False

    # Rows.

    @staticmethod
    def row(index: int) -> int:
        """Where a row begins in `words`."""
        return _HEAD + index * ROW

    @property
    def used(self) -> int:
        """How many rows have ever had an owner; the others are empty."""
        return self.words[_H_USED]

    @property
    def overflow(self) -> int:
        """How often a process found all rows taken, and went on alone."""
        return self.words[_H_OVERFLOW]

    def column(self, word: int) -> memoryview:
        """One word of every row in use: `sum` of it is fast, and never waits."""
        begin = _HEAD + word
        return self.words[begin : begin + self.words[_H_USED] * ROW : ROW]

    def sane_sum(self, word: int) -> int:
        """The sum of a counter over all rows. One that no host could count to is damage, and 0."""
        total = sum(self.column(word))
        return total if total < DAMAGED else sum(v for v in self.column(word) if v < DAMAGED)

    def sane_max(self, word: int) -> int:
        """The largest of a counter, passing over damage as well."""
        top = max(self.column(word), default=0)
        return (
            top if top < DAMAGED else max((v for v in self.column(word) if v < DAMAGED), default=0)
        )

    def total(self, word: int) -> int:
        """The sum of one word over the rows of this host's processes, gone ones included."""
        kinds, values = self.column(KIND), self.column(word)
        return sum(v for v, kind in zip(values, kinds, strict=True) if kind == PROCESS)

    def owner(self, index: int) -> Owner | None:
        """Whose row it is; None if nobody's."""
        begin = self.row(index)
        pid, started, namespace = self.words[begin + PID : begin + PID + 3]
        return Owner(pid, started, namespace) if pid else None

    def claim(self, owner: Owner, kind: int = PROCESS) -> int:
        """A row for this owner, empty of what its last owner had out; else BUSY or FULL.

        A row whose owner is dead is taken before a fresh one, so that workers that are replaced
        again and again need no more rows than run at a time.
        """
        with self._locked(_FOR_A_CLAIM) as locked:
            if not locked:
                return BUSY
            index = self._vacant(owner, kind)
            if index < 0:
                if kind == PROCESS:
                    self.words[_H_OVERFLOW] = min(self.words[_H_OVERFLOW] + 1, _OVERFLOW_MAX)
                return index
            begin = self.row(index)
            self._clear(begin)
            self.words[begin + KIND] = kind
            self.words[begin + STARTED] = owner.started
            self.words[begin + NAMESPACE] = owner.namespace
            self.words[begin + PID] = owner.pid
            self.words[_H_USED] = max(self.words[_H_USED], index + 1)
            return index

    def _vacant(self, who: Owner, kind: int) -> int:
        used = self.used
        same = [i for i in range(used) if self.words[self.row(i) + KIND] == kind]
        owners = [(index, self.owner(index)) for index in same]
        for index, owner in owners:
            if owner == who:
                return index  # ours already
        for index, owner in owners:
            if owner is None or (owner.namespace == who.namespace and not is_alive(owner)):
                return index
        if kind == OTHER_HOSTS and same:
            return BUSY  # one process speaks with the other hosts, and it is another
        return used if used < ROWS_MAX else FULL

    def bury(self, index: int, dead: Owner) -> bool:
        """Take a dead owner's calls and probes off the table; what he counted stays."""
        with self._locked(_AT_ONCE) as locked:
            if not locked or self.owner(index) != dead:
                return False
            self._clear(self.row(index))
            return True

    def _clear(self, begin: int) -> None:
        for word in range(PID, GONE):
            self.words[begin + word] = 0
        self.words[begin + VERSION] += self.words[begin + VERSION] & 1  # he died while writing

    @contextmanager
    def _locked(self, tries: int) -> Iterator[bool]:
        """The kernel's lock of the file, or not. A death releases it."""
        if not _had(lambda: _claiming.acquire(blocking=False), tries):
            yield False
            return
        fd = -1
        try:
            with (
                suppress(OSError, InputError),
                place.home(self.directory, create=False) as home,
            ):
                flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
                fd = os.open(place.filename(self.name), flags, dir_fd=home)
            yield fd >= 0 and _had(lambda: _lock_now(fd), tries)
        finally:
            if fd >= 0:
                os.close(fd)
            _claiming.release()

    # The hold.

    @property
    def hold_version(self) -> int:
        """Another number whenever the hold has changed; odd while it is being changed."""
        return self.words[_H_HOLD_VERSION]

    def hold(self) -> Hold | None:
        """The hold that stands in the table, expired or not. Read it again if the version moved."""
        words = self.words
        if not words[_H_HELD]:
            return None
        return Hold(
            self._text(_REASON_AT, _H_REASON),
            self._text(_AUTHOR_AT, _H_AUTHOR),
            words[_H_UNTIL],
            words[_H_SINCE_WALL] / 1e9,
            words[_H_UNTIL_WALL] / 1e9,
        )

    @property
    def command(self) -> int:
        """The number of the last command from another host that was obeyed here; 0 if none was."""
        return self.words[_H_COMMAND]

    def write_hold(self, hold: Hold | None, command: int = 0) -> None:
        """Hold the guard, or release it: for a person's command, which can wait for another's.

        `command` is the number of one that hosts tell each other.
        """
        with self._locked(_FOR_A_COMMAND) as locked:
            if not locked:
                raise InputError(f"cannot lock the table of {self.name!r}; nothing was changed")
            words = self.words
            version = words[_H_HOLD_VERSION] | 1  # odd already if a command died while it wrote
            words[_H_HOLD_VERSION] = version
            if hold is not None:
                words[_H_REASON] = self._write_text(_REASON_AT, hold.reason)
                words[_H_AUTHOR] = self._write_text(_AUTHOR_AT, hold.author)
                words[_H_UNTIL] = hold.until
                words[_H_SINCE_WALL] = round(hold.since_wall * 1e9)
                words[_H_UNTIL_WALL] = round(hold.until_wall * 1e9)
            words[_H_HELD] = hold is not None
            words[_H_COMMAND] = command or words[_H_COMMAND]
            words[_H_HOLD_VERSION] = version + 1

    def _text(self, at: int, length: int) -> str:
        size = min(self.words[length], _TEXT_MAX)
        return bytes(self._map[at : at + size]).decode("utf-8", "replace")

    def _write_text(self, at: int, text: str) -> int:
        data = text.encode("utf-8", "replace")[:_TEXT_MAX]
        self._map[at : at + len(data)] = data
        return len(data)


def _had(lock: Callable[[], bool], tries: int) -> bool:
    if lock():
        return True
    for _ in range(tries - 1):
        MONOTONIC.sleep(MILLISECOND)
        if lock():
            return True
    return False


def _lock_now(fd: int) -> bool:
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _write_new(home: int, name: str, *, replace: bool) -> None:
    """An empty table under this name: put there whole, so that nobody sees half of one."""
    file = place.filename(name)
    draft = f".{os.getpid()}-{threading.get_ident()}"
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=home)
        fd = os.open(draft, flags, 0o600, dir_fd=home)
        try:
            # A page that memory has no room for would end us at its first write: ask for all now.
            os.posix_fallocate(fd, 0, _SIZE)
            _fill(fd, name)
        finally:
            os.close(fd)
        if replace:
            os.rename(draft, file, src_dir_fd=home, dst_dir_fd=home)
        else:
            with suppress(FileExistsError):  # another process was first
                os.link(draft, file, src_dir_fd=home, dst_dir_fd=home)
    except OSError as error:
        raise InputError(f"cannot make the table of {name!r}: {error.strerror}") from None
    finally:
        with suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=home)


def _fill(fd: int, name: str) -> None:
    with mmap.mmap(fd, _SIZE) as mapped, memoryview(mapped) as data, data.cast("Q") as words:
        text = name.encode()
        data[_NAME_AT : _NAME_AT + len(text)] = text
        words[_H_NAME_LENGTH] = len(text)
        words[_H_SIZE] = _SIZE
        words[_H_MAGIC] = _MAGIC


def names(directory: Path) -> list[str]:
    """The guards that have a table in the directory, in the order of their names."""
    found: list[str] = []
    with suppress(FileNotFoundError), place.home(directory, create=False) as home:
        files = os.listdir(home)  # noqa: PTH208 - Path knows no descriptors
        found = [_name_in(home, file) for file in files if file.endswith(place.SUFFIX)]
    return sorted(name for name in found if name)


def _name_in(home: int, file: str) -> str:
    """The name in a table's head; empty if it is none."""
    with suppress(OSError):
        fd = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=home)
        try:
            head = os.pread(fd, _REASON_AT, 0)
        finally:
            os.close(fd)
        if len(head) < _REASON_AT:
            return ""
        words = memoryview(head[:_NAME_AT]).cast("Q")
        name = head[_NAME_AT : _NAME_AT + min(words[_H_NAME_LENGTH], _TEXT_MAX)]
        text = name.decode("utf-8", "replace")
        if words[_H_MAGIC] == _MAGIC and place.filename(text) == file:
            return text
    return ""
