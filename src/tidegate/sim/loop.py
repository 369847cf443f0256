"""What happens next, in virtual time?

A heap of `(instant, sequence, callback, argument)` and, beside it, one first-in-first-out lane for
each distinct timeout: equal timeouts expire in the order in which they were set, so they need no
heap, and cancelling one is to forget it. Callbacks on tuples rather than generator processes: five
times fewer events and no frame to resume.

Ties are broken by the sequence number, so a run is a function of its seed alone.
"""

import gc
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any, Final, Protocol, final

from tidegate.units import Instant

__all__ = ["Callback", "Event", "Lane", "Loop", "Timed"]

Callback = Callable[[Instant, Any], None]
Event = tuple[Instant, int, Callback, Any]

# Sequence numbers below all others: of that instant, these come first and in this order.
_STOP: Final = -2
_FIRST: Final = -1


class _Stop(Exception):  # noqa: N818 - leaves the innermost loop, is no error
    """Ends `run` without a comparison per event."""


class Timed(Protocol):
    """Something with a timer: `leaves_at` is when it fires, `frame` is None once it must not."""

    leaves_at: Instant
    frame: Any


@final
class Loop:
    """The virtual clock. `now` is where the last piece of the run ended."""

    __slots__ = ("heap", "next", "now")

    def __init__(self) -> None:
        self.now: Instant = 0
        self.heap: list[Event] = []
        self.next: Final = count().__next__

    def at(self, when: Instant, callback: Callback, argument: Any = None) -> None:
        """Call `callback(when, argument)` when the clock reads `when`."""
        heappush(self.heap, (when, self.next(), callback, argument))

    def first_at(self, when: Instant, callback: Callback) -> None:
        """As `at`, before everything else of that instant. For one caller: it has no sequence."""
        heappush(self.heap, (when, _FIRST, callback, None))

    def run(self, until: Instant) -> None:
        """Handle every event before `until`, then stand at `until`."""
        heap = self.heap
        heappush(heap, (until, _STOP, _stop, None))
        with _collector_paused():
            try:
                while True:
                    now, _, callback, argument = heappop(heap)
                    callback(now, argument)
            except _Stop:
                self.now = until

    def take(self, owner: object) -> list[Event]:
        """Remove and return the pending events whose callback belongs to `owner`, in order.

        Walks the heap once; for what is rare (a freeze, a restart), so that what is frequent
        need not check for it.
        """
        mine = [event for event in self.heap if getattr(event[2], "__self__", None) is owner]
        if mine:
            self.heap[:] = [
                event for event in self.heap if getattr(event[2], "__self__", None) is not owner
            ]
            heapify(self.heap)
        return sorted(mine, key=lambda event: event[:2])


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Keep the cycle collector away from a storm's millions of live, acyclic records.

    It would walk them again and again and find nothing: 80 % more time in a collapsed run.
    Reference counts free everything here at once; cycles wait for the end of this piece of the run.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _stop(_now: Instant, _argument: object) -> None:
    raise _Stop


@final
class Lane:
    """Timers of one duration, in the order in which they were set.

    `queue` and `armed` are open to a caller who adds an item on a hot path and saves the call.
    """

    __slots__ = ("_due_event", "_fire", "_loop", "armed", "queue")

    def __init__(self, loop: Loop, fire: Callable[[Instant, Any], None]) -> None:
        self._loop: Final = loop
        self._fire: Final = fire
        self._due_event: Final[Callback] = self._due
        self.queue: Final[deque[Any]] = deque()
        self.armed = False

    def add(self, item: Timed) -> None:
        """Set `item`'s timer: its `leaves_at` is not before that of any item added earlier."""
        self.queue.append(item)
        if not self.armed:
            self.arm(item)

    def arm(self, first: Timed) -> None:
        """`first` was added to an empty queue."""
        self.armed = True
        self._loop.at(first.leaves_at, self._due_event)

    def _due(self, now: Instant, _: None) -> None:
        """Fire what is due and forget what has been answered, until something else comes first.

        Written flat, since in a storm every attempt passes here; and it does not come back through
        the heap while nothing else is before its next timer, which saves a sixth of a storm.
        """
        queue, fire, heap = self.queue, self._fire, self._loop.heap
        while queue:
            item = queue[0]
            if item.frame is not None:
                when = item.leaves_at
                if when > now:
                    if when >= heap[0][0]:
                        heappush(heap, (when, self._loop.next(), self._due_event, None))
                        return
                    now = when
                queue.popleft()
                fire(now, item)
            else:
                queue.popleft()
        self.armed = False
