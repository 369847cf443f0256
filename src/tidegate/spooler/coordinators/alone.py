"""Who may replay when there is nobody to agree with? This process, at once.

The ledger is then in its own memory (`core/leases.py`), by the monotonic clock. Several collectors
of one process can share one.
"""

from typing import Final, final

from tidegate.core.leases import Leases
from tidegate.runtime.clock import current
from tidegate.spooler.coordinators.coordinator import Budget, Report
from tidegate.units import Duration

__all__ = ["Alone"]


@final
class Alone:
    """A coordinator in memory. Nobody can lose it."""

    __slots__ = ("_collector", "_held", "_leases")

    def __init__(self, collector: str = "alone", leases: Leases | None = None) -> None:
        self._collector: Final = collector
        self._leases: Final = Leases() if leases is None else leases
        self._held: Final[dict[int, int]] = {}  # slot: fence

    async def take(self, slot: int, ttl: Duration) -> int | None:
        """Take lease number `slot`, if nobody holds it: its fencing number, which only grows."""
        fence = self._leases.take(current().now(), slot, self._collector, ttl)
        if fence is not None:
            self._held[slot] = fence
        return fence

    async def renew(self, slot: int, fence: int, ttl: Duration) -> bool:
        """Keep a lease for `ttl` from now; False if it is no longer ours."""
        return self._leases.renew(current().now(), slot, fence, ttl)

    async def release(self, slot: int, fence: int) -> None:
        """Give a lease back, if it is still ours."""
        self._leases.release(current().now(), slot, fence)

    async def report(self, report: Report) -> None:
        """Say what waits here; it is forgotten by itself when not said again for a minute."""
        self._leases.report(current().now(), report)

    async def reports(self) -> list[Report]:
        """What the collectors of the fleet have last said."""
        return self._leases.reports(current().now())

    async def publish(self, budget: Budget) -> bool:
        """Say the budget, as holder of lease 0; False if a later fence has spoken or could."""
        return self._leases.publish(budget)

    async def budget(self) -> Budget | None:
        """The budget as last published."""
        return self._leases.budget

    async def close(self) -> None:
        """Give everything back that is held."""
        for slot, fence in self._held.items():
            await self.release(slot, fence)
