"""How is a pool manager of urllib3 guarded?

By another one in its place, so that no call site changes:

    pool = PoolManager()
    pool.request("GET", "https://api.example.com/orders")

urllib3 blocks and cannot be interrupted, so each attempt is given the time that remains as its
timeouts. Retries are the guard's; what a `Retry` says of redirects holds as ever, and each redirect
is a request of its own.
"""

from typing import Any, Final, cast, final

from tidegate.errors import missing_extra

try:
    import urllib3
    from urllib3 import HTTPConnectionPool, HTTPHeaderDict, HTTPSConnectionPool
    from urllib3.exceptions import MaxRetryError, NewConnectionError
    from urllib3.exceptions import TimeoutError as TimedOut
    from urllib3.poolmanager import PoolKey
    from urllib3.response import BaseHTTPResponse
    from urllib3.util import Retry, Timeout
except ModuleNotFoundError as error:
    raise missing_extra(error, "urllib3") from None

from tidegate.adapters.doors import Doors, Source, Terms
from tidegate.adapters.http import (
    SaidNo,
    origin_of,
    propagate,
    repeatable,
    says_no,
    true_false_or_none,
)
from tidegate.adapters.time_left import attempt_ends_at, ends_at, is_over, seconds_until, too_slow
from tidegate.core.outcome import FAILURE, TIMEOUT, Outcome
from tidegate.errors import SettingsError, nearest
from tidegate.runtime.guard import Guard
from tidegate.units import Instant

__all__ = ["PoolManager", "fitted"]


_KEYWORDS: Final = (
    "guard",
    "idempotent",
    "num_pools",
    "headers",
    *(name.removeprefix("key_") for name in PoolKey._fields),
)


class PoolManager(urllib3.PoolManager):
    """A `urllib3.PoolManager` that guards what it sends.

    `guard` is one guard for everything, a function from an origin to its guard, or None for one
    guard per origin (at most 256; all further origins share one). `idempotent` says of all requests
    whether they may be repeated; None lets the method and an `Idempotency-Key` decide. Further
    keywords are those of `urllib3.PoolManager`; of `retries`, there or with a request, only what it
    says of redirects is used.

    Raises what urllib3 raises, and for what the guard decides `tidegate.Rejected`,
    `tidegate.AttemptTimeout` and `tidegate.DeadlineExceeded`. A response of any status is returned,
    the last one if there were several.
    """

    def __init__(
        self, guard: Source = None, *, idempotent: bool | None = None, **keywords: Any
    ) -> None:
        for name in keywords:
            if name not in _KEYWORDS:  # urllib3 itself would say so at the first request only
                raise SettingsError(f"there is no setting {name!r}{nearest(name, _KEYWORDS)}")
        super().__init__(**keywords)
        self._guarding: Final = _Guarding(guard, idempotent)
        self.pool_classes_by_scheme = {"http": _HTTPPool, "https": _HTTPSPool}

    def _new_pool(self, *args: Any, **keywords: Any) -> HTTPConnectionPool:
        pool = super()._new_pool(*args, **keywords)
        assert isinstance(pool, _HTTPPool | _HTTPSPool)
        pool.guarding = self._guarding
        return pool


@final
class _Guarding:
    """What all pools of one manager share."""

    def __init__(self, guard: Source, idempotent: bool | None) -> None:
        self.doors: Final = Doors(guard, _attempt, _classify)
        self.idempotent: Final = true_false_or_none(idempotent)


class _GuardedPool:
    """The part of a pool that asks first. `plain` is what its class would do."""

    guarding: _Guarding

    def urlopen(self: Any, method: str, url: str, *args: Any, **keywords: Any) -> BaseHTTPResponse:
        """Send a request under the guard of its origin."""
        body, headers = _first_two(args, keywords)
        door = self.guarding.doors.of(origin_of(self.scheme, self.host, self.port))
        own = HTTPHeaderDict(self.headers if headers is None else headers)
        if not isinstance(body, bytes | str | None):
            terms = Terms.ONCE  # a generator or a file: what has been sent of it is gone
        else:
            said = self.guarding.idempotent
            if said is None:
                said = door.guard.settings.idempotent and repeatable(method, own)
            terms = Terms.REPEAT if said else Terms.UNLESS_DONE
        guard, send = door.on(terms)
        exchange = _Exchange(guard, self, method, url, body, own, keywords)
        response = None
        try:
            response = send(exchange)
        except SaidNo as no:
            response = no.response
        finally:
            if exchange.response is not None and exchange.response is not response:
                exchange.response.close()
        return cast("BaseHTTPResponse", response)


