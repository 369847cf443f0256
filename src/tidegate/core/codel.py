"""Is this queued item still worth serving, or has it stood too long in a queue that stands?

A queue that empties now and then absorbs bursts, which is what it is for. A queue that never
empties is a standing delay and nothing else: it serves exactly as many, all of them late. CoDel
tells the two apart by time, without knowing the capacity.

The law, asked when a worker takes an item:

    nothing waits behind it                              -> deliver
    the queue was empty within the last `interval`       -> deliver
    it has waited `target` or less                       -> deliver
    else                                                 -> drop

This is the form for servers of Maurer, "Fail at Scale" (ACM Queue 13:8, 2015). His text has it as
a timeout given at the queue's door: `target` if the queue has not been empty for `interval`, else
`interval`. Asked at the other end, the second half never bites: who waits in a queue that was
empty less than `interval` ago came after that and so waits less than `interval`.

It differs from RFC 8289 in two things. RFC 8289 starts from the smallest wait of an interval, and
then drops one packet at a time, at gaps that shrink with the square root of the count, because TCP
senders answer a single drop by slowing down. Callers of a service do not: what is dropped came
from one of many, and the next one knows nothing of it. So here everything over the target goes, at
once, and stops going when the queue has been empty for a moment.
"""

from typing import Final, NamedTuple, final

from tidegate.settings import policies as settings
from tidegate.units import Instant

__all__ = ["CoDel", "CoDelSnapshot"]


class CoDelSnapshot(NamedTuple):
    """Since when the queue stands (None: it is empty), and how many were dropped in all."""

    standing_since: Instant | None
    overloaded: bool
    dropped: int


@final
class CoDel:
    """The judge of one queue; the queue itself is the shell's."""

    __slots__ = ("_dropped", "_empty", "_interval", "_standing_since", "_target")

    def __init__(self, settings: settings.CoDel) -> None:
        self._target: Final = settings.target
        self._interval: Final = settings.interval
        self._empty = True
        self._standing_since: Instant = 0
        self._dropped = 0

    def on_dequeue(self, now: Instant, enqueued_at: Instant, queue_empty: bool) -> bool:
        """Whether to deliver (True) or drop (False) what is taken from the queue now.

        `queue_empty`: nothing waits behind it. Items that find a worker free and never wait need
        not be told.
        """
        if self._empty:
            # Nobody tells us when something enters. What is taken first after the queue was empty
            # was also the first to enter, if it is first in, first out; in another order it may
            # have come a little later, and the queue passes for a little younger.
            self._standing_since = enqueued_at
        self._empty = queue_empty
        if (
            queue_empty
            or now - enqueued_at <= self._target
            or now - self._standing_since < self._interval
        ):
            return True
        self._dropped += 1
        return False

    def snapshot(self, now: Instant) -> CoDelSnapshot:
        """What a person would ask of it. An item that waits unasked behind none is not known."""
        if self._empty:
            return CoDelSnapshot(None, overloaded=False, dropped=self._dropped)
        return CoDelSnapshot(
            self._standing_since,
            overloaded=now - self._standing_since >= self._interval,
            dropped=self._dropped,
        )
