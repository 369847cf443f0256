"""What does HTTP itself say about a request: may it be repeated, how did it go, who is asked?

Shared by the adapters of all HTTP clients, and free of all of them. A request may be repeated if
its method is idempotent (RFC 9110 section 9.2.2) or it carries an `Idempotency-Key`; any other only
after a refusal (429, 503), because what was refused was not done.
"""

from collections.abc import Mapping, MutableMapping
from typing import Any, Final, final

from tidegate.core.outcome import SUCCESS
from tidegate.runtime.classify import status_outcome
from tidegate.runtime.clock import current
from tidegate.runtime.context import AMBIENT
from tidegate.runtime.guard import Guard
from tidegate.runtime.wire import CRITICALITY, DEPTH, REMAINING, outgoing
from tidegate.settings.rules import refuse
from tidegate.units import Instant

__all__ = [
    "IDEMPOTENT",
    "SaidNo",
    "may_follow",
    "origin_of",
    "propagate",
    "repeatable",
    "says_no",
    "short",
    "true_false_or_none",
]

IDEMPOTENT: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})
"""Methods that do the same when done twice: RFC 9110 section 9.2.2."""

_LEAST_NO: Final = 429  # the least status that is not an answer
_KEY: Final = "Idempotency-Key"
_OURS: Final = (REMAINING, CRITICALITY, DEPTH)
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_SHORT: Final = 65_536  # bytes of an error page that are worth keeping for a free connection


def true_false_or_none(said: object) -> bool | None:
    """What a user says of all requests: whether they may be repeated. Raises SettingsError."""
    if said is not None and not isinstance(said, bool):
        raise refuse("idempotent", "True, False or None", said)
    return said


def repeatable(method: str, headers: Mapping[str, Any]) -> bool:
    """Whether doing it twice does no more than doing it once. `headers` know no case."""
    return method.upper() in IDEMPOTENT or _KEY in headers


@final
class SaidNo(Exception):  # noqa: N818 - named for what happened
    """A response that says no, on its way through a guard: its adapter gives it back as it came.

    A guard takes it for what a client raises for a status, so 429 and 503 are refusals, 504 is a
    timeout somewhere on the way, and other 5xx are failures; a `classify` of the user's own sees
    the same. It is raised, since a guard without a judge asks nothing of what is returned, which
    takes it a third of the time.
    """

    def __init__(self, response: Any) -> None:
        super().__init__()
        self.response: Final = response


def says_no(guard: Guard, status: int) -> bool:
    """Whether a response with this status is to be raised as `SaidNo`: 4xx is an answer like 2xx.

    Not if the guard has a `judge` of the user's own, which is given the response itself.
    """
    return status >= _LEAST_NO and guard.judge is None and status_outcome(status) is not SUCCESS


def may_follow(guard: Guard, number: int, response: Any, status: int) -> bool:
    """Whether another attempt may follow this response to attempt `number`."""
    if status < _LEAST_NO and guard.judge is None:
        return False
    pipeline = guard.pipeline
    if guard.mode != "enforce" or number >= pipeline.attempts:
        return False
    if guard.judge is None:
        return pipeline.retryable[guard.outcome_of(SaidNo(response))]
    verdict = guard.judge(response)
    return verdict is not None and pipeline.retryable[verdict.outcome]


def origin_of(scheme: str, host: str, port: int | None) -> str:
    """The origin of a URL (RFC 6454), without a port that goes without saying."""
    place = f"[{host}]" if ":" in host else host
    if port is None or port == _DEFAULT_PORTS.get(scheme):
        return f"{scheme}://{place}"
    return f"{scheme}://{place}:{port}"


def propagate(
    guard: Guard, headers: MutableMapping[str, Any], until: Instant | None, *, stale: bool = True
) -> None:
    """Put what an attempt that ends at `until` hands down into its headers, if the guard has
    `propagate`.

    What an earlier attempt, an earlier use of the same request, or the request that was redirected
    here said is taken out first: a stranger is told nothing. `stale` is False where it is known
    that there is none of it.
    """
    if stale:
        for name in _OURS:
            if name in headers:
                del headers[name]
    if guard.settings.propagate:
        headers.update(outgoing(current().now(), AMBIENT.get()._replace(deadline=until)))


def short(headers: Mapping[str, Any]) -> bool:
    """Whether a body is known to be short, so that it can be read now and its connection freed."""
    length = headers.get("Content-Length")
    return length is not None and length.isdecimal() and int(length) <= _SHORT
