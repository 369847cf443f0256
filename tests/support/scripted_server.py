"""A real HTTP server on the loopback that answers by script and notes what it was asked.

It runs on a loop in a thread of its own, so that clients that block can be tested beside those that
do not. A step is a `Say`; when the script is over, everything is answered with 200.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import NamedTuple

from aiohttp import web


class Say(NamedTuple):
    status: int = 200
    body: bytes = b"fine"
    headers: Mapping[str, str] = {}
    after: float = 0.0  # seconds
    trickle: float = 0.0  # seconds between the bytes of the body, after the headers
    vanish: bool = False  # close the connection instead


class Asked(NamedTuple):
    method: str
    path: str
    headers: Mapping[str, str]  # in small letters
    body: bytes


class ScriptedServer:
    def __init__(self) -> None:
        self.script: deque[Say] = deque()
        self.asked: list[Asked] = []
        self.otherwise = Say()
        self.url = ""
        self.loop = asyncio.new_event_loop()

    def will(self, *steps: Say | int) -> None:
        self.script.extend(Say(step) if isinstance(step, int) else step for step in steps)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        body = await request.read()
        self.asked.append(Asked(request.method, request.path, headers, body))
        step = self.script.popleft() if self.script else self.otherwise
        if step.after:
            await asyncio.sleep(step.after)
        if step.vanish:
            assert request.transport is not None
            request.transport.close()
            return web.Response()
        if not step.trickle:
            return web.Response(status=step.status, body=step.body, headers=step.headers)
        response = web.StreamResponse(status=step.status, headers=step.headers)
        await response.prepare(request)
        with suppress(ConnectionError):  # the client may have heard enough
            for byte in step.body:
                await response.write(bytes([byte]))
                await asyncio.sleep(step.trickle)
        return response

    async def start(self) -> web.AppRunner:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self.answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return runner


async def _stop(runner: web.AppRunner) -> None:
    await runner.cleanup()
    left = asyncio.all_tasks() - {asyncio.current_task()}  # answers that nobody waited for
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


@contextmanager
def scripted_server() -> Iterator[ScriptedServer]:
    server = ScriptedServer()
    loop = server.loop
    runner = loop.run_until_complete(server.start())
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(_stop(runner), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
