"""How is a session of aiohttp guarded?

By a client middleware, which aiohttp has since 3.12, so that no call site changes:

    session = aiohttp.ClientSession(middlewares=(Middleware(),))

A redirect is a request of its own, to an origin of its own, and so has its own guard. An attempt
ends at the response's headers: the body is read by whoever asked, for as long as they like.
"""

import asyncio
from typing import Final, cast, final

from tidegate.errors import missing_extra

try:
    from aiohttp import ClientHandlerType, ClientRequest, ClientResponse, StreamReader
    from aiohttp.payload import BytesPayload
except ModuleNotFoundError as error:
    raise missing_extra(error, "aiohttp") from None

from tidegate.adapters.doors import Doors, Source, Terms
from tidegate.adapters.http import (
    SaidNo,
    may_follow,
    origin_of,
    propagate,
    repeatable,
    says_no,
    short,
    true_false_or_none,
)
from tidegate.adapters.time_left import attempt_ends_at
from tidegate.runtime.guard import Guard

__all__ = ["Middleware"]


@final
class _Exchange:
    """One request, all its attempts, and the response of the last one."""

    __slots__ = ("guard", "handler", "number", "request", "response")

    def __init__(self, guard: Guard, request: ClientRequest, handler: ClientHandlerType) -> None:
        self.guard: Final = guard
        self.request: Final = request
        self.handler: Final = handler
        self.number = 0
        self.response: ClientResponse | None = None


@final
class Middleware:
    """A middleware for `aiohttp.ClientSession` that guards what it sends.

    `guard` is one guard for everything, a function from an origin to its guard, or None for one
    guard per origin (at most 256; all further origins share one). `idempotent` says of all requests
    whether they may be repeated; None lets the method and an `Idempotency-Key` decide. A single
    request has it otherwise with a middleware of its own:
    `session.post(url, middlewares=(Middleware(idempotent=True),))`; the guard is the same one.

    Raises what aiohttp raises, and for what the guard decides `tidegate.Rejected`,
    `tidegate.AttemptTimeout` and `tidegate.DeadlineExceeded`. A response of any status is returned,
    the last one if there were several.
    """

    __slots__ = ("_doors", "_idempotent")

    def __init__(self, guard: Source = None, *, idempotent: bool | None = None) -> None:
        self._doors: Final = Doors(guard, _attempt)
        self._idempotent: Final = true_false_or_none(idempotent)

    async def __call__(self, request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
        """Send a request under the guard of its origin."""
        url = request.url
        door = self._doors.of(origin_of(url.scheme, url.host or "", url.port))
        said = self._idempotent
        if said is None:
            said = door.guard.settings.idempotent and repeatable(request.method, request.headers)
        terms = Terms.REPEAT if said else Terms.UNLESS_DONE
        if not isinstance(request.body, bytes | BytesPayload):
            terms = Terms.ONCE  # a stream, a file or a form: what has been sent of it is gone
        guard, send = door.on(terms)
        if guard.mode == "enforce" and guard.pipeline.attempts > 1:
            # The session would repeat once more what failed on a kept connection, unasked and
            # unpaid. It has no public switch for that; its own test client uses this one.
            request.session._retry_connection = False
        exchange = _Exchange(guard, request, handler)
        response = None
        try:
            response = await send(exchange)
        except SaidNo as no:
            response = no.response
        finally:
            if exchange.response is not None and exchange.response is not response:
                exchange.response.close()
        return cast("ClientResponse", response)


async def _attempt(exchange: _Exchange) -> ClientResponse:
    if exchange.response is not None:
        exchange.response.close()
        exchange.response = None
    exchange.number += 1
    guard = exchange.guard
    propagate(guard, exchange.request.headers, attempt_ends_at(guard))
    response = exchange.response = await exchange.handler(exchange.request)
    again = may_follow(guard, exchange.number, response, response.status)
    # What is packed is unpacked here, to whatever length, so it is not known to be short.
    if again and short(response.headers) and "Content-Encoding" not in response.headers:
        await _set_aside(response)
    if says_no(guard, response.status):
        raise SaidNo(response)
    return response


async def _set_aside(response: ClientResponse) -> None:
    """Read the body, which gives the connection back, and leave it to be read as a stream too."""
    stream = response.content
    body = await response.read()
    again = StreamReader(stream._protocol, stream._low_water, loop=asyncio.get_running_loop())
    again.feed_data(body)
    again.feed_eof()
    response.content = again
