"""How is a client of httpx2 guarded?

By its transport, so that no call site changes:

    client = httpx2.AsyncClient(transport=AsyncTransport())

Each origin has a guard of its own, named after it (`https://api.example.com`), with the default
protection or that of `tidegate.guard("https://api.example.com", ...)`. One request may have it
otherwise: `client.post(url, extensions={"tidegate": {"idempotent": True}})`.
"""

from collections.abc import Callable
from typing import Any, ClassVar

from tidegate.errors import missing_extra

try:
    import httpx2
except ModuleNotFoundError as error:
    raise missing_extra(error, "httpx2") from None

from tidegate.adapters.doors import Source
from tidegate.adapters.transport import AsyncBody, AsyncSending, Body, Sending

__all__ = ["AsyncTransport", "Transport"]


class _AsyncBody(AsyncBody, httpx2.AsyncByteStream):
    pass


class _Body(Body, httpx2.SyncByteStream):
    pass


class AsyncTransport(AsyncSending, httpx2.AsyncBaseTransport):
    """A transport for `httpx2.AsyncClient` on asyncio that guards what it sends.

    `guard` is one guard for everything, a function from an origin to its guard, or None for one
    guard per origin (at most 256; all further origins share one). `wrapped` is the transport that
    sends, an `httpx2.AsyncHTTPTransport()` if left out: a client that is given a transport ignores
    its own `verify`, `http2`, `limits` and proxies, so they are given to that one.

    A request's `extensions["tidegate"]` may say `guard` (a guard, or the name of one) and
    `idempotent` (True or False; else the method and an `Idempotency-Key` decide).

    Raises what httpx2 raises, and for what the guard decides `tidegate.Rejected`,
    `tidegate.AttemptTimeout` and `tidegate.DeadlineExceeded`. A response of any status is returned,
    the last one if there were several.
    """

    library: ClassVar[Any] = httpx2
    body: ClassVar[Callable[..., Any]] = _AsyncBody

    def __init__(
        self, guard: Source = None, *, wrapped: httpx2.AsyncBaseTransport | None = None
    ) -> None:
        super().__init__(guard, httpx2.AsyncHTTPTransport() if wrapped is None else wrapped)


class Transport(Sending, httpx2.BaseTransport):
    """The same for `httpx2.Client`, which blocks: what remains of the time is given to its socket,
    step by step, since nobody can interrupt it.
    """

    library: ClassVar[Any] = httpx2
    body: ClassVar[Callable[..., Any]] = _Body

    def __init__(
        self, guard: Source = None, *, wrapped: httpx2.BaseTransport | None = None
    ) -> None:
        super().__init__(guard, httpx2.HTTPTransport() if wrapped is None else wrapped)
