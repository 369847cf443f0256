"""What is answered by a task while a dependency cannot: the twin of `stale`, in the same order.

Those who wait for one call wait on its loop: a future belongs to one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from tidegate.runtime.stale import Flight, Stale, under_way

__all__ = ["guarded"]

_P = ParamSpec("_P")
_T = TypeVar("_T")


def guarded(
    stale: Stale, function: Callable[_P, Awaitable[_T]]
) -> Callable[_P, Coroutine[Any, Any, _T]]:
    """A coroutine `function` under its guard, with its last good answers at hand."""

    @wraps(function)
    async def kept(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        value = await function(*args, **kwargs)
        stale.keep(value)
        return value

    with_entry, without = stale.with_entry(kept), stale.without(kept)

    @wraps(function)
    async def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        loop = asyncio.get_running_loop()
        asked = stale.asked(args, kwargs)
        answer = without if asked.entry is None else with_entry
        if stale.guard.mode != "enforce":  # every call for itself, as if there were no guard
            with under_way(stale.alone(asked)):
                return await answer(*args, **kwargs)
        while True:
            flight = stale.join(asked, loop.create_future, loop)
            if flight.asked is asked:
                return await _lead(  # type: ignore[no-any-return]
                    stale, flight, answer, args, kwargs
                )
            landed, _ = await asyncio.wait({flight.landed}, timeout=stale.wait(flight))
            if landed:
                if flight.speaks_for_others:
                    return stale.share(flight)  # type: ignore[no-any-return]
            elif stale.is_too_late():
                return stale.give_up(asked)  # type: ignore[no-any-return]

    return call


async def _lead(
    stale: Stale,
    flight: Flight,
    answer: Callable[..., Coroutine[Any, Any, Any]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Make the call for everybody who waits for it."""
    loop = asyncio.get_running_loop()

    def landing() -> None:
        landed = stale.land(flight, loop)
        if landed is not None:
            landed.set_result(None)

    with under_way(flight, landing):
        flight.value = await answer(*args, **kwargs)
    return flight.value
