"""What does the load shedder cost a request, over the application alone?

    python benchmarks/shedder.py [rounds]

Nanoseconds of CPU time per request, the bare application's own taken off: an in-memory application
that sends one small answer, a request with eleven headers as a browser sends them. The cases run
in turn, round after round, so that a busy neighbour slows all of them alike; the smallest round
counts, and the middle one shows the spread.
"""

import asyncio
import platform
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from tidegate.core.shares import DEFAULT
from tidegate.server.asgi import App, LoadShedder, by_header
from tidegate.server.wsgi import LoadShedder as WsgiShedder

REQUESTS = 5_000
HEADERS = [
    (b"host", b"shop.example"),
    (b"user-agent", b"Mozilla/5.0"),
    (b"accept", b"text/html"),
    (b"accept-language", b"en"),
    (b"accept-encoding", b"gzip, br"),
    (b"connection", b"keep-alive"),
    (b"cookie", b"session=0123456789abcdef"),
    (b"referer", b"https://shop.example/"),
    (b"sec-fetch-mode", b"navigate"),
    (b"cache-control", b"max-age=0"),
    (b"x-api-key", b"a-customer"),
]
MARKED = [*HEADERS, (b"tidegate-remaining-ms", b"2000"), (b"tidegate-criticality", b"critical")]
START = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]}
BODY = {"type": "http.response.body", "body": b"ok"}


async def bare(scope: Any, receive: Any, send: Any) -> None:
    await send(START)
    await send(BODY)


async def no_op(scope: Any, receive: Any, send: Any) -> None:
    await bare(scope, receive, send)


def full() -> LoadShedder:
    shedder = LoadShedder(bare, limit=1, queue=0)
    shedder._door.admission.try_admit(0, DEFAULT)
    return shedder


CASES: list[tuple[str, App, list[tuple[bytes, bytes]]]] = [
    ("(the application alone)", bare, HEADERS),
    ("a middleware that does nothing", no_op, HEADERS),
    ("off", LoadShedder(bare, mode="off"), HEADERS),
    ("admission", LoadShedder(bare, cancel_on_disconnect=False), HEADERS),
    (
        "admission, headers of a trusted caller looked for",
        LoadShedder(bare, cancel_on_disconnect=False, trusted="*"),
        HEADERS,
    ),
    (
        "the same, clients take turns",
        LoadShedder(bare, cancel_on_disconnect=False, trusted="*", client=by_header("x-api-key")),
        HEADERS,
    ),
    (
        "the same, each with its rate",
        LoadShedder(
            bare,
            cancel_on_disconnect=False,
            trusted="*",
            client=by_header("x-api-key"),
            client_rate=1e6,
        ),
        HEADERS,
    ),
    ("admission, stops work for who has left", LoadShedder(bare), HEADERS),
    ("the same, with a deadline and a criticality", LoadShedder(bare, trusted="*"), MARKED),
    ("refused: 503 and Retry-After (in all)", full(), HEADERS),
]


def wsgi_bare(environ: Any, start_response: Any) -> list[bytes]:
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]


ENVIRON = {"PATH_INFO": "/", "REQUEST_METHOD": "GET", "REMOTE_ADDR": "10.0.0.1"}
WSGI: list[tuple[str, Callable[..., Any]]] = [
    ("(the WSGI application alone)", wsgi_bare),
    ("WSGI: admission", WsgiShedder(wsgi_bare)),
]


async def receive() -> dict[str, Any]:
    return {"type": "http.request", "body": b"", "more_body": False}


async def send(message: Any) -> None:
    pass


async def timed(app: App, headers: list[tuple[bytes, bytes]]) -> float:
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "headers": headers,
        "client": ("10.0.0.1", 5),
    }
    began = time.process_time()
    for _ in range(REQUESTS):
        await app(scope, receive, send)
    spent = (time.process_time() - began) / REQUESTS * 1e9
    await asyncio.sleep(0.03)  # what was listed to be listened for is let go
    return spent


def timed_wsgi(app: Callable[..., Any]) -> float:
    began = time.process_time()
    for _ in range(REQUESTS):
        for _ in (body := app(ENVIRON, lambda *_: None)):
            pass
        if hasattr(body, "close"):
            body.close()
    return (time.process_time() - began) / REQUESTS * 1e9


async def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 25
    seen: dict[str, list[float]] = {name: [] for name, *_ in [*CASES, *WSGI]}
    for _ in range(rounds):
        for name, app, headers in CASES:
            seen[name].append(await timed(app, headers))
        for name, application in WSGI:
            seen[name].append(timed_wsgi(application))
    print(f"{platform.python_implementation()} {platform.python_version()}, {platform.machine()}")
    print(f"ns of CPU time per request over the application alone; {rounds} rounds x {REQUESTS}")
    print(f"{'':52}{'smallest':>9}{'middle':>9}")
    own = 0.0
    for name, times in seen.items():
        if name.startswith("("):
            own = min(times)
            print(f"{name:52}{own:9.0f}{statistics.median(times):9.0f}")
            continue
        less = 0.0 if "in all" in name else own
        print(f"{name:52}{min(times) - less:9.0f}{statistics.median(times) - less:9.0f}")


if __name__ == "__main__":
    asyncio.run(main())
