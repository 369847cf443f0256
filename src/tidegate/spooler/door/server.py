"""Which server does the door stand on, and how is it set?

uvicorn with h11, which is strict about what is a request. Nothing is logged of a request, no header
of a proxy is believed, idle connections and the size of headers are bounded, and a stop lets those
finish whose request is inside.
"""

from typing import Final

from tidegate.errors import missing_extra
from tidegate.spooler.door.app import Door

try:
    import uvicorn
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
        door.app,
        host=host,
        port=port,
        http="h11",
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
