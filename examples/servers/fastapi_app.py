"""A FastAPI application behind a door that finds its limit by itself.

uvicorn examples.servers.fastapi_app:app
"""

from fastapi import FastAPI

from tidegate.server.asgi import LoadShedder, by_address

api = FastAPI()


@api.get("/items/{number}")
async def item(number: int) -> dict[str, int]:
    """Cancelled if the client leaves: a GET changes nothing."""
    return {"item": number}


@api.post("/orders")
async def order(item: int) -> dict[str, int]:
    """Finished even if the client leaves: a POST may be half done."""
    return {"ordered": item}


@api.get("/healthz")
async def alive() -> dict[str, bool]:
    """Never refused."""
    return {"alive": True}


# `api.add_middleware(LoadShedder, ...)` works too, but then stands behind FastAPI's own outermost
# middleware. Whoever wants the schema finds it at `api`.
app = LoadShedder(api, client=by_address, client_rate=50.0)
