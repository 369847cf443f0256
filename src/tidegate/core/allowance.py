"""How many bytes may go now, at a rate that may change or end at any moment?

A bucket that holds one second of the rate, in bytes, filled when it is asked. Its level may fall
below zero: the one record that is larger than what was saved up goes, and is paid back before the
next. When the rate ends, what was saved up is gone; what is owed stays.
"""

from typing import Final, final

from tidegate.units import SECOND, Instant

__all__ = ["UNBOUNDED", "Allowance"]

UNBOUNDED: Final = float("inf")
"""A rate at which all may go at once."""

_GRAINS: Final = 4  # pieces of a second's rate: a sink pays for each request, however small


@final
class Allowance:
    """What has been saved up of a rate, and not been spent."""

    __slots__ = ("_filled", "_level")

    def __init__(self) -> None:
        self._level = 0.0
        self._filled: Instant = 0

    def end(self, now: Instant) -> None:
        """Nothing may go, and nothing is saved up, from now until it is asked with a rate again."""
        self._level = min(self._level, 0.0)
        self._filled = now

    def spend(self, size: int) -> None:
        """So many bytes go."""
        self._level -= size

    def ask(self, now: Instant, rate: float, *, wanted: int, batch: int) -> int:
        """How many of the `wanted` bytes may go now, at this rate above zero.

        Less than a quarter of a second's worth is answered with zero, unless it is a whole `batch`
        or all that is wanted.
        """
        if rate == UNBOUNDED:
            return wanted
        self._level = min(self._level + rate * (now - self._filled) / SECOND, rate)
        self._filled = now
        if self._level < _grain(rate, wanted, batch):
            return 0
        return min(int(self._level), wanted)

    def ready_at(self, rate: float, *, wanted: int, batch: int) -> Instant:
        """When `ask` will answer with more than zero, at this rate above zero."""
        if rate == UNBOUNDED:
            return self._filled
        missing = _grain(rate, wanted, batch) - self._level
        return self._filled + max(0, int(missing / rate * SECOND) + 1)


def _grain(rate: float, wanted: int, batch: int) -> float:
    """Less than this is not worth a request.

    In floats what a rate gives in a quarter of a second may be a little less than its quarter, and
    who asks just then would go with half a second's worth at the next time: so one byte less.
    """
    return max(1.0, min(batch, rate / _GRAINS - 1, wanted))
