"""How is a block of code guarded, which can be run only once?

`with licences.attempt() as attempt:` asks before the block begins, so what may not start does not;
it judges how the block ended, and gives the permit back however it is left. There is no retry,
since nobody can run a block again, and no fallback, since a block has no value to replace.

In `async with` an attempt that takes too long is given up, as anywhere in `aio`. In a plain `with`
nothing can be interrupted: hand `attempt.remaining()` on as the timeout of what is called.
"""

from contextvars import Token
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, final

from tidegate.core.execution import REJECT
from tidegate.core.outcome import SUCCESS, Outcome
from tidegate.errors import SettingsError
from tidegate.runtime import context
from tidegate.runtime.call import Call
from tidegate.runtime.context import AMBIENT, Ambient, put_back
from tidegate.runtime.guard import Guard
from tidegate.runtime.observed import Observed

if TYPE_CHECKING:
    from asyncio import TimerHandle

__all__ = ["Attempt"]


@final
class Attempt:
    """One attempt of one call, as a block; `Guard.attempt` makes it, for one use.

    Entering raises what a guarded function would raise: `Rejected` if the policies refuse, and
    `DeadlineExceeded` if the ambient deadline has passed. Leaving raises `DeadlineExceeded` if it
    passed inside, and in `async with` `AttemptTimeout` for an attempt that was given up.
    """

    __slots__ = ("_before", "_going", "_guard", "_observed", "_said", "_timer")

    def __init__(self, guard: Guard) -> None:
        self._guard: Final = guard
        self._going: Call | None = None
        self._observed: Observed | None = None
        self._said: Outcome | None = None
        self._before: Token[Ambient] | None = None
        self._timer: TimerHandle | None = None

    def remaining(self) -> float | None:
        """Seconds until this attempt is given up, zero if it should be; None for no end."""
        return context.remaining()

    def record(self, outcome: Outcome) -> None:
        """Say how it went, for a block that raises nothing where the dependency said no.

        What was said last counts, also against an exception of the block: the dependency may have
        answered well what the block then choked on. Only time is never argued with.
        """
        if not isinstance(outcome, Outcome):
            raise SettingsError(f"an outcome is one of tidegate.Outcome, not {outcome!r}")
        self._said = outcome

    # with

    def __enter__(self) -> Self:
        self._enter()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        going = self._leave(error)
        if going is None:
            return
        if error is None:
            going.answered(None)
        else:
            going.failed(error)
        self._close(going, error)

    # async with

    async def __aenter__(self) -> Self:
        self._enter()
        if self._going is not None:
            from tidegate.runtime import aio

            _, self._timer = aio.armed(self._going)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        going = self._leave(error)
        if going is None:
            return
        from tidegate.runtime import aio

        if self._timer is not None:
            self._timer.cancel()
        permit = going.execution.permit
        assert permit is not None
        if error is None:
            aio.answered(going, permit, None)
        else:
            aio.ended(going, permit, error)
        self._close(going, error)

    # Both.

    def _enter(self) -> None:
        guard = self._guard
        if self._going is not None or self._observed is not None:
            raise RuntimeError("an attempt is one block: ask the guard for another")
        inherited, now = AMBIENT.get(), guard.dependency.now()
        if guard.mode != "enforce":
            self._observed = Observed(guard, inherited, now)
            self._observed.__enter__()
            return
        going = Call(guard, inherited, now)
        going.last = True
        if going.start(now) is REJECT:
            going.end()
        self._going = going
        self._before = AMBIENT.set(going.inherits())

    def _leave(self, error: BaseException | None) -> Call | None:
        if self._observed is not None:
            outcome = self._said
            if outcome is None:
                outcome = SUCCESS if error is None else self._guard.outcome_of(error)
            self._observed.settle(outcome)
            return None
        assert self._before is not None
        assert self._going is not None
        put_back(self._before)
        self._going.said = self._said
        return self._going

    def _close(self, going: Call, error: BaseException | None) -> None:
        """Count the end. The block's own exception goes on by itself, ours takes its place."""
        if error is not None and going.error is error:
            going.error = None
            going.tally()
        else:
            going.end()
