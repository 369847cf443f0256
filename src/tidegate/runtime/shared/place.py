"""Where do the processes of one host meet, and why may they believe what they find there?

In a directory of their user, in memory: `TIDEGATE_STATE_DIR`, or `/dev/shm/tidegate-<uid>`. One
rule for every process of a user, so that a shell and a service meet: a directory that only a login
session knows, as XDG has it, would make a person hold a guard where no service looks.

What is in it is believed because nobody else can write there: the directory is the user's own,
closed to group and others, and nothing on the way into it is a symbolic link. It is of this boot,
because the boot's id is part of its path: instants of the monotonic clock mean nothing after it.
So does the time namespace, in which that clock may be another.

Alone in this folder, this module can be imported on every system: who asks `can_share` first needs
no other.
"""

import os
import stat
import sys
from collections.abc import Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from tidegate.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["SUFFIX", "VARIABLE", "base", "can_share", "check_name", "directory", "filename", "home"]

VARIABLE: Final = "TIDEGATE_STATE_DIR"
SUFFIX: Final = ".guard"

_FORMAT: Final = 1  # of the tables; another one stands in another directory
_NAME_MAX: Final = 200  # characters, as everywhere; their UTF-8 has its place in a table's head
_FILE_MAX: Final = 240  # bytes; file systems take 255
_PRIVATE: Final = 0o700


def base(environ: Mapping[str, str] | None = None) -> Path | None:
    """The directory that the user's processes share; None where sharing is switched off.

    Raises InputError if it is not the same for processes in different directories.
    """
    chosen = (os.environ if environ is None else environ).get(VARIABLE, "")
    if chosen.lower() == "off":
        return None
    if chosen and not Path(chosen).is_absolute():
        raise InputError(f"{VARIABLE} is to be an absolute path or off, not {chosen!r}")
    return Path(chosen) if chosen else Path(f"/dev/shm/tidegate-{os.geteuid()}")  # noqa: S108


def can_share() -> bool:
    """Whether this system has what sharing needs: Linux and its `/proc`."""
    return sys.platform == "linux" and Path("/proc/sys/kernel/random/boot_id").exists()


def directory() -> Path:
    """The directory of this user's processes, for a command; InputError where none is shared."""
    if not can_share():
        raise InputError("processes share nothing on this system: it needs Linux and /proc")
    found = base()
    if found is None:
        raise InputError(f"{VARIABLE} is off: no process of this user shares anything")
    return found


@contextmanager
def home(path: Path, *, create: bool) -> "Iterator[int]":
    """A descriptor of the directory of this boot below `path`, to open files relative to.

    Raises InputError, with the reason in a sentence, where it cannot be had or not be trusted;
    FileNotFoundError if it is not there and `create` is false.
    """
    fd = _enter(None, str(path), create=create)
    try:
        inner = _enter(fd, _of_this_boot(), create=create)
    except OSError as error:
        raise _cannot(path, error) from None
    finally:
        os.close(fd)
    try:
        yield inner
    finally:
        os.close(inner)


def _enter(parent: int | None, name: str, *, create: bool) -> int:
    if create:
        try:
            os.mkdir(name, _PRIVATE, dir_fd=parent)
        except FileExistsError:
            pass
        except OSError as error:
            raise _cannot(name, error) from None
    try:
        fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _cannot(name, error) from None
    seen = os.fstat(fd)
    fault = ""
    if seen.st_uid != os.geteuid():
        fault = f"it belongs to user {seen.st_uid} and this is user {os.geteuid()}"
    elif stat.S_IMODE(seen.st_mode) & 0o022:
        fault = f"others may write there (mode {stat.S_IMODE(seen.st_mode):04o}); make it 0700"
    if fault:
        os.close(fd)
        raise InputError(f"nothing in {name} can be trusted: {fault}")
    return fd


def _cannot(name: str | Path, error: OSError) -> InputError:
    return InputError(f"cannot use {name} for shared state: {error.strerror}")


@cache
def _of_this_boot() -> str:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    try:
        clock = Path("/proc/self/ns/time").stat().st_ino
    except OSError:  # before Linux 5.6 there is but one
        clock = 0
    return f"{_FORMAT}-{boot}-{clock}"


# The names of guards, as names of files.


def check_name(name: str) -> str:
    """The name, if a guard may have it; else InputError."""
    if not 0 < len(name) <= _NAME_MAX or not name.isprintable():
        raise InputError(
            f"the name of a guard is 1 to {_NAME_MAX} printable characters, not {name!r}"
        )
    return name


def filename(name: str) -> str:
    """The file of a guard's table. The table itself has the name in full."""
    quoted = quote(name, safe=" ")
    if len(quoted) + len(SUFFIX) > _FILE_MAX:
        from hashlib import sha256

        quoted = sha256(name.encode()).hexdigest()
    return quoted + SUFFIX
