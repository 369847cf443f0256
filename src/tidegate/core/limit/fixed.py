"""How many may be in flight, when a person has said how many?

The limit that learns nothing. It is written as an estimator so that the limiter knows only one
kind.
"""

from typing import Final, final

from tidegate.core.outcome import Outcome
from tidegate.units import Duration, Instant

__all__ = ["FixedLimit"]


@final
class FixedLimit:
    """Always `limit`."""

    __slots__ = ("indifferent", "limit")

    def __init__(self, limit: int) -> None:
        assert limit >= 1
        self.limit: Final = limit
        self.indifferent: Final = limit + 1

    def on_sample(self, now: Instant, rtt: Duration, inflight: int, outcome: Outcome) -> int:
        """The limit, whatever was seen."""
        return self.limit
