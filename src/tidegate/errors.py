"""Every error that Tidegate raises, in one place.

TidegateError
    SettingsError        a setting or a system file is wrong: where, what was expected, nearest key
    InputError           any other input (traces, arguments) that cannot be read
    InvariantError       the simulator found a broken promise: a bug of ours, with seed and instant
    MissingExtra         a package is not installed: the message says which extra brings it
    WorkerLost           a process that was simulating is gone: killed, or out of memory
    Rejected             a guarded call that was never sent: which dependency, why, until when
        CircuitOpen          the dependency is failing, or is being tried again with care
        Held                 a person holds the guard open
        LimitExceeded        as many calls are out as may be
        RateLimited          as many calls were made as may be in that time
        Throttled            the dependency has been refusing what it is sent
        Shed                 the server that was asked is short, and this matters least
    SpoolError           a spool cannot do what it is asked: the message says why
        SpoolFull            there is no room for more, by the disk or by what it may keep
    DeadlineExceeded     the time of a guarded call is over (also a TimeoutError)
    AttemptTimeout       one attempt took longer than it may (also a TimeoutError)

The command line maps them to exit codes: 2 for bad input, 3 for our own bugs and for lost workers.
"""

from difflib import get_close_matches
from typing import Final

__all__ = [
    "AttemptTimeout",
    "CircuitOpen",
    "DeadlineExceeded",
    "Held",
    "InputError",
    "InvariantError",
    "LimitExceeded",
    "MissingExtra",
    "RateLimited",
    "Rejected",
    "SettingsError",
    "Shed",
    "SpoolError",
    "SpoolFull",
    "Throttled",
    "TidegateError",
    "WorkerLost",
    "missing_extra",
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


class Rejected(TidegateError):
    """A guarded call that was not sent. Nothing has happened at the far side.

    Made from the guard's name, the words of the policy that refused, and the seconds until another
    try is worth it. Never retried by a guard, also not by one further out: whoever refuses wants
    less.
    """

    # Read from `args`, where Python keeps them anyway: saying no is what a storm asks for most,
    # and attributes of our own would triple the price of it.
    sent = False

    @property
    def dependency(self) -> str:
        """The name of the guard."""
        return str(self.args[0])

    @property
    def reason(self) -> str:
        """The words of the policy that refused."""
        return str(self.args[1])

    @property
    def retry_after(self) -> float | None:
        """Seconds until another try is worth it; None if nobody knows."""
        wait: float | None = self.args[2] if len(self.args) > 2 else None
        return wait

    def __str__(self) -> str:
        later = "" if self.retry_after is None else f"; try again in {self.retry_after:.3g} s"
        return f"{self.dependency}: not called, {self.reason}{later}"


class CircuitOpen(Rejected):
    """The dependency is failing, or is only now being tried again."""


class Held(CircuitOpen):
    """A person holds this guard open: nobody calls until they release it."""


class LimitExceeded(Rejected):
    """As many calls are under way as may be."""


class RateLimited(Rejected):
    """As many calls were made as may be in that time."""


class Throttled(Rejected):
    """The dependency has been refusing, so a share of the calls stays at home."""


class Shed(Rejected):
    """A server is short of capacity, and this request is among those it can do without."""


class SpoolError(TidegateError):
    """A spool cannot do what it is asked. The message is one sentence and shows no record."""


class SpoolFull(SpoolError):
    """There is no room for more. What was refused has left no trace.

    `retry_after` is when to come again, in seconds; None where it is not known, or never helps.
    """

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        self.retry_after = retry_after
        super().__init__(message)


class DeadlineExceeded(TidegateError, TimeoutError):
    """The time that somebody had for this call is over.

    `sent` says whether an attempt went out. Told apart from `AttemptTimeout`: there no more than
    one attempt was too slow.
    """

    def __init__(self, dependency: str, *, sent: bool) -> None:
        self.dependency = dependency
        self.sent = sent
        super().__init__(dependency)

    def __reduce__(self) -> tuple[object, ...]:
        return _deadline_exceeded, (self.dependency, self.sent)

    def __str__(self) -> str:
        when = "while it was under way" if self.sent else "before it could be sent"
        return f"{self.dependency}: the deadline passed {when}"


class AttemptTimeout(TidegateError, TimeoutError):
    """The last attempt was given up after `timeout` seconds."""

    sent = True

    def __init__(self, dependency: str, timeout: float) -> None:
        self.dependency = dependency
        self.timeout = timeout
        super().__init__(dependency)  # alone: an OSError takes two arguments for errno and text

    def __reduce__(self) -> tuple[object, ...]:
        return AttemptTimeout, (self.dependency, self.timeout)

    def __str__(self) -> str:
        return f"{self.dependency}: no answer within {self.timeout:.3g} s"


def _deadline_exceeded(dependency: str, sent: bool) -> DeadlineExceeded:
    return DeadlineExceeded(dependency, sent=sent)


class MissingExtra(TidegateError, ModuleNotFoundError):
    """Something needs a package that is not installed; the message says which extra brings it."""


def missing_extra(error: ModuleNotFoundError, extra: str, what: str = "this") -> MissingExtra:
    """What to raise where `error` says that a module of this extra is not installed."""
    return MissingExtra(
        f"{what} needs the package of {error.name}: pip install 'tidegate[{extra}]'",
        name=error.name,
    )


def nearest(word: str, known: "list[str] | tuple[str, ...]") -> str:
    """`; did you mean X?` for the closest known word, else the list when it is short, else ''."""
    close = get_close_matches(word, known, n=1, cutoff=_NEAREST_CUTOFF)
    if close:
        return f"; did you mean {close[0]!r}?"
    if known and len(known) <= 12:
        return f"; known: {', '.join(sorted(known))}"
    return ""
