"""What does the door need of whoever keeps what comes in?"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

from tidegate.spooler.record import Record
from tidegate.spooler.status import SpoolStatus
from tidegate.units import Duration

__all__ = ["Accepted", "Keeper", "Refused"]


class Accepted(NamedTuple):
    """The records are durable: on disk, or in the system's cache where the lane asks for no more.

    `first` is the number of the first of them; the others follow.
    """

    first: int
    durable: Literal["disk", "system"]


class Refused(NamedTuple):
    """Nothing of the request was kept. `why` is a sentence; it is sent to the client.

    `retry_after` is when to come again; None if it would never be taken.
    """

    why: str
    retry_after: Duration | None


class Keeper(Protocol):
    """The lanes of a spool, as the door sees them. All on one event loop."""

    @property
    def lanes(self) -> Sequence[str]:
        """Their names."""
        ...

    def refuses(self, lane: str) -> Refused | None:
        """Why this lane takes nothing now, so that a body need not be read; None if it does."""
        ...

    async def accept(self, lane: str, records: Sequence[Record]) -> Accepted | Refused:
        """Keep all of these, durably, or none. Their time is for the lane to say."""
        ...

    def status(self) -> SpoolStatus:
        """What there is to know now."""
        ...

    def hold(self, lane: str, why: str) -> None:
        """Send nothing to the lane's sink until it is released; records are still taken."""
        ...

    def release(self, lane: str) -> None:
        """Let the lane go on."""
        ...
