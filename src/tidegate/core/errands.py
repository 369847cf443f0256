"""What does a collector ask of the place where its fleet agrees?

An errand is a request as a value: `core/replay.py` says which is next, a shell runs it at a
coordinator (the simulator at `core/leases.py`) and tells what came of it. Each carries the instant
at which it was made, because a lease is counted from before it was asked for.
"""

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from tidegate.units import Duration, Instant

__all__ = [
    "Budget",
    "Errand",
    "Look",
    "Publish",
    "Release",
    "Renew",
    "Report",
    "Say",
    "Take",
    "fullest",
]


class Report(NamedTuple):
    """What one collector says of itself: how much waits there, and how much comes in live."""

    collector: str
    backlog: int  # bytes
    oldest: int  # wall seconds of the oldest record that waits; only compared between collectors
    live: float  # bytes a second


class Budget(NamedTuple):
    """How fast the fleet may replay: bytes a second, and the number of this word.

    Its age is told by when a new number is first seen, on one's own clock: the clocks of a fleet
    need not agree. `fence` is that of the lease under which it was published. It is divided among
    the holders of the first `shares` leases; a lease beyond them has no part in it.
    """

    number: int
    rate: float
    fence: int
    shares: int = 1


class Take(NamedTuple):
    """Take a lease, if it is free. Answer: its fence, or None."""

    asked: Instant
    slot: int
    ttl: Duration


class Renew(NamedTuple):
    """Keep a lease. Answer: whether it is still ours."""

    asked: Instant
    slot: int
    fence: int
    ttl: Duration


class Release(NamedTuple):
    """Give a lease back. No answer."""

    asked: Instant
    slot: int
    fence: int


class Say(NamedTuple):
    """Report. No answer."""

    asked: Instant
    report: Report


class Look(NamedTuple):
    """Read what all have said. Answer: (reports, the budget or None)."""

    asked: Instant


class Publish(NamedTuple):
    """Say the budget. Answer: whether it was taken."""

    asked: Instant
    budget: Budget


Errand: TypeAlias = Take | Renew | Release | Say | Look | Publish


def fullest(reports: Iterable[Report]) -> list[Report]:
    """Those who have a backlog, the fullest first; the name decides between equals."""
    waiting = [report for report in reports if report.backlog > 0]
    return sorted(waiting, key=lambda report: (-report.backlog, report.collector))
