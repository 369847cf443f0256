"""How is a session of requests guarded?

By an adapter that is mounted on it, so that no call site changes:

    session = requests.Session()
    session.mount("https://", Adapter())
    session.mount("http://", Adapter())

requests blocks and cannot be interrupted, so each attempt is given the time that remains as its
timeouts, of which requests has none by itself. Unless the response is streamed, its body belongs to
the attempt.
"""

from typing import Any, Final, cast, final
from urllib.parse import urlsplit

from tidegate.errors import missing_extra

try:
    import requests
    from requests.adapters import HTTPAdapter
    from urllib3.exceptions import ReadTimeoutError
except ModuleNotFoundError as error:
    raise missing_extra(error, "requests") from None

from tidegate.adapters.doors import Doors, Send, Source, Terms
from tidegate.adapters.http import (
    SaidNo,
    may_follow,
    origin_of,
    propagate,
    repeatable,
    says_no,
    short,
    true_false_or_none,
)
from tidegate.adapters.time_left import attempt_ends_at, ends_at, is_over, too_slow
from tidegate.adapters.urllib3 import fitted
from tidegate.errors import SettingsError
from tidegate.runtime.guard import Guard
from tidegate.units import Instant

__all__ = ["Adapter"]


@final
class _Exchange:
    """One request, all its attempts, and the response of the last one."""

    __slots__ = (
        "arguments",
        "guard",
        "number",
        "request",
        "response",
        "stream",
        "timeout",
        "until",
    )

    def __init__(
        self,
        guard: Guard,
        request: requests.PreparedRequest,
        stream: bool,
        timeout: Any,
        arguments: dict[str, Any],
    ) -> None:
        self.guard: Final = guard
        self.number = 0
        self.request: Final = request
        self.stream: Final = stream
        self.timeout: Final = timeout
        self.arguments: Final = arguments
        self.response: requests.Response | None = None
        self.until: Final[Instant | None] = ends_at(guard)


class Adapter(HTTPAdapter):
    """An adapter for `requests.Session.mount` that guards what it sends.

    `guard` is one guard for everything, a function from an origin to its guard, or None for one
    guard per origin (at most 256; all further origins share one). Further keywords are those of
    `requests.adapters.HTTPAdapter`, but `max_retries`: retries are the guard's, and two layers of
    them would multiply. `idempotent` says of all requests whether they may be repeated; None lets
    the method and an `Idempotency-Key` decide.

    Raises what requests raises, and for what the guard decides `tidegate.Rejected`,
    `tidegate.AttemptTimeout` and `tidegate.DeadlineExceeded`. A response of any status is returned,
    the last one if there were several. Raises SettingsError for `max_retries`.
    """

    def __init__(
        self, guard: Source = None, *, idempotent: bool | None = None, **keywords: Any
    ) -> None:
        if keywords.get("max_retries"):
            raise SettingsError(
                "retries are the guard's: give attempts to it, not max_retries here"
            )
        super().__init__(**keywords)
        self._idempotent: Final = true_false_or_none(idempotent)
        self._doors: Final = Doors(guard, self._attempt)

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: Any = True,
        cert: Any = None,
        proxies: Any = None,
    ) -> requests.Response:
        """Send a request under the guard of its origin."""
        send, guard = self._behind(request)
        arguments = {"verify": verify, "cert": cert, "proxies": proxies}
        exchange = _Exchange(guard, request, stream, timeout, arguments)
        response = None
        try:
            response = send(exchange)
        except SaidNo as no:
            response = no.response
        finally:
            if exchange.response is not None and exchange.response is not response:
                exchange.response.close()
        return cast("requests.Response", response)

    def _behind(self, request: requests.PreparedRequest) -> tuple[Send, Guard]:
        door = self._doors.of(_origin(request))
        body: Any = request.body
        if not isinstance(body, bytes | str | None):
            terms = Terms.ONCE  # a generator or a file: what has been sent of it is gone
        else:
            said = self._idempotent
            if said is None:
                method = request.method or "GET"
                said = door.guard.settings.idempotent and repeatable(method, request.headers)
            terms = Terms.REPEAT if said else Terms.UNLESS_DONE
        guard, send = door.on(terms)
        return send, guard

    def _attempt(self, exchange: _Exchange) -> requests.Response:
        if exchange.response is not None:
            exchange.response.close()
            exchange.response = None
        exchange.number += 1
        guard = exchange.guard
        end = attempt_ends_at(guard)
        propagate(guard, exchange.request.headers, end)
        timeout = fitted(exchange.timeout, end)
        try:
            response = exchange.response = super().send(
                exchange.request, exchange.stream, timeout, **exchange.arguments
            )
            again = may_follow(guard, exchange.number, response, response.status_code)
            if (again and short(response.headers)) or not exchange.stream:
                _ = response.content  # read here, and kept in the response
        except (requests.Timeout, requests.ConnectionError) as error:
            slow = isinstance(error, requests.Timeout)
            # In a body, requests calls it an error of the connection.
            if not slow and not (error.args and isinstance(error.args[0], ReadTimeoutError)):
                raise
            if end is not None and is_over(end):
                raise too_slow(guard, end, exchange.until) from error
            if slow:
                raise
            raise requests.ReadTimeout(error, request=exchange.request) from error
        if says_no(guard, response.status_code):
            raise SaidNo(response)
        return response


def _origin(request: requests.PreparedRequest) -> str:
    """Scheme, host and port; not the user and password that a URL may have too."""
    url = urlsplit(request.url or "")
    return origin_of(url.scheme, url.hostname or "", url.port)
