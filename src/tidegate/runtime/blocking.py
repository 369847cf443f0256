"""How is a plain function guarded, in whatever thread it runs?

`guarded` is the flat path: one look at what is inherited, and where there is nothing to decide no
lock at all (`core/leaves.py`). Else `_asked` takes one to get in and one to get out. Neither knows
of retries. Whatever does not succeed at once goes on in `_carry_on`, the twin of the one in `aio`.

A function that blocks cannot be interrupted. It runs on past its timeout, unless an adapter has
set the socket's; what it returns then counts as TIMEOUT, and is used only if whoever waits still
has time. To hand the end of each first attempt down to it would cost a third of the flat path.

A Ctrl-C may come after any call that is made in here. So each question is asked within a `try`, and
what was out when it came is given back on the way out (`Call.abandon`).
"""

from collections.abc import Callable
from functools import wraps
from types import CoroutineType
from typing import Any, ParamSpec, TypeVar

from tidegate.core.execution import ATTEMPT, WAIT, Step
from tidegate.core.leaves import REFUSED_MAX
from tidegate.core.outcome import SETTLED, Permit, Reason
from tidegate.runtime.call import FALL_BACK, Call
from tidegate.runtime.context import AMBIENT, NOTHING, Ambient, back_to, entered, put_back
from tidegate.runtime.guard import Guard
from tidegate.runtime.observed import Observed
from tidegate.units import Duration, Instant

__all__ = ["guarded"]

_P = ParamSpec("_P")
_T = TypeVar("_T")


def guarded(  # noqa: C901 - flat, for the reason in its docstring
    guard: Guard, function: Callable[_P, _T]
) -> Callable[_P, _T]:
    """`function` behind `guard`: same signature, same results, same exceptions, and no storm.

    Written flat, since every call pays for it: the figure stands in `benchmarks/overhead.py`.
    """
    dependency = guard.dependency
    leaves = dependency.leaves
    left, told, unasked = leaves.left, leaves.ended, leaves.refused

    @wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> Any:  # noqa: C901
        inherited = AMBIENT.get()
        now = dependency.now()
        if not guard.flat or (inherited is not NOTHING and not inherited.fits(now + guard.whole)):
            return _asked(guard, function, args, kwargs, inherited, now)
        if now >= leaves.until or not (left or dependency.refill(now, guard.pipeline)):
            # Each function that an exception passes through costs it 0.1 us, so it is raised here.
            if now < leaves.shut_until and guard.fallback is None and len(unasked) < REFUSED_MAX:
                raise dependency.shut_out(now)
            return _asked(guard, function, args, kwargs, inherited, now)
        try:
            leave = left[-1]
            del left[-1]
        except IndexError:  # another thread was quicker
            return _asked(guard, function, args, kwargs, inherited, now)
        permit = going = before = None
        try:
            try:
                if now < dependency.alert_until:
                    before = guard.pays(inherited)
                result = function(*args, **kwargs)
                then = dependency.now()
                if then - now <= guard.whole and type(result) is not CoroutineType:
                    if then < leaves.until and leave is leaves.leave:
                        permit = SETTLED
                        told.append(leave)
                    else:
                        permit = leave.permit(now)
                        dependency.end_well(then, leave.pipeline, permit)
                    if before is not None:
                        put_back(before)
                    return result
            except BaseException as error:
                if permit is not None and permit.settled:
                    raise
                permit = permit or leave.permit(now)
                going = Call.after(guard, inherited, permit, leave.pipeline)
                step = going.failed(error)
            else:
                going = Call.after(guard, inherited, leave.permit(now), leave.pipeline)
                step = _answered(going, result)
            if before is not None:
                put_back(before)
            return _carry_on(going, step, function, args, kwargs)
        except BaseException:
            if going is None and (permit is None or not permit.settled):
                going = Call.after(guard, inherited, permit or leave.permit(now), leave.pipeline)
            if going is not None:
                going.abandon()
            back_to(inherited)
            raise

    return call


