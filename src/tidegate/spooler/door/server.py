"""Which server does the door stand on, and how is it set?

uvicorn with h11, which is strict about what is a request. Nothing is logged of a request, no header
of a proxy is believed, idle connections and the size of headers are bounded, and a stop lets those
finish whose request is inside.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, final

from tidegate.errors import missing_extra
from tidegate.spooler.door.app import Door

try:
    import h11
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol
except ModuleNotFoundError as error:
    raise missing_extra(error, "spool") from None

__all__ = ["STOP_S", "configured"]

STOP_S: Final = 10
"""A stop waits so long for those inside: Kubernetes kills after 30 s."""

_HEADERS_MAX: Final = 32 * 1024  # bytes; nginx takes as much
_CONNECTIONS_MAX: Final = 4096  # then 503: each has buffers of up to 64 kB
_KEEP_ALIVE_S: Final = 75  # as nginx: longer than a client of ours is silent


def configured(door: Door, host: str, port: int) -> uvicorn.Config:
    """For `uvicorn.Server`, which the runner starts and stops; port 0 is any that is free."""
    return uvicorn.Config(
        _Quiet(door.app),
        host=host,
        port=port,
        http=_Protocol,
        ws="none",
        lifespan="off",
        loop="asyncio",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        h11_max_incomplete_event_size=_HEADERS_MAX,
        limit_concurrency=_CONNECTIONS_MAX,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=STOP_S,
    )


_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]


@final
class _Quiet:
    """The application, without a traceback in the log for each stranger who sends nonsense.

    Where nonsense follows a request at once, uvicorn answers 400 by itself and closes, and only
    then begins the request; its answer has no connection any more, which is nobody's fault.
    """

    def __init__(self, app: Callable[[_Message, _Receive, _Send], Awaitable[None]]) -> None:
        self._app: Final = app

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        async def sent(message: _Message) -> None:
            try:
                await send(message)
            except h11.LocalProtocolError:
                await asyncio.sleep(0)  # in this turn of the loop uvicorn hears that it has closed

        await self._app(scope, receive, sent)


@final
class _Protocol(H11Protocol):
    """uvicorn's, without a traceback where nonsense comes behind an answer: nobody can be told."""

    def send_400_response(self, msg: str) -> None:
        try:
            super().send_400_response(msg)
        except h11.LocalProtocolError:
            self.transport.close()
