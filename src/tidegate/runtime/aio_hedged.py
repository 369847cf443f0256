"""How is a coroutine function asked again while its first answer is still awaited?

The driver of a hedged call. Each of its attempts is a task of its own, made from the context of
whoever calls; the call waits for whichever is first, or for the instant of the next. What loses is
cancelled and not waited for. If the call itself is cancelled, all its attempts are, and it ends
when they have ended, as it would with one.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

from tidegate.core.execution import ATTEMPT, COMPLETE, LISTEN, WAIT, Step
from tidegate.core.outcome import Permit
from tidegate.errors import AttemptTimeout, DeadlineExceeded
from tidegate.runtime.call import FALL_BACK
from tidegate.runtime.context import AMBIENT, Ambient, entered
from tidegate.runtime.guard import Guard
from tidegate.runtime.hedged import HedgedCall
from tidegate.units import SECOND, Duration

__all__ = ["raced"]

_stopping: Final[set["asyncio.Task[Any]"]] = set()  # losers on their way out: the loop holds none


async def raced(
    guard: Guard,
    function: Callable[..., Awaitable[Any]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """One call of `function` behind a guard that hedges."""
    from tidegate.runtime.aio import fall_back, left

    clock = guard.dependency.clock
    now = clock.now()
    going = HedgedCall(guard, AMBIENT.get(), now)
    out: dict[asyncio.Task[Any], int] = {}
    step = going.start(now)
    try:
        while step is not COMPLETE:
            if step is ATTEMPT:
                attempt = _attempt(going.inherits(), going.race.timeout, function, args, kwargs)
                out[asyncio.create_task(attempt)] = going.race.sent
                step = LISTEN
            elif step is LISTEN:
                step = await _listen(going, out)
            elif step is WAIT:
                await clock.wait(going.execution.until - clock.now())
                step = going.wake()
            else:
                break
    except asyncio.CancelledError as error:
        for task in out:
            task.cancel()
        with suppress(asyncio.CancelledError):  # asked twice to leave, it goes at once
            if out:
                await asyncio.wait(out)
        left(going, Permit(now), error)
    except BaseException as error:  # noqa: BLE001 - the coroutine was closed, or we are at fault
        going.error = error
        going.stop()
    finally:
        for task in out:
            _call_off(task)
    answer = going.end()
    if answer is not FALL_BACK:
        return answer
    return await fall_back(guard, args, kwargs)


async def _listen(going: HedgedCall, out: dict["asyncio.Task[Any]", int]) -> Step:
    """Wait until an attempt has ended or another may go out, and see what follows."""
    clock, due = going.dependency.clock, going.race.hedge_at
    wait = None if due is None else max(0, due - clock.now()) / SECOND
    done, _ = await asyncio.wait(out, timeout=wait, return_when=asyncio.FIRST_COMPLETED)
    step = LISTEN
    for task in sorted(done, key=out.__getitem__):
        going.leg = out.pop(task)
        step = _ended(going, task)
        if step is not LISTEN:
            return step
    if not done:
        step = going.hedge()
    return step


def _ended(going: HedgedCall, task: "asyncio.Task[Any]") -> Step:
    if task.cancelled():  # not by us: what was called has cancelled itself
        return going.failed(asyncio.CancelledError())
    error = task.exception()
    if isinstance(error, _Overdue):
        name = going.dependency.name
        late: Exception = AttemptTimeout(name, error.timeout / SECOND)
        if error.timeout != going.execution.pipeline.timeout:
            late = DeadlineExceeded(name, sent=True)
        late.__cause__ = error.__cause__
        error = late
    return going.answered(task.result()) if error is None else going.failed(error)


class _Overdue(Exception):  # noqa: N818 - tells our timeout from one of the function's own
    def __init__(self, timeout: Duration) -> None:
        self.timeout = timeout
        super().__init__()


async def _attempt(
    inherits: Ambient,
    timeout: Duration | None,
    function: Callable[..., Awaitable[Any]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    with entered(inherits):
        try:
            async with asyncio.timeout(None if timeout is None else timeout / SECOND) as scope:
                result = await function(*args, **kwargs)
        except TimeoutError as error:
            if timeout is None or not scope.expired():
                raise
            raise _Overdue(timeout) from error
        if timeout is not None and scope.expired():  # it would not be cancelled
            raise _Overdue(timeout)
        return result


def _call_off(task: "asyncio.Task[Any]") -> None:
    """Cancel a task that nobody waits for, and hold it until it has ended."""
    if task.done():
        _forget(task)
        return
    task.cancel()
    _stopping.add(task)
    task.add_done_callback(_forget)


def _forget(task: "asyncio.Task[Any]") -> None:
    _stopping.discard(task)
    if not task.cancelled():
        task.exception()  # else asyncio complains that nobody has asked
