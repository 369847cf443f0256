"""How does a real process come to serve as a service of a system file does?

A fixed number of workers, each busy with one piece of work for as long as was drawn; before them a
line, first in, first out; at the line's end, if it has one, a refusal. No work is done: a worker is
an instant at which it will be free. The next piece then starts at that instant and not at the later
one at which the event loop got to it, so a machine that is busy with other things makes answers
late by its delay and takes nothing from the capacity.

What its caller has left is finished all the same, unless the service says otherwise.
"""

from collections import deque
from collections.abc import Callable
from typing import Final, Protocol, final

import msgspec

from tidegate.settings.system import Abandoned
from tidegate.units import Duration, Instant

__all__ = ["Counts", "Job", "Workers"]


class Timer(Protocol):
    """What can be called off, as a handle of an event loop."""

    def cancel(self) -> None:
        """It does not happen."""
        ...


class Job(Protocol):
    """One piece of work. `gone`: its caller has left."""

    gone: bool

    def done(self) -> None:
        """It has been worked on: answer, if there is still somebody."""
        ...

    def dropped(self) -> None:
        """Its turn came, and nobody waited for it any more."""
        ...


class Counts(msgspec.Struct, kw_only=True):
    """What a service has seen so far, and what it holds.

    `late` is finished work whose caller had gone, `dropped` what was skipped or stopped since its
    caller had. `tardy` of those served were noticed later than `late_after`, the latest `latest`
    late: then the process did not get the processor when it needed it.
    """

    arrived: int = 0
    served: int = 0
    late: int = 0
    refused: int = 0
    dropped: int = 0
    waiting: int = 0
    busy: int = 0
    tardy: int = 0
    latest: Duration = 0


@final
class Workers:
    """`count` workers and a line of `places` (None: without an end).

    `draw` gives the nanoseconds of the next piece of work. `at(due, job)` has `finish(due, now,
    job)` called at `due` or soon after. `slowdown` stretches work that starts from now on.
    """

    __slots__ = (
        "_abandoned",
        "_at",
        "_count",
        "_draw",
        "_late_after",
        "_line",
        "_places",
        "_running",
        "counts",
        "slowdown",
    )

    def __init__(
        self,
        count: int,
        places: int | None,
        abandoned: Abandoned,
        *,
        late_after: Duration,
        draw: Callable[[], float],
        at: Callable[[Instant, Job], Timer],
    ) -> None:
        self.counts: Final = Counts()
        self.slowdown = 1.0
        self._count: Final = count
        self._places: Final = places
        self._abandoned: Final = abandoned
        self._late_after: Final = late_after
        self._draw: Final = draw
        self._at: Final = at
        self._line: Final[deque[Job]] = deque()
        self._running: Final[dict[Job, Timer]] = {}

    def arrive(self, now: Instant, job: Job) -> bool:
        """A request is at the door; False if it is refused."""
        counts = self.counts
        counts.arrived += 1
        if counts.busy < self._count:
            counts.busy += 1
            self._start(now, job)
            return True
        if self._places is not None and counts.waiting >= self._places:
            counts.refused += 1
            return False
        counts.waiting += 1
        self._line.append(job)
        return True

    def finish(self, due: Instant, now: Instant, job: Job) -> None:
        """The worker of `job` has been free since `due`."""
        del self._running[job]
        counts = self.counts
        counts.served += 1
        counts.late += job.gone
        counts.tardy += now - due > self._late_after
        counts.latest = max(counts.latest, now - due)
        job.done()
        self._next(due)

    def leave(self, now: Instant, job: Job) -> None:
        """The caller of `job` has left; what becomes of it is the service's to say."""
        job.gone = True
        if self._abandoned == "cancel":
            self.stop(now, job)

    def stop(self, now: Instant, job: Job) -> None:
        """Somebody in front of the service has called `job` off: it is not worked on any more."""
        job.gone = True
        timer = self._running.pop(job, None)
        if timer is not None:
            timer.cancel()
            self.counts.dropped += 1
            self._next(now)
        elif job in self._line:
            self._line.remove(job)
            self.counts.waiting -= 1
            self.counts.dropped += 1

    def _next(self, now: Instant) -> None:
        """A worker is free."""
        counts = self.counts
        while self._line:
            job = self._line.popleft()
            counts.waiting -= 1
            if job.gone and self._abandoned != "finish":
                counts.dropped += 1
                job.dropped()
                continue
            self._start(now, job)
            return
        counts.busy -= 1

    def _start(self, now: Instant, job: Job) -> None:
        self._running[job] = self._at(now + int(self._draw() * self.slowdown), job)
