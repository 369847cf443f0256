"""A client and a server of ASGI in one, in memory: it sends, it hears, and it may leave."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any


class Exchange:
    """One request. `leave` is the client's going; `sent` is what it has been sent."""

    def __init__(
        self,
        path: str = "/",
        method: str = "GET",
        headers: dict[str, str] | None = None,
        address: str | None = "10.0.0.1",
        body: tuple[bytes, ...] = (b"",),
        query: str = "",
    ) -> None:
        self.scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": query.encode(),
            "headers": [
                (name.lower().encode(), value.encode("latin-1"))
                for name, value in (headers or {}).items()
            ],
            "client": (address, 1234) if address else None,
        }
        self.sent: list[dict[str, Any]] = []
        self.gone = asyncio.Event()
        self.reads = 0
        self._body = [
            {"type": "http.request", "body": part, "more_body": part is not body[-1]}
            for part in body
        ]

    async def receive(self) -> dict[str, Any]:
        self.reads += 1
        if self._body and not self.gone.is_set():
            return self._body.pop(0)
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.sent.append(dict(message))

    def leave(self) -> None:
        self.gone.set()

    def start(self, app: Callable[..., Awaitable[None]]) -> "asyncio.Task[None]":
        async def run() -> None:
            await app(self.scope, self.receive, self.send)

        return asyncio.get_running_loop().create_task(run())

    @property
    def status(self) -> int | None:
        return self.sent[0]["status"] if self.sent else None

    @property
    def headers(self) -> dict[str, str]:
        return {k.decode(): v.decode() for k, v in self.sent[0]["headers"]}

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent[1:])


async def ask(app: Callable[..., Awaitable[None]], *args: Any, **keywords: Any) -> Exchange:
    """One request from its beginning to its end."""
    exchange = Exchange(*args, **keywords)
    await exchange.start(app)
    return exchange


async def answer(send: Any, body: bytes = b"ok") -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})
