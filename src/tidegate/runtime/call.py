"""What is done with a guarded call that does not succeed at once?

A `Call` walks one call through its `Execution`. Each method is one visit under the dependency's
lock; what a visit leaves behind, changes of state and counters, is seen to on the way out. It knows
neither threads nor tasks: the two drivers, `blocking` and `aio`, sleep and send for it.
"""

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from tidegate.core.execution import ATTEMPT, COMPLETE, REJECT, Execution, Step
from tidegate.core.outcome import IGNORED, SUCCESS, TIMEOUT, Outcome, Permit, Reason
from tidegate.core.pipeline import Pipeline
from tidegate.errors import DeadlineExceeded
from tidegate.runtime.classify import retry_after
from tidegate.runtime.context import Ambient
from tidegate.runtime.dependency import ALERT, Dependency
from tidegate.runtime.guard import Guard
from tidegate.units import Duration, Instant

if TYPE_CHECKING:
    from tidegate.core.hedge import Race

__all__ = ["FALL_BACK", "Call"]

_NOT_YET: Final[Any] = object()

FALL_BACK: Final[Any] = object()
"""What `Call.end` gives when the guard's fallback is to answer."""


class Call:
    """One guarded call. `result` or `error` is what its latest attempt gave.

    `last` is for the shell to set: no other attempt follows the one that is out, and no fallback
    answers for it. So it is for a block, which cannot be run twice, and for a stream of which
    something has been handed out. `said` is how the attempt went, from whoever knows that better
    than its exception or its result.
    """

    __slots__ = (
        "_inherited",
        "_late",
        "dependency",
        "error",
        "execution",
        "guard",
        "last",
        "machine",
        "pending",
        "result",
        "said",
    )

    def __init__(
        self, guard: Guard, inherited: Ambient, now: Instant, pipeline: Pipeline | None = None
    ) -> None:
        self.guard: Final = guard
        self.dependency: Final[Dependency] = guard.dependency
        self._inherited: Final = inherited
        deadline = inherited.deadline
        own = guard.pipeline.deadline
        if own is not None and (deadline is None or now + own < deadline):
            deadline = now + own
        self.execution = Execution(pipeline or guard.pipeline, deadline, inherited.depth)
        self.machine: Execution | Race = self.execution  # what decides how it goes on
        self.result: Any = _NOT_YET
        self.error: BaseException | None = None
        self.last = False
        self.said: Outcome | None = None
        self._late = False  # answered well, after its time
        self.pending = False  # counted as started, and not yet by its end

    # How it begins.

    def start(self, now: Instant) -> Step:
        """Ask for the first attempt."""
        dependency = self.dependency
        with dependency.lock:
            dependency.take_stock()
            if now >= dependency.look_at:
                dependency.look(now)
            step = self.machine.start(now)
            if step is REJECT:
                self._count_unsent()
            dependency.started += 1
            self.pending = True
            changes = self.execution.pipeline.drain_transitions()
        if changes:
            dependency.tell(changes)
        return step

    @classmethod
    def after(cls, guard: Guard, inherited: Ambient, permit: Permit, pipeline: Pipeline) -> "Call":
        """Take over a call whose first attempt went the flat path and has just ended.

        `pipeline` is what gave the permit: the guard may have other settings by now.
        """
        own = guard.pipeline
        call = cls(guard, inherited, permit.start, own if own.calm is pipeline.calm else pipeline)
        call.execution.number = 1
        call.execution.permit = permit
        call.pending = True
        return call

    # While it goes on.

    def inherits(self) -> Ambient:
        """What the attempt that is out hands down: its own end, and how many retries deep it is."""
        execution = self.execution
        until = execution.deadline
        permit = execution.permit
        if execution.timeout is not None and permit is not None:
            end = permit.start + execution.timeout
            until = end if until is None else min(until, end)
        inherited = self._inherited
        return Ambient(
            until,
            inherited.said,
            inherited.depth + execution.number - 1,
            inherited.payer or self.guard.payer,
        )

    def failed(self, error: BaseException) -> Step:
        """The attempt that is out has raised."""
        self.error, self.result = error, _NOT_YET
        outcome = self.said
        if outcome is None:
            try:
                outcome = self.guard.outcome_of(error)
            except BaseException as mistake:  # noqa: BLE001 - raised at the end
                return self._misjudged(mistake)
        return self.settle(outcome, retry_after(error))

    def answered(self, result: Any) -> Step:
        """The attempt that is out has given this."""
        self.error, self.result = None, result
        judge = self.guard.judge
        if self.said is not None and self.said is not SUCCESS:
            return self.settle(self.said)
        verdict = None
        if judge is not None and not self.last:
            try:
                verdict = self.guard.verdict_on(result)
            except BaseException as mistake:  # noqa: BLE001 - raised at the end
                return self._misjudged(mistake)
        if verdict is not None and verdict.outcome is not SUCCESS:
            return self.settle(verdict.outcome, verdict.retry_after)
        permit, timeout = self.execution.permit, self.execution.timeout
        if permit is not None and timeout is not None:
            now = self.dependency.now()
            if now - permit.start > timeout:
                return self.answered_late(now)
        return self.settle(SUCCESS)

    def _misjudged(self, mistake: BaseException) -> Step:
        """The user's `classify` or `judge` has raised: that says nothing about the dependency, and
        no retry mends it. It is raised, and the attempt's place is given back.
        """
        self.error, self.result = mistake, _NOT_YET
        return self.settle(IGNORED)

    def settle(self, outcome: Outcome, wait: Duration = 0) -> Step:
        """The attempt that is out has ended so; `wait` is what the far side asked for."""
        dependency = self.dependency
        execution = self.execution
        paid = outcome is SUCCESS or self.last or self._is_paid(outcome)
        with dependency.lock:
            dependency.take_stock()
            now = dependency.now()
            if outcome is not SUCCESS:
                dependency.outcomes[outcome] += 1
                dependency.alert_until = now + ALERT
            if self.last:
                step = execution.cancel(now, outcome)
            else:
                step = execution.settle(now, outcome, wait, paid=paid)
            self._count(step)
            changes = execution.pipeline.drain_transitions()
        if changes:
            dependency.tell(changes)
        return step

    def _is_paid(self, outcome: Outcome) -> bool:
        """Whether the outermost layer pays, should this attempt be followed by another.

        Every layer has its own budget, and each would hold by itself; but three of them, one in
        another, would allow three times the retries. So the outermost pays for all.
        """
        payer, execution = self._inherited.payer, self.execution
        if payer is None or payer is self.dependency:
            return True
        pipeline = execution.pipeline
        last = execution.number >= pipeline.attempts
        return last or not pipeline.retryable[outcome] or payer.pay()

    def wake(self) -> Step:
        """The wait is over."""
        dependency = self.dependency
        with dependency.lock:
            dependency.take_stock()
            step = self.machine.wake(dependency.now())
            self._count(step)
            changes = self.execution.pipeline.drain_transitions()
        if changes:
            dependency.tell(changes)
        return step

    def stop(self, outcome: Outcome = IGNORED) -> Step:
        """Whoever waited has gone; `outcome` is what that says about the dependency."""
        dependency, execution = self.dependency, self.execution
        self._no_answer()
        with dependency.lock:
            dependency.take_stock()
            if execution.permit is not None:
                dependency.outcomes[outcome] += 1
            execution.cancel(dependency.now(), outcome)
            changes = execution.pipeline.drain_transitions()
        if changes:
            dependency.tell(changes)
        return COMPLETE

    def abandon(self) -> None:
        """Whoever waited has gone, and nobody will ask how it ended: a Ctrl-C while we were at it.

        Of a call that is over it may be said, and says nothing.
        """
        if self.pending:
            self.stop()
            with self.dependency.lock:
                self.dependency.failed += self.execution.number > 0
                self.dependency.rejected += not self.execution.number
                self.pending = False

    def leave(self) -> None:
        """Whoever waited has gone, and it is not known yet why: `settle_left` says it later."""
        self._no_answer()
        self.execution.permit = None
        self.execution.outcome = IGNORED

    def settle_left(self, permit: Permit, outcome: Outcome) -> None:
        """The attempt of a call that is over already has ended so."""
        self.execution.permit = permit
        self.stop(outcome)

    def answered_late(self, now: Instant) -> Step:
        """A good answer after its time: the dependency was too slow, and the answer is used only
        if whoever waits still has time.
        """
        dependency, execution = self.dependency, self.execution
        over = execution.deadline is not None and now >= execution.deadline
        with dependency.lock:
            dependency.take_stock()
            dependency.outcomes[TIMEOUT] += 1
            execution.cancel(now, TIMEOUT)
            dependency.late += not over
            self._late = not over
            changes = execution.pipeline.drain_transitions()
        if over:
            self.error, self.result = DeadlineExceeded(dependency.name, sent=True), _NOT_YET
        if changes:
            dependency.tell(changes)
        return COMPLETE

    def _no_answer(self) -> None:
        """What an earlier attempt gave is no answer to who has gone."""
        self.result = _NOT_YET

    def _count(self, step: Step) -> None:
        """Under the lock: what a decision about another attempt means for the counters."""
        dependency = self.dependency
        if step is ATTEMPT:
            dependency.retries += 1
            if self.execution.permit is None:  # a pipeline with nothing to ask is not asked
                self.execution.permit = Permit(dependency.now())
        else:
            self._count_refused()

    def _count_refused(self) -> None:
        """Under the lock: another attempt was wanted, and why there is none."""
        reason = self.execution.stopped_by
        if reason is not None and reason not in _NOT_REFUSED:
            self.dependency.refused[reason] += 1

    def _count_unsent(self) -> None:
        reason = self.execution.stopped_by
        assert reason is not None
        self.dependency.refused[reason] += 1
        self.dependency.unsent += 1

    # How it ends.

    def end(self) -> Any:
        """Count the end; give the result, FALL_BACK, or raise what there is to raise."""
        if self.tally():
            self.error = None
            return FALL_BACK
        if self.result is not _NOT_YET:
            return self.result  # also one that says no, as a response of status 503
        error, self.error = self._verdict(), None
        try:
            raise error
        finally:
            del error  # else it would hold its own traceback, and that this frame

    def tally(self) -> bool:
        """Count the end; whether the fallback is to answer."""
        dependency, execution = self.dependency, self.execution
        outcome = execution.outcome
        fine = outcome is SUCCESS or self._late  # an expected exception is an answer as well
        helped = not (fine or self.last or outcome is IGNORED) and self.guard.fallback is not None
        with dependency.lock:
            dependency.ok += fine
            dependency.fallback += helped
            dependency.rejected += not (fine or helped or execution.number)
            dependency.failed += not (fine or helped) and execution.number > 0
            self.pending = False
        return helped

    def _verdict(self) -> BaseException:
        """What to raise. The user's own exception is never replaced: at most it gets a note."""
        dependency = self.dependency
        reason = self.execution.stopped_by
        if self.error is None:
            assert reason is not None
            if reason is Reason.DEADLINE:
                return DeadlineExceeded(dependency.name, sent=False)
            with dependency.lock:
                dependency.take_stock()
                wait = dependency.retry_after(dependency.now(), reason)
            return dependency.rejection(reason, wait)
        if reason is not None and self.execution.outcome is not SUCCESS:
            tries = self.execution.number
            times = "once" if tries == 1 else f"{tries} times"
            why = dependency.words(reason)
            _add_note(self.error, f"tidegate: {dependency.name}: tried {times}, no more: {why}")
        return self.error


_NOT_REFUSED: Final = frozenset({Reason.ATTEMPTS, Reason.NOT_RETRYABLE})


def _add_note(error: BaseException, note: str) -> None:
    """A note on the user's exception, once: an exception that is raised again must not grow."""
    with suppress(Exception):  # a frozen dataclass takes none
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)
