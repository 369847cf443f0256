"""Who may come and go without asking?

While a pipeline is calm, a call that succeeds adds one to this counter and to that. A shell that
takes its lock for it pays more for the lock than for the counting. So leave is given in advance, to
as many as can be out with nothing to decide about any of them (`Pipeline.spare`). Whoever takes one
goes, and if all is well at its end only says so; both are counted by the next who has to ask.

That is sound because no leave is about while a policy is asked or told anything else: whoever does
so takes stock first, which takes back what is left, and counts who has come and gone. The shell
holds its lock around that. Without a lock only this is done, each by one operation of a list:

    del left[-1]              to take a leave; an IndexError says that somebody was quicker
    ended.append(leave)       to end well, before `until`
    refused.append(None)      to be told no, before `shut_until`: an open circuit has one answer

None of them, and nothing in `take_stock` between two numbers that belong together, is a place where
Python lets a signal in: it does so after a call and at a jump back. So a Ctrl-C loses no place.
"""

from typing import Final, final

from tidegate.core.concurrency_limiter import ConcurrencyLimiter
from tidegate.core.outcome import Permit
from tidegate.core.pipeline import Pipeline
from tidegate.units import Instant

__all__ = ["FEWEST", "REFUSED_MAX", "Leave", "Leaves"]

FEWEST: Final = 4
"""To give fewer at once costs more than it spares."""

REFUSED_MAX: Final = 64
"""So many may be refused unasked before somebody takes stock: a bound of half a kilobyte."""


@final
class Leave:
    """Leave for one attempt, with what a permit has: all that are given together are one object."""

    __slots__ = ("generation", "limiter", "pipeline")

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline: Final = pipeline
        self.generation: Final = pipeline.calm.generation
        self.limiter: Final[ConcurrencyLimiter | None] = pipeline.limiter

    def permit(self, start: Instant) -> Permit:
        """What it is to those who ask and tell."""
        return Permit(start, self.generation)

    def is_of(self, pipeline: Pipeline) -> bool:
        """Whether it is leave of these policies, in their present era."""
        calm = pipeline.calm
        return (
            self.pipeline.calm is calm
            and self.generation == calm.generation
            and self.limiter is pipeline.limiter
        )


@final
class Leaves:
    """The leave that is about for the calls to one dependency."""

    __slots__ = ("ended", "given", "leave", "left", "refused", "shut_until", "until")

    def __init__(self) -> None:
        self.left: Final[list[Leave]] = []
        self.ended: Final[list[Leave]] = []
        self.refused: Final[list[None]] = []
        self.leave: Leave | None = None  # what was given last
        self.until: Instant = 0  # when leave ends; zero: there is none about
        self.shut_until: Instant = 0  # the same for the one answer of an open circuit
        self.given = 0  # how many were, less those that were taken back

    def take_stock(self) -> tuple[int, int, int]:
        """Take back what is left, and tell the policies who has come and gone.

        The answer is how many have begun, ended well and been refused since the last time.
        """
        leave, left, ended, refused = self.leave, self.left, self.ended, self.refused
        self.until = self.shut_until = 0
        over, no = len(ended), len(refused)  # first of all: whoever has ended has begun
        try:
            while left:
                del left[-1]
                self.given -= 1
        except IndexError:  # somebody took the last one meanwhile
            pass
        late = 0
        if leave is not None and ended.count(leave) != over:
            late = self._take_late(over)
            over -= late
        begun = self.given
        if leave is not None and (begun or over):
            calm, limiter = leave.pipeline.calm, leave.limiter
            if limiter is not None:
                limiter.inflight += begun - over
            if calm.budget is not None:
                calm.budget.requests += begun
            if calm.breaker is not None and calm.until:  # else it ended as the calm did
                calm.breaker.calls += over
        self.given = 0
        del ended[:over]
        if no:
            del refused[:no]
        return begun, over + late, no  # no call: whoever is to count them has to hear of them

    def _take_late(self, over: int) -> int:
        """Take out who went with leave of an earlier era: he gives his place back, and that is all.

        Seen only if the era ended between his look at it and his word.
        """
        late = [one for one in self.ended[:over] if one is not self.leave]
        for one in late:
            if one.limiter is not None:
                one.limiter.inflight -= 1
            self.ended.remove(one)
        return len(late)

    def hand_out(self, now: Instant, pipeline: Pipeline, until: Instant) -> None:
        """Give leave for as long as the calm lasts, but no longer than `until`.

        Only after stock was taken.
        """
        calm = pipeline.calm
        if now < calm.until:
            ends = calm.until
            if until < ends:  # for half the price of `min`
                ends = until
            spare = pipeline.spare()
            if spare >= FEWEST:
                leave = self.leave
                if leave is None or not leave.is_of(pipeline):
                    leave = self.leave = Leave(pipeline)
                self.until = ends
                self.given = spare
                self.left.extend([leave] * spare)
        elif now < calm.shut_until:
            self.shut_until = min(calm.shut_until, until)
