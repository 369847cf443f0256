"""How does a report reach the disk whole, or not at all?

It is written beside its place and renamed onto it, so that a reader, a full disk or a killed
process never leaves half of one behind.
"""

import os
import secrets
import stat
from pathlib import Path
from typing import Final

from tidegate.errors import InputError

__all__ = ["write_atomic"]

_MODE: Final = (
    0o644  # a report is to be read by others; the umask takes away what it must not grant
)


def write_atomic(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` as UTF-8 to `path`, replacing what is there; its permissions are kept.

    A link is followed. Only a regular file is ever replaced: renaming onto a device or a pipe
    would destroy it. Whatever goes wrong is an `InputError` of one sentence.
    """
    try:
        target = Path(path).resolve()
        mode = _mode_of(target)
        temporary = target.with_name(f".tidegate-{secrets.token_hex(8)}.tmp")
        try:
            _write(temporary, text, _MODE if mode is None else mode, exact=mode is not None)
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except (OSError, ValueError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"cannot write {os.fspath(path)!r}: {reason}") from error


def _mode_of(target: Path) -> int | None:
    """The permissions of the file that is there; None when there is none."""
    try:
        status = target.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("it is there and is not a regular file")
    return stat.S_IMODE(status.st_mode)


def _write(temporary: Path, text: str, mode: int, *, exact: bool) -> None:
    """Never opens wider than `mode`; `exact` gives back what the umask took."""
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
        if exact:
            os.fchmod(handle, mode)
        file.write(text)
        file.flush()
        os.fsync(handle)
