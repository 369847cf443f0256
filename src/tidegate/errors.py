"""Every error that Tidegate raises, in one place.

TidegateError
    SettingsError        a setting or a system file is wrong: where, what was expected, nearest key
    InputError           any other input (traces, arguments) that cannot be read
    InvariantError       the simulator found a broken promise: a bug of ours, with seed and instant
    WorkerLost           a process that was simulating is gone: killed, or out of memory

The command line maps them to exit codes: 2 for bad input, 3 for our own bugs and for lost workers.
"""

from difflib import get_close_matches
from typing import Final

__all__ = [
    "InputError",
    "InvariantError",
    "SettingsError",
    "TidegateError",
    "WorkerLost",
    "nearest",
]

_NEAREST_CUTOFF: Final = 0.6  # difflib's own default: one or two slips of a key, not another word


class TidegateError(Exception):
    """The base of all errors raised by Tidegate."""


class InputError(TidegateError):
    """Input that cannot be read. The message is one sentence that names the file."""


class SettingsError(TidegateError, ValueError):
    """A setting is wrong.

    `path` leads to it from the top of the file or of the settings object; `where` is
    `file:line:column` when the setting was read from a file, else empty. `expected` says alone what
    would be right, so that a shell can put beside it what the user wrote instead of our number.
    """

    def __init__(
        self, message: str, *, path: tuple[str, ...] = (), where: str = "", expected: str = ""
    ) -> None:
        self.message = message
        self.path = path
        self.where = where
        self.expected = expected
        super().__init__(message)  # the message alone, so that the error can cross a process pool

    def __str__(self) -> str:
        place = ".".join(self.path)
        return ": ".join(part for part in (self.where, place, self.message) if part)

    def under(self, *keys: str) -> "SettingsError":
        """The same error seen from further up: `keys` are put before its path."""
        return SettingsError(
            self.message, path=(*keys, *self.path), where=self.where, expected=self.expected
        )


class InvariantError(TidegateError, AssertionError):
    """The simulator broke one of its own promises. Always our bug; `repeat` reproduces it."""


class WorkerLost(TidegateError):
    """A process of ours was ended from outside. The message says what it was at."""


def nearest(word: str, known: "list[str] | tuple[str, ...]") -> str:
    """`; did you mean X?` for the closest known word, else the list when it is short, else ''."""
    close = get_close_matches(word, known, n=1, cutoff=_NEAREST_CUTOFF)
    if close:
        return f"; did you mean {close[0]!r}?"
    if known and len(known) <= 12:
        return f"; known: {', '.join(sorted(known))}"
    return ""
