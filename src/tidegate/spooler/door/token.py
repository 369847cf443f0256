"""Does this client bring the token?

It stands in a file that others cannot read, and is looked for anew when the file changes, so that a
new one needs no restart. While the file cannot be read, or holds no token, the last one holds: a
deployment that is half done must not turn everybody away. Two tokens are compared in a time that
does not tell how far they agree.
"""

import hmac
import logging
import stat
from pathlib import Path
from typing import Final, final

from tidegate.errors import InputError
from tidegate.units import SECOND, Duration, Instant

__all__ = ["TOKEN_MIN", "Token"]

TOKEN_MIN: Final = 16
"""Characters: 64 bits in hexadecimal, which nobody guesses over a network."""

_LOOK: Final[Duration] = SECOND
_OTHERS: Final = stat.S_IRWXO | stat.S_IWGRP
_READ_MAX: Final = 10_000

_log: Final = logging.getLogger("tidegate.spool")


@final
class Token:
    """The token of a file. Raises InputError, in one sentence, if there is none to begin with."""

    __slots__ = ("_looked", "_path", "_seen", "_token")

    def __init__(self, path: Path, now: Instant) -> None:
        self._path: Final = path
        self._looked = now
        self._seen = _mark(path)
        self._token = _read(path)

    def matches(self, now: Instant, authorization: bytes) -> bool:
        """Whether a header of a request, `Bearer TOKEN`, has it."""
        if now - self._looked >= _LOOK:
            self._looked = now
            self._look()
        scheme, _, given = authorization.partition(b" ")
        same = hmac.compare_digest(given.strip(), self._token)
        return same and scheme.lower() == b"bearer"

    def _look(self) -> None:
        seen = _mark(self._path)
        if seen == self._seen:
            return
        self._seen = seen
        try:
            self._token = _read(self._path)
        except InputError as error:
            _log.warning("%s; the token that was read before holds", error)


def _mark(path: Path) -> tuple[int, int, int] | None:
    """What changes when a file does."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_mode


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(path.stat().st_mode)
            token = file.read(_READ_MAX).strip()
    except OSError as error:
        raise InputError(f"cannot read the token file {path}: {error.strerror}") from None
    if mode & _OTHERS:
        raise InputError(
            f"the token file {path} has mode {mode:o}, and others may read or change it: chmod 600"
        )
    if len(token) < TOKEN_MIN or not token.isascii() or len(token.split()) != 1:
        raise InputError(
            f"the token file {path} should hold one word of at least {TOKEN_MIN} ASCII characters"
        )
    return token
