"""A service of a system file as a real process: `python -m tidegate.lab.service`.

It is told on its standard input what to be, as one line of JSON (`Orders`); it answers with one
line, the port on which it listens, and serves until its input ends. So it ends with whoever
started it, however that one ended. It listens on the loopback alone.

`GET /` is a piece of work: 200 when it has been done, 503 when there was no room. `POST /control`
plans a slowdown (`Slowdown`), `GET /control` tells the `Counts`. These pass no worker, so they
answer also in the worst of a storm.
"""

import asyncio
import os
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from random import Random
from typing import Annotated, Any, Final, final

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tidegate.errors import SettingsError
from tidegate.lab.workers import Job, Workers
from tidegate.runtime import clock
from tidegate.server.asgi import App, LoadShedder
from tidegate.settings import system as settings
from tidegate.settings.policies import Queue
from tidegate.sim.draw import drawer
from tidegate.units import MILLISECOND, SECOND, Duration, Instant

__all__ = ["Orders", "Slowdown", "Work", "application", "main", "playable"]

_JSON: Final = "application/json"
_NOT_PLAYED: Final = (
    *("replicas", "rate_limit", "limit", "refusal_cost", "errors"),
    *("contention", "thrash", "restart", "calls"),
)
_KEEP_ALIVE: Final = 75  # seconds, as nginx: longer than any pause of a client of ours
_BACKLOG: Final = 2048  # connections that the kernel takes for us, as uvicorn itself asks for

Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
SendMessage = Callable[[Message], Awaitable[None]]


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    """What to be: the service, and the seed of its luck.

    An answer more than `late_after` late by the machine's fault counts as tardy. With an
    `admission` our own door stands before the service, and believes its callers, who are on the
    same machine.
    """

    service: settings.Service
    seed: int = 1
    late_after: Duration = 50 * MILLISECOND


class Slowdown(msgspec.Struct, frozen=True, kw_only=True):
    """Work that starts at the instant `at` of the monotonic clock, or later, takes `factor` times
    as long.
    """

    at: Annotated[int, msgspec.Meta(ge=0)]
    factor: Annotated[float, msgspec.Meta(gt=0, le=1e6)]


def playable(name: str, service: settings.Service) -> settings.Service:
    """The service, if a process can play it; a SettingsError says what cannot be played."""
    plain = settings.Service()
    for key in _NOT_PLAYED:
        if getattr(service, key) != getattr(plain, key):
            raise _refused(name, key, f"the lab plays workers, their time and a queue, not {key}")
    for key in ("workers", "time"):
        if getattr(service, key) is None:
            raise _refused(name, key, f"the lab needs the {key} of what it is to play")
    if service.queue != Queue(limit=service.queue.limit):
        raise _refused(name, "queue", "the lab plays a plain queue: fifo, refusing when full")
    return service


def _refused(name: str, key: str, message: str) -> SettingsError:
    return SettingsError(message, path=("services", name, key))


@final
class _Request:
    """One request at the workers, answered by whoever finishes it.

    Whose caller has gone may wait in the line for minutes, and then holds nothing of its
    connection any more: tens of thousands of those would fill the memory, and make the collector
    stop the process for so long that the service is late by itself.
    """

    __slots__ = ("_tasks", "answered", "gone", "over", "send")

    def __init__(self, send: SendMessage, tasks: set[asyncio.Task[None]]) -> None:
        self.over: asyncio.Event | None = None  # for who stays until its work is done
        self.gone = False
        self.answered = False
        self.send: SendMessage | None = send
        self._tasks: Final = tasks

    def done(self) -> None:
        if self.send is None:
            self.dropped()
            return
        self.answered = True
        task = asyncio.create_task(_answer(self.send, 200, b"done\n"))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def dropped(self) -> None:
        if self.over is not None:
            self.over.set()


