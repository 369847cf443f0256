"""What is the law of the place where a fleet agrees?

    a lease     has one holder until it ends, is renewed or is given back
    a fence     grows with every lease that is given, whatever its slot
    a report    stands for a minute
    a budget    is said by the holder of lease 0, and never after a later one has spoken or could

This ledger keeps it in memory, told the time. The simulator's fleet agrees here, and what holds
leases on a server is measured against it.
"""

from typing import Final, NamedTuple, final

from tidegate.core.errands import (
    Budget,
    Errand,
    Look,
    Publish,
    Release,
    Renew,
    Report,
    Say,
    Take,
)
from tidegate.units import MINUTE, Duration, Instant

__all__ = ["REPORT_KEPT", "Answer", "Leases"]

REPORT_KEPT: Final = MINUTE
"""How long a report stands that is not made again."""

Answer = int | bool | tuple[list[Report], Budget | None] | None
"""What comes of an errand; `core/errands.py` says of which."""


class _Lease(NamedTuple):
    holder: str
    fence: int
    end: Instant


@final
class Leases:
    """The leases, reports and budget of one fleet."""

    __slots__ = ("_budget", "_fences", "_leader", "_leases", "_reports")

    def __init__(self) -> None:
        self._leases: Final[dict[int, _Lease]] = {}
        self._reports: Final[dict[str, tuple[Report, Instant]]] = {}
        self._budget: Budget | None = None
        self._fences = 0
        self._leader = 0  # the last fence of lease 0

    def run(self, now: Instant, errand: Errand, collector: str) -> Answer:
        """Do what a collector asks, all at one instant."""
        match errand:
            case Take(_, slot, ttl):
                return self.take(now, slot, collector, ttl)
            case Renew(_, slot, fence, ttl):
                return self.renew(now, slot, fence, ttl)
            case Release(_, slot, fence):
                self.release(now, slot, fence)
            case Say(_, report):
                self.report(now, report)
            case Publish(_, budget):
                return self.publish(budget)
            case Look():
                return self.reports(now), self._budget
        return None

    def take(self, now: Instant, slot: int, holder: str, ttl: Duration) -> int | None:
        """A lease for `ttl`: its fence; None while another has it.

        Who has it itself and asks again has lost the answer, and gets it anew.
        """
        lease = self._leases.get(slot)
        if lease is not None and now < lease.end and lease.holder != holder:
            return None
        self._fences += 1
        self._leases[slot] = _Lease(holder, self._fences, now + ttl)
        if slot == 0:
            self._leader = self._fences
        return self._fences

    def renew(self, now: Instant, slot: int, fence: int, ttl: Duration) -> bool:
        """Keep a lease for `ttl` from now; False if it is no longer of this fence."""
        lease = self._leases.get(slot)
        if lease is None or lease.fence != fence or now >= lease.end:
            return False
        self._leases[slot] = lease._replace(end=now + ttl)
        return True

    def release(self, now: Instant, slot: int, fence: int) -> None:
        """Give a lease back, if it is still of this fence."""
        lease = self._leases.get(slot)
        if lease is not None and lease.fence == fence and now < lease.end:
            del self._leases[slot]

    def holder(self, now: Instant, slot: int) -> str | None:
        """Who holds a lease now."""
        lease = self._leases.get(slot)
        return lease.holder if lease is not None and now < lease.end else None

    def report(self, now: Instant, report: Report) -> None:
        """Say what waits at one collector."""
        self._reports[report.collector] = (report, now + REPORT_KEPT)

    def reports(self, now: Instant) -> list[Report]:
        """What the collectors have said within the last minute."""
        return [report for report, end in self._reports.values() if now < end]

    def publish(self, budget: Budget) -> bool:
        """Say the budget; False if a later holder of lease 0 has spoken or could."""
        if budget.fence < self._leader:
            return False
        self._budget = budget
        return True

    @property
    def budget(self) -> Budget | None:
        """The budget as last said."""
        return self._budget
