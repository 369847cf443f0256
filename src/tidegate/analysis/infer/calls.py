"""Which attempts belong to one call?

Where the client counts (`http.request.resend_count`), it says so itself. Elsewhere an attempt is a
retry of the sibling before it, for the same thing at the same place under the same parent, that
had failed and ended before it began. A loop over items looks alike; whether it was one is for the
tally to say, which sees how often a *successful* attempt is followed by another.
"""

from collections.abc import Callable, Iterable
from typing import Final

from tidegate.analysis.infer.trace import ROUNDING, Attempt, Request
from tidegate.analysis.ingest.span import Ending

__all__ = ["FAILURES", "LogicalCall", "calls_of", "own_time"]

FAILURES: Final = (Ending.FAILED, Ending.BROKEN, Ending.TIMEOUT, Ending.OVERLOADED)


class LogicalCall:
    """One call, with its attempts in order. `counted`: the client itself counted resends."""

    __slots__ = ("attempts", "counted")

    def __init__(self, first: Attempt, *, counted: bool) -> None:
        self.attempts = [first]
        self.counted = counted

    @property
    def last(self) -> Attempt:
        """The attempt that decided how the call ended."""
        return self.attempts[-1]

    @property
    def callee(self) -> int:
        """Who served any of the attempts; a negative number if nobody did."""
        return max(attempt.callee for attempt in self.attempts)

    def continues(self, attempt: Attempt) -> bool:
        """Whether this attempt can be the next of this call."""
        last = self.last
        if last.ending not in FAILURES or attempt.start < last.end - ROUNDING:
            return False
        if attempt.target and last.target and attempt.target != last.target:
            return False
        return attempt.resend > 0 if self.counted else True


def calls_of(request: Request, counts: Callable[[Attempt], bool]) -> list[LogicalCall]:
    """The request's calls in order of their start. `counts`: whether its client counts resends."""
    calls: list[LogicalCall] = []
    alike: dict[tuple[int, int, int], list[LogicalCall]] = {}
    for attempt in sorted(request.attempts, key=lambda a: (a.start, a.end)):
        group = alike.setdefault((attempt.parent, attempt.name, attempt.peer), [])
        fitting = [call for call in group[-32:] if call.continues(attempt)]
        if fitting:
            max(fitting, key=lambda call: call.last.end).attempts.append(attempt)
            continue
        call = LogicalCall(attempt, counted=counts(attempt))
        group.append(call)
        calls.append(call)
    return calls


def own_time(request: Request, calls: Iterable[LogicalCall]) -> int:
    """Nanoseconds in which the request waited for no call.

    From a call's first attempt to its last counts as waiting, the backoff between them too.
    """
    waiting = 0
    until = request.start
    for call in calls:  # in order of their start
        if not call.attempts[0].waits:
            continue
        start = max(call.attempts[0].start, until)
        end = min(max(attempt.end for attempt in call.attempts), request.end)
        if end > start:
            waiting += end - start
            until = end
    return max(0, request.end - request.start - waiting)
