"""What happened in a run, second by second?

Plain lists indexed by the second of the event, so that counting is one addition. Goodput is binned
by the *arrival* of the request: a second's figure says how those fared who came in it.
"""

from typing import Final, final

from tidegate.units import SECOND, Duration

__all__ = ["CallTally", "ClientTally", "ServiceTally"]


def _bins(horizon: Duration) -> list[int]:
    return [0] * (horizon // SECOND + 2)


@final
class ClientTally:
    """Requests of one client by the second of their arrival.

    `good`: answered well within the client's own timeout. `eventual`: answered well at all, by any
    of its attempts. `failed`: given up. What is in none of them is still open.
    """

    __slots__ = ("degraded", "eventual", "failed", "good", "offered")

    def __init__(self, horizon: Duration) -> None:
        self.offered: Final = _bins(horizon)
        self.good: Final = _bins(horizon)
        self.eventual: Final = _bins(horizon)
        self.failed: Final = _bins(horizon)
        self.degraded = 0


@final
class CallTally:
    """One call of one caller, all replicas together. Series are by the second of the event."""

    __slots__ = (
        "attempts",
        "calls",
        "cancelled",
        "failures",
        "overloaded",
        "rejected",
        "repeated",
        "successes",
        "timeouts",
    )

    def __init__(self, horizon: Duration) -> None:
        self.calls: Final = _bins(horizon)
        self.attempts: Final = _bins(horizon)
        self.successes = 0
        self.timeouts = 0
        self.failures = 0
        self.overloaded = 0
        self.cancelled = 0  # the caller itself was cancelled
        self.repeated = 0  # tried again after a timeout, so perhaps done twice
        self.rejected = 0  # never sent: breaker, limit or rate


@final
class ServiceTally:
    """One service, all replicas together. `late` is finished work that nobody waited for."""

    __slots__ = (
        "arrived",
        "backlog",
        "cancelled",
        "degraded",
        "dropped",
        "late",
        "refused",
        "served",
    )

    def __init__(self, horizon: Duration) -> None:
        self.arrived: Final = _bins(horizon)
        self.served: Final = _bins(horizon)
        self.late: Final = _bins(horizon)
        self.refused: Final = _bins(horizon)
        self.backlog: Final = _bins(horizon)  # waiting and in service, sampled at each second
        self.dropped = 0  # lost in a full silent queue, skipped, shed by a queue policy, restarted
        self.cancelled = 0
        self.degraded = 0  # answered without an optional call's answer
