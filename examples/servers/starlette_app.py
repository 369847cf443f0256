"""A Starlette application behind a door, and what a route may know about its caller.

uvicorn examples.servers.starlette_app:app
"""

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route

from tidegate.runtime.context import ambient, remaining
from tidegate.server.asgi import LoadShedder, by_header


async def shop(request: Request) -> JSONResponse:
    """What remains of the caller's deadline; a guarded call in here is cut to it by itself."""
    return JSONResponse({"remaining_s": remaining(), "retries_above": ambient().depth})


async def alive(request: Request) -> PlainTextResponse:
    """Never refused: a busy server is not a dead one."""
    return PlainTextResponse("alive")


inner = Starlette(routes=[Route("/shop", shop), Route("/healthz", alive)])

# Around the whole application, so that a no costs no routing and no other middleware.
app = LoadShedder(
    inner,
    limit=40,  # or leave it out: it finds itself
    queue=100,
    wait=0.5,
    trusted=["127.0.0.1", "10.0.0.0/8"],  # our own gateway and services, and nobody else
    client=by_header("x-api-key"),
)
