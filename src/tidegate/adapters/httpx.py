"""How is a client of httpx guarded, whose pool loses connections when requests are cancelled?

As with httpx2, by its transport. But httpx 0.28 waits in the pool of httpcore 1.0, and a request
that goes away in the moment in which it is given a connection leaves that connection counted as
used for ever. Deadlines make requests go away, so in an overload the pool fills with connections
that nobody has, until every request fails, also after the load has gone. httpx2 does not.

The safe mode, which is the default, lets neither happen that this takes:

- nobody waits in the pool: as many requests go in as it has connections, and the others wait
  before it, where leaving is safe;
- nobody is cancelled in it: a request whose caller has gone goes on by itself, with all further
  steps timed out, until httpx has put its connection in order.
"""

import asyncio
import threading
import warnings
from collections.abc import Callable
from typing import Any, ClassVar, Final, final

from tidegate.errors import missing_extra

try:
    import httpx
except ModuleNotFoundError as error:
    raise missing_extra(error, "httpx") from None

from tidegate.adapters.doors import Source
from tidegate.adapters.http import short
from tidegate.adapters.time_left import TimeLeft
from tidegate.adapters.transport import AsyncBody, AsyncSending, Body, Exchange, Sending
from tidegate.runtime.clock import current
from tidegate.settings.rules import whole
from tidegate.units import MILLISECOND

__all__ = ["AsyncTransport", "LeakyPoolWarning", "Transport"]

_CONNECTIONS: Final = 100  # httpx's own default of max_connections
_PUT_AWAY: Final = 100 * MILLISECOND  # to read a short body that has begun to arrive
_CONNECTIONS_MAX: Final = 65_535  # as many as there are ports to send from
_SO_MANY: Final = f"a whole number from 1 to {_CONNECTIONS_MAX}"
_KEPT: Final = 20  # and of max_keepalive_connections


@final
class _Places:
    """As many as the pool has connections. The newest waiter is first: whoever has waited longest
    has the least time left, and is best left alone (adaptive LIFO, Maurer, Fail at Scale, 2015).
    """

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: Final[list[asyncio.Future[None]]] = []

    def locked(self) -> bool:
        """Whether whoever comes now has to wait."""
        return self._free == 0

    async def acquire(self) -> None:
        """Take a place, to be given back by `release`. Whoever is cancelled has none."""
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled():
                self.release()  # it was given in the same tick
            elif turn in self._waiting:
                self._waiting.remove(turn)
            raise

    def release(self) -> None:
        """Give a place back, to the newest who waits for one."""
        while self._waiting:
            turn = self._waiting.pop()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1


class LeakyPoolWarning(UserWarning):
    """Said once where the safe mode is switched off: cancelled requests fill httpx's pool."""


class _AsyncBody(AsyncBody, httpx.AsyncByteStream):
    pass


class _Body(Body, httpx.SyncByteStream):
    pass


def _limits(connections: int) -> httpx.Limits:
    return httpx.Limits(
        max_connections=connections, max_keepalive_connections=min(_KEPT, connections)
    )


