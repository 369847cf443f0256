"""Who stands before the workers, who is served next, and who is not worth serving any more?

Each replica has a line of its own, unless the service has one for all of them. Saying no may cost
work as well: such refusals take places too, and go before what is to be served.
"""

from collections import deque
from typing import Final, final

from tidegate.core.codel import CoDel
from tidegate.core.queue_order import can_finish, takes_newest
from tidegate.settings.system import Service
from tidegate.sim.parts.work import OVER, Attempt
from tidegate.units import Instant

__all__ = ["Line"]


@final
class Line:
    """The waiting places of `replicas` replicas, together.

    `items` and `refusals` are open to a replica's hot path; among the items stand some `gone` ones,
    cancelled before their turn. `workers` is how many the replicas have now, all together. `plain`:
    first come, first served, and everybody is.
    """

    __slots__ = (
        "_codel",
        "_late",
        "_mean",
        "_order",
        "_skips",
        "gone",
        "items",
        "places",
        "plain",
        "refusals",
        "replicas",
        "workers",
    )

    def __init__(self, service: Service, *, replicas: int) -> None:
        queue = service.queue
        self.items: Final[deque[Attempt]] = deque()
        self.refusals: Final[deque[Attempt]] = deque()
        self.gone = 0
        self.replicas: Final = replicas
        self.places: Final = None if queue.limit is None else queue.limit * replicas
        self.workers = 0
        self._order: Final = queue.order
        self._late: Final = queue.late
        self._mean: Final = int(service.time.average) if service.time else 0
        self._codel: Final = CoDel(queue.codel) if queue.codel else None
        self._skips: Final = service.abandoned != "finish"
        self.plain: Final = (
            queue.order == "fifo" and not queue.late and not queue.codel and not self._skips
        )

    @property
    def waiting(self) -> int:
        """How many stand in it for themselves."""
        return len(self.items) - self.gone

    def full(self) -> bool:
        """Whether all places are taken, by requests or by refusals."""
        return self.places is not None and self.waiting + len(self.refusals) >= self.places

    def next(self) -> Attempt | None:
        """Take out the one whose turn it is; None if there is nobody."""
        items = self.items
        while items:
            newest = takes_newest(self._order, self.waiting, self.workers)
            attempt = items.pop() if newest else items.popleft()
            if attempt.work is not OVER:
                return attempt
            self.gone -= 1
        return None

    def worth_serving(self, now: Instant, attempt: Attempt) -> bool:
        """Whether `attempt`, just taken out, should be served or dropped."""
        # CoDel is asked first: it must see every end of the line, else it thinks that it stands.
        served = self._codel is None or self._codel.on_dequeue(now, attempt.sent, not self.waiting)
        if not served or (self._skips and attempt.frame is None):
            return False
        # When its caller will leave a callee knows only if the caller says so.
        if self._late and attempt.site.propagate:
            return can_finish(now, attempt.leaves_at, self._mean, enqueued_at=attempt.sent)
        return True

    def leave(self) -> None:
        """One in it has been marked as OVER: its place is free at once.

        It is passed over at its turn; newest first, that may never come, so when half of the line
        is gone it is swept.
        """
        self.gone += 1
        if self.gone * 2 > len(self.items):
            self.items.extend(self._sweep())
            self.gone = 0

    def clear(self, now: Instant) -> list[Attempt]:
        """Send everybody away: those who still stood in it for themselves."""
        left = self._sweep()
        self.gone = 0
        if self._codel is not None:
            self._codel.on_dequeue(now, now, True)  # it is empty
        return left

    def _sweep(self) -> list[Attempt]:
        left = [attempt for attempt in self.items if attempt.work is not OVER]
        self.items.clear()
        return left
