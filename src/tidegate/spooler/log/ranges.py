"""Which numbers are still to be delivered, when they do not go in order?

A sorted list of disjoint ranges with both ends included. In peace it is one range, the tail; after
an outage the backlog is a second one. Nothing here knows of files.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import final

__all__ = ["Range", "Ranges"]

Range = tuple[int, int]


@final
class Ranges:
    """A set of whole numbers, kept as few ranges. Adjacent ones are one."""

    __slots__ = ("_firsts", "_lasts", "total")

    def __init__(self, ranges: Iterable[Range] = ()) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        self.total = 0  # how many numbers there are
        for first, last in ranges:
            self.add(first, last)

    def __iter__(self) -> Iterator[Range]:
        return zip(self._firsts, self._lasts, strict=True)

    def __len__(self) -> int:
        return len(self._firsts)

    def add(self, first: int, last: int) -> None:
        """Put in all from `first` to `last`; none if `last` is below `first`."""
        if last < first:
            return
        left = bisect_left(self._lasts, first - 1)  # the first range that touches or lies beyond
        right = left
        while right < len(self._firsts) and self._firsts[right] <= last + 1:
            first = min(first, self._firsts[right])
            last = max(last, self._lasts[right])
            right += 1
        self.total += last - first + 1 - self._within(left, right)
        self._firsts[left:right] = [first]
        self._lasts[left:right] = [last]

    def remove(self, first: int, last: int) -> int:
        """Take out all from `first` to `last`; how many were in."""
        if last < first:
            return 0
        left = bisect_left(self._lasts, first)
        right = left
        keep: list[Range] = []
        while right < len(self._firsts) and self._firsts[right] <= last:
            if self._firsts[right] < first:
                keep.append((self._firsts[right], first - 1))
            if self._lasts[right] > last:
                keep.append((last + 1, self._lasts[right]))
            right += 1
        removed = self._within(left, right) - sum(b - a + 1 for a, b in keep)
        self._firsts[left:right] = [a for a, _ in keep]
        self._lasts[left:right] = [b for _, b in keep]
        self.total -= removed
        return removed

    def common(self, first: int, last: int) -> list[Range]:
        """What of `first` to `last` is in."""
        if last < first:
            return []
        found: list[Range] = []
        at = bisect_left(self._lasts, first)
        while at < len(self._firsts) and self._firsts[at] <= last:
            found.append((max(first, self._firsts[at]), min(last, self._lasts[at])))
            at += 1
        return found

    def meets(self, first: int, last: int) -> bool:
        """Whether any of `first` to `last` is in."""
        if last < first:
            return False
        at = bisect_left(self._lasts, first)
        return at < len(self._firsts) and self._firsts[at] <= last

    def few(self, most: int) -> list[Range]:
        """At most so many ranges that cover all: the narrowest gaps are filled first.

        What is in a filled gap would be delivered twice. Left out it would never be.
        """
        ranges = list(self)
        excess = len(ranges) - most
        if excess <= 0:
            return ranges
        gaps = sorted((ranges[i + 1][0] - ranges[i][1], i) for i in range(len(ranges) - 1))
        filled = {i for _, i in gaps[:excess]}
        covered: list[Range] = [ranges[0]]
        for i, (first, last) in enumerate(ranges[1:]):
            if i in filled:
                covered[-1] = (covered[-1][0], last)
            else:
                covered.append((first, last))
        return covered

    def _within(self, left: int, right: int) -> int:
        return sum(self._lasts[i] - self._firsts[i] + 1 for i in range(left, right))
