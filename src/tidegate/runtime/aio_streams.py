"""How is an async generator guarded, whose answer comes piece by piece?

The twin of `streams`, and the rules are those. One thing is different: an item that takes too long
is given up, with an `AttemptTimeout`, and the generator with it.

`yield from` does not exist here, so what a consumer sends or throws in is handed on by hand. A
`_Course` is what is to be told of each step: the call, or an observer that only counts.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from functools import wraps
from typing import Any, Final, ParamSpec, Protocol, final

from tidegate.core.execution import ATTEMPT, WAIT
from tidegate.core.outcome import IGNORED, SUCCESS, Permit
from tidegate.errors import AttemptTimeout, DeadlineExceeded
from tidegate.runtime import aio
from tidegate.runtime.call import FALL_BACK, Call
from tidegate.runtime.context import AMBIENT, entered
from tidegate.runtime.guard import Guard
from tidegate.runtime.observed import Observed
from tidegate.runtime.streams import begun, end_early, end_well, inherits, is_late
from tidegate.runtime.timers import Cut, line_of
from tidegate.units import SECOND, Duration

__all__ = ["guarded"]

_P = ParamSpec("_P")


class _Course(Protocol):
    """Who is told how a stream goes."""

    async def next(self, source: AsyncIterator[Any], sent: Any, thrown: Any) -> Any:
        """The next item, asked for as the consumer has asked."""
        ...

    def end(self) -> None:
        """There are no more. Raises what there is to raise."""
        ...

    def end_early(self) -> None:
        """The consumer wants no more."""
        ...


def guarded(
    guard: Guard, function: Callable[_P, AsyncIterator[Any]], idle: Duration | None
) -> Callable[_P, AsyncGenerator[Any, Any]]:
    """`function`, whose async iterators are guarded; `idle` is how long a later item may take, None
    for as long as an attempt may.

    The answer is an async generator function: nothing is asked for before the first item is.
    """

    @wraps(function)
    async def stream(*args: _P.args, **kwargs: _P.kwargs) -> AsyncGenerator[Any, Any]:
        course: _Course
        try:
            course, source, item = await _begin(guard, function, args, kwargs, idle)
        except StopAsyncIteration:
            return
        while True:
            sent = thrown = None
            try:
                sent = yield item
            except GeneratorExit:
                course.end_early()
                await _close(source)
                raise
            except BaseException as error:  # noqa: BLE001 - the consumer's own; theirs to catch
                thrown = error
            try:
                item = await course.next(source, sent, thrown)
            except StopAsyncIteration:
                course.end()
                return

    return stream


async def _begin(
    guard: Guard,
    function: Callable[..., AsyncIterator[Any]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    idle: Duration | None,
) -> tuple[_Course, AsyncIterator[Any], Any]:
    """The stream with its first item; a stream of nothing is StopAsyncIteration."""
    inherited = AMBIENT.get()
    now = guard.dependency.now()
    if guard.mode != "enforce":
        observed = Observed(guard, inherited, now)
        observed.__enter__()
        return await _first(_Watched(guard, observed), function(*args, **kwargs))
    going = Call(guard, inherited, now)
    step = going.start(now)
    clock = going.dependency.clock
    while True:
        if step is ATTEMPT:
            permit, timer = aio.armed(going)
            try:
                with entered(going.inherits()):
                    source = aiter(function(*args, **kwargs))
                    item = await anext(source)
            except StopAsyncIteration:
                end_well(going, None, late=aio.disarm(permit) or is_late(going))
                raise
            except BaseException as error:  # noqa: BLE001 - judged, and raised again at the end
                step = aio.ended(going, permit, error)
            else:
                late = aio.disarm(permit) or is_late(going)
                limit = guard.pipeline.timeout if idle is None else idle
                course = _Going(going, limit, late=late)
                begun(going)
                if course.is_over():
                    await course.refuse(source)
                return course, source, item
            finally:
                if timer is not None:
                    timer.cancel()
        elif step is WAIT:
            wait = going.execution.until - clock.now()
            if wait > 0:
                try:
                    await clock.wait(wait)
                except BaseException:
                    going.abandon()
                    raise
            step = going.wake()
        else:
            break
    assert going.end() is FALL_BACK
    assert guard.fallback is not None
    return await _first(_Watched(guard, None), guard.fallback(*args, **kwargs))


async def _first(
    course: "_Watched", stream: AsyncIterator[Any]
) -> tuple[_Course, AsyncIterator[Any], Any]:
    source = aiter(stream)
    try:
        return course, source, await course.next(source, None, None)
    except StopAsyncIteration:
        course.end()
        raise


@final
class _Going:
    """The course of a guarded call from its first item on."""

    def __init__(self, going: Call, idle: Duration | None, *, late: bool) -> None:
        self._going: Final = going
        self._idle: Final = idle
        self._late = late

    def is_over(self) -> bool:
        """Whether nobody waits any more."""
        deadline = self._going.execution.deadline
        return deadline is not None and self._going.dependency.now() >= deadline

    async def refuse(self, source: AsyncIterator[Any]) -> None:
        """Hand nothing on, since nobody waits any more."""
        await _close(source)
        end_well(self._going, None, late=True)

    async def next(self, source: AsyncIterator[Any], sent: Any, thrown: Any) -> Any:
        """The next item, unless it takes too long."""
        if self.is_over():
            await self.refuse(source)
        going = self._going
        asked = going.dependency.now()
        mark = Permit(asked)  # of this one item, for the timers
        timer = self._arm(mark)
        try:
            with entered(inherits(going, asked, self._idle)):
                item = await _ask(source, sent, thrown)
        except StopAsyncIteration:
            self._late = aio.disarm(mark) or self._late
            raise
        except BaseException as error:
            if error is thrown:
                aio.disarm(mark)
                self.end_early()
                raise
            late = self._judge(mark, error)
            going.tally()
            if late is not None:
                raise late from error
            raise
        finally:
            mark.settled = True
            if timer is not None:
                timer.cancel()
        took = going.dependency.now() - asked
        slow = aio.disarm(mark) or (self._idle is not None and took > self._idle)
        self._late = self._late or slow
        if self.is_over():
            await self.refuse(source)
        return item

    def _arm(self, mark: Permit) -> asyncio.TimerHandle | None:
        """Equal waits stand in one line; one that is cut to fit a deadline has its own timer."""
        loop = asyncio.get_running_loop()
        mark.holder = asyncio.current_task(loop)
        idle, deadline = self._idle, self._going.execution.deadline
        if deadline is not None and (idle is None or mark.start + idle > deadline):
            return loop.call_later((deadline - mark.start) / SECOND, aio.cut, mark)
        if idle is not None:
            line_of(loop, idle, self._going.dependency.clock).arm(mark)
        return None

    def _judge(self, mark: Permit, error: BaseException) -> Exception | None:
        """Who ended it? The exception that takes the place of a cancellation of ours."""
        going, idle = self._going, self._idle
        holder, mark.holder = mark.holder, None
        cancelled = isinstance(error, asyncio.CancelledError)
        if isinstance(holder, Cut) and holder.was_ours_alone() and cancelled:
            name, deadline = going.dependency.name, going.execution.deadline
            late: Exception
            if idle is not None and (deadline is None or mark.start + idle <= deadline):
                late = AttemptTimeout(name, idle / SECOND)
            else:
                late = DeadlineExceeded(name, sent=True)
            going.failed(late)
            return late
        if cancelled:
            permit = going.execution.permit
            assert permit is not None
            aio.left(going, permit, error)
        else:
            going.failed(error)
        return None

    def end(self) -> None:
        """There are no more."""
        end_well(self._going, None, late=self._late)

    def end_early(self) -> None:
        """The consumer wants no more."""
        end_early(self._going, late=self._late)


@final
class _Watched:
    """The course of a stream that nobody hinders; `observed` counts it."""

    def __init__(self, guard: Guard, observed: Observed | None) -> None:
        self._guard: Final = guard
        self._observed: Final = observed

    async def next(self, source: AsyncIterator[Any], sent: Any, thrown: Any) -> Any:
        """The next item."""
        try:
            return await _ask(source, sent, thrown)
        except StopAsyncIteration:
            raise
        except BaseException as error:
            if self._observed is not None:
                outcome = IGNORED  # if whoever is to judge it raises
                try:
                    outcome = SUCCESS if error is thrown else self._guard.outcome_of(error)
                finally:
                    self._observed.settle(outcome)
            raise

    def end(self) -> None:
        """There are no more."""
        if self._observed is not None:
            self._observed.settle(SUCCESS)

    def end_early(self) -> None:
        """The consumer wants no more."""
        self.end()


async def _ask(source: AsyncIterator[Any], sent: Any, thrown: BaseException | None) -> Any:
    if thrown is not None:
        throw = getattr(source, "athrow", None)
        if throw is None:
            raise thrown
        return await throw(thrown)
    if sent is None:
        return await anext(source)
    return await source.asend(sent)  # type: ignore[attr-defined]  # theirs to have one


async def _close(source: AsyncIterator[Any]) -> None:
    close = getattr(source, "aclose", None)
    if close is not None:
        await close()
