"""How does a caller make one of its calls: send, wait, time out, try again, give up?

A `CallSite` is one call of one caller (of one replica of it, since each has policies of its own).
It drives the same `Pipeline` and `Execution` as the live shells: first attempts go the flat path,
and an execution exists from the first failure on.
"""

from collections.abc import Callable
from typing import Any, Final, final

from tidegate.core.execution import ATTEMPT, WAIT, Execution
from tidegate.core.outcome import (
    FAILURE,
    IGNORED,
    OVERLOADED,
    SUCCESS,
    TIMEOUT,
    Outcome,
    Permit,
    Rejection,
)
from tidegate.core.pipeline import Pipeline
from tidegate.settings.system import Call
from tidegate.sim.log import EventLog
from tidegate.sim.loop import Lane, Loop
from tidegate.sim.measure import CallTally
from tidegate.sim.parts.work import NEVER, Attempt, Frame
from tidegate.units import SECOND, Duration, Instant

__all__ = ["CallSite"]


@final
class CallSite:
    """One call of one caller. `target` is the simulated service that it goes to."""

    __slots__ = (
        "_attempts",
        "_calls",
        "_direct",
        "_extra_latency",
        "_lane",
        "_log",
        "_loop",
        "_network",
        "_single",
        "_timeout",
        "_with_deadline",
        "name",
        "optional",
        "pipeline",
        "propagate",
        "tally",
        "target",
    )

    def __init__(
        self,
        name: str,
        call: Call,
        *,
        pipeline: Pipeline,
        target: Any,
        loop: Loop,
        tally: CallTally,
        network: Callable[[], Duration] | None,
        log: EventLog | None,
        inherits_deadline: bool,
    ) -> None:
        self.name: Final = name
        self.pipeline: Final = pipeline
        self.target: Final = target
        self.optional: Final = call.optional
        self.propagate: Final = call.propagate
        self.tally: Final = tally
        self._loop: Final = loop
        self._log: Final = log
        self._network: Final = network
        self._single: Final = call.attempts == 1
        self._timeout: Final = call.timeout if call.timeout is not None else NEVER
        self._with_deadline: Final = call.deadline is not None or inherits_deadline
        self._lane: Final = None if self._timeout is NEVER else Lane(loop, self._timed_out)
        self._attempts: Final = tally.attempts
        self._calls: Final = tally.calls
        self.delay(0)

    def begin(self, now: Instant, frame: Any) -> None:
        """Make the call for `frame`; its owner hears of the end by `call_done`.

        Written flat, as `succeed` is: together they are what a simulated request costs its caller.
        """
        second = now // SECOND
        self._calls[second] += 1
        if self._with_deadline:
            self._begin_by_deadline(now, frame)
            return
        pipeline = self.pipeline
        permit: Permit | None = None
        if not pipeline.plain:
            answer = pipeline.admit(now, frame.depth)
            if type(answer) is Rejection:
                self._reject(now, frame, answer)
                return
            permit = answer
        attempt = Attempt(self, frame, now, now + self._timeout, frame.depth, permit, None)
        lane = self._lane
        if lane is not None:
            lane.queue.append(attempt)
            if not lane.armed:
                lane.arm(attempt)
        if self._direct and frame.children is None:
            self._attempts[second] += 1
            self.target.arrive(now, attempt)
        else:
            self._send(now, attempt)

    def succeed(self, now: Instant, attempt: Attempt) -> None:
        """The callee lets go of a good answer, for which somebody waits."""
        if not self._direct:
            self.reply(now, attempt, SUCCESS)
            return
        frame = attempt.frame
        attempt.frame = None  # also disarms the timer
        self.tally.successes += 1
        if attempt.permit is not None or attempt.execution is not None:
            self._settle(now, attempt, SUCCESS)
        frame.owner.call_done(now, frame, self.optional, True)

    def answer(self, now: Instant, attempt: Attempt, outcome: Outcome) -> None:
        """The far side has answered `attempt`; it may be too late."""
        frame = attempt.frame
        if frame is None:
            return
        attempt.frame = None  # also disarms the timer
        if self._log is not None:
            self._log.line(now, self.name, outcome.name.lower(), attempt.sent)
        if outcome is SUCCESS:
            self.tally.successes += 1
            self._settle(now, attempt, outcome)
            frame.owner.call_done(now, frame, self.optional, True)
        else:
            if outcome is OVERLOADED:
                self.tally.overloaded += 1
            else:
                self.tally.failures += 1
            self._failed(now, attempt, frame, outcome)

    def answer_success(self, now: Instant, attempt: Attempt) -> None:
        """`answer` as an event of the loop: the network has carried a success."""
        self.answer(now, attempt, SUCCESS)

    def answer_failure(self, now: Instant, attempt: Attempt) -> None:
        """`answer` as an event of the loop: the network has carried an error."""
        self.answer(now, attempt, FAILURE)

    def answer_overloaded(self, now: Instant, attempt: Attempt) -> None:
        """`answer` as an event of the loop: the network has carried a refusal."""
        self.answer(now, attempt, OVERLOADED)

    def reply(self, now: Instant, attempt: Attempt, outcome: Outcome) -> None:
        """The callee lets go of its answer; it arrives after the way back."""
        if attempt.frame is None:
            return
        back = self._network() if self._network is not None else 0
        # Through the loop even when there is no way to go: refused retries must not recurse.
        event = {
            SUCCESS: self.answer_success,
            FAILURE: self.answer_failure,
            OVERLOADED: self.answer_overloaded,
        }[outcome]
        self._loop.at(now + back, event, attempt)

    def abandon(self, now: Instant, attempt: Attempt) -> None:
        """The caller itself was cancelled: stop waiting, and say so downstream."""
        self._settle(now, attempt, IGNORED)
        attempt.forget()
        self.tally.cancelled += 1
        if self.target.cancels:
            self.target.abandoned(now, attempt)

    def delay(self, latency: Duration) -> None:
        """Add so much to the way there, from now on."""
        self._extra_latency = latency
        self._direct = self._network is None and self._log is None and not latency

    def _begin_by_deadline(self, now: Instant, frame: Any) -> None:
        inherited = None if frame.deadline == NEVER else frame.deadline
        execution = Execution(self.pipeline, inherited, frame.depth)
        self._perform(now, execution.start(now), execution, frame)

    def _send(self, now: Instant, attempt: Attempt) -> None:
        self._attempts[now // SECOND] += 1
        if self._log is not None:
            self._log.line(now, self.name, "sent", attempt.depth)
        frame = attempt.frame
        if frame.children is not None:
            frame.children.add(attempt)
        if self._network is None and not self._extra_latency:
            self.target.arrive(now, attempt)
        else:
            way = self._network() if self._network is not None else 0
            self._loop.at(now + way + self._extra_latency, self.target.arrive, attempt)

    def _timed_out(self, now: Instant, attempt: Attempt) -> None:
        frame = attempt.frame
        if frame is None:
            return
        self.tally.timeouts += 1
        if self._log is not None:
            self._log.line(now, self.name, "timeout", attempt.sent)
        if self.target.cancels:
            self.target.abandoned(now, attempt)
        self._failed(now, attempt, frame, TIMEOUT)

    def _failed(self, now: Instant, attempt: Attempt, frame: Any, outcome: Outcome) -> None:
        if frame.children is not None:
            frame.children.discard(attempt)
        execution = attempt.execution
        permit = attempt.permit
        attempt.forget()
        if execution is None:
            if self._single:
                if permit is not None:
                    self.pipeline.settle(now, permit, outcome)
                frame.owner.call_done(now, frame, self.optional, False)
                return
            execution = Execution.resume(self.pipeline, permit, None, frame.depth)
        step = execution.settle(now, outcome)
        if step is ATTEMPT:
            self._retry(now, execution, frame)
        else:
            self._perform(now, step, execution, frame)

    def _settle(self, now: Instant, attempt: Attempt, outcome: Outcome) -> None:
        if attempt.execution is not None:
            attempt.execution.settle(now, outcome)
        elif attempt.permit is not None:
            self.pipeline.settle(now, attempt.permit, outcome)

    def _perform(self, now: Instant, step: int, execution: Execution, frame: Any) -> None:
        if step is ATTEMPT:
            self._retry(now, execution, frame)
        elif step is WAIT:
            self._loop.at(execution.until, self._wake, (execution, frame))
        elif execution.rejection is not None:
            self._reject(now, frame, execution.rejection)
        else:
            self.tally.rejected += execution.number == 0  # its deadline had passed at the start
            frame.owner.call_done(now, frame, self.optional, False)

    def _wake(self, now: Instant, waiting: tuple[Execution, Frame]) -> None:
        execution, frame = waiting
        if frame.done and frame.children is not None:  # cancelled meanwhile
            execution.cancel(now)
            return
        self._perform(now, execution.wake(now), execution, frame)

    def _retry(self, now: Instant, execution: Execution, frame: Any) -> None:
        depth = frame.depth + execution.number - 1
        self.tally.repeated += execution.outcome is TIMEOUT
        timeout = self._timeout if execution.timeout is None else execution.timeout
        # The permit stays with the execution, which settles it.
        attempt = Attempt(self, frame, now, now + timeout, depth, None, execution)
        if timeout == self._timeout:
            if self._lane is not None:
                self._lane.add(attempt)
        else:
            self._loop.at(attempt.leaves_at, self._timed_out, attempt)
        self._send(now, attempt)

    def _reject(self, now: Instant, frame: Any, rejection: Rejection) -> None:
        self.tally.rejected += 1
        if self._log is not None:
            self._log.line(now, self.name, "rejected", rejection.reason.name.lower())
        # Through the loop: a worker freed at once would take the next of its queue, and so on down.
        self._loop.at(now, self._rejected, frame)

    def _rejected(self, now: Instant, frame: Any) -> None:
        frame.owner.call_done(now, frame, self.optional, False)
