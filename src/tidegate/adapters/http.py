"""What does HTTP itself say about a request: may it be repeated, how did it go, who is asked?

Shared by the adapters of all HTTP clients, and free of all of them. A request may be repeated if
its method is idempotent (RFC 9110 section 9.2.2) or it carries an `Idempotency-Key`; any other only
after a refusal (429, 503), because what was refused was not done.
"""

from collections.abc import Mapping, MutableMapping
from typing import Any, Final

from tidegate.core.outcome import SUCCESS
from tidegate.runtime.classify import parse_retry_after, status_outcome
from tidegate.runtime.clock import current
from tidegate.runtime.context import AMBIENT
from tidegate.runtime.guard import Guard, Verdict
from tidegate.runtime.wire import CRITICALITY, DEPTH, REMAINING, outgoing

__all__ = ["IDEMPOTENT", "origin_of", "propagate", "repeatable", "short", "verdict"]

IDEMPOTENT: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})
"""Methods that do the same when done twice: RFC 9110 section 9.2.2."""

_KEY: Final = "Idempotency-Key"
_OURS: Final = (REMAINING, CRITICALITY, DEPTH)
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_SHORT: Final = 65_536  # bytes of an error page that are worth keeping for a free connection


def repeatable(method: str, headers: Mapping[str, Any]) -> bool:
    """Whether doing it twice does no more than doing it once. `headers` know no case."""
    return method.upper() in IDEMPOTENT or _KEY in headers


def verdict(status: int, headers: Mapping[str, Any]) -> Verdict | None:
    """How an attempt went that was answered so, None if well: 4xx is an answer like 2xx.

    429 and 503 are refusals, 504 is a timeout somewhere on the way, other 5xx are failures.
    `Retry-After` counts in seconds; a date would compare two wall clocks.
    """
    outcome = status_outcome(status)
    if outcome is SUCCESS:
        return None
    return Verdict(outcome, parse_retry_after(headers.get("Retry-After")))


def origin_of(scheme: str, host: str, port: int | None) -> str:
    """The origin of a URL (RFC 6454), without a port that goes without saying."""
    place = f"[{host}]" if ":" in host else host
    if port is None or port == _DEFAULT_PORTS.get(scheme):
        return f"{scheme}://{place}"
    return f"{scheme}://{place}:{port}"


def propagate(guard: Guard, headers: MutableMapping[str, Any], *, stale: bool = True) -> None:
    """Put what the attempt hands down into its headers, if `guard` has `propagate`.

    What an earlier attempt, an earlier use of the same request, or the request that was redirected
    here said is taken out first: a stranger is told nothing. `stale` is False where it is known
    that there is none of it.
    """
    if stale:
        for name in _OURS:
            if name in headers:
                del headers[name]
    if guard.settings.propagate:
        headers.update(outgoing(current().now(), AMBIENT.get()))


def short(headers: Mapping[str, Any]) -> bool:
    """Whether a body is known to be short, so that it can be read now and its connection freed."""
    length = headers.get("Content-Length")
    return length is not None and length.isdecimal() and int(length) <= _SHORT
