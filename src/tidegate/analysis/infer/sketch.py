"""What are the quantiles of a million durations, without keeping them?

Durations are counted in bins whose edges grow by 0.5 %, so every quantile is right to a quarter of
a percent, whatever the order they came in, and two sketches add up exactly. The bins are those of
DDSketch (Masson, Rim, Lee, VLDB 2019, section 2.1), without its collapsing: from a nanosecond to a
day there are 6,432 of them at most.
"""

import math
from collections.abc import Iterable
from typing import Final

__all__ = ["Sketch"]

_GROWTH: Final = math.log(1.005)


class Sketch:
    """Counts of durations in nanoseconds, in bins of half a percent."""

    __slots__ = ("_bins", "count", "total")

    def __init__(self, values: Iterable[int] = ()) -> None:
        self._bins: dict[int, int] = {}
        self.count = 0
        self.total = 0
        for value in values:
            self.add(value)

    def add(self, value: int, count: int = 1) -> None:
        """Count one duration; all that are not above zero share one bin."""
        index = math.floor(math.log(value) / _GROWTH) if value > 0 else -1
        self._bins[index] = self._bins.get(index, 0) + count
        self.count += count
        self.total += value * count

    def merge(self, other: "Sketch") -> None:
        """Add all that the other has counted."""
        for index, count in other._bins.items():
            self._bins[index] = self._bins.get(index, 0) + count
        self.count += other.count
        self.total += other.total

    @property
    def mean(self) -> float:
        """The exact mean."""
        return self.total / self.count if self.count else 0.0

    def quantile(self, share: float) -> int:
        """The duration that this share of all does not exceed, to a quarter of a percent.

        The nearest rank: of a few cases the 99th percentile is the largest.
        """
        wanted = max(1, math.ceil(share * self.count))
        seen = 0
        for index in sorted(self._bins):
            seen += self._bins[index]
            if seen >= wanted:
                return _middle(index)
        return 0

    def above(self, value: float) -> int:
        """How many lie in bins whose middle is above this."""
        return sum(count for index, count in self._bins.items() if _middle(index) > value)

    def windows(self, ratio: float) -> list[tuple[int, int]]:
        """(count, low): how many lie from each `low` to `ratio` times it, the fullest first."""
        bins = sorted((_middle(index), count) for index, count in self._bins.items())
        found, inside, right = [], 0, 0
        for low, count in bins:
            while right < len(bins) and bins[right][0] <= low * ratio:
                inside += bins[right][1]
                right += 1
            found.append((inside, low))
            inside -= count
        return sorted(found, key=lambda window: (-window[0], window[1]))


def _middle(index: int) -> int:
    """What a bin stands for; the bin of zero stands for zero."""
    return round(math.exp((index + 0.5) * _GROWTH)) if index >= 0 else 0
