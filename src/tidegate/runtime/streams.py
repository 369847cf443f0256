"""How is a generator guarded, whose answer comes piece by piece?

A stream has begun well when its first item is there. Up to then it is a call like any other: asked
for, given up, tried again. From then on nothing is repeated, since whoever consumes it has had a
part already and would have it twice; an error goes to them as it is, and no fallback answers.

Two limits in the place of the one timeout: until the first item, and for each item after it. How
fast the consumer takes them is the consumer's business and counts against nobody; the permit is
held until the end all the same, since the dependency is busy with us so long.

The outcome is told at the end. A consumer who stops early has had what they wanted from a
dependency that kept giving it: that is a SUCCESS, else a probe of which only the first page is read
would never close a circuit. The same goes for an exception that the consumer throws in.

The twin for async generators is `aio_streams`.
"""

from collections.abc import Callable, Generator, Iterator
from functools import wraps
from typing import Any, ParamSpec

from tidegate.core.execution import ATTEMPT, WAIT
from tidegate.core.outcome import IGNORED, SUCCESS
from tidegate.runtime.call import FALL_BACK, Call
from tidegate.runtime.context import AMBIENT, Ambient, entered
from tidegate.runtime.guard import Guard
from tidegate.runtime.observed import Observed
from tidegate.units import Duration, Instant

__all__ = ["begun", "end_early", "end_well", "guarded", "inherits", "is_late"]

_P = ParamSpec("_P")


def guarded(
    guard: Guard, function: Callable[_P, Iterator[Any]], idle: Duration | None
) -> Callable[_P, Generator[Any, Any, Any]]:
    """`function`, whose iterators are guarded; `idle` is how long an item after the first may take,
    None for as long as an attempt may.

    The answer is a generator function: nothing is asked for before the first item is.
    """
    dependency = guard.dependency

    @wraps(function)
    def stream(*args: _P.args, **kwargs: _P.kwargs) -> Generator[Any, Any, Any]:
        inherited = AMBIENT.get()
        now = dependency.now()
        if guard.mode != "enforce":
            observed = Observed(guard, inherited, now)
            return (yield from _observed(observed, guard, iter(function(*args, **kwargs))))
        going = Call(guard, inherited, now)
        step = going.start(now)
        while True:
            if step is ATTEMPT:
                try:
                    with entered(going.inherits()):
                        source = iter(function(*args, **kwargs))
                        item = next(source)
                except StopIteration as end:  # a stream of nothing is an answer as well
                    return end_well(going, end.value, late=is_late(going))
                except BaseException as error:  # noqa: BLE001 - judged, and raised again at the end
                    step = going.failed(error)
                else:
                    limit = guard.pipeline.timeout if idle is None else idle
                    return (yield from _hand_out(going, source, item, limit))
            elif step is WAIT:
                wait = going.execution.until - dependency.now()
                if wait > 0:
                    try:
                        dependency.clock.sleep(wait)
                    except BaseException:
                        going.abandon()
                        raise
                step = going.wake()
            else:
                break
        answer = going.end()
        if answer is FALL_BACK:
            assert guard.fallback is not None
            answer = yield from guard.fallback(*args, **kwargs)
        return answer

    return stream


def _hand_out(
    going: Call, source: Iterator[Any], item: Any, idle: Duration | None
) -> Generator[Any, Any, Any]:
    """Everything from the first item on."""
    now_of, deadline = going.dependency.now, going.execution.deadline
    late = is_late(going)
    begun(going)
    while True:
        if deadline is not None and now_of() >= deadline:
            _close(source)
            return end_well(going, None, late=True)  # raises: nobody waits any more
        sent = thrown = None
        try:
            sent = yield item
        except GeneratorExit:
            end_early(going, late=late)
            _close(source)
            raise
        except BaseException as error:  # noqa: BLE001 - the consumer's own; theirs to catch
            thrown = error
        asked = now_of()
        try:
            with entered(inherits(going, asked, idle)):
                item = _ask(source, sent, thrown)
        except StopIteration as end:
            return end_well(going, end.value, late=late)
        except BaseException as error:
            if error is thrown:
                end_early(going, late=late)
            else:
                going.failed(error)
                going.tally()
            raise
        late = late or (idle is not None and now_of() - asked > idle)


def _observed(observed: Observed, guard: Guard, source: Iterator[Any]) -> Generator[Any, Any, Any]:
    outcome = SUCCESS
    sent = thrown = None
    observed.__enter__()
    try:
        while True:
            try:
                item = _ask(source, sent, thrown)
            except StopIteration as end:
                return end.value
            except BaseException as error:
                outcome = IGNORED  # if whoever is to judge it raises
                outcome = SUCCESS if error is thrown else guard.outcome_of(error)
                raise
            sent = thrown = None
            try:
                sent = yield item
            except GeneratorExit:
                _close(source)
                raise
            except BaseException as error:  # noqa: BLE001 - the consumer's own; theirs to catch
                thrown = error
    finally:
        observed.settle(outcome)


def _ask(source: Iterator[Any], sent: Any, thrown: BaseException | None) -> Any:
    """The next item, asked for as the consumer has asked (PEP 380)."""
    if thrown is not None:
        throw = getattr(source, "throw", None)
        if throw is None:
            raise thrown
        return throw(thrown)
    if sent is None:
        return next(source)
    return source.send(sent)  # type: ignore[attr-defined]  # theirs to have one


def _close(source: Iterator[Any]) -> None:
    close = getattr(source, "close", None)
    if close is not None:
        close()


# For both twins.


def is_late(going: Call) -> bool:
    """Whether the first item took longer than an attempt may."""
    permit, timeout = going.execution.permit, going.execution.timeout
    assert permit is not None
    return timeout is not None and going.dependency.now() - permit.start > timeout


def begun(going: Call) -> None:
    """The first item is there: from now on nothing is repeated, and the consumer sets the pace."""
    going.last = True
    permit = going.execution.permit
    assert permit is not None
    permit.took = max(1, going.dependency.now() - permit.start)


def inherits(going: Call, now: Instant, idle: Duration | None) -> Ambient:
    """What the code that makes the next item inherits: its own end, and the rest as it was."""
    until = going.execution.deadline
    if idle is not None:
        until = now + idle if until is None else min(until, now + idle)
    return going.inherits()._replace(deadline=until)


def end_well(going: Call, value: Any, *, late: bool) -> Any:
    """The stream is over. Raises DeadlineExceeded if it came late and nobody waits any more."""
    going.last = True
    going.error, going.result = None, value
    if late:
        going.answered_late(going.dependency.now())
    else:
        going.settle(SUCCESS)
    return going.end()


def end_early(going: Call, *, late: bool) -> None:
    """The consumer wants no more of it."""
    if late:
        going.answered_late(going.dependency.now())
    else:
        going.settle(SUCCESS)
    going.tally()
