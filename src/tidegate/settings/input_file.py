"""Which file may be read at all, and what is said of one that cannot be?

A file that a user names is a regular one. A pipe with a name would be waited for without a word, a
device may never end, and a directory holds nothing to read: each is refused before it is opened.
What a shell has opened already is another matter: `/dev/stdin` and `<(command)` are read, whatever
stands behind them.
"""

import os
import stat
from pathlib import Path
from typing import BinaryIO, Final

from tidegate.errors import InputError

__all__ = ["open_input", "size_of", "unreadable"]

_KINDS: Final = (
    (stat.S_ISDIR, "it is a directory"),
    (stat.S_ISFIFO, "it is a named pipe; read what it gives as /dev/stdin"),
    (stat.S_ISSOCK, "it is a socket"),
    (stat.S_ISCHR, "it is a device"),
    (stat.S_ISBLK, "it is a device"),
)
_OPEN_ALREADY: Final = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")


def open_input(path: Path) -> BinaryIO:
    """The file, opened to read bytes. Raises InputError: `cannot read FILE: reason`."""
    size_of(path)
    try:
        return path.open("rb")
    except OSError as error:
        raise unreadable(path, error) from error


def size_of(path: Path) -> int:
    """Bytes in the file, 0 for a pipe. Raises InputError for what `open_input` refuses."""
    try:
        status = path.stat()
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
    if not stat.S_ISREG(status.st_mode):
        why = next((why for is_one, why in _KINDS if is_one(status.st_mode)), "it is no file")
        if stat.S_ISDIR(status.st_mode) or not _is_open(path):
            raise InputError(f"cannot read {path}: {why}")
    return status.st_size


def unreadable(path: Path, error: OSError | ValueError) -> InputError:
    """What is said of a file that cannot be read: one sentence for all of them."""
    if isinstance(error, FileNotFoundError):
        why = "there is no such file"
    elif isinstance(error, OSError):
        why = (error.strerror or "for no known reason").lower()
    else:  # a NUL in the name
        why = "that cannot be the name of a file"
    return InputError(f"cannot read {path}: {why}")


def _is_open(path: Path) -> bool:
    """Whether the path, or what it leads to, is a descriptor that this process was given."""
    resolved = os.path.realpath(path)
    return str(path).startswith(_OPEN_ALREADY) or (
        resolved.startswith("/proc/") and "/fd/" in resolved
    )
