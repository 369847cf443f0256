"""How is a block of code guarded, which can be run only once?

`with licences.attempt() as attempt:` asks before the block begins, so what may not start does not;
it judges how the block ended, and gives the permit back however it is left. There is no retry,
since nobody can run a block again, and no fallback, since a block has no value to replace.

In `async with` an attempt that takes too long is given up, as anywhere in `aio`. In a plain `with`
nothing can be interrupted: hand `attempt.remaining()` on as the timeout of what is called.
"""

from contextvars import Token
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, final

from tidegate.core.execution import REJECT
from tidegate.core.outcome import IGNORED, SUCCESS, Outcome, Permit
from tidegate.errors import SettingsError
from tidegate.runtime import context
from tidegate.runtime.call import Call
from tidegate.runtime.context import AMBIENT, Ambient, back_to, put_back
from tidegate.runtime.guard import Guard
from tidegate.runtime.observed import Observed
from tidegate.units import Instant

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

    __slots__ = (
        "_before",
        "_going",
        "_guard",
        "_inherited",
        "_observed",
        "_permit",
        "_pipeline",
        "_said",
        "_timer",
    )

    def __init__(self, guard: Guard) -> None:
        self._guard: Final = guard
        self._pipeline: Final = guard.pipeline
        self._inherited: Ambient | None = None
        self._permit: Permit | None = None  # of one that needs no execution as long as all is well
        self._going: Call | None = None  # of any other
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
        inherited = AMBIENT.get()
        try:
            self._enter()
        except BaseException:
            self._give_up()
            back_to(inherited)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self._is_unhindered(error):
                return
            assert self._before is not None
            put_back(self._before)
            if error is None and self._ended_well():
                return
            going = self._by_the_book()
            if error is None:
                going.answered(None)
            else:
                going.failed(error)
            self._close(going, error)
        except BaseException:
            self._give_up()
            if self._before is not None:
                put_back(self._before)
            raise

    # async with

    async def __aenter__(self) -> Self:
        self._enter()
        if self._permit is not None:
            _asyncio_driver().arm(self._guard, self._permit)
        elif self._going is not None:
            _, self._timer = _asyncio_driver().armed(self._going)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._is_unhindered(error):
            return
        assert self._before is not None
        put_back(self._before)
        if self._timer is not None:
            self._timer.cancel()
        aio = _asyncio_driver()
        if error is None and not aio.is_cut(self._permit) and self._ended_well():
            return
        going = self._by_the_book()
        permit = going.execution.permit
        if error is None:
            aio.answered(going, permit, None)
        else:
            aio.ended(going, permit, error)
        self._close(going, error)

    # Both.

    def _enter(self) -> None:
        guard, dependency = self._guard, self._guard.dependency
        if self._inherited is not None:
            raise RuntimeError("an attempt is one block: ask the guard for another")
        inherited = self._inherited = AMBIENT.get()
        now = dependency.now()
        if guard.mode != "enforce":
            self._observed = Observed(guard, inherited, now)
            self._observed.__enter__()
            return
        until = inherited.deadline
        if self._pipeline.deadline is None and (until is None or until - now >= guard.whole):
            self._before = AMBIENT.set(self._admitted(now, inherited))
            return
        going = self._going = Call(guard, inherited, now)
        going.last = True
        if going.start(now) is REJECT:
            going.end()
        self._before = AMBIENT.set(going.inherits())

    def _admitted(self, now: Instant, inherited: Ambient) -> Ambient:
        """The flat way in, as in `blocking.guarded`; what the block inherits."""
        guard, dependency, pipeline = self._guard, self._guard.dependency, self._pipeline
        with dependency.lock:
            answer = dependency.admit(now, pipeline, inherited.depth)
            self._permit = answer  # type: ignore[assignment] # at once: a Ctrl-C comes after a call
            if not isinstance(answer, Permit):
                self._permit = None
                refusal = dependency.refuse(now, answer, None)
        if self._permit is None:
            if pipeline.breaker is not None and pipeline.breaker.changes:  # brought by time itself
                dependency.catch_up()
            raise dependency.rejection(*refusal)
        until = inherited.deadline if pipeline.timeout is None else now + pipeline.timeout
        return Ambient(until, inherited.said, inherited.depth, inherited.payer or guard.payer)

    def _is_unhindered(self, error: BaseException | None) -> bool:
        """Whether nobody guards it; then all that is left is to count it."""
        if self._observed is None:
            return False
        outcome = IGNORED if self._said is None else self._said  # if whoever is to judge it raises
        try:
            if self._said is None:
                outcome = SUCCESS if error is None else self._guard.outcome_of(error)
        finally:
            self._observed.settle(outcome)
        return True

    def _ended_well(self) -> bool:
        """Count a good end in time, if this is one."""
        permit, dependency, pipeline = self._permit, self._guard.dependency, self._pipeline
        if permit is None or (self._said is not None and self._said is not SUCCESS):
            return False
        now = dependency.now()
        if now - permit.start > self._guard.whole:
            return False
        dependency.end_well(now, pipeline, permit)
        permit.holder = None
        return True

    def _by_the_book(self) -> Call:
        """The call of an attempt whose end has something to say."""
        going = self._going
        if going is None:
            assert self._permit is not None
            assert self._inherited is not None
            going = self._going = Call.after(
                self._guard, self._inherited, self._permit, self._pipeline
            )
            going.last = True
        going.said = self._said
        return going

    def _give_up(self) -> None:
        """Nobody will tell how it ended: a Ctrl-C in here. Of one that is over it says nothing."""
        if self._going is None and isinstance(self._permit, Permit) and not self._permit.settled:
            self._by_the_book()
        if self._going is not None:
            self._going.abandon()

    def _close(self, going: Call, error: BaseException | None) -> None:
        """Count the end. The block's own exception goes on by itself, ours takes its place."""
        if error is not None and going.error is error:
            going.error = None
            going.tally()
        else:
            going.end()


_aio: Any = None


def _asyncio_driver() -> Any:
    """The module `aio`, once it is needed: importing it anew costs a microsecond each time."""
    global _aio  # noqa: PLW0603 - one for the process, as modules are
    if _aio is None:
        from tidegate.runtime import aio

        _aio = aio
    return _aio
