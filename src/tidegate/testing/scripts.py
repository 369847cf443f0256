"""What does a test put in the place of a dependency?

A function that does what its script says, one step a call: give this, raise that, take so long
first. It notes each call with its instant, so a test says what was sent when.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, NamedTuple, final

from tidegate.runtime import clock as clocks
from tidegate.units import SECOND

__all__ = ["Scripted", "Sent", "after", "scripted"]


class Sent(NamedTuple):
    """One call of a scripted function. `at` is in seconds of the clock that guards go by."""

    at: float
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class _After(NamedTuple):
    seconds: float
    step: Any


def after(seconds: float, step: Any) -> Any:
    """A step that takes so long before it is done."""
    return _After(seconds, step)


@final
class Scripted:
    """A dependency by script. `call` and `acall` are it as a function, plain and async."""

    def __init__(self, steps: tuple[Any, ...]) -> None:
        self._steps: Final = steps
        self.sent: Final[list[Sent]] = []
        self.call: Final[Callable[..., Any]] = self._plain()
        self.acall: Final[Callable[..., Coroutine[Any, Any, Any]]] = self._async()

    @property
    def instants(self) -> list[float]:
        """When it was called, in seconds."""
        return [sent.at for sent in self.sent]

    def _plain(self) -> Callable[..., Any]:
        def dependency(*args: Any, **kwargs: Any) -> Any:
            wait, step = self._next(args, kwargs)
            if wait:
                clocks.current().sleep(round(wait * SECOND))
            return _done(step)

        return dependency

    def _async(self) -> Callable[..., Coroutine[Any, Any, Any]]:
        async def dependency(*args: Any, **kwargs: Any) -> Any:
            wait, step = self._next(args, kwargs)
            if wait:
                await clocks.current().wait(round(wait * SECOND))
            else:
                await asyncio.sleep(0)
            return _done(step)

        return dependency

    def _next(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[float, Any]:
        number = len(self.sent)
        if number >= len(self._steps):
            raise AssertionError(f"called {number + 1} times, with {number} steps in its script")
        self.sent.append(Sent(clocks.current().now() / SECOND, args, kwargs))
        step = self._steps[number]
        return (step.seconds, step.step) if isinstance(step, _After) else (0, step)


def scripted(*steps: Any) -> Scripted:
    """A dependency that does one step a call.

    An exception, or a class of one, is raised; anything else is returned; `after(0.5, step)` takes
    half a second of the clock that guards go by. A call with no step left is an AssertionError,
    which no guard repeats.
    """
    return Scripted(steps)


def _done(step: Any) -> Any:
    if isinstance(step, BaseException) or (
        isinstance(step, type) and issubclass(step, BaseException)
    ):
        raise step
    return step
