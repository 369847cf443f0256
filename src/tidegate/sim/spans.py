"""What would the tracing of a simulated system have recorded?

One record for each attempt as its caller saw it, and one for each piece of work as its callee did,
with the ids that tie them together. A request that nobody traced before it arrived begins a trace:
clients are people, and leave no spans. Times are the simulation's own.
"""

from typing import Any, Final, NamedTuple, final

from tidegate.core.outcome import Outcome
from tidegate.units import Instant

__all__ = ["SpanRecord", "SpanRecorder"]


class SpanRecord(NamedTuple):
    """`caller` is true for the attempt as its caller saw it; `parent` is 0 at a trace's root.

    `service` and `instance` are the sender's, `peer` the service that was called, `number` the
    attempt's ordinal from 1.
    """

    trace: int
    id: int
    parent: int
    caller: bool
    service: str
    instance: int
    peer: str
    start: Instant
    end: Instant
    outcome: Outcome
    number: int


class _Ids(NamedTuple):
    trace: int
    client: int
    server: int
    parent: int
    started: Instant
    service: str
    instance: int
    number: int


@final
class SpanRecorder:
    """Collects the spans of one run. Memory grows with the run; use it for short ones."""

    __slots__ = ("_last", "_open", "records")

    def __init__(self) -> None:
        self.records: Final[list[SpanRecord]] = []
        self._open: Final[dict[Any, _Ids]] = {}
        self._last = 0

    def sent(self, now: Instant, attempt: Any) -> None:
        """`attempt` leaves its caller."""
        above = getattr(attempt.frame, "attempt", None)
        number = attempt.depth - attempt.frame.depth + 1
        client, server = self._next(), self._next()
        if above is None:  # of a client
            self._open[attempt] = _Ids(server, 0, server, 0, now, "", 0, number)
            return
        owner, ids = attempt.frame.owner, self._open[above]
        self._open[attempt] = _Ids(
            ids.trace, client, server, ids.server, now, owner.pool.name, _index(owner), number
        )

    def ended(self, now: Instant, attempt: Any, outcome: Outcome) -> None:
        """Its caller has an answer, or waits no longer."""
        ids = self._open[attempt]
        if ids.client:
            peer = attempt.site.target.name
            self.records.append(
                SpanRecord(
                    ids.trace,
                    ids.client,
                    ids.parent,
                    True,
                    ids.service,
                    ids.instance,
                    peer,
                    ids.started,
                    now,
                    outcome,
                    ids.number,
                )
            )

    def served(self, now: Instant, attempt: Any, replica: Any, outcome: Outcome) -> None:
        """Its callee has finished with it, whoever still waits."""
        ids = self._open[attempt]
        self.records.append(
            SpanRecord(
                ids.trace,
                ids.server,
                ids.client,
                False,
                replica.pool.name,
                _index(replica),
                "",
                attempt.sent,
                now,
                outcome,
                ids.number,
            )
        )

    def _next(self) -> int:
        self._last += 1
        return self._last


def _index(replica: Any) -> int:
    index: int = replica.pool.replicas.index(replica)
    return index
