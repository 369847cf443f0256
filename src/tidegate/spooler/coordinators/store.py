"""What must a server be able to do so that a fleet can keep its leases on it?

Little: keep some small records, and replace one only if nobody else has done so meanwhile. Each
write has a version, a number that grows over all records of the fleet. What ends a lease is not
asked of the server (see `on_server.py`), so nothing here depends on its clock.
"""

from typing import NamedTuple, Protocol

from tidegate.units import Duration

__all__ = ["Entry", "Store"]


class Entry(NamedTuple):
    """A record as it stands, and the version of its last write; empty if somebody deleted it."""

    value: bytes
    version: int


class Store(Protocol):
    """The records of one fleet on a server. Every method may raise CoordinatorLost.

    Used by one task at a time. A call may be cancelled at any await, and the next must work.
    """

    where: str  # what an error calls the server: no user, no password

    async def read(self, key: str) -> Entry | None:
        """The record under this key as its writers have last agreed on it."""
        ...

    async def write(self, key: str, value: bytes, version: int) -> int | None:
        """Replace the record of this version (0: there must be none); the new version.

        None if another version is there: then nothing has changed.
        """
        ...

    async def say(self, who: str, value: bytes, kept: Duration) -> None:
        """Leave a word for all; it is forgotten after `kept`."""
        ...

    async def said(self) -> list[bytes]:
        """The last word of everybody that is not forgotten."""
        ...

    async def close(self) -> None:
        """Give up the connection."""
        ...
