"""What would the guard have refused, if it had been allowed to?

In `observe` mode every call goes through exactly once, as if there were no guard. The policies are
told what they would have been told, and their noes are counted instead of obeyed. A guard that is
`off` does not even do that.
"""

from types import TracebackType
from typing import Any, Final, Self, final

from tidegate.core.outcome import IGNORED, SUCCESS, Outcome, Permit
from tidegate.runtime.context import Ambient
from tidegate.runtime.guard import Guard
from tidegate.units import Instant

__all__ = ["Observed"]


@final
class Observed:
    """A block around one unhindered call."""

    __slots__ = ("_guard", "_inherited", "_now", "_permit", "result")

    def __init__(self, guard: Guard, inherited: Ambient, now: Instant) -> None:
        self._guard: Final = guard
        self._inherited: Final = inherited
        self._now: Final = now
        self._permit: Permit | None = None
        self.result: Any = None

    def __enter__(self) -> Self:
        if self._guard.mode == "observe":
            dependency = self._guard.dependency
            with dependency.lock:
                dependency.take_stock()
                answer = self._guard.pipeline.admit(self._now, self._inherited.depth)
                dependency.started += 1
                if type(answer) is Permit:
                    self._permit = answer
                else:
                    dependency.would_refuse[answer.reason] += 1
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._guard.mode != "observe":
            return
        outcome = IGNORED  # if whoever is to judge it raises
        try:
            if error is not None:
                outcome = self._guard.outcome_of(error)
            else:
                verdict = self._guard.verdict_on(self.result)
                outcome = SUCCESS if verdict is None else verdict.outcome
        finally:
            self.settle(outcome)

    def settle(self, outcome: Outcome) -> None:
        """The call has ended so: for a shell that knows it better than the block's exception."""
        if self._guard.mode != "observe":
            return
        dependency = self._guard.dependency
        with dependency.lock:
            dependency.take_stock()
            now = dependency.now()
            if self._permit is not None:
                self._guard.pipeline.settle(now, self._permit, outcome)
            fine = outcome is SUCCESS
            dependency.ok += fine
            dependency.failed += not fine
            if not fine:
                dependency.outcomes[outcome] += 1
            changes = self._guard.pipeline.drain_transitions()
        if changes:
            dependency.tell(changes)
