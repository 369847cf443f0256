"""What comes next for a call that is asked again while its first answer is still awaited?

The slowest of a hundred answers is often slow by bad luck: a full line, a pause, a lost packet. A
second attempt after most have been answered has other luck, and costs a few percent more load (Dean
and Barroso, "The Tail at Scale", 2013). The first good answer wins, and the others are called off.

A `Race` is an `Execution` whose attempt may have others beside it, called legs and told apart by
their number. The shell performs each step and reports back, as with an execution:

    start  -> ATTEMPT | REJECT
    hedge  -> ATTEMPT | LISTEN                        `hedge_at` has come, and a leg is still out
    settle -> ATTEMPT | WAIT | REJECT | COMPLETE | LISTEN          a leg has ended
    wake   -> ATTEMPT | REJECT | COMPLETE             the wait is over
    cancel -> COMPLETE                                the user has gone

LISTEN: others are out; do nothing until one of them ends. With COMPLETE whatever is out is settled
as called off, which says nothing about the dependency, and the shell stops it.

When is too much? In an outage every call is slow, and each would be asked twice. So a hedge takes a
token of the retry budget, as a retry does. It asks all other policies for leave; what they refuse
is not sent, and the call goes on with the legs that it has. What must not be done twice is never
hedged (see `Pipeline.hedge`).
"""

from typing import Final, final

from tidegate.core.execution import ATTEMPT, LISTEN, Execution, Step
from tidegate.core.outcome import IGNORED, SUCCESS, Outcome, Permit, Rejection
from tidegate.core.pipeline import Pipeline
from tidegate.units import Duration, Instant

__all__ = ["Race"]


@final
class Race:
    """One call from its start to its end, each of its attempts with up to `hedge.max` beside it.

    After ATTEMPT the new leg is number `sent`, with its leave in `permit` and its timeout in
    `timeout`. `hedge_at` is when the next may go out; None: no more. `execution` decides about
    everything else, and holds how the call has ended.
    """

    __slots__ = ("_hedged", "_out", "execution", "hedge_at", "permit", "sent", "timeout")

    def __init__(self, pipeline: Pipeline, deadline: Instant | None = None, depth: int = 0) -> None:
        assert pipeline.hedge is not None
        self.execution: Final = Execution(pipeline, deadline, depth)
        self._out: Final[dict[int, Permit]] = {}  # by the number of the leg
        self._hedged = 0  # beside the present attempt
        self.sent = 0
        self.permit: Permit | None = None
        self.timeout: Duration | None = None
        self.hedge_at: Instant | None = None

    @property
    def out(self) -> int:
        """How many legs are out."""
        return len(self._out)

    def start(self, now: Instant) -> Step:
        """Begin the call."""
        return self._gone_out(now, self.execution.start(now))

    def hedge(self, now: Instant, *, paid: bool = True) -> Step:
        """`hedge_at` has come: send another, if there is a token and leave.

        `paid` is false if a layer further out, which pays for the retries of all, has no token.
        """
        assert self._out
        execution = self.execution
        pipeline = execution.pipeline
        self.hedge_at = None
        if execution.deadline is not None and now >= execution.deadline:
            return LISTEN
        if not paid or (pipeline.budget is not None and not pipeline.budget.try_retry(now)):
            return LISTEN
        answer = pipeline.admit(now, 1)
        if type(answer) is Rejection:
            return LISTEN
        self._hedged += 1
        self._add(now, answer)
        return ATTEMPT

    def settle(
        self,
        now: Instant,
        leg: int,
        outcome: Outcome,
        retry_after: Duration = 0,
        *,
        paid: bool = True,
    ) -> Step:
        """Leg number `leg` has ended; `retry_after` and `paid` as for an execution.

        While others are out, one that fails ends nothing if it could be repeated: that is what the
        others are.
        """
        permit = self._out.pop(leg)
        execution = self.execution
        if self._out and outcome is not SUCCESS and execution.pipeline.retryable[outcome]:
            execution.outcome = outcome
            execution.pipeline.settle(now, permit, outcome)
            return LISTEN
        self._call_off(now)
        execution.permit = permit
        return self._gone_out(now, execution.settle(now, outcome, retry_after, paid=paid))

    def wake(self, now: Instant) -> Step:
        """The wait is over."""
        return self._gone_out(now, self.execution.wake(now))

    def cancel(self, now: Instant, outcome: Outcome = IGNORED) -> Step:
        """Whoever waited has gone; `outcome` is what that says about each leg that is out."""
        for permit in self._out.values():
            self.execution.pipeline.settle(now, permit, outcome)
        self._out.clear()
        self.hedge_at = None
        return self.execution.cancel(now, outcome)

    def _gone_out(self, now: Instant, step: Step) -> Step:
        """What the execution has decided on: its attempt is the first leg of a new row."""
        self.hedge_at = None
        if step is ATTEMPT:
            permit = self.execution.permit
            assert permit is not None  # a pipeline with a budget is never plain
            self.execution.permit = None  # the race settles it
            self._hedged = 0
            self._add(now, permit)
        return step

    def _add(self, now: Instant, permit: Permit) -> None:
        """One more leg is out."""
        execution = self.execution
        hedge = execution.pipeline.hedge
        assert hedge is not None
        self.sent += 1
        self._out[self.sent] = self.permit = permit
        deadline = execution.deadline
        self.timeout = execution.pipeline.timeout
        if deadline is not None and (self.timeout is None or deadline - now < self.timeout):
            self.timeout = deadline - now
        self.hedge_at = None
        if self._hedged < hedge.max and (deadline is None or now + hedge.after < deadline):
            self.hedge_at = now + hedge.after

    def _call_off(self, now: Instant) -> None:
        """The call is decided or goes on without them: they say nothing."""
        for permit in self._out.values():
            self.execution.pipeline.settle(now, permit, IGNORED)
        self._out.clear()

    def _check(self) -> bool:
        """What always holds. For tests."""
        execution = self.execution
        assert execution.pipeline.hedge is not None
        assert len(self._out) <= 1 + execution.pipeline.hedge.max
        assert self.hedge_at is None or self._out
        return self.sent >= execution.number
