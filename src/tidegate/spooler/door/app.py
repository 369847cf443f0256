"""How do records come in over HTTP?

    POST /v1/LANE            records, as `body.py` says; 202 when they are durable
    GET  /livez              200: the process is alive, whatever its sinks and disks are
    GET  /readyz             200 while a lane takes records; /readyz/LANE asks for one
    GET  /status             what there is to know, as JSON; /metrics the same for Prometheus
    POST /hold/LANE?reason=  send nothing to its sink; /release/LANE lets it go on

A request is kept as a whole or not at all. A sick sink is no business of clients: they are told 202
as long as there is room on disk, then 503 and when to come again. Health needs no token: whoever
asks for it learns no more than that the process is there. Nothing of a body, a key or a header is
ever logged or sent back.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from random import Random
from typing import Final, final

import msgspec

from tidegate.errors import SpoolError, missing_extra, nearest
from tidegate.runtime.clock import current
from tidegate.settings.spool import Door as Settings
from tidegate.spooler.door.answer import No, answer, text
from tidegate.spooler.door.intake import Intake
from tidegate.spooler.door.keeper import Keeper
from tidegate.spooler.door.token import Token
from tidegate.spooler.metrics import exposition
from tidegate.spooler.status import SpoolStatus

try:
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import Response
    from starlette.routing import Route
except ModuleNotFoundError as error:
    raise missing_extra(error, "spool") from None

__all__ = ["Door"]

_Endpoint = Callable[[Request], Awaitable[Response]]

_JSON: Final = "application/json"
_REASON_MAX: Final = 200
_PATHS: Final = "/v1/LANE, /livez, /readyz, /status, /metrics, /hold/LANE, /release/LANE"


@final
class Door:
    """`app` is the ASGI application. `token` is None where whoever reaches it may use it."""

    def __init__(
        self, keeper: Keeper, settings: Settings, *, token: Token | None, rng: Random
    ) -> None:
        self._keeper: Final = keeper
        self._token: Final = token
        self._intake: Final = Intake(keeper, settings, rng)
        self._answers: Final[Counter[int]] = Counter()
        self.app: Final = Starlette(
            routes=[
                Route("/v1/{lane}", self._answered(self._records), methods=["POST"]),
                Route("/livez", _livez),
                Route("/readyz", self._readyz),
                Route("/readyz/{lane}", self._readyz),
                Route("/status", self._answered(self._status)),
                Route("/metrics", self._answered(self._metrics)),
                Route("/hold/{lane}", self._answered(self._hold), methods=["POST"]),
                Route("/release/{lane}", self._answered(self._release), methods=["POST"]),
            ],
            exception_handlers={HTTPException: _no_such},
        )

    @property
    def answers(self) -> Mapping[int, int]:
        """How many requests were answered with which status, those for health left out."""
        return self._answers

    @property
    def inside(self) -> int:
        """Bytes of requests that are being received or written."""
        return self._intake.inside

    def status(self) -> SpoolStatus:
        """What there is to know, the door's own figures among it."""
        answers = {str(status): count for status, count in sorted(self._answers.items())}
        return msgspec.structs.replace(
            self._keeper.status(), answers=answers, inside_bytes=self.inside
        )

    # What is answered where.

    async def _records(self, request: Request) -> Response:
        lane = self._lane(request)
        kept = await self._intake.take(lane, request)
        document = {
            "lane": lane,
            "accepted": kept.records,
            "first": kept.accepted.first,
            "durable": kept.accepted.durable,
        }
        return Response(msgspec.json.encode(document), 202, media_type=_JSON)

    async def _readyz(self, request: Request) -> Response:
        """A full lane alone does not take a process out of service: the others would be out too."""
        lanes = tuple(self._keeper.lanes)
        asked = request.path_params.get("lane")
        if asked is not None and asked not in lanes:
            return text("there is no such lane", 404)
        full = [lane for lane in lanes if self._keeper.refuses(lane) is not None]
        ready = asked not in full if asked is not None else len(full) < len(lanes)
        return text("ready" if ready else "full", 200 if ready else 503)

    async def _status(self, request: Request) -> Response:  # noqa: ARG002
        return Response(msgspec.json.encode(self.status()), media_type=_JSON)

    async def _metrics(self, request: Request) -> Response:  # noqa: ARG002
        try:
            body, kind = exposition(self.status)
        except ModuleNotFoundError as error:
            raise No(501, str(error)) from None
        return Response(body, headers={"Content-Type": kind})

    async def _hold(self, request: Request) -> Response:
        lane = self._lane(request)
        reason = request.query_params.get("reason", "").strip()
        if not reason or len(reason) > _REASON_MAX or not reason.isprintable():
            raise No(400, f"expected ?reason= with one line of at most {_REASON_MAX} characters")
        self._keeper.hold(lane, reason)
        return text(f"{lane} is held")

    async def _release(self, request: Request) -> Response:
        lane = self._lane(request)
        self._keeper.release(lane)
        return text(f"{lane} goes on")

    # Private parts.

    def _answered(self, endpoint: _Endpoint) -> _Endpoint:
        async def answered(request: Request) -> Response:
            try:
                self._let_in(request)
                response = await endpoint(request)
            except No as no:
                response = answer(no)
            except SpoolError as error:
                response = text(str(error), 503)
            except ClientDisconnect:
                response = text("the client has gone", 400)  # for the count; nobody hears it
            self._answers[response.status_code] += 1
            return response

        return answered

    def _let_in(self, request: Request) -> None:
        if self._token is None:
            return
        given = request.headers.get("authorization", "").encode("latin-1")
        if not self._token.matches(current().now(), given):
            raise No(401, "expected the header Authorization: Bearer TOKEN")

    def _lane(self, request: Request) -> str:
        lane: str = request.path_params["lane"]
        if lane not in self._keeper.lanes:
            known = nearest(lane[:_REASON_MAX], tuple(self._keeper.lanes))
            raise No(404, f"there is no lane {lane[:_REASON_MAX]!r}{known}")
        return lane


async def _livez(request: Request) -> Response:  # noqa: ARG001
    return text("alive")


async def _no_such(request: Request, error: Exception) -> Response:
    """A path or a method that is not there."""
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        return text(f"expected {allowed} here, found {request.method[:20]}", 405, error.headers)
    return text(f"there is nothing here; known: {_PATHS}", error.status_code)
