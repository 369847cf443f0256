"""Are there enough traces to judge a system by?

A verdict compares a load with a capacity, so it is no better than the rates behind it. Of n
requests that come independently the rate is known to within 2/sqrt(n) (Poisson, 95 %): with 30 to
within 37 %, about the distance between a service that is two thirds busy and one that is full. Of
fewer one can only say that somebody asked. And a few seconds show a burst or a lull, and no call
that outlasts them: ten seconds is what a timeout usually is, so that one that was reached was seen.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from tidegate.units import SECOND, format_duration

__all__ = ["REQUESTS_MIN", "TIME_MIN", "Thin", "thinness"]

REQUESTS_MIN: Final = 30
"""Requests of a client below which its rate is a guess."""

TIME_MIN: Final = 10 * SECOND
"""Nanoseconds from the first to the last request below which every rate is one."""


class Thin(NamedTuple):
    """What too little was seen of, a sentence each, and whether anything can be judged at all."""

    says: tuple[str, ...]
    judged: bool


def thinness(requests: Mapping[str, int], length: int) -> Thin:
    """`requests` seen of each client, within `length` nanoseconds."""
    says = []
    if length < TIME_MIN:
        seen = format_duration(length) if length else "one instant"
        says.append(f"all was seen within {seen}, and a rate takes {format_duration(TIME_MIN)}")
    few = {client: count for client, count in requests.items() if count < REQUESTS_MIN}
    says += [
        f"{client}: {count} request{'' if count == 1 else 's'} seen, and a rate takes"
        f" {REQUESTS_MIN}"
        for client, count in few.items()
    ]
    return Thin(tuple(says), judged=length >= TIME_MIN and len(few) < len(requests))
