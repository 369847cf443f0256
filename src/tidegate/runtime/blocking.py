"""How is a plain function guarded, in whatever thread it runs?

`guarded` is the flat path: one look at what is inherited, one lock to get in, one to get out. It
knows nothing of retries. Whatever does not succeed at once goes on in `_carry_on`, the twin of the
one in `aio`.

A function that blocks cannot be interrupted. It runs on past its timeout, unless an adapter has
set the socket's; what it returns then counts as TIMEOUT, and is used only if whoever waits still
has time. To hand the end of each first attempt down to it would cost a third of the flat path.
"""

from collections.abc import Callable
from functools import wraps
from types import CoroutineType
from typing import Any, ParamSpec, TypeVar

from tidegate.core.execution import ATTEMPT, WAIT, Step
from tidegate.core.outcome import SUCCESS, Permit
from tidegate.runtime.call import FALL_BACK, Call
from tidegate.runtime.context import AMBIENT, NOTHING, entered, put_back
from tidegate.runtime.guard import Guard
from tidegate.runtime.observed import Observed

__all__ = ["guarded"]

_P = ParamSpec("_P")
_T = TypeVar("_T")


def guarded(guard: Guard, function: Callable[_P, _T]) -> Callable[_P, _T]:
    """`function` behind `guard`: same signature, same results, same exceptions, and no storm.

    Written flat, since every call pays for it: the figure stands in `benchmarks/overhead.py`.
    """
    dependency = guard.dependency

    @wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        inherited = AMBIENT.get()
        clock = dependency.now
        now = clock()
        until = inherited.deadline
        if not guard.flat or (until is not None and until - now < guard.whole):
            return _by_the_book(guard, function, args, kwargs)  # type: ignore[no-any-return]
        pipeline = guard.pipeline
        with dependency.lock:
            dependency.started += 1
            if now >= dependency.look_at:
                dependency.look(now)
            permit = pipeline.admit(now, inherited.depth)
            if type(permit) is not Permit:
                refusal = dependency.refuse(now, permit, guard.fallback)
        if type(permit) is not Permit:
            breaker = pipeline.breaker
            if breaker is not None and breaker.changes:  # time itself may have brought it
                dependency.catch_up()
            if guard.fallback is not None:
                return guard.fallback(*args, **kwargs)  # type: ignore[no-any-return]
            raise dependency.rejection(*refusal)
        # The outermost budget pays for the retries of all layers further in, while there are any.
        before = None
        if now < dependency.alert_until and inherited.payer is None and guard.payer is not None:
            first = inherited is NOTHING
            before = AMBIENT.set(guard.first if first else inherited._replace(payer=guard.payer))
        try:
            result = function(*args, **kwargs)
        except BaseException as error:  # noqa: BLE001 - whatever it is, the permit goes back
            going = Call.after(guard, inherited, permit)
            step = going.failed(error)
        else:
            now = clock()
            if now - permit.start <= guard.whole and type(result) is not CoroutineType:
                with dependency.lock:
                    pipeline.settle(now, permit, SUCCESS)
                    dependency.ok += 1
                breaker = pipeline.breaker
                if breaker is not None and breaker.changes:
                    dependency.catch_up()
                return result
            going = Call.after(guard, inherited, permit)
            step = _answered(going, result)
        finally:
            if before is not None:
                put_back(before)
        return _carry_on(going, step, function, args, kwargs)  # type: ignore[no-any-return]

    return call


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
    return _carry_on(going, going.start(now), function, args, kwargs)


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
                try:
                    clock.sleep(wait)
                except BaseException:
                    going.abandon()
                    raise
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
