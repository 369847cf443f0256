"""Applications that real servers serve in tests: one place, requests that are held, and a report.

`/hold` answers when `/release` has been asked for, or after half a minute. What begins with
`/_` is exempt. `/_report` tells who was called and what the shedder counted.
"""

import asyncio
import json
import threading
from typing import Any

from tidegate.server.asgi import LoadShedder as Asgi
from tidegate.server.wsgi import LoadShedder as Wsgi

HELD_AT_MOST = 30.0
EXEMPT = ("/_report", "/_release")

called: list[str] = []
_released: list[asyncio.Event] = []
_let_go = threading.Event()


async def _asgi(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return
    path = scope["path"]
    body = b"ok"
    if path == "/_report":
        body = report(asgi)
    elif path == "/_release":
        for event in _released:
            event.set()
    else:
        called.append(path)
        if path == "/hold":
            event = asyncio.Event()
            _released.append(event)
            await asyncio.wait_for(event.wait(), HELD_AT_MOST)
        else:
            while (await receive()).get("more_body"):
                pass
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _wsgi(environ: Any, start_response: Any) -> list[bytes]:
    path = environ["PATH_INFO"]
    body = b"ok"
    if path == "/_report":
        body = report(wsgi)
    elif path == "/_release":
        _let_go.set()
    else:
        called.append(path)
        if path == "/hold":
            _let_go.wait(HELD_AT_MOST)
        else:
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]


def report(shedder: Asgi | Wsgi) -> bytes:
    found = shedder.snapshot()
    return json.dumps(
        {
            "called": called,
            "inside": found.door.inside,
            "refused": found.refused,
            "cancelled": found.cancelled,
        }
    ).encode()


asgi = Asgi(_asgi, limit=1, queue=0, exempt=EXEMPT, trusted="127.0.0.1")
wsgi = Wsgi(_wsgi, limit=1, exempt=EXEMPT, trusted="127.0.0.1")
