"""What comes next for one call: another attempt, a wait, a refusal, or its end?

One call is one `Execution`. The shell performs each step (sends, sleeps) and reports back; the
machine never does. A step is a plain member of `Step`; what belongs to it (the permit and timeout
of an attempt, the instant of a wake-up) stands in the execution's fields, so that a step allocates
nothing.

    start  -> ATTEMPT | REJECT
    settle -> ATTEMPT | WAIT | REJECT | COMPLETE      an attempt has ended
    wake   -> ATTEMPT | REJECT | COMPLETE             the wait is over
    cancel -> COMPLETE                                the user has gone

A first attempt that may not start is a REJECT, and so is a retry that the policies refuse when its
time has come; the call's `outcome` is then that of the attempt before, or None. A retry that is
not even wanted (all attempts used, too late, no token, asked to stay away for too long) is a
COMPLETE with `stopped_by`.

A call that succeeds at once needs no execution: `Pipeline.admit` and `settle` are its flat path,
and `resume` picks up from there at the first failure. A parity test holds the two together.
"""

from enum import IntEnum
from typing import Final, final

from tidegate.core.outcome import (
    IGNORED,
    REJECTIONS,
    SUCCESS,
    Outcome,
    Permit,
    Reason,
    Rejection,
)
from tidegate.core.pipeline import Pipeline
from tidegate.units import Duration, Instant

__all__ = ["ATTEMPT", "COMPLETE", "LISTEN", "REJECT", "WAIT", "Execution", "Step"]


class Step(IntEnum):
    """What the shell is to do next."""

    ATTEMPT = 0  # send; the timeout is in `timeout`, the leave in `permit`
    WAIT = 1  # do nothing until `until`
    REJECT = 2  # never sent; the reason is in `rejection`
    COMPLETE = 3  # over; `outcome`, and `stopped_by` if a retry was wanted and refused
    LISTEN = 4  # of a `Race` only: others are out, wait for one of them


ATTEMPT: Final = Step.ATTEMPT
WAIT: Final = Step.WAIT
REJECT: Final = Step.REJECT
COMPLETE: Final = Step.COMPLETE
LISTEN: Final = Step.LISTEN

_TOO_LATE: Final = REJECTIONS[Reason.DEADLINE]


@final
class Execution:
    """One call from its start to its end. `deadline` is an instant, or None."""

    __slots__ = (
        "deadline",
        "depth",
        "number",
        "outcome",
        "permit",
        "pipeline",
        "rejection",
        "stopped_by",
        "timeout",
        "until",
        "waited",
    )

    def __init__(self, pipeline: Pipeline, deadline: Instant | None = None, depth: int = 0) -> None:
        self.pipeline: Final = pipeline
        self.deadline = deadline
        self.depth: Final = depth
        self.number = 0
        self.permit: Permit | None = None
        self.timeout: Duration | None = pipeline.timeout
        self.until: Instant = 0
        self.waited: Duration = 0  # what the backoff last gave, whatever the far side asked for
        self.outcome: Outcome | None = None
        self.rejection: Rejection | None = None
        self.stopped_by: Reason | None = None

    @classmethod
    def resume(
        cls, pipeline: Pipeline, permit: Permit | None, deadline: Instant | None, depth: int
    ) -> "Execution":
        """Take over a call whose first attempt went the flat path and has just ended."""
        execution = cls(pipeline, deadline, depth)
        execution.number = 1
        execution.permit = permit
        return execution

    def start(self, now: Instant) -> Step:
        """Begin the call."""
        own = self.pipeline.deadline
        if own is not None and (self.deadline is None or now + own < self.deadline):
            self.deadline = now + own
        if self.deadline is not None and now >= self.deadline:
            return self._reject(_TOO_LATE)
        return self._take(now, self.depth)

    def settle(
        self, now: Instant, outcome: Outcome, retry_after: Duration = 0, *, paid: bool = True
    ) -> Step:
        """The attempt that is out has ended.

        `retry_after` is how long the far side asks everybody to stay away (RFC 9110 section
        10.2.3). The next attempt never leaves earlier, and if that is longer than the longest wait
        of the backoff the call gives up: to come back early is what it was asked not to do. `paid`
        is false if a layer further out, which pays for the retries of all, has no token left.

        Written flat: this is the hot path of a storm (0.35 us a retry in a plain pipeline).
        """
        pipeline = self.pipeline
        if self.permit is not None:
            pipeline.settle(now, self.permit, outcome)
            self.permit = None
        self.outcome = outcome
        if self.number >= pipeline.attempts or not pipeline.retryable[outcome]:
            return self._stop(outcome)
        wait = 0
        if pipeline.backoff is not None:
            wait = self.waited = pipeline.backoff.delay(self.number, self.waited)
        if retry_after > wait:
            if retry_after > pipeline.patience:
                self.stopped_by = Reason.RETRY_AFTER
                return COMPLETE
            wait = retry_after
        if self.deadline is not None and now + wait >= self.deadline:
            self.stopped_by = Reason.DEADLINE
            return COMPLETE
        # The token is taken before the wait: a caller who cannot retry learns it at once.
        if not paid or (pipeline.budget is not None and not pipeline.budget.try_retry(now)):
            self.stopped_by = Reason.BUDGET
            return COMPLETE
        if wait:
            self.until = now + wait
            return WAIT
        if pipeline.plain and self.deadline is None:  # as in `_take`, without the call
            self.number += 1
            return ATTEMPT
        return self._take(now, 1)

    def wake(self, now: Instant) -> Step:
        """The wait is over. `now` is at or after `until`; a late shell may find no time left."""
        if self.deadline is not None and now >= self.deadline:
            self.stopped_by = Reason.DEADLINE
            return COMPLETE
        return self._take(now, 1)

    def cancel(self, now: Instant, outcome: Outcome = IGNORED) -> Step:
        """Whoever waited has gone, and there is no other attempt.

        A user who leaves says nothing about the dependency. If a deadline further out has ended
        the call, the shell says TIMEOUT: what is out was too slow for it.
        """
        if self.permit is not None:
            self.pipeline.settle(now, self.permit, outcome)
            self.permit = None
        self.outcome = outcome
        return COMPLETE

    def _take(self, now: Instant, depth: int) -> Step:
        """Ask for leave, and go out with it; a plain pipeline is not asked for a retry."""
        if not self.number or not self.pipeline.plain:
            answer = self.pipeline.admit(now, depth)
            if answer.__class__ is Rejection:  # a call here is where a Ctrl-C could lose a permit
                return self._reject(answer)
            self.permit = answer  # type: ignore[assignment]
        self.number += 1
        if self.deadline is not None:
            left = self.deadline - now
            if self.timeout is None or left < self.timeout:
                self.timeout = left
        return ATTEMPT

    def _reject(self, rejection: Rejection) -> Step:
        self.rejection = rejection
        self.stopped_by = rejection.reason
        return REJECT

    def _stop(self, outcome: Outcome) -> Step:
        if outcome is not SUCCESS and outcome is not IGNORED and self.pipeline.attempts > 1:
            last = self.number >= self.pipeline.attempts
            self.stopped_by = Reason.ATTEMPTS if last else Reason.NOT_RETRYABLE
        return COMPLETE
