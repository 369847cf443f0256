"""What does a call inherit from whoever is waiting for it?

Four things travel with a piece of work, through every function that it calls: until when somebody
waits for it, how much it matters, how many retries deep it is, and who pays for retries. They are
kept together in one context variable, so that a guard reads them with one look, and each can only
get stricter on the way down: a deadline shortens and never lengthens, criticality falls and never
rises.

Tasks and `asyncio.to_thread` inherit them by themselves. A bare thread or an executor does not:
`carry` wraps the function that is handed to it.
"""

from collections.abc import Callable
from contextvars import ContextVar, Token, copy_context
from types import TracebackType
from typing import Final, Literal, NamedTuple, ParamSpec, Protocol, Self, TypeVar, final

from tidegate.errors import SettingsError, nearest
from tidegate.runtime import clock
from tidegate.units import SECOND, Instant

__all__ = [
    "AMBIENT",
    "CRITICALITIES",
    "NOTHING",
    "Ambient",
    "Criticality",
    "Payer",
    "ambient",
    "back_to",
    "carry",
    "criticality",
    "deadline",
    "entered",
    "put_back",
    "remaining",
]

Criticality = Literal["critical", "default", "sheddable"]

CRITICALITIES: Final[tuple[Criticality, ...]] = ("critical", "default", "sheddable")
"""From what is served first to what is given up first; a class is its place in here."""

_DEFAULT: Final = CRITICALITIES.index("default")
_TIMEOUT_MAX: Final = 86_400.0  # a day, as everywhere else


class Payer(Protocol):
    """Whoever pays for the retries of the layers below."""

    def pay(self) -> bool:
        """Take a token for a retry further in; False if there is none."""
        ...


class Ambient(NamedTuple):
    """What is inherited. `deadline` is an instant of the current clock, None for no end.

    `said` is the place in `CRITICALITIES` if anybody has said one; `depth` counts the retries above
    this call; `payer` is the outermost guard that has a retry budget, and pays for every retry
    further in.
    """

    deadline: Instant | None = None
    said: int | None = None
    depth: int = 0
    payer: "Payer | None" = None

    @property
    def rank(self) -> int:
        """The place in `CRITICALITIES`: what nobody has ranked is `default`."""
        return _DEFAULT if self.said is None else self.said

    def fits(self, end: Instant) -> bool:
        """Whether a first attempt that is over by `end` is under it as it would be by itself."""
        return self.depth == 0 and (self.deadline is None or end <= self.deadline)


NOTHING: Final = Ambient()
AMBIENT: Final[ContextVar[Ambient]] = ContextVar("tidegate", default=NOTHING)

_P = ParamSpec("_P")
_T = TypeVar("_T")


def ambient() -> Ambient:
    """What the code that asks has inherited."""
    return AMBIENT.get()


def remaining() -> float | None:
    """Seconds until the deadline that was set around this code, zero if it has passed; None if
    there is none. An attempt's own timeout is known to its block and to the adapters.
    """
    until = AMBIENT.get().deadline
    return None if until is None else max(0, until - clock.current().now()) / SECOND


def put_back(before: Token[Ambient]) -> None:
    """Undo a `set` of AMBIENT. A coroutine that is closed from outside ends in another context,
    which has nothing to put back; and after a Ctrl-C it may be said twice.
    """
    try:  # noqa: SIM105 - `suppress` would cost three times as much as the reset
        AMBIENT.reset(before)
    except (ValueError, RuntimeError):
        pass


def back_to(inherited: Ambient) -> None:
    """Undo every `set` since `inherited` was got: after a Ctrl-C nobody knows which there were."""
    if AMBIENT.get() is not inherited:
        AMBIENT.set(inherited)


@final
class entered:  # noqa: N801 - used like a function, as contextlib's managers are
    """A block in which `values` are what is inherited."""

    __slots__ = ("_token", "_values")

    def __init__(self, values: Ambient) -> None:
        self._values: Final = values
        self._token: Token[Ambient] | None = None

    def __enter__(self) -> Self:
        before = AMBIENT.get()
        try:
            self._token = AMBIENT.set(self._values)
        except BaseException:  # a Ctrl-C: nobody will come to `__exit__`
            back_to(before)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._token is not None
        put_back(self._token)
        self._token = None

    def remaining(self) -> float | None:
        """Seconds until this block's deadline, zero if it has passed; None if there is none."""
        until = self._values.deadline
        return None if until is None else max(0, until - clock.current().now()) / SECOND


def deadline(timeout: float) -> entered:
    """A block whose guarded calls must all be over within `timeout` seconds.

    `with tidegate.deadline(2.0): ...` shortens what was inherited and never lengthens it. Nothing
    is sent after it, attempts are cut to fit, and a guarded call that finds it passed raises
    `DeadlineExceeded`. Code that is not guarded is not interrupted.
    """
    number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
    if not number or not 0 < timeout <= _TIMEOUT_MAX:  # also refuses NaN
        raise SettingsError(f"a deadline is above 0 and at most a day of seconds, not {timeout!r}")
    inherited = AMBIENT.get()
    until = clock.current().now() + round(timeout * SECOND)
    if inherited.deadline is not None:
        until = min(until, inherited.deadline)
    return entered(inherited._replace(deadline=until))


def criticality(level: Criticality) -> entered:
    """A block whose calls matter so much: `critical`, `default` or `sheddable`.

    What is sheddable is given up first when a dependency or a server is short. A block inside
    another can only lower it: work that is done for something sheddable is sheddable.
    """
    if level not in CRITICALITIES:
        known = nearest(str(level), CRITICALITIES)
        raise SettingsError(f"there is no criticality {level!r}{known}")
    inherited = AMBIENT.get()
    rank = CRITICALITIES.index(level)
    if inherited.said is not None:
        rank = max(rank, inherited.said)
    return entered(inherited._replace(said=rank))


def carry(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """`function`, to be run in a thread or an executor with what is inherited here and now.

    `executor.submit(tidegate.carry(work), argument)`: without it the pool's thread starts with
    nothing, and the work knows no deadline.
    """
    context = copy_context()

    def carried(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        return context.copy().run(function, *args, **kwargs)

    return carried
