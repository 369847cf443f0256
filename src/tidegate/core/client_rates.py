"""May this client send one more now, when each may send so many per second?

A token bucket for each client, with no bucket to keep: as in `token_bucket`, the whole state of one
is an instant, its theoretical arrival time (GCRA). An instant that has passed says the same as none
at all, so whoever has been quiet for a moment is forgotten without loss, and the table holds those
alone who have lately used some of their burst.

A million clients at once would still be a million instants, so the table has an end. When it is
full the one who asked longest ago is forgotten, and may have a full burst again: the limit is then
too mild for some, and nobody is refused for what others do. `forgotten` counts it.
"""

from collections import OrderedDict
from collections.abc import Hashable
from math import ceil
from typing import Final, NamedTuple, final

from tidegate.settings import admission as settings
from tidegate.units import SECOND, Duration, Instant

__all__ = ["ClientRates", "ClientRatesSnapshot"]

# Each newcomer takes out at most so many who are through with their burst: more come out than go
# in, so the table shrinks again after a rush, and nobody pays for a sweep of it.
_TAKEN_OUT: Final = 2


class ClientRatesSnapshot(NamedTuple):
    """How many clients are remembered, of how many; who was refused, and forgotten too early."""

    clients: int
    most: int
    refused: int
    forgotten: int


@final
class ClientRates:
    """At most `burst` at once and `rate` over time, from each client."""

    __slots__ = ("_arrivals", "_depth", "_forgotten", "_interval", "_most", "_refused")

    def __init__(self, settings: settings.ClientRate) -> None:
        # A tenth of a second's worth, as for a bucket that is shared by all.
        burst = settings.burst or max(1, int(settings.rate / 10))
        self._interval: Final[Duration] = ceil(SECOND / settings.rate)
        self._depth: Final[Duration] = burst * self._interval
        self._most: Final = settings.clients
        # In the order in which they were last let in.
        self._arrivals: Final[OrderedDict[Hashable, Instant]] = OrderedDict()
        self._refused = 0
        self._forgotten = 0

    def try_acquire(self, now: Instant, client: Hashable, cost: int = 1) -> bool:
        """Let one of `client` come now; a no moves nothing, so that asking does not cost.

        One that counts as `cost` is let in where one is, and the rest is a debt: a batch of a
        thousand would never fit into a burst of a hundred. Over time the rate holds all the same.
        """
        arrivals = self._arrivals
        arrival = arrivals.get(client)
        if arrival is None:
            self._make_room(now)
            arrivals[client] = now + cost * self._interval
            return True
        if arrival < now:
            arrival = now
        arrival += self._interval
        if arrival - now > self._depth:
            self._refused += 1
            return False
        arrivals[client] = arrival + (cost - 1) * self._interval
        arrivals.move_to_end(client)
        return True

    def retry_after(self, now: Instant, client: Hashable) -> Duration:
        """Nanoseconds until `client` would be let in; zero if it is now."""
        arrival = self._arrivals.get(client, 0)
        return max(0, arrival + self._interval - self._depth - now)

    def snapshot(self, now: Instant) -> ClientRatesSnapshot:  # noqa: ARG002
        """What a person would ask of it."""
        return ClientRatesSnapshot(len(self._arrivals), self._most, self._refused, self._forgotten)

    def _make_room(self, now: Instant) -> None:
        """Take out some who are through with their burst, and if the table is full one who is not.

        Who was let in longest ago is likely to be the first whose burst is back, but need not be:
        one behind may have used less. He is then met a little later.
        """
        arrivals = self._arrivals
        for _ in range(_TAKEN_OUT):
            if not arrivals or arrivals[next(iter(arrivals))] > now:
                break
            arrivals.popitem(last=False)
        if len(arrivals) >= self._most:
            arrivals.popitem(last=False)
            self._forgotten += 1

    def _check(self) -> bool:
        """What holds after each question. For tests."""
        return len(self._arrivals) <= self._most
