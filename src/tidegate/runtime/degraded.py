"""Was this answer second best?

A fallback hides a failure from the code that calls, which is its purpose, but somebody must be able
to see it: a page that is made of last hour's prices should say so, and should not be cached. So
each fallback leaves a note with whoever stands around it with `tidegate.degradation()`.
"""

from collections.abc import Callable
from contextvars import ContextVar, Token
from functools import wraps
from types import TracebackType
from typing import Any, Final, Self, final

__all__ = ["Degradation", "degradation", "note", "noting"]


@final
class Degradation:
    """What was answered by fallbacks in a block, by the names of the dependencies.

    Empty, and so false, if every answer was a dependency's own. Tasks that are started inside add
    to it; a thread only if it was given its work by `tidegate.carry`. A block around this one sees
    all of it, too.
    """

    __slots__ = ("_ages", "_before", "_outer")

    def __init__(self) -> None:
        # One entry a dependency: it is bounded by the names that there are.
        self._ages: Final[dict[str, float | None]] = {}
        self._outer: Degradation | None = None
        self._before: Token[Degradation | None] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The dependencies that did not answer themselves, in the order in which they failed."""
        return tuple(self._ages)

    def age(self, name: str) -> float | None:
        """How many seconds old the oldest stale answer of this dependency is.

        None if it has given none: it answered itself, or something else answered for it.
        """
        return self._ages.get(name)

    def __bool__(self) -> bool:
        return bool(self._ages)

    def __enter__(self) -> Self:
        self._outer = _AROUND.get()
        self._before = _AROUND.set(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._before is not None
        _AROUND.reset(self._before)

    def add(self, name: str, age: float | None) -> None:
        """A fallback has answered for `name`, with a value so many seconds old."""
        known = self._ages.get(name)
        self._ages[name] = known if age is None else max(age, known or 0.0)
        if self._outer is not None:
            self._outer.add(name, age)


_AROUND: Final[ContextVar[Degradation | None]] = ContextVar("tidegate_degraded", default=None)


def degradation() -> Degradation:
    """A block that is told which of its answers are second best.

    `with tidegate.degradation() as seen: ...`, and then `if seen: ...` and `seen.names`.
    """
    return Degradation()


def note(name: str, age: float | None = None) -> None:
    """Tell whoever stands around that a fallback answers for this dependency."""
    around = _AROUND.get()
    if around is not None:
        around.add(name, age)


def noting(name: str, fallback: Callable[..., Any]) -> Callable[..., Any]:
    """`fallback`, leaving a note whenever it is called."""

    @wraps(fallback)
    def noted(*args: Any, **kwargs: Any) -> Any:
        note(name)
        return fallback(*args, **kwargs)

    return noted