class _HTTPPool(_GuardedPool, HTTPConnectionPool):
    pass


class _HTTPSPool(_GuardedPool, HTTPSConnectionPool):
    pass


@final
class _Exchange:
    """One request, all its attempts, and the response of the last one."""

    __slots__ = (
        "body",
        "guard",
        "headers",
        "keywords",
        "method",
        "pool",
        "response",
        "until",
        "url",
    )

    def __init__(
        self,
        guard: Guard,
        pool: Any,
        method: str,
        url: str,
        body: Any,
        headers: HTTPHeaderDict,
        keywords: dict[str, Any],
    ) -> None:
        self.guard: Final = guard
        self.pool: Final = pool
        self.method: Final = method
        self.url: Final = url
        self.body: Final = body
        self.headers: Final = headers
        self.keywords: Final = keywords
        self.response: BaseHTTPResponse | None = None
        self.until: Final[Instant | None] = ends_at(guard)

    @property
    def request(self) -> tuple[str, str]:
        """What a fallback is given: urllib3 has no request as an object."""
        pool = self.pool
        return self.method, origin_of(pool.scheme, pool.host, pool.port) + self.url


def _attempt(exchange: _Exchange) -> BaseHTTPResponse:
    if exchange.response is not None:
        exchange.response.close()
        exchange.response = None
    guard, pool = exchange.guard, exchange.pool
    end = attempt_ends_at(guard)
    propagate(guard, exchange.headers, end)
    keywords = exchange.keywords | {
        "body": exchange.body,
        "headers": exchange.headers,
        "retries": _redirects_alone(exchange.keywords.get("retries"), pool.retries),
        "timeout": fitted(exchange.keywords.get("timeout", pool.timeout), end),
    }
    try:
        response = super(_GuardedPool, pool).urlopen(exchange.method, exchange.url, **keywords)
    except (MaxRetryError, TimedOut) as error:
        if end is not None and _timed_out(error) and is_over(end):
            raise too_slow(guard, end, exchange.until) from error
        raise
    exchange.response = response
    if says_no(guard, response.status):
        raise SaidNo(response)
    return cast("BaseHTTPResponse", response)


def fitted(given: Any, until: Instant | None) -> Any:
    """The timeouts of an attempt that ends at `until`: urllib3 cuts each step to what remains.

    `given` are the client's own: seconds for both, a pair for connecting and reading, or a Timeout.
    """
    if until is None:
        return given
    left = seconds_until(until)
    if isinstance(given, Timeout):
        timeout = given.clone()
        total = timeout.total
        timeout.total = min(total, left) if isinstance(total, int | float) else left
        return timeout
    connect, read = given if isinstance(given, tuple) else (given, given)
    return Timeout(total=left, connect=connect, read=read)


def _redirects_alone(said: Any, otherwise: Any) -> Any:
    """What a `retries` says, but for the retries."""
    if said is None:
        said = otherwise
    if said is False:
        return False
    retries = Retry.from_int(said)
    return retries.new(
        connect=0,
        read=0,
        status=0,
        other=0,
        status_forcelist=(),
        respect_retry_after_header=False,
    )


def _reason(error: BaseException) -> BaseException:
    return error.reason or error if isinstance(error, MaxRetryError) else error


def _timed_out(error: BaseException) -> bool:
    reason = _reason(error)
    return isinstance(reason, TimedOut) and not isinstance(reason, NewConnectionError)


def _classify(error: BaseException) -> Outcome | None:
    """urllib3 says of a timeout that its retries are used up, and of who refuses to be connected
    that he was too slow.
    """
    if isinstance(_reason(error), NewConnectionError):
        return FAILURE
    return TIMEOUT if _timed_out(error) else None


def _first_two(args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, Any]:
    """The body and the headers, which alone may also be given by position."""
    if len(args) > 2:
        raise SettingsError("of urlopen, all after the headers is given by name")
    given = dict(zip(("body", "headers"), args, strict=False))
    body = keywords.pop("body", None)
    headers = keywords.pop("headers", None)
    return given.get("body", body), given.get("headers", headers)