@final
class Work:
    """The application behind `GET /`.

    Each request has one task, which waits for its end: after the answer, or when the caller has
    left, `receive` says that the connection is over. Then the task ends, since nothing is left to
    say; with `stays` only when the work is done, as a handler that never listens, so that a door
    in front of it knows what is still at work.
    """

    def __init__(
        self, workers: Workers, now: Callable[[], Instant], *, stays: bool = False
    ) -> None:
        self._workers: Final = workers
        self._now: Final = now
        self._stays: Final = stays
        self._tasks: Final[set[asyncio.Task[None]]] = set()

    async def __call__(self, _scope: Message, receive: Receive, send: SendMessage) -> None:
        """One request, as ASGI says it."""
        request = _Request(send, self._tasks)
        if not self._workers.arrive(self._now(), request):
            await _answer(send, 503, b"full\n")
            return
        try:
            while (await receive())["type"] != "http.disconnect":
                pass  # the request's body, if it has one
            request.send = None
            if not request.answered:
                await self._left(request)
        except asyncio.CancelledError:
            request.send = None
            self._workers.stop(self._now(), request)
            raise

    async def _left(self, request: _Request) -> None:
        """Its caller has gone before the answer."""
        if self._stays:
            request.over = asyncio.Event()
        self._workers.leave(self._now(), request)
        if request.over is not None:
            await request.over.wait()


async def _answer(send: SendMessage, status: int, body: bytes) -> None:
    length = str(len(body)).encode()
    headers = [(b"content-type", b"text/plain"), (b"content-length", length)]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@final
class _Control:
    """The application behind `/control`: plans slowdowns, tells what was counted."""

    def __init__(self, workers: Workers, at: Callable[[Instant, Callable[[], None]], Any]) -> None:
        self._workers: Final = workers
        self._at: Final = at

    async def tell(self, _: Request) -> Response:
        return Response(msgspec.json.encode(self._workers.counts), media_type=_JSON)

    async def plan(self, request: Request) -> Response:
        try:
            order = msgspec.json.decode(await request.body(), type=Slowdown)
        except msgspec.DecodeError as error:
            return Response(f"{error}\n", status_code=400, media_type="text/plain")
        self._at(order.at, partial(setattr, self._workers, "slowdown", order.factor))
        return Response(status_code=204)


def application(orders: Orders, loop: asyncio.AbstractEventLoop) -> App:
    """The service as an ASGI application whose workers go by `loop`."""
    service = orders.service
    assert service.workers is not None
    now = clock.current().now

    def at(due: Instant, job: Job) -> asyncio.TimerHandle:
        return loop.call_at(due / SECOND, lambda: workers.finish(due, now(), job))

    def plan(when: Instant, change: Callable[[], None]) -> asyncio.TimerHandle:
        return loop.call_at(when / SECOND, change)

    draw = drawer(service.time, Random(f"{orders.seed}/service"))
    workers = Workers(
        service.workers,
        service.queue.limit,
        service.abandoned,
        late_after=orders.late_after,
        draw=draw,
        at=at,
    )
    control = _Control(workers, plan)
    # What is cancelled when its caller leaves is over at once; the rest is, when it is done.
    stays = service.admission is not None and service.abandoned != "cancel"
    app = Starlette(
        routes=[
            Route("/", Work(workers, now, stays=stays)),
            Route("/control", control.tell, methods=["GET"]),
            Route("/control", control.plan, methods=["POST"]),
        ]
    )
    if service.admission is None:
        return app
    return LoadShedder(
        app,
        admission=service.admission,
        trusted=("*",),
        exempt=("/control",),
        cancel_on_disconnect=service.abandoned == "cancel",
    )


async def _serve(orders: Orders, listener: socket.socket) -> None:
    app = application(orders, asyncio.get_running_loop())
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            lifespan="off",
            access_log=False,
            log_level="critical",
            timeout_keep_alive=_KEEP_ALIVE,
        )
    )
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    os.write(1, f"{listener.getsockname()[1]}\n".encode())
    ended = asyncio.create_task(asyncio.to_thread(sys.stdin.buffer.read))
    await asyncio.wait({serving, ended}, return_when=asyncio.FIRST_COMPLETED)
    server.should_exit = server.force_exit = True
    await serving


def main() -> None:
    """Be the service that standard input orders."""
    orders = msgspec.json.decode(sys.stdin.buffer.readline(), type=Orders)
    with socket.create_server(("127.0.0.1", 0), backlog=_BACKLOG) as listener:
        asyncio.run(_serve(orders, listener))


if __name__ == "__main__":
    main()
