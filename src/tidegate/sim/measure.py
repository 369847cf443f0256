"""What happened in a run, second by second?

Totals that only grow, so that counting is one addition, and lists of what they grew by in each
second, which the world fills at the second's end. Goodput is counted by the *arrival* of the
request instead: a second's figure says how those fared who came in it.
"""

from typing import Final, final

from tidegate.units import SECOND, Duration

__all__ = ["CallTally", "ClientTally", "ServiceTally", "Total"]


def _bins(horizon: Duration) -> list[int]:
    return [0] * (horizon // SECOND + 2)


@final
class Total:
    """How many so far, and how many in each second."""

    __slots__ = ("_before", "by_second", "count")

    def __init__(self, horizon: Duration) -> None:
        self.count = 0
        self.by_second: Final = _bins(horizon)
        self._before = 0  # what `count` was when the present second began

    def note(self, second: int) -> None:
        """Write down what the present second has had so far."""
        self.by_second[second] = self.count - self._before

    def turn(self, second: int) -> None:
        """`second` is over."""
        self.note(second)
        self._before = self.count


class _Tally:
    """Knows which of its counts are totals."""

    __slots__ = ("totals",)

    def __init__(self) -> None:
        self.totals: Final[list[Total]] = []

    def _total(self, horizon: Duration) -> Total:
        total = Total(horizon)
        self.totals.append(total)
        return total


@final
class ClientTally(_Tally):
    """Requests of one client by the second of their arrival.

    `good`: answered well within the client's own timeout. `eventual`: answered well at all, by the
    attempt that was out when the answer came. `failed`: given up. What is in none of them is still
    open.
    """

    __slots__ = ("degraded", "eventual", "failed", "good", "offered", "requests")

    def __init__(self, horizon: Duration) -> None:
        super().__init__()
        self.requests: Final = self._total(horizon)
        self.offered: Final = self.requests.by_second
        self.good: Final = _bins(horizon)
        self.eventual: Final = _bins(horizon)
        self.failed: Final = _bins(horizon)
        self.degraded = 0  # answered without an optional call's answer


@final
class CallTally(_Tally):
    """One call of one caller, all replicas together. Series are by the second of the event."""

    __slots__ = (
        "attempts",
        "begun",
        "calls",
        "cancelled",
        "failures",
        "overloaded",
        "rejected",
        "repeated",
        "sent",
        "successes",
        "timeouts",
    )

    def __init__(self, horizon: Duration) -> None:
        super().__init__()
        self.begun: Final = self._total(horizon)
        self.calls: Final = self.begun.by_second
        self.sent: Final = self._total(horizon)
        self.attempts: Final = self.sent.by_second
        self.successes = 0
        self.timeouts = 0
        self.failures = 0
        self.overloaded = 0
        self.cancelled = 0  # the caller itself was cancelled
        self.repeated = 0  # tried again after a timeout, of what must not be done twice
        self.rejected = 0  # never sent: breaker, limit, rate or deadline

    @property
    def ended(self) -> int:
        """Attempts that are over, for their caller."""
        return self.successes + self.timeouts + self.failures + self.overloaded + self.cancelled


@final
class ServiceTally(_Tally):
    """One service, all replicas together. `late` is finished work that nobody waited for."""

    __slots__ = (
        "arrivals",
        "arrived",
        "backlog",
        "cancelled",
        "degraded",
        "dropped",
        "finished",
        "late",
        "refusals",
        "refused",
        "served",
        "wasted",
    )

    def __init__(self, horizon: Duration) -> None:
        super().__init__()
        self.arrivals: Final = self._total(horizon)
        self.arrived: Final = self.arrivals.by_second
        self.finished: Final = self._total(horizon)
        self.served: Final = self.finished.by_second
        self.wasted: Final = self._total(horizon)
        self.late: Final = self.wasted.by_second
        self.refusals: Final = self._total(horizon)
        self.refused: Final = self.refusals.by_second
        self.backlog: Final = _bins(horizon)  # waiting and in service, sampled at each second
        self.dropped = 0  # lost in a full silent queue, skipped, shed by a queue policy, restarted
        self.cancelled = 0
        self.degraded = 0  # answered without an optional call's answer
