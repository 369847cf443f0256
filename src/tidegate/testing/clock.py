"""How does a test move time?

`ManualClock` is a clock that goes only when it is told to, or when a guard waits on it: the wait
takes no time, and the clock is where it would have been. `instant` puts one in the place of the
machine's for a block.

Policies have learnt by the clock before, whose instants mean nothing on this one, so every guard
begins anew on the way in and on the way out. Settings and listeners stay.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import final

from tidegate.errors import SettingsError
from tidegate.runtime import clock as clocks
from tidegate.runtime import registry
from tidegate.units import SECOND, Duration, Instant

__all__ = ["ManualClock", "instant"]


@final
class ManualClock:
    """A clock that stands still until it is moved. It begins at zero and never goes back."""

    __slots__ = ("_at",)

    def __init__(self) -> None:
        self._at: Instant = 0

    @property
    def seconds(self) -> float:
        """What it shows, in seconds; `now` has it in nanoseconds."""
        return self._at / SECOND

    def now(self) -> Instant:
        """What it shows, in nanoseconds."""
        return self._at

    def advance(self, seconds: float) -> None:
        """Let so many seconds pass."""
        if not seconds >= 0:  # also refuses NaN
            raise SettingsError(f"a clock goes forward, not by {seconds!r} seconds")
        self._at += round(seconds * SECOND)

    # For the guards.

    def sleep(self, wait: Duration) -> None:
        """A thread waits so many nanoseconds: they have passed."""
        self._at += max(0, wait)

    async def wait(self, wait: Duration) -> None:
        """A task waits so many nanoseconds: on a loop of this clock together with all others
        (`run`), on any other loop by itself, and they have passed.
        """
        loop = asyncio.get_running_loop()
        if getattr(loop, "clock", None) is self:
            await asyncio.sleep(wait / SECOND)
        else:
            self._at += max(0, wait)
            await asyncio.sleep(0)


@contextmanager
def instant(clock: ManualClock | None = None, *, seed: int = 0) -> Iterator[ManualClock]:
    """A block in which no guard's wait takes any time: backoff, `Retry-After`, an open circuit.

    `with instant() as clock:` gives the clock, to let time pass: `clock.advance(5.0)`. Jitter is
    drawn from `seed`, so a test that is red is red again.
    """
    clock = ManualClock() if clock is None else clock
    before = clocks.use(clock)
    registry.begin_anew(seed)
    try:
        yield clock
    finally:
        clocks.use(before)
        registry.begin_anew(None)
