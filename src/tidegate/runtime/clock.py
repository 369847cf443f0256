"""What time is it, and how does a shell wait?

The only module that reads a clock. It is the monotonic one: no step of the wall clock can open a
circuit, spend a budget or end a deadline. On Linux it is also one clock for all processes of a
host, so instants can be compared between them.

Tests put another clock in its place (`use`), and every guard that exists or is made meanwhile
goes by it.
"""

import time
from collections.abc import Callable
from typing import Final, Protocol

from tidegate.units import SECOND, Duration, Instant

__all__ = ["MONOTONIC", "Clock", "Monotonic", "current", "on_change", "use"]


class Clock(Protocol):
    """What a shell needs of time."""

    @property
    def now(self) -> Callable[[], Instant]:
        """Reads the clock: nanoseconds since some fixed instant, never going back."""
        ...

    def sleep(self, wait: Duration) -> None:
        """Block this thread for so long."""
        ...

    async def wait(self, wait: Duration) -> None:
        """Suspend this task for so long."""
        ...


class Monotonic:
    """The clock of the machine."""

    # Bound to the built-in itself: a method around it would double its price of 40 ns.
    now: Final = staticmethod(time.monotonic_ns)

    def sleep(self, wait: Duration) -> None:
        """Block this thread for so long."""
        time.sleep(wait / SECOND)

    async def wait(self, wait: Duration) -> None:
        """Suspend this task for so long."""
        import asyncio

        await asyncio.sleep(wait / SECOND)


MONOTONIC: Final = Monotonic()

_current: Clock = MONOTONIC
_listeners: list[Callable[[Clock], None]] = []


def current() -> Clock:
    """The clock that everything goes by now."""
    return _current


def use(clock: Clock) -> Clock:
    """Go by `clock` from now on; the answer is the one before, to be put back."""
    global _current
    before, _current = _current, clock
    for listener in _listeners:
        listener(clock)
    return before


def on_change(listener: Callable[[Clock], None]) -> None:
    """Tell `listener` of every later `use`: for what keeps a clock's `now` at hand."""
    _listeners.append(listener)
