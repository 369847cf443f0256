"""Starlette's own ways to listen for a client, under the shedder that listens as well."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from asgi_client import Exchange
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from tidegate.server.asgi import LoadShedder

pytestmark = pytest.mark.slow  # real time: somebody listens after a fiftieth of a second

noted: list[str] = []


async def stream(request: Request) -> Response:
    async def pieces() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"x"
                await asyncio.sleep(0.01)
        finally:
            noted.append("stream closed")

    return StreamingResponse(pieces())


async def background(request: Request) -> Response:
    async def later() -> None:
        await asyncio.sleep(0.1)
        noted.append("done in the background")

    return PlainTextResponse("ok", background=BackgroundTask(later))


async def body(request: Request) -> Response:
    noted.append((await request.body()).decode())
    try:
        await asyncio.sleep(30)
    finally:
        noted.append("stopped")
    return PlainTextResponse("too late")


async def through(request: Request, call_next: RequestResponseEndpoint) -> Response:
    return await call_next(request)


ROUTES = [
    Route("/stream", stream),
    Route("/background", background),
    Route("/body", body),
]
PLAIN = Starlette(routes=ROUTES)
WRAPPED = Starlette(routes=ROUTES)
WRAPPED.add_middleware(BaseHTTPMiddleware, dispatch=through)


def until_it_has_ended(
    app: Starlette, exchange: Exchange, ready: Callable[[Exchange], bool]
) -> LoadShedder:
    """Ask, leave once it is `ready`, and wait for the end."""
    shedder = LoadShedder(app)
    noted.clear()

    async def main() -> None:
        task = exchange.start(shedder)
        while not ready(exchange):
            await asyncio.sleep(0.005)
        exchange.leave()
        await asyncio.wait_for(task, 20)

    asyncio.run(main())
    return shedder


@pytest.mark.parametrize("app", [PLAIN, WRAPPED], ids=["plain", "in BaseHTTPMiddleware"])
def test_a_stream_ends_with_its_client(app: Starlette) -> None:
    shedder = until_it_has_ended(app, Exchange("/stream"), lambda e: len(e.sent) > 5)
    assert noted == ["stream closed"]
    assert shedder.snapshot().door.done == (0, 0, 0, 0, 1)
    assert shedder.snapshot().door.inside == 0


@pytest.mark.parametrize("app", [PLAIN, WRAPPED], ids=["plain", "in BaseHTTPMiddleware"])
def test_work_stops_with_its_client_though_its_body_was_read(app: Starlette) -> None:
    exchange = Exchange("/body", body=(b"a", b"b"))
    shedder = until_it_has_ended(app, exchange, lambda e: "ab" in noted)
    assert noted == ["ab", "stopped"]
    assert exchange.sent == []
    assert shedder.snapshot().cancelled == 1


@pytest.mark.parametrize("app", [PLAIN, WRAPPED], ids=["plain", "in BaseHTTPMiddleware"])
def test_what_runs_in_the_background_outlives_its_client(app: Starlette) -> None:
    shedder = until_it_has_ended(app, Exchange("/background"), lambda e: e.body == b"ok")
    assert noted == ["done in the background"]
    assert shedder.snapshot().cancelled == 0


def test_a_framework_may_put_it_in_its_own_list() -> None:
    inner = Starlette(routes=ROUTES)
    inner.add_middleware(LoadShedder, limit=1)
    exchange = Exchange("/background")

    async def main() -> None:
        await exchange.start(inner)

    asyncio.run(main())
    assert exchange.status == 200
