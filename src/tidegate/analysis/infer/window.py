"""How many a second came, and how many were there at once?"""

from array import array
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tidegate.units import SECOND

__all__ = ["Window", "most_at_once", "window_of"]

_TRIM_FROM = 200  # requests from which half a percent at either end is at least one


class Window(NamedTuple):
    """The span of time in which rates are counted; instants are wall-clock nanoseconds.

    `share` is the part of all traces that was seen: what was counted is divided by it.
    """

    start: int
    end: int
    share: float

    @property
    def length(self) -> int:
        """Nanoseconds from start to end; 0 when there is no window to speak of."""
        return self.end - self.start

    def rate(self, starts: Iterable[int], *, of_all: int) -> float | None:
        """Per second. A window that begins and ends with a request holds one interval less than
        requests, of `of_all` in it; None where it has no length.
        """
        if self.length <= 0:
            return None
        inside = sum(1 for start in starts if self.start <= start <= self.end)
        return inside * (of_all - 1) / of_all / self.length * SECOND / self.share


def window_of(starts: Sequence["array[int]"], share: float) -> tuple[Window, int]:
    """The window of all requests from outside, and how many are in it.

    Half a percent at either end is cut off: one wrong clock must not stretch an hour to a year.
    """
    ordered = array("q", sorted(start for some in starts for start in some))
    if not ordered:
        return Window(0, 0, share), 0
    cut = len(ordered) // _TRIM_FROM
    return Window(ordered[cut], ordered[-1 - cut], share), len(ordered) - 2 * cut


def most_at_once(starts: "array[int]", ends: "array[int]") -> int:
    """The largest number of intervals that overlap; one that ends when another starts does not."""
    begun = sorted(starts)
    over = sorted(ends)
    most = closed = 0
    for opened, start in enumerate(begun, start=1):
        while over[closed] <= start and closed < opened - 1:
            closed += 1
        most = max(most, opened - closed)
    return most
