"""How does the door say no?

With a status that fits, one sentence for whoever reads it, and when to come again where that helps.
The sentence tells nothing of what was sent.
"""

from collections.abc import Mapping
from math import ceil
from typing import Final

from tidegate.errors import missing_extra
from tidegate.units import SECOND, Duration

try:
    from starlette.responses import Response
except ModuleNotFoundError as error:
    raise missing_extra(error, "spool") from None

__all__ = ["No", "answer", "text"]

_HEADERS: Final = {401: {"WWW-Authenticate": "Bearer"}}


class No(Exception):  # noqa: N818 - an answer, and no fault of anybody
    """An answer other than yes. `retry_after`: when to come again, None if that does not help."""

    def __init__(self, status: int, why: str, retry_after: Duration | None = None) -> None:
        self.status = status
        self.retry_after = retry_after
        super().__init__(why)


def answer(no: No) -> Response:
    """What is sent."""
    headers = dict(_HEADERS.get(no.status, {}))
    if no.retry_after is not None:
        headers["Retry-After"] = str(max(1, ceil(no.retry_after / SECOND)))
    return text(str(no), no.status, headers)


def text(words: str, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """One line of plain text."""
    return Response(f"{words}\n", status, headers, media_type="text/plain")