class AsyncTransport(AsyncSending, httpx.AsyncBaseTransport):
    """A transport for `httpx.AsyncClient` on asyncio that guards what it sends.

    As `tidegate.adapters.httpx2.AsyncTransport`, and beside it: `connections` is how many the pool
    has, also that of a `wrapped` transport, which is to be given the same `max_connections`.
    `safe=False` switches the safe mode off, with a `LeakyPoolWarning`; then requests wait and are
    cancelled inside the pool.
    """

    library: ClassVar[Any] = httpx
    body: ClassVar[Callable[..., Any]] = _AsyncBody

    def __init__(
        self,
        guard: Source = None,
        *,
        wrapped: httpx.AsyncBaseTransport | None = None,
        connections: int = _CONNECTIONS,
        safe: bool = True,
    ) -> None:
        whole("connections", connections, 1, _CONNECTIONS_MAX, _SO_MANY)
        if wrapped is None:
            wrapped = httpx.AsyncHTTPTransport(limits=_limits(connections))
        super().__init__(guard, wrapped)
        self._safe: Final = safe
        self._places: Final = _Places(connections)
        self._left_alone: Final[set[asyncio.Task[Any]]] = set()
        if not safe:
            warnings.warn(
                "httpx 0.28 loses connections when requests are cancelled, as deadlines do;"
                " use the safe mode, or httpx2",
                LeakyPoolWarning,
                stacklevel=2,
            )

    async def aclose(self) -> None:
        """Stop what nobody waits for any more, and close the transport that is wrapped."""
        for task in self._left_alone:
            task.cancel()
        await asyncio.gather(*self._left_alone, return_exceptions=True)
        await super().aclose()

    async def _pass_on(self, exchange: Exchange) -> Any:
        if not self._safe:
            return await super()._pass_on(exchange)
        await self._take_place(exchange)
        time = exchange.time  # this attempt's: while it is left alone, another may begin
        task = asyncio.create_task(self._to_its_end(exchange, time))
        self._left_alone.add(task)
        task.add_done_callback(self._is_over)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            # Each step that has not begun yet finds no time left, and is undone by httpx itself.
            time.abandoned = True
            if task.done() and not task.cancelled() and task.exception() is None:
                closing = asyncio.create_task(self._put_away(task.result(), time))
                self._left_alone.add(closing)
                closing.add_done_callback(self._is_over)
            raise

    def _is_over(self, task: "asyncio.Task[Any]") -> None:
        self._left_alone.discard(task)
        if not task.cancelled():
            task.exception()  # seen: else asyncio would tell it to the log

    async def _put_away(self, response: Any, time: TimeLeft) -> None:
        """Close a response that nobody wants; one that is read to its end leaves its connection."""
        time.abandoned, time.until = False, current().now() + _PUT_AWAY
        if short(response.headers):
            async for _ in response.stream:
                pass
        await response.stream.aclose()

    async def _take_place(self, exchange: Exchange) -> None:
        if not self._places.locked():
            await self._places.acquire()  # at once
            return
        try:
            async with asyncio.timeout(exchange.time.get("pool")):
                await self._places.acquire()
        except TimeoutError as error:
            raise httpx.PoolTimeout("", request=exchange.request) from error

    async def _to_its_end(self, exchange: Exchange, time: TimeLeft) -> Any:
        """Send, whoever goes away meanwhile. The place is free when the connection is."""
        handed_out = False
        try:
            response: Any = await super()._pass_on(exchange)
            if time.abandoned:
                await self._put_away(response, time)
                return None
            handed_out = not response.is_closed  # one that was read already nobody will close
        finally:
            if not handed_out:
                self._places.release()
        if handed_out:
            response.stream = _AsyncBody(response.stream, done=self._places.release)
        return response


class Transport(Sending, httpx.BaseTransport):
    """The same for `httpx.Client`, which blocks. Nobody can cancel a thread, but a wait in the pool
    can time out in the moment in which it ends, so here too nobody waits in it.
    """

    library: ClassVar[Any] = httpx
    body: ClassVar[Callable[..., Any]] = _Body

    def __init__(
        self,
        guard: Source = None,
        *,
        wrapped: httpx.BaseTransport | None = None,
        connections: int = _CONNECTIONS,
    ) -> None:
        whole("connections", connections, 1, _CONNECTIONS_MAX, _SO_MANY)
        if wrapped is None:
            wrapped = httpx.HTTPTransport(limits=_limits(connections))
        super().__init__(guard, wrapped)
        self._places: Final = threading.Semaphore(connections)

    def _pass_on(self, exchange: Exchange) -> Any:
        if not self._places.acquire(timeout=exchange.time.get("pool")):
            raise httpx.PoolTimeout("", request=exchange.request)
        handed_out = False
        try:
            response: Any = super()._pass_on(exchange)
            handed_out = not response.is_closed  # one that was read already nobody will close
        finally:
            if not handed_out:
                self._places.release()
        if handed_out:
            response.stream = _Body(response.stream, done=self._places.release)
        return response
