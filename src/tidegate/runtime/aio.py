"""How is a coroutine function guarded, on whatever event loop it runs?

The twin of `blocking`, in the same order. Two things are different: an attempt that takes too long
is given up (`timers`), and whoever waits may go away. A user who leaves says nothing about the
dependency; a deadline further out that ends the call says that it was too slow. asyncio tells
neither, so both are found out: an ambient deadline by the clock, an `asyncio.timeout` because it
takes its request to cancel back as soon as the cancellation has reached it, and a `wait_for` by
whom it wakes (`waited_for`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import Token
from functools import wraps
from threading import get_ident
from typing import Any, Final, ParamSpec, TypeVar

from tidegate.core.execution import ATTEMPT, COMPLETE, WAIT, Step
from tidegate.core.leaves import REFUSED_MAX, Leave
from tidegate.core.outcome import IGNORED, TIMEOUT, Permit, Reason
from tidegate.errors import AttemptTimeout, DeadlineExceeded
from tidegate.runtime.call import FALL_BACK, Call
from tidegate.runtime.context import AMBIENT, NOTHING, Ambient, entered, put_back
from tidegate.runtime.guard import Guard
from tidegate.runtime.observed import Observed
from tidegate.runtime.timers import Cut, Line, line_of
from tidegate.runtime.waited_for import timed_out
from tidegate.units import SECOND, Duration, Instant

__all__ = [
    "answered",
    "arm",
    "armed",
    "cut",
    "disarm",
    "ended",
    "fall_back",
    "guarded",
    "is_cut",
    "left",
]

_P = ParamSpec("_P")
_T = TypeVar("_T")

# Turns of the loop that a cancellation may take on its way out to the `asyncio.timeout` that asked
# for it: one for each clean-up on the way that awaits something.
_TURNS_MAX: Final = 8


def guarded(  # noqa: C901 - flat, for the reason in its docstring
    guard: Guard, function: Callable[_P, Awaitable[_T]]
) -> Callable[_P, Coroutine[Any, Any, _T]]:
    """The twin of `blocking.guarded`, as flat, and for the same reason."""
    dependency = guard.dependency
    leaves = dependency.leaves
    left, told, unasked = leaves.left, leaves.ended, leaves.refused

    @wraps(function)
    async def call(*args: _P.args, **kwargs: _P.kwargs) -> Any:  # noqa: C901
        inherited = AMBIENT.get()
        now = dependency.now()
        if not guard.flat or (inherited is not NOTHING and not inherited.fits(now + guard.whole)):
            return await _asked(guard, function, args, kwargs, inherited, now)
        if now >= leaves.until or not (left or dependency.refill(now, guard.pipeline)):
            # Each function that an exception passes through costs it 0.1 us, so it is raised here.
            if now < leaves.shut_until and guard.fallback is None and len(unasked) < REFUSED_MAX:
                raise dependency.shut_out(now)
            return await _asked(guard, function, args, kwargs, inherited, now)
        permit = Permit(now)
        try:
            leave = left[-1]
            del left[-1]
        except IndexError:  # another thread was quicker
            return await _asked(guard, function, args, kwargs, inherited, now)
        task = going = before = over = None
        try:
            try:
                line = guard.line
                if line is not None and line.thread == get_ident():
                    permit.holder = task = asyncio.current_task(line.loop)
                    line.queue.append(permit)
                    if not line.armed or len(line.queue) > line.sweep_at:
                        line.look_after(permit)
                else:
                    task = arm(guard, permit)
                if now < dependency.alert_until:
                    before = guard.pays(inherited)
                result = await function(*args, **kwargs)
                if permit.holder is task:  # not given up while it was ending
                    then = dependency.now()
                    permit.holder = None  # a timer that is still set must not keep the task
                    if then < leaves.until and leave is leaves.leave:
                        over = True
                        told.append(leave)
                    else:
                        permit.generation = leave.generation
                        dependency.end_well(then, leave.pipeline, permit)
                    if before is not None:
                        put_back(before)
                    return result
            except BaseException as error:
                if over or permit.settled:
                    raise
                going = _after(guard, inherited, permit, leave)
                step = ended(going, permit, error)
            else:
                going = _after(guard, inherited, permit, leave)
                step = answered(going, permit, result)
            if before is not None:
                put_back(before)
            return await _carry_on(going, step, function, args, kwargs)
        except BaseException:
            if going is None and not over and not permit.settled:
                going = _after(guard, inherited, permit, leave)
            _give_up(going, before)
            raise

    return call


def _after(guard: Guard, inherited: Ambient, permit: Permit, leave: Leave) -> Call:
    permit.generation = leave.generation
    return Call.after(guard, inherited, permit, leave.pipeline)


def _give_up(going: Call | None, before: Token[Ambient] | None) -> None:
    """On the way out with an exception, ours or a Ctrl-C's: of what is over, nothing is said."""
    if going is not None:
        going.abandon()
    if before is not None:
        put_back(before)