def _asked(  # noqa: C901 - the twin of `call`
    guard: Guard,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    inherited: Ambient,
    now: Instant,
) -> Any:
    """A call for which no leave has been given in advance: it asks, and tells how it has ended."""
    dependency, pipeline = guard.dependency, guard.pipeline
    until = inherited.deadline
    if not guard.flat or (until is not None and until - now < guard.whole):
        return _by_the_book(guard, function, args, kwargs)
    answer = refusal = going = before = None
    try:
        try:
            with dependency.lock:
                answer = dependency.admit(now, pipeline, inherited.depth)
                if type(answer) is not Permit:
                    refusal = dependency.refuse(now, answer, guard.fallback)
            if type(answer) is Permit:
                if now < dependency.alert_until:
                    before = guard.pays(inherited)
                result = function(*args, **kwargs)
                then = dependency.now()
                if then - now <= guard.whole and type(result) is not CoroutineType:
                    dependency.end_well(then, pipeline, answer)
                    if before is not None:
                        put_back(before)
                    return result
        except BaseException as error:
            if type(answer) is not Permit or answer.settled:
                raise
            going = Call.after(guard, inherited, answer, pipeline)
            step = going.failed(error)
        else:
            if refusal is not None:
                return _refused(guard, refusal, args, kwargs)
            assert type(answer) is Permit
            going = Call.after(guard, inherited, answer, pipeline)
            step = _answered(going, result)
        if before is not None:
            put_back(before)
        return _carry_on(going, step, function, args, kwargs)
    except BaseException:
        if going is None and type(answer) is Permit and not answer.settled:
            going = Call.after(guard, inherited, answer, pipeline)
        if going is not None:
            going.abandon()
        back_to(inherited)
        raise


def _refused(
    guard: Guard,
    refusal: tuple[Reason, Duration | None],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    breaker = guard.pipeline.breaker
    if breaker is not None and breaker.changes:  # time itself may have brought it
        guard.dependency.catch_up()
    if guard.fallback is not None:
        return guard.fallback(*args, **kwargs)
    raise guard.dependency.rejection(*refusal)


def _by_the_book(
    guard: Guard, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A call whose first attempt has something to say too: a deadline, a judge, a mode."""
    inherited = AMBIENT.get()
    now = guard.dependency.now()
    if guard.mode != "enforce":
        with Observed(guard, inherited, now) as observed:
            observed.result = function(*args, **kwargs)
        return observed.result
    going = Call(guard, inherited, now)
    try:
        return _carry_on(going, going.start(now), function, args, kwargs)
    except BaseException:
        going.abandon()
        back_to(inherited)
        raise


def _carry_on(
    going: Call,
    step: Step,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Do what the execution says until the call is over."""
    clock = going.dependency.clock
    while True:
        if step is ATTEMPT:
            try:
                with entered(going.inherits()):
                    result = function(*args, **kwargs)
            except BaseException as error:  # noqa: BLE001 - judged, and raised again at the end
                step = going.failed(error)
            else:
                step = _answered(going, result)
        elif step is WAIT:
            wait = going.execution.until - clock.now()
            if wait > 0:
                clock.sleep(wait)
            step = going.wake()
        else:
            break
    answer = going.end()
    if answer is not FALL_BACK:
        return answer
    assert going.guard.fallback is not None
    return going.guard.fallback(*args, **kwargs)


def _answered(going: Call, result: Any) -> Step:
    """The attempt has given a result, which must not be work that has yet to be done."""
    if type(result) is not CoroutineType:
        return going.answered(result)
    result.close()  # else Python complains that nobody has awaited it
    return going.failed(
        TypeError(
            "a guarded function gave a coroutine, whose end its guard would not see: make it"
            " `async def`, or use `await guard.acall(function, ...)`"
        )
    )
