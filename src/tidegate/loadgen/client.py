"""How does a client behave that nobody has taught better, and how one with a guard?

`Client` does what the `calls` block of a system file says: it waits for `timeout`, tries `attempts`
times in all, at once or after a `backoff`. The decisions are those of the simulator's clients, by
the same `Execution`; only what performs them differs, so a difference between a simulation and a
live run is one of the world and not of the client. `Guarded` makes its attempts behind a real
guard, as users have it.

Over HTTP a client that gives an attempt up closes its connection and opens a new one for the next:
that is how the far side can know, and what it costs both sides.
"""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from types import TracebackType
from typing import Final, Self, final

import aiohttp

from tidegate.core.execution import ATTEMPT, WAIT, Execution
from tidegate.core.outcome import FAILURE, SUCCESS, TIMEOUT, Outcome
from tidegate.core.pipeline import Pipeline
from tidegate.errors import Rejected
from tidegate.loadgen.generator import Attempts
from tidegate.runtime.classify import status_outcome
from tidegate.runtime.clock import MONOTONIC, Clock
from tidegate.runtime.context import NOTHING, Ambient
from tidegate.runtime.dependency import Dependency
from tidegate.runtime.guard import Guard
from tidegate.runtime.wire import outgoing
from tidegate.settings.system import Call
from tidegate.units import SECOND, Duration

__all__ = ["Client", "Guarded", "Http", "Send", "guard_for"]

Send = Callable[[int], Awaitable[Outcome]]
"""Makes one attempt, told its number from 1 on; whoever calls it may cancel it."""


@final
class Client:
    """All clients of one call: what they share is a pipeline, as in the simulator.

    `send` makes one attempt. The `luck` is that of the backoff's jitter.
    """

    __slots__ = ("_clock", "_pipeline", "_send")

    def __init__(self, call: Call, send: Send, luck: Random, clock: Clock = MONOTONIC) -> None:
        self._pipeline: Final = Pipeline(call, luck)
        self._send: Final = send
        self._clock: Final = clock

    async def __call__(self, attempts: Attempts) -> bool:
        """Make one request, with all the attempts that it takes or may have."""
        now = self._clock.now
        execution = Execution(self._pipeline)
        step = execution.start(now())
        try:
            while step is ATTEMPT or step is WAIT:
                if step is ATTEMPT:
                    outcome = await self._attempt(execution, attempts)
                    step = execution.settle(now(), outcome)
                else:
                    await self._clock.wait(execution.until - now())
                    step = execution.wake(now())
        except asyncio.CancelledError:
            execution.cancel(now())
            raise
        if execution.rejection is not None:
            attempts.rejected()
        return execution.outcome is SUCCESS

    async def _attempt(self, execution: Execution, attempts: Attempts) -> Outcome:
        attempts.sent(retry=execution.number > 1)
        patience = None if execution.timeout is None else execution.timeout / SECOND
        try:
            async with asyncio.timeout(patience):
                outcome = await self._send(execution.number)
        except TimeoutError:
            outcome = TIMEOUT
        attempts.ended(outcome.name.lower())
        return outcome


class _Failed(Exception):  # noqa: N818 - how an attempt ended is no error of ours
    """An attempt has ended other than well."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome


def guard_for(name: str, call: Call) -> Guard:
    """A guard that goes by `call` and that nobody else in this process shares."""
    return Guard(Dependency(name, call), classify=_said)


def _said(error: BaseException) -> Outcome | None:
    return error.outcome if isinstance(error, _Failed) else None


@final
class Guarded:
    """All clients of one call, behind the guard that `guard_for` has made."""

    __slots__ = ("_guard", "_send")

    def __init__(self, guard: Guard, send: Send) -> None:
        self._guard: Final = guard
        self._send: Final = send

    async def __call__(self, attempts: Attempts) -> bool:
        """Make one request, with all the attempts that the guard lets it have."""
        number = 0

        async def attempt() -> None:
            nonlocal number
            number += 1
            attempts.sent(retry=number > 1)
            outcome = TIMEOUT  # if it is cut off
            try:
                outcome = await self._send(number)
            finally:
                attempts.ended(outcome.name.lower())
            if outcome is not SUCCESS:
                raise _Failed(outcome)

        try:
            await self._guard.acall(attempt)
        except Rejected:
            attempts.rejected()
        except (_Failed, TimeoutError):
            pass
        else:
            return True
        return False


@final
class Http:
    """Attempts as GET requests to one address. Use it as an async context manager, then call it.

    An answer counts when all of it is there. With `reconnect` every attempt opens a connection of
    its own, as a client without a pool does; else those that were answered are used again. With
    `marks` a retry says that it is one, with `patience` each attempt says how long it is waited
    for, so that the far side can choose.
    """

    def __init__(
        self,
        url: str,
        *,
        marks: bool = False,
        patience: Duration | None = None,
        reconnect: bool = False,
    ) -> None:
        self._url: Final = url
        self._marks: Final = marks
        self._said: Final = NOTHING if patience is None else Ambient(deadline=patience)
        self._reconnect: Final = reconnect
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        # Without a limit of the pool's own, and without a timeout that is not the client's.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, force_close=self._reconnect),
            # tidegate: allow no-timeout because an attempt ends with the patience of its call
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._session is not None
        await self._session.close()

    async def __call__(self, number: int) -> Outcome:
        """One attempt. An answer below 500 but 429 is well; no answer at all is a failure."""
        assert self._session is not None, "to be used within `async with`"
        headers = outgoing(0, self._said, retries=number - 1 if self._marks else 0)
        try:
            async with self._session.get(self._url, headers=headers) as answer:
                await answer.read()
                return status_outcome(answer.status)
        except (aiohttp.ClientError, OSError):
            return FAILURE
