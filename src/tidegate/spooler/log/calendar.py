"""What time is it for the age of a record, when the clock of the machine may be wrong?

A step of the wall clock must throw nothing away. So time goes on from what the wall said at
opening by a clock that does not step, and a record is too old only if the wall says so too: then a
clock that was wrong at opening and is right now, or the reverse, expires nothing. In the first
minute nothing is too old: a machine that has just come up may not have asked for the time yet.
"""

import time
from collections.abc import Callable
from typing import Final, final

from tidegate.units import MINUTE, Duration

__all__ = ["Calendar"]

_SETTLE: Final[Duration] = MINUTE


@final
class Calendar:
    """Nanoseconds since 1970, without steps. The clocks are given so that a test can set them."""

    __slots__ = ("_began", "_steady", "_steps", "_wall")

    def __init__(
        self,
        wall: Callable[[], int] = time.time_ns,
        steady: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._steps: Final = wall
        self._steady: Final = steady
        self._wall: Final = wall()
        self._began: Final = steady()

    def now(self) -> int:
        """The time to give a record that is accepted now."""
        return self._wall + self._steady() - self._began

    def older_than(self, age: Duration) -> int | None:
        """Records from before this instant are older than `age`; None: too early to say of any."""
        if self._steady() - self._began < _SETTLE:
            return None
        return min(self.now(), self._steps()) - age
