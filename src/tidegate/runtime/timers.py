"""When is an attempt of a task given up?

`asyncio.timeout` makes a timer and an object for each call, which costs ten times the rest of a
guard. Equal timeouts end in the order in which they began, so all attempts with one timeout on one
loop stand in one line, and one timer watches its head. An attempt that ends in time is forgotten
where it stands; being cut is the rare case, and only that one cancels a task.

Whether a cancellation was ours or a user's that came at the same moment is told as in
`asyncio.timeout`: by the count of requests to cancel that the task had before ours.
"""

import asyncio
from collections import deque
from typing import Any, Final, final

from tidegate.core.outcome import Permit
from tidegate.runtime.clock import Clock
from tidegate.units import SECOND, Duration, Instant

__all__ = ["Cut", "Line", "line_of"]

# Settled permits that may stand behind an unsettled one before the line is swept. They hold no
# task any more, so each is 100 bytes.
_SWEEP_AT: Final = 1024


@final
class Cut:
    """Stands in a permit for the task that it held: the attempt was given up.

    `task` was cancelled by us; `requested` is how often it had been asked to cancel before.
    """

    __slots__ = ("requested", "task")

    def __init__(self, task: "asyncio.Task[Any]") -> None:
        self.task: Final = task
        self.requested: Final = task.cancelling()
        task.cancel()

    def was_ours_alone(self) -> bool:
        """Take our request back; whether nobody else has asked the task to cancel meanwhile."""
        return self.task.uncancel() <= self.requested


@final
class Line:
    """The attempts with one timeout on one loop, first the one that ends first."""

    __slots__ = (
        "_armed_for",
        "_clock",
        "_timeout",
        "armed",
        "loop",
        "queue",
        "sweep_at",
        "thread",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, timeout: Duration, clock: Clock) -> None:
        self.loop: Final = loop
        self.thread = 0  # in which the loop was seen to run
        self.queue: Final[deque[Permit]] = deque()
        self.armed = False
        self._timeout: Final = timeout
        self._clock: Final = clock
        self._armed_for: Instant = 0
        self.sweep_at = _SWEEP_AT

    def arm(self, permit: Permit) -> None:
        """Give `permit`'s holder up when its time is over, unless it is settled by then."""
        self.queue.append(permit)
        if not self.armed or len(self.queue) > self.sweep_at:
            self.look_after(permit)

    def look_after(self, newest: Permit) -> None:
        """It has just been put in the line: see that there is a timer, and no crowd of the past."""
        if not self.armed:
            self._set_timer(newest.start + self._timeout)
        else:
            self._sweep()

    def _sweep(self) -> None:
        """Forget what has been settled; twice what is left is the next bound."""
        waiting = [permit for permit in self.queue if not _is_over(permit)]
        self.queue.clear()
        self.queue.extend(waiting)
        self.sweep_at = max(_SWEEP_AT, 2 * len(waiting))

    def _set_timer(self, due: Instant) -> None:
        self.armed = True
        self._armed_for = due
        self.loop.call_later(max(0, due - self._clock.now()) / SECOND, self._fire)

    def _fire(self) -> None:
        # A timer may come a little early, by the loop's resolution; what it came for is due.
        now = max(self._clock.now(), self._armed_for)
        queue = self.queue
        while queue:
            permit = queue[0]
            if not _is_over(permit):
                due = permit.start + self._timeout
                if due > now:
                    self._set_timer(due)
                    return
                if isinstance(permit.holder, asyncio.Task):
                    permit.holder = Cut(permit.holder)
            queue.popleft()
        self.armed = False


def _is_over(permit: Permit) -> bool:
    return permit.settled or permit.holder is None


_lines: Final[dict[tuple[int, Duration], Line]] = {}


def line_of(loop: asyncio.AbstractEventLoop, timeout: Duration, clock: Clock) -> Line:
    """The line of this loop for this timeout.

    A new line forgets those of loops that are closed: what was out on them ends now, and gives its
    place back. Other threads do the same with their own loops, so nothing here may be walked.
    """
    key = (id(loop), timeout)
    line = _lines.get(key)
    if line is None or line.loop is not loop or line._clock is not clock:
        for old, known in list(_lines.items()):
            if known.loop.is_closed():
                _lines.pop(old, None)
        line = _lines[key] = Line(loop, timeout, clock)
    return line
