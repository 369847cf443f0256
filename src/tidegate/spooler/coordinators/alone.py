"""Who may replay when there is nobody to agree with? This process, at once.

The ledger is then in its own memory: the same leases, reports and budget as on a server, by the
monotonic clock. Several collectors of one process can share one; it is what the coordinators on
servers are held to.
"""

from dataclasses import dataclass, field
from typing import Final, NamedTuple, final

from tidegate.runtime.clock import current
from tidegate.spooler.coordinators.coordinator import Budget, Report
from tidegate.units import MINUTE, Duration, Instant

__all__ = ["REPORT_KEPT", "Alone", "Ledger"]

REPORT_KEPT: Final = MINUTE
"""How long a report stands that is not made again."""


class _Lease(NamedTuple):
    """Held under this fence until then, if nothing is heard before."""

    fence: int
    end: Instant


@dataclass(slots=True)
class Ledger:
    """What a fleet agrees on: who holds which lease, who has what to replay, and how fast."""

    leases: dict[int, _Lease] = field(default_factory=dict)
    reports: dict[str, tuple[Report, Instant]] = field(default_factory=dict)
    budget: Budget | None = None
    fences: int = 0
    leader: int = 0  # the last fence of lease 0


@final
class Alone:
    """A coordinator in memory. Nobody can lose it."""

    __slots__ = ("_held", "_ledger")

    def __init__(self, ledger: Ledger | None = None) -> None:
        self._ledger: Final = Ledger() if ledger is None else ledger
        self._held: Final[dict[int, int]] = {}  # slot: fence

    async def take(self, slot: int, ttl: Duration) -> int | None:
        """Take lease number `slot`, if nobody holds it: its fencing number, which only grows."""
        ledger, now = self._ledger, current().now()
        before = ledger.leases.get(slot)
        if before is not None and now < before.end:
            return None
        ledger.fences += 1
        fence = ledger.fences
        ledger.leases[slot] = _Lease(fence, now + ttl)
        if slot == 0:
            ledger.leader = fence
        self._held[slot] = fence
        return fence

    async def renew(self, slot: int, fence: int, ttl: Duration) -> bool:
        """Keep a lease for `ttl` from now; False if it is no longer ours."""
        now = current().now()
        lease = self._ledger.leases.get(slot)
        if lease is None or lease.fence != fence or now >= lease.end:
            return False
        self._ledger.leases[slot] = _Lease(fence, now + ttl)
        return True

    async def release(self, slot: int, fence: int) -> None:
        """Give a lease back, if it is still ours."""
        lease = self._ledger.leases.get(slot)
        if lease is not None and lease.fence == fence:
            del self._ledger.leases[slot]
        self._held.pop(slot, None)

    async def report(self, report: Report) -> None:
        """Say what waits here; it is forgotten by itself when not said again for a minute."""
        self._ledger.reports[report.collector] = (report, current().now() + REPORT_KEPT)

    async def reports(self) -> list[Report]:
        """What the collectors of the fleet have last said."""
        now, reports = current().now(), self._ledger.reports
        for collector in [name for name, (_, end) in reports.items() if now >= end]:
            del reports[collector]
        return [report for report, _ in reports.values()]

    async def publish(self, budget: Budget) -> bool:
        """Say the budget, as holder of lease 0; False if a later fence has spoken or could."""
        if budget.fence < self._ledger.leader:
            return False
        self._ledger.budget = budget
        return True

    async def budget(self) -> Budget | None:
        """The budget as last published."""
        return self._ledger.budget

    async def close(self) -> None:
        """Give everything back that is held."""
        for slot, fence in list(self._held.items()):
            await self.release(slot, fence)
