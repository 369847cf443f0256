"""How much does this request matter, and how full may the house be for it to be let in?

Two pure functions. A class is given up by keeping the last places from it: while fewer than its
share of all places are taken, by whomever, it is let in (trunk reservation, as telephone networks
keep the last circuits of a route for calls that have no other). So in health nobody notices a
class, and in overload the lowest goes first, without a threshold of load that somebody must find.
"""

from math import ceil
from typing import Final

from tidegate.settings import admission as settings

__all__ = ["CRITICAL", "DEFAULT", "LAST", "RANKS", "SHEDDABLE", "ceilings", "rank"]

CRITICAL: Final = 0
DEFAULT: Final = 1
SHEDDABLE: Final = 2
LAST: Final = 3
"""The retries of what is sheddable: nobody asks for this class, one falls into it."""

RANKS: Final = (CRITICAL, DEFAULT, SHEDDABLE, LAST)


def rank(criticality: int, depth: int) -> int:
    """The class of a request of that criticality (0 to 2) that is `depth` retries deep.

    A retry ranks one class lower, and only one: a second retry is not worth less than a first, and
    else what is critical would end below what may be shed.
    """
    assert CRITICAL <= criticality <= SHEDDABLE
    return criticality + 1 if depth > 0 else criticality


def ceilings(shares: settings.Shares, places: int) -> tuple[int, int, int, int]:
    """For each class, how many of `places` may be taken for one more of it to be let in.

    Rounded up, so that a share above zero is worth a place whenever there is one: a service with a
    single worker serves what is sheddable while nothing else wants it.
    """
    return (
        places,
        _part(places, shares.default),
        _part(places, shares.sheddable),
        _part(places, shares.last),
    )


def _part(places: int, share: float) -> int:
    return ceil(round(places * share, 6))  # 7 % of 100 is 7, and not the 8 above 7.000000000000001
