"""How sure are we of a verdict, and when have we run it often enough?"""

from collections.abc import Iterable
from math import sqrt
from typing import Final

from tidegate.findings import Measure

__all__ = ["confidence", "measure", "settled", "wilson"]

_Z: Final = 1.96  # 95 %


def wilson(hits: int, runs: int) -> tuple[float, float]:
    """The 95 % interval of a share seen `hits` times in `runs` (Wilson 1927).

    Unlike the normal one it is right for few runs and for shares near zero and one.
    """
    if runs == 0:
        return 0.0, 1.0
    share, square = hits / runs, _Z * _Z
    middle = (share + square / (2 * runs)) / (1 + square / runs)
    half = _Z / (1 + square / runs) * sqrt(share * (1 - share) / runs + square / (4 * runs * runs))
    # The ends are exact where nothing, or all, was seen; rounding would miss them by a hair.
    low = middle - half if hits else 0.0
    return low, middle + half if hits < runs else 1.0


def settled(hits: int, runs: int) -> bool:
    """Whether it is settled, at 95 %, that the share is above or below one half."""
    low, high = wilson(hits, runs)
    return low > 0.5 or high < 0.5


def confidence(hits: int, runs: int) -> Measure:
    """The share of runs that ended so, with its interval."""
    low, high = wilson(hits, runs)
    share = hits / runs if runs else 0.0
    return Measure(value=share, low=low, high=high, unit="share", runs=runs, how="simulated")


def measure(values: Iterable[float], unit: str) -> Measure:
    """The mean over the runs, with the lowest and highest seen."""
    known = list(values)
    if not known:
        return Measure(value=0.0, low=0.0, high=0.0, unit=unit, runs=0, how="simulated")
    return Measure(
        value=sum(known) / len(known),
        low=min(known),
        high=max(known),
        unit=unit,
        runs=len(known),
        how="simulated",
    )
