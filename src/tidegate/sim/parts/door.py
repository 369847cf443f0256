"""Who is let into a simulated service, who waits at its door, who is sent away?

The same `Admission` as in front of a real server. Whoever waits here stands in no line yet; when
his turn comes he goes in and takes a worker, or the line before the workers if the door lets in
more than there are.
"""

from collections.abc import Iterator
from typing import Final, final

import msgspec

from tidegate.core.admission import NEVER, Admission
from tidegate.core.fair_queue import Waiting
from tidegate.core.outcome import Outcome, Rejection
from tidegate.core.shares import DEFAULT, rank
from tidegate.settings import admission as settings
from tidegate.settings.policies import Limit
from tidegate.sim.parts.work import Attempt
from tidegate.units import Instant

__all__ = ["Door"]

_COUNT_MAX: Final = 1_000_000


@final
class Door:
    """The door of one replica, or of several with one line.

    `fair`: calls of different names are clients who take turns. With only one call there is nobody
    to be fair to.
    """

    __slots__ = ("_admission", "_fair")

    def __init__(
        self, settings: settings.Admission, limit: Limit, *, places: int, fair: bool
    ) -> None:
        places = min(_COUNT_MAX, places)
        self._admission: Final = Admission(
            msgspec.structs.replace(settings, limit=limit, queue=places)
        )
        self._fair: Final = fair

    @property
    def waiting(self) -> int:
        """How many stand at it."""
        return self._admission.waiting

    @property
    def inside(self) -> int:
        """How many it has let in who are not out yet."""
        return self._admission.snapshot(0).inside

    def ask(self, now: Instant, attempt: Attempt) -> bool | None:
        """Whether `attempt` may come in (True), waits (None), or is sent away (False)."""
        answer = self._admission.try_admit(
            now,
            rank(DEFAULT, attempt.depth),
            attempt.site.name if self._fair else None,
            # When its caller will leave a callee knows only if the caller says so.
            attempt.leaves_at if attempt.site.propagate else NEVER,
            attempt,
        )
        if type(answer) is Waiting:
            attempt.work = answer
            return None
        return type(answer) is not Rejection

    def done(self, now: Instant, attempt: Attempt, outcome: Outcome) -> None:
        """`attempt`, who came in at `attempt.sent`, is out again."""
        client = attempt.site.name if self._fair else None
        self._admission.on_done(now, attempt.sent, outcome, client)

    def leave(self, now: Instant, item: Waiting) -> None:
        """One who waits has been called off."""
        self._admission.on_left(now, item)

    def wakes_at(self) -> Instant | None:
        """When the first of those who wait has waited too long."""
        return self._admission.next_wakeup()

    def wake(self, now: Instant) -> None:
        """Send away all who have waited too long."""
        self._admission.on_wakeup(now)

    def decided(self, now: Instant) -> Iterator[tuple[Attempt, bool]]:
        """Those who waited and now may come in (True) or are sent away, until there are no more."""
        while self._admission.decided:
            for item in self._admission.drain_decided():
                attempt = item.shell
                admitted = item.answer is True
                attempt.work = None
                if admitted:
                    attempt.sent = now
                yield attempt, admitted

    def clear(self, now: Instant) -> list[Attempt]:
        """Send away everybody who waits."""
        self._admission.clear(now)
        return [attempt for attempt, _ in self.decided(now)]

    def could_let_in(self) -> bool:
        """Whether somebody waits for nothing: never so between two events."""
        return bool(self._admission.decided) or self._admission.could_let_in()
