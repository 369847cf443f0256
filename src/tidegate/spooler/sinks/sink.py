"""What must a place that takes records be able to do?

A sink sends one batch at a time and says what became of it; it never retries by itself and keeps
nothing: what is not delivered stays in the log, and when it is tried again the lane decides. There
are two of each, one for live records and one for replay, under names that the far side can tell
apart (and cap).
"""

from typing import Final, NamedTuple, Protocol

from tidegate.core.health import Health
from tidegate.core.outcome import Outcome
from tidegate.spooler.record import Batch
from tidegate.units import Duration

__all__ = ["DELIVERED", "Sent", "Sink"]


class Sent(NamedTuple):
    """What became of a batch: taken as a whole, or not.

    `why` says in words what the sink did not like, without anything of the records. `poison`: this
    batch would be refused at any time, whatever the sink's health (too large, malformed);
    `starved`: refused for want of replicas. `throttled` is how long the sink has made the sender
    wait, `retry_after` how long it asks to be left alone.
    """

    outcome: Outcome
    why: str = ""
    poison: bool = False
    starved: bool = False
    throttled: Duration = 0
    retry_after: Duration | None = None


DELIVERED: Final = Sent(Outcome.SUCCESS)


class Sink(Protocol):
    """A place that takes records. Used by one task at a time, on one event loop."""

    async def send(self, batch: Batch, timeout: Duration) -> Sent:
        """Deliver the batch within `timeout`, durably as far as the sink can tell.

        Answers and never raises for what a sink may do. Each record carries its id (collector,
        lane, sequence) as the sink's way of telling duplicates allows.
        """
        ...

    async def health(self, timeout: Duration) -> Health:
        """Ask for the state of the sink by every way there is to it. Never raises."""
        ...

    async def close(self) -> None:
        """Give up connections; what is being sent is not waited for."""
        ...