async def _asked(
    guard: Guard,
    function: Callable[..., Awaitable[Any]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    inherited: Ambient,
    now: Instant,
) -> Any:
    """A call for which no leave has been given in advance, as in `blocking`."""
    dependency, pipeline = guard.dependency, guard.pipeline
    until = inherited.deadline
    if not guard.flat or (until is not None and until - now < guard.whole):
        return await _by_the_book(guard, function, args, kwargs)
    permit = refusal = going = before = None
    try:
        try:
            with dependency.lock:
                permit = dependency.admit(now, pipeline, inherited.depth)
                if type(permit) is not Permit:
                    refusal = dependency.refuse(now, permit, guard.fallback)
            if type(permit) is Permit:
                task = arm(guard, permit)
                if now < dependency.alert_until:
                    before = guard.pays(inherited)
                result = await function(*args, **kwargs)
                if permit.holder is task:  # not given up while it was ending
                    dependency.end_well(dependency.now(), pipeline, permit)
                    permit.holder = None  # a timer that is still set must not keep the task
                    if before is not None:
                        put_back(before)
                    return result
        except BaseException as error:
            if type(permit) is not Permit or permit.settled:
                raise
            going = Call.after(guard, inherited, permit, pipeline)
            step = ended(going, permit, error)
        else:
            if refusal is not None:
                return await _refused(guard, refusal, args, kwargs)
            assert type(permit) is Permit
            going = Call.after(guard, inherited, permit, pipeline)
            step = answered(going, permit, result)
        if before is not None:
            put_back(before)
        return await _carry_on(going, step, function, args, kwargs)
    except BaseException:
        if going is None and type(permit) is Permit and not permit.settled:
            going = Call.after(guard, inherited, permit, pipeline)
        _give_up(going, before)
        raise


async def _refused(
    guard: Guard,
    refusal: tuple[Reason, Duration | None],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    breaker = guard.pipeline.breaker
    if breaker is not None and breaker.changes:  # time itself may have brought it
        guard.dependency.catch_up()
    if guard.fallback is not None:
        return await fall_back(guard, args, kwargs)
    raise guard.dependency.rejection(*refusal)


async def _by_the_book(
    guard: Guard,
    function: Callable[..., Awaitable[Any]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """A call whose first attempt has something to say too: a deadline, a judge, a mode."""
    inherited = AMBIENT.get()
    now = guard.dependency.now()
    if guard.mode != "enforce":
        with Observed(guard, inherited, now) as observed:
            observed.result = await function(*args, **kwargs)
        return observed.result
    if guard.pipeline.hedge is not None:
        from tidegate.runtime import aio_hedged

        return await aio_hedged.raced(guard, function, args, kwargs)
    going = Call(guard, inherited, now)
    try:
        return await _carry_on(going, going.start(now), function, args, kwargs)
    except BaseException:
        going.abandon()
        raise


async def _carry_on(
    going: Call,
    step: Step,
    function: Callable[..., Awaitable[Any]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Do what the execution says until the call is over."""
    clock = going.dependency.clock
    while True:
        if step is ATTEMPT:
            permit, timer = armed(going)
            try:
                with entered(going.inherits()):
                    result = await function(*args, **kwargs)
            except BaseException as error:  # noqa: BLE001 - judged, and raised again at the end
                step = ended(going, permit, error)
            else:
                step = answered(going, permit, result)
            if timer is not None:
                timer.cancel()
        elif step is WAIT:
            wait = going.execution.until - clock.now()
            if wait > 0:
                await clock.wait(wait)
            step = going.wake()
        else:
            break
    answer = going.end()
    if answer is not FALL_BACK:
        return answer
    return await fall_back(going.guard, args, kwargs)


async def fall_back(guard: Guard, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The fallback's answer; it may be a plain function or a coroutine function."""
    assert guard.fallback is not None
    answer = guard.fallback(*args, **kwargs)
    return await answer if isinstance(answer, Awaitable) else answer


def _here(guard: Guard, timeout: Duration) -> tuple[Line, "asyncio.Task[Any] | None"]:
    """The line for this guard's attempts on this loop, kept at hand, and the task that asks."""
    loop = asyncio.get_running_loop()
    line = guard.line = line_of(loop, timeout, guard.dependency.clock)
    line.thread = get_ident()
    return line, asyncio.current_task(loop)


def armed(going: Call) -> tuple[Permit, asyncio.TimerHandle | None]:
    """The permit of the attempt that is to go out, with its task in it and its timer set.

    A timeout that was cut to fit a deadline is of no common length: it has a timer of its own.
    """
    execution = going.execution
    permit = execution.permit
    assert permit is not None
    timeout = execution.timeout
    if timeout is None:
        return permit, None
    if timeout == execution.pipeline.timeout:
        line, permit.holder = _here(going.guard, timeout)
        line.arm(permit)
        return permit, None
    permit.holder = asyncio.current_task()
    loop = asyncio.get_running_loop()
    return permit, loop.call_later(timeout / SECOND, cut, permit)


def arm(guard: Guard, permit: Permit) -> "asyncio.Task[Any] | None":
    """Set the timer of an attempt that may take as long as any other, with its task in its permit.

    The answer is the task, None if there is no timeout. `guarded` has the same, written flat: for
    the running loop CPython 3.11 asks the system, for the running thread it does not.
    """
    timeout = guard.pipeline.timeout
    if timeout is None:
        return None
    line: Line | None = guard.line
    task = None
    if line is not None and line.thread == get_ident():
        task = asyncio.current_task(line.loop)
    if line is None or task is None:
        line, task = _here(guard, timeout)
    permit.holder = task
    line.arm(permit)
    return task


def is_cut(permit: Permit | None) -> bool:
    """Whether the attempt has been given up."""
    return permit is not None and isinstance(permit.holder, Cut)


def cut(permit: Permit) -> None:
    """Give up the attempt of this permit, unless it is over."""
    if not permit.settled and isinstance(permit.holder, asyncio.Task):
        permit.holder = Cut(permit.holder)


def answered(going: Call, permit: Permit, result: Any) -> Step:
    """The attempt has given a result."""
    if disarm(permit):
        going.error, going.result = None, result
        return going.answered_late(going.dependency.now())
    return going.answered(result)


def disarm(permit: Permit) -> bool:
    """It is not to be given up any more; whether it had been, and has answered all the same."""
    holder, permit.holder = permit.holder, None
    if not isinstance(holder, Cut):
        return False
    holder.was_ours_alone()
    return True


def ended(going: Call, permit: Permit, error: BaseException) -> Step:
    """The attempt has raised. Who ended it?"""
    holder, permit.holder = permit.holder, None
    cancelled = isinstance(error, asyncio.CancelledError)
    if isinstance(holder, Cut):
        ours = holder.was_ours_alone()
        if ours and cancelled:
            going.said = None  # nobody argues with time
            return going.failed(_too_slow(going, error))
    if not cancelled:
        return going.failed(error)
    return left(going, permit, error)


def _too_slow(going: Call, cancellation: BaseException) -> Exception:
    """The error of an attempt that we gave up; its cause shows where it hung."""
    execution = going.execution
    assert execution.timeout is not None
    name = going.dependency.name
    late: Exception
    if execution.timeout == execution.pipeline.timeout:
        late = AttemptTimeout(name, execution.timeout / SECOND)
    else:
        late = DeadlineExceeded(name, sent=True)
    late.__cause__ = cancellation
    return late


def left(going: Call, permit: Permit, error: BaseException) -> Step:
    """Somebody else has cancelled the task. It goes on its way; what it says is found out."""
    going.error = error
    deadline = going.execution.deadline
    if deadline is not None and going.dependency.now() >= deadline:
        return going.stop(TIMEOUT)
    task = asyncio.current_task()
    if task is None:
        return going.stop(IGNORED)
    if timed_out(task):
        return going.stop(TIMEOUT)
    going.leave()
    asyncio.get_running_loop().call_soon(
        _look_back, going, permit, task, task.cancelling(), _TURNS_MAX
    )
    return COMPLETE


def _look_back(
    going: Call, permit: Permit, task: "asyncio.Task[Any]", requested: int, turns: int
) -> None:
    """Where has the cancellation gone? Taken back: it was a timeout's. Not: it was a user's."""
    if task.cancelling() < requested:
        going.settle_left(permit, TIMEOUT)
    elif task.done() or turns == 0:
        going.settle_left(permit, IGNORED)
    else:
        task.get_loop().call_soon(_look_back, going, permit, task, requested, turns - 1)
