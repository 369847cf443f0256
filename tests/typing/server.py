"""The server's side as a user's type checkers see it: mypy and pyright read this, nothing runs.

It goes around whatever a framework calls an application, and stays one itself. What Starlette and
Flask say of theirs is written out here, so that a checker needs neither.
"""

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, TypeAlias, assert_type

from tidegate.server import asgi, wsgi
from tidegate.server.door import ShedderSnapshot
from tidegate.server.shared_rate import SharedRate
from tidegate.settings.admission import Admission, ClientRate
from tidegate.settings.policies import Limit

Message: TypeAlias = MutableMapping[str, Any]
ASGIApp: TypeAlias = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]],
    Awaitable[None],
]


async def starlette(
    scope: Message,
    receive: Callable[[], Awaitable[Message]],
    send: Callable[[Message], Awaitable[None]],
) -> None: ...


def flask(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    return []


around: ASGIApp = asgi.LoadShedder(starlette, limit=40, wait=0.5)
full = asgi.LoadShedder(
    starlette,
    admission=Admission(limit=Limit(max=8)),
    mode="observe",
    exempt=("/alive",),
    trusted=["10.0.0.0/8"],
    client=asgi.by_header("x-api-key"),
    client_rate=ClientRate(rate=5.0, burst=10),
    cancel_on_disconnect=("GET",),
    retry_after=(2, 5),
    name="shop",
)
twice: ASGIApp = asgi.LoadShedder(full, client_rate=5.0)
assert_type(full.snapshot(), ShedderSnapshot)

application: wsgi.App = wsgi.LoadShedder(
    flask, limit=8, client_rate=SharedRate(5.0, "valkey://127.0.0.1")
)

asgi.LoadShedder(starlette, mode="watch")  # type: ignore[arg-type]
asgi.LoadShedder(starlette, trusted=5)  # type: ignore[arg-type]
wsgi.LoadShedder(starlette)  # type: ignore[arg-type]
