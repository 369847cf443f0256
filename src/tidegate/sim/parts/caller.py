"""How does a caller make one of its calls: send, wait, time out, try again, give up?

A `CallSite` is one call of one caller (of one replica of it, since each has policies of its own).
It drives the same `Pipeline` and `Execution` as the live shells: first attempts go the flat path,
and an execution exists from the first failure on.

A good answer may come while the call is still being sent, when nothing takes any time. Whatever
ends a call badly takes a turn of the loop, even if no time: refused retries must not recurse.
"""

from collections.abc import Callable
from typing import Any, Final

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
from tidegate.sim.parts.work import NEVER, Attempt
from tidegate.sim.spans import SpanRecorder
from tidegate.units import Duration, Instant

__all__ = ["CallSite"]

_Ended = tuple[Any, Permit | Execution | None, Outcome | None]
"""A frame, the ticket of its attempt, and how that ended; None: it is the wait that has ended."""


class CallSite:
    """One call of one caller. `target` is the simulated service that it goes to.

    Where attempts have others beside them, `HedgedSite` takes its place.
    """

    __slots__ = (
        "_begun",
        "_by_deadline",
        "_carries",
        "_direct",
        "_effect",
        "_extra_latency",
        "_lane",
        "_log",
        "_loop",
        "_network",
        "_paused",
        "_quiet",
        "_sent",
        "_single",
        "_spans",
        "_timeout",
        "attempts_most",
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
        spans: SpanRecorder | None,
        inherits_deadline: bool,
        carries_effects: bool,
    ) -> None:
        self.name: Final = name
        self.pipeline: Final = pipeline
        self.target: Final = target
        self.optional: Final = call.optional
        self.propagate: Final = call.propagate
        self.tally: Final = tally
        self._begun: Final = tally.begun
        self._sent: Final = tally.sent
        self._loop: Final = loop
        self._log: Final = log
        self._spans: Final = spans
        self._network: Final = network
        watched = log is not None or spans is not None
        self._quiet: Final = not (watched or target.cancels)
        self._single = call.tries == 1
        self.attempts_most = call.tries  # that it was ever allowed
        self._timeout: Final = call.timeout if call.timeout is not None else NEVER
        self._effect: Final = not call.idempotent
        self._carries: Final = carries_effects
        self._by_deadline: Final = call.deadline is not None or inherits_deadline
        self._lane: Final = None if call.timeout is None else Lane(loop, self._timed_out)
        # What a frozen caller will hear of when it thaws; None while it is not frozen.
        self._paused: list[_Ended] | None = None
        self.delay(0)

    @property
    def paused(self) -> bool:
        """Whether its caller is frozen: what has ended meanwhile is not settled yet."""
        return self._paused is not None

    # What the caller does.

    def begin(self, now: Instant, frame: Any) -> None:
        """Make the call for `frame`; its owner hears of the end by `call_done`.

        Written flat, as `succeed` is: together they are what a simulated request costs its caller.
        """
        self._begun.count += 1
        if self._by_deadline:
            self._begin_by_deadline(now, frame)
            return
        ticket: Permit | None = None
        if not self.pipeline.plain:
            answer = self.pipeline.admit(now, frame.depth)
            if type(answer) is Rejection:
                self._reject(now, frame, answer)
                return
            ticket = answer
        attempt = Attempt(self, frame, now, now + self._timeout, frame.depth, ticket)
        if self._carries:
            attempt.effect = self._effect or frame.effect
        lane = self._lane
        if lane is not None:
            lane.queue.append(attempt)
            if not lane.armed:
                lane.arm(attempt)
        if self._direct and frame.children is None:
            self._sent.count += 1
            self.target.arrive(now, attempt)
        else:
            self._send(now, attempt)

    def begin_unwaited(self, now: Instant, frame: Any) -> None:
        """Make the call when the present event is over: it may lead back to its caller."""
        self._loop.at(now, self.begin, frame)

    def abandon(self, now: Instant, attempt: Attempt) -> None:
        """The caller itself was cancelled: stop waiting, and say so downstream."""
        ticket = attempt.ticket
        attempt.frame = attempt.ticket = None
        self._settle(now, ticket, IGNORED)
        self.tally.cancelled += 1
        if self._log is not None:
            self._log.line(now, self.name, "cancelled", attempt.sent)
        if self._spans is not None:
            self._spans.ended(now, attempt, IGNORED)
        if self.target.cancels:
            self.target.abandoned(now, attempt)

    # What the callee does.

    def succeed(self, now: Instant, attempt: Attempt) -> None:
        """The callee lets go of a good answer, for which somebody waits."""
        if not self._direct:
            if self._network is None:
                self.answer(now, attempt, SUCCESS)
            else:
                self.reply(now, attempt, SUCCESS)
            return
        frame, ticket = attempt.frame, attempt.ticket
        attempt.frame = None  # also disarms the timer
        self.tally.successes += 1
        if ticket is not None:
            attempt.ticket = None
            self._settle(now, ticket, SUCCESS)
        frame.owner.call_done(now, frame, self.optional, True)

    def reply(
        self, now: Instant, attempt: Attempt, outcome: Outcome, latency: Duration = 0
    ) -> None:
        """The callee lets go of its answer, which needs `latency` and the way back to arrive."""
        if attempt.frame is None:
            return
        back = self._network() if self._network is not None else 0
        self._loop.at(now + latency + back, _ARRIVALS[outcome], attempt)

    def answer(self, now: Instant, attempt: Attempt, outcome: Outcome) -> None:
        """An answer to `attempt` has arrived; it may be too late."""
        frame, ticket = attempt.frame, attempt.ticket
        if frame is None:
            self.target.tally.wasted.count += outcome is SUCCESS
            return
        attempt.frame = attempt.ticket = None  # also disarms the timer
        if self._log is not None:
            self._log.line(now, self.name, outcome.name.lower(), attempt.sent)
        if self._spans is not None:
            self._spans.ended(now, attempt, outcome)
        if frame.children is not None:
            frame.children.pop(attempt, None)
        if outcome is SUCCESS:
            self.tally.successes += 1
            self._settle(now, ticket, outcome)
            frame.owner.call_done(now, frame, self.optional, True)
            return
        if outcome is OVERLOADED:
            self.tally.overloaded += 1
        else:
            self.tally.failures += 1
        self._failed(now, frame, ticket, outcome)

    # What faults and actions do.

    def delay(self, latency: Duration) -> None:
        """Add so much to the way there, from now on."""
        self._extra_latency = latency
        watched = self._log is not None or self._spans is not None
        self._direct = self._network is None and not watched and not latency

    def limit_attempts(self, attempts: int) -> None:
        """Allow so many attempts, from the next decision on."""
        self.pipeline.attempts = attempts
        self.attempts_most = max(self.attempts_most, attempts)
        self._single = attempts == 1

    def pause(self) -> None:
        """The caller is frozen: its timers run, and it sends nothing until it thaws."""
        if self._paused is None:
            self._paused = []

    def unpause(self, now: Instant) -> None:
        """The caller has thawed, and hears of all that has failed meanwhile."""
        paused, self._paused = self._paused, None
        for frame, ticket, outcome in paused or ():
            if frame.called_off:
                self._settle(now, ticket, IGNORED)
            elif outcome is None:
                self._wake(now, (ticket, frame))
            else:
                self._failed(now, frame, ticket, outcome)

    # Private parts: sending.

    def _begin_by_deadline(self, now: Instant, frame: Any) -> None:
        inherited = None if frame.deadline >= NEVER else frame.deadline
        execution = Execution(self.pipeline, inherited, frame.depth)
        self._perform(now, execution.start(now), execution, frame)

    def _send(self, now: Instant, attempt: Attempt) -> None:
        """Send by the long way, past the log and the network."""
        self._sent.count += 1
        if self._log is not None:
            self._log.line(now, self.name, "sent", attempt.depth)
        if self._spans is not None:
            self._spans.sent(now, attempt)
        if attempt.frame.children is not None:
            attempt.frame.children[attempt] = None
        if self._network is None and not self._extra_latency:
            self.target.arrive(now, attempt)
        else:
            way = self._network() if self._network is not None else 0
            self._loop.at(now + way + self._extra_latency, self._deliver, attempt)

    def _deliver(self, now: Instant, attempt: Attempt) -> None:
        """The network has carried an attempt to its callee, who counts its wait from here."""
        attempt.sent = now
        self.target.arrive(now, attempt)

    def _retry(self, now: Instant, execution: Execution, frame: Any) -> None:
        """Send what `execution` has decided on; it keeps the permit and settles it.

        Written flat as well: in a storm most attempts are sent from here.
        """
        timeout, lane = self._timeout, self._lane
        if execution.deadline is not None:
            assert execution.timeout is not None
            if execution.timeout != timeout:
                timeout, lane = execution.timeout, None
        depth = frame.depth + execution.number - 1
        attempt = Attempt(self, frame, now, now + timeout, depth, execution)
        if self._carries:
            attempt.effect = self._effect or frame.effect
            # After a timeout nobody knows whether it was done.
            self.tally.repeated += attempt.effect and execution.outcome is TIMEOUT
        if lane is not None:
            lane.queue.append(attempt)
            if not lane.armed:
                lane.arm(attempt)
        elif timeout != NEVER:
            self._loop.at(attempt.leaves_at, self._timed_out, attempt)
        if self._direct and frame.children is None:
            self._sent.count += 1
            self.target.arrive(now, attempt)
        else:
            self._send(now, attempt)

    # Private parts: how it ends.

    def _timed_out(self, now: Instant, attempt: Attempt) -> None:
        frame, ticket = attempt.frame, attempt.ticket
        if frame is None:
            return
        attempt.frame = attempt.ticket = None
        self.tally.timeouts += 1
        if not self._quiet:
            if self._log is not None:
                self._log.line(now, self.name, "timeout", attempt.sent)
            if self._spans is not None:
                self._spans.ended(now, attempt, TIMEOUT)
            if self.target.cancels:
                self.target.abandoned(now, attempt)
        if frame.children is not None:
            frame.children.pop(attempt, None)
        self._failed(now, frame, ticket, TIMEOUT)

    def _failed(
        self, now: Instant, frame: Any, ticket: Permit | Execution | None, outcome: Outcome
    ) -> None:
        """An attempt for `frame` has ended badly: is there to be another?"""
        if self._paused is not None:
            self._paused.append((frame, ticket, outcome))
            return
        if type(ticket) is not Execution:
            if self._single:
                self._settle(now, ticket, outcome)
                frame.owner.call_done(now, frame, self.optional, False)
                return
            ticket = Execution.resume(self.pipeline, ticket, None, frame.depth)
        step = ticket.settle(now, outcome)
        if step is ATTEMPT:
            self._retry(now, ticket, frame)
        else:
            self._perform(now, step, ticket, frame)

    def _settle(self, now: Instant, ticket: Permit | Execution | None, outcome: Outcome) -> None:
        if type(ticket) is Execution:
            ticket.settle(now, outcome)
        elif ticket is not None:
            self.pipeline.settle(now, ticket, outcome)

    def _perform(self, now: Instant, step: int, execution: Execution, frame: Any) -> None:
        if step is ATTEMPT:
            self._retry(now, execution, frame)
        elif step is WAIT:
            self._loop.at(execution.until, self._wake, (execution, frame))
        elif execution.rejection is not None:
            self._reject(now, frame, execution.rejection)
        else:
            frame.owner.call_done(now, frame, self.optional, False)

    def _wake(self, now: Instant, waiting: tuple[Any, Any]) -> None:
        execution, frame = waiting
        if self._paused is not None:
            self._paused.append((frame, execution, None))
            return
        if frame.called_off:
            execution.cancel(now)
        else:
            self._perform(now, execution.wake(now), execution, frame)

    def _reject(self, now: Instant, frame: Any, rejection: Rejection) -> None:
        self.tally.rejected += 1
        if self._log is not None:
            self._log.line(now, self.name, "rejected", rejection.reason.name.lower())
        # Through the loop: a worker freed at once would take the next of its queue, and so on down.
        self._loop.at(now, self._rejected, frame)

    def _rejected(self, now: Instant, frame: Any) -> None:
        frame.owner.call_done(now, frame, self.optional, False)


def _success_arrives(now: Instant, attempt: Attempt) -> None:
    attempt.site.answer(now, attempt, SUCCESS)


def _failure_arrives(now: Instant, attempt: Attempt) -> None:
    attempt.site.answer(now, attempt, FAILURE)


def _refusal_arrives(now: Instant, attempt: Attempt) -> None:
    attempt.site.answer(now, attempt, OVERLOADED)


_ARRIVALS: Final = {
    SUCCESS: _success_arrives,
    FAILURE: _failure_arrives,
    OVERLOADED: _refusal_arrives,
}
