"""Who waits at the door, who of them is next, and who must not take all the waiting places?

Four classes, each a queue of clients who take turns, each client a line of its own: who sends a
hundred requests waits behind himself. That is the shape of FQ-CoDel (RFC 8290), with priorities
above it. Only who waits is in here, so a million clients take no memory once they are answered.

No threshold per client has to be found. One may have as many waiting as there are free places left
(Choudhury and Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches", 1998):
alone he gets half of them, one of n gets 1/(n + 1), and there is always a place for the next.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Any, Final, TypeAlias, final

import msgspec

from tidegate.core.outcome import Rejection
from tidegate.core.shares import LAST, RANKS, ceilings
from tidegate.settings import admission as settings
from tidegate.units import Instant

__all__ = ["FairQueue", "Waiting"]


@final
class Waiting(msgspec.Struct, eq=False):
    """One who waits. `answer` is None until it is decided: True for let in, or the rejection.

    `leaves_at` is when the caller stops waiting, as far as it has said so. `shell` is whatever the
    shell needs to find its request again; nothing in here looks at it.
    """

    since: Instant
    rank: int
    client: Hashable
    leaves_at: Instant
    shell: Any = None
    answer: Rejection | bool | None = None


_Line: TypeAlias = OrderedDict[Waiting, None]


@final
class FairQueue:
    """At most `places` who wait. The order within a client's line is for the caller to say."""

    __slots__ = ("_by_age", "_ceilings", "_classes", "places", "waiting")

    def __init__(self, settings: settings.Admission) -> None:
        self.places: Final = settings.queue
        self.waiting = 0
        self._ceilings: Final = ceilings(settings.shares, settings.queue)
        # Of each class its clients, the one whose turn it is first.
        self._classes: Final = tuple[OrderedDict[Hashable, _Line], ...](
            OrderedDict() for _ in RANKS
        )
        self._by_age: Final[_Line] = OrderedDict()

    def is_full_for(self, rank: int) -> bool:
        """Whether nobody of this class may join, unless somebody makes room."""
        return self.waiting >= self._ceilings[rank]

    def has_its_share(self, rank: int, client: Hashable, *, free: int) -> bool:
        """Whether `client` has as many waiting as it may, with so many places left.

        Who has no name (None) stands for many, and is not held to a share.
        """
        if client is None:
            return False
        line = self._classes[rank].get(client)
        return line is not None and len(line) >= free

    def has(self, rank: int) -> bool:
        """Whether anybody of this class waits."""
        return bool(self._classes[rank])

    def push(self, item: Waiting) -> None:
        """Join the end of its client's line."""
        clients = self._classes[item.rank]
        line = clients.get(item.client)
        if line is None:
            line = clients[item.client] = OrderedDict()
        line[item] = None
        self._by_age[item] = None
        self.waiting += 1

    def pop(self, rank: int, *, newest: bool) -> Waiting:
        """Take out who is next in this class: the client's turn, then its newest or its oldest."""
        clients = self._classes[rank]
        client, line = next(iter(clients.items()))
        item, _ = line.popitem(last=newest)
        if line:
            clients.move_to_end(client)
        else:
            del clients[client]
        del self._by_age[item]
        self.waiting -= 1
        return item

    def remove(self, item: Waiting) -> None:
        """Take one out, wherever he stands."""
        clients = self._classes[item.rank]
        line = clients[item.client]
        del line[item]
        if not line:
            del clients[item.client]
        del self._by_age[item]
        self.waiting -= 1

    def oldest(self) -> Waiting | None:
        """Who has waited longest, of whatever class."""
        return next(iter(self._by_age), None)

    def least(self, rank: int) -> Waiting | None:
        """Who makes room for somebody of class `rank`: the oldest in the longest line of the lowest
        class below it; None if all who wait matter as much.

        Of the longest line because it is the one that fills the queue (RFC 8290 section 4.1), and
        its oldest because that one's caller is the first to leave. The search is as long as there
        are clients waiting, no longer than the queue.
        """
        for lower in range(LAST, rank, -1):
            if clients := self._classes[lower]:
                longest = max(clients, key=lambda client: len(clients[client]))
                return next(iter(clients[longest]))
        return None

    def _check(self) -> bool:
        """What holds after each event. For tests."""
        lines = [line for clients in self._classes for line in clients.values()]
        assert all(lines)
        return sum(map(len, lines)) == len(self._by_age) == self.waiting <= self.places
