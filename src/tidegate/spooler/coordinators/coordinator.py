"""Where do the collectors of a fleet tell each other who may replay, and how fast?

A coordinator holds K leases, what each collector has last said of itself, and the budget. It
decides nothing: the rules are in `core/turns.py` and `core/pacer.py`, and are the same whatever
holds the leases. When it cannot be reached a call raises `CoordinatorLost`, and the replay stops.
"""

from typing import Protocol

from tidegate.core.errands import Budget, Report
from tidegate.units import Duration

__all__ = ["Budget", "Coordinator", "CoordinatorLost", "Report"]


class CoordinatorLost(Exception):  # noqa: N818 - a state of the world, as the docs call it
    """The coordinator does not answer, or not in time; says who and why, and no secret."""


class Coordinator(Protocol):
    """K leases, reports and one budget, somewhere that all collectors of a fleet can reach."""

    async def take(self, slot: int, ttl: Duration) -> int | None:
        """Take lease number `slot`, if nobody holds it: its fencing number, which only grows."""
        ...

    async def renew(self, slot: int, fence: int, ttl: Duration) -> bool:
        """Keep a lease for `ttl` from now; False if it is no longer ours."""
        ...

    async def release(self, slot: int, fence: int) -> None:
        """Give a lease back, if it is still ours."""
        ...

    async def report(self, report: Report) -> None:
        """Say what waits here; it is forgotten by itself when not said again for a minute."""
        ...

    async def reports(self) -> list[Report]:
        """What the collectors of the fleet have last said."""
        ...

    async def publish(self, budget: Budget) -> bool:
        """Say the budget, as holder of lease 0; False if a later fence has spoken."""
        ...

    async def budget(self) -> Budget | None:
        """The budget as last published."""
        ...

    async def close(self) -> None:
        """Give everything back that is held, as far as that is possible at once."""
        ...
