"""How many bytes come in per second, of late?

What is told counts less the longer ago it was, by half after 40 s, so a burst moves the rate little
and nothing has to be kept of it. A young flow is weighed by its age: what came in its first ten
seconds is not the low rate of a minute.
"""

from math import exp, expm1
from typing import Final, final

from tidegate.units import MINUTE, SECOND, Instant

__all__ = ["Flow"]

_OVER: Final = MINUTE  # the time constant: two thirds of the rate are of this last minute


@final
class Flow:
    """The rate of what comes in, by exponential decay."""

    __slots__ = ("_at", "_begun", "_bytes")

    def __init__(self) -> None:
        self._bytes = 0.0  # each counting less the longer ago
        self._at: Instant = 0
        self._begun: Instant | None = None

    def on_bytes(self, now: Instant, size: int) -> None:
        """So many bytes have come in since the last word."""
        if self._begun is None:
            self._begun = self._at = now - SECOND
        # They have come evenly since then, as far as anybody knows.
        gap = (now - self._at) / _OVER
        evenly = -expm1(-gap) / gap if gap > 0 else 1.0
        self._bytes = self._bytes * exp(-gap) + size * evenly
        self._at = now

    def rate(self, now: Instant) -> float:
        """How many bytes come in per second, over the last minute or so."""
        if self._begun is None:
            return 0.0
        # What a steady rate of one would have come to by now.
        age = max(SECOND, now - self._begun)
        weight = -expm1(-age / _OVER) * _OVER / SECOND
        return self._bytes * exp((self._at - now) / _OVER) / weight
