"""What does gRPC say about a call: how did it go, what may be repeated, what is handed down?

Shared by the interceptors for threads (`grpc`) and for asyncio (`grpc_aio`). A status does not say
whether the work was done: an UNAVAILABLE may come from a server that refused, or from a connection
that broke over the answer. So nothing is repeated but the methods that the user names idempotent.

A call's deadline goes with it by gRPC's own means, its `timeout`; at the next hop `time_remaining`
is made ambient, since gRPC for Python does not pass it on by itself.
"""

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from contextvars import Context, copy_context
from typing import Any, Final, final

import grpc  # type: ignore[import-untyped]

from tidegate.adapters.doors import Doors, Send, Source, Terms
from tidegate.adapters.time_left import attempt_ends_at, ends_at, seconds_until, too_slow
from tidegate.core.outcome import FAILURE, IGNORED, OVERLOADED, SUCCESS, TIMEOUT, Outcome
from tidegate.errors import SettingsError, TidegateError
from tidegate.runtime.attempt import Attempt
from tidegate.runtime.clock import current
from tidegate.runtime.context import AMBIENT, NOTHING, Ambient
from tidegate.runtime.guard import Guard
from tidegate.runtime.wire import REMAINING, incoming, outgoing
from tidegate.units import DAY, SECOND, Instant

__all__ = ["Calls", "Exchange", "Stream", "classify", "inherited", "outcome_of"]

_Code: Final = grpc.StatusCode

_OUTCOMES: Final = {
    _Code.CANCELLED: IGNORED,
    _Code.UNKNOWN: FAILURE,
    _Code.INTERNAL: FAILURE,
    _Code.DATA_LOSS: FAILURE,
    _Code.DEADLINE_EXCEEDED: TIMEOUT,
    _Code.UNAVAILABLE: OVERLOADED,
    _Code.RESOURCE_EXHAUSTED: OVERLOADED,
}
"""The rest are answers: the request is wrong, or late, or not allowed, and the service is well."""

# gRFC A6: the server says when to come again, or by a negative number never to.
_PUSHBACK: Final = "grpc-retry-pushback-ms"

# gRPC rounds a timeout to the wire's units and sets its own timer by another clock.
_NEAR_S: Final = 0.02


def outcome_of(code: Any) -> Outcome:
    """What a status code says about the service."""
    return _OUTCOMES.get(code, SUCCESS)


def classify(error: BaseException) -> Outcome | None:
    """How an attempt ended that raised this; None for what is no status of gRPC."""
    return outcome_of(error.code()) if isinstance(error, grpc.RpcError) else None


@final
class Exchange:
    """One call, and all its attempts. `details` are the client's; `details_now` an attempt's."""

    __slots__ = ("answer", "continuation", "details", "end", "guard", "ours", "request", "until")

    def __init__(self, guard: Guard, continuation: Any, details: Any, request: Any) -> None:
        self.guard: Final = guard
        self.continuation: Final = continuation
        self.details: Final = details
        self.request: Final = request
        self.answer: Any = None
        self.end: Instant | None = None
        self.ours = False  # whether the timeout of the attempt is ours, and not the user's
        self.until: Final[Instant | None] = ends_at(guard)

    def details_now(self) -> Any:
        """The details of an attempt: its timeout is what remains, its metadata what it inherits."""
        details = self.details
        timeout = details.timeout
        end = self.end = attempt_ends_at(self.guard)
        left = None if end is None else seconds_until(end)
        self.ours = left is not None and (timeout is None or left < timeout)
        changed = {
            "timeout": left if self.ours else timeout,
            "metadata": self._metadata(details.metadata),
        }
        if hasattr(details, "_replace"):  # gRPC's own are tuples with names
            return details._replace(**changed)
        return _Details(details, changed)

    def _metadata(self, given: Any) -> Any:
        if not self.guard.settings.propagate:
            return given
        said = outgoing(current().now(), AMBIENT.get())
        said.pop(REMAINING, None)  # gRPC says it itself
        ours = tuple((name.lower(), value) for name, value in said.items())
        return (*(given or ()), *ours) if ours else given

    def failed(self, error: Any) -> BaseException:
        """The error to raise for an attempt that ended with this one."""
        raised: BaseException = error
        if not isinstance(error, grpc.RpcError):
            return raised
        late = self.ours and error.code() is _Code.DEADLINE_EXCEEDED
        if late and self.end is not None and seconds_until(self.end) < _NEAR_S:
            too_late = too_slow(self.guard, self.end, self.until)
            too_late.__cause__ = error
            return too_late
        wait = _pushback(error)
        if wait is not None:
            error.retry_after = wait
        return raised


@final
class _Details(grpc.ClientCallDetails):  # type: ignore[misc]
    """Details that another interceptor has made in a way of its own, with some of them changed."""

    def __init__(self, details: Any, changed: dict[str, Any]) -> None:
        for name in ("method", "credentials", "wait_for_ready", "compression"):
            setattr(self, name, getattr(details, name, None))
        self.timeout = changed["timeout"]
        self.metadata = changed["metadata"]


@final
class Stream:
    """A call that goes on for as long as its user likes: its outcome is known when it closes.

    It has no timeout of an attempt and is tried once. What it inherits is kept in a context of its
    own, since it may be closed by another thread than it was opened by.
    """

    __slots__ = ("_attempt", "_context", "_open", "exchange")

    def __init__(self, exchange: Exchange) -> None:
        self.exchange: Final = exchange
        self._attempt: Final[Attempt] = exchange.guard.attempt()
        self._context: Final[Context] = copy_context()
        self._open = True
        self._context.run(self._attempt.__enter__)  # raises what refuses

    def details(self) -> Any:
        """The call's details, with what it inherits."""
        return self._context.run(self.exchange.details_now)

    def close(self, outcome: Outcome) -> None:
        """The call is over; told twice, the first time counts."""
        if self._open:
            self._open = False
            self._context.run(self._leave, outcome)

    def _leave(self, outcome: Outcome) -> None:
        self._attempt.record(outcome)
        with suppress(TidegateError):  # it was late, and is counted so; its user has gRPC's error
            self._attempt.__exit__(None, None, None)


@final
class Calls:
    """The guards of one channel's calls, by service or as the user says."""

    __slots__ = ("_doors", "_idempotent")

    def __init__(self, guard: Source, idempotent: bool | Collection[str], send: Send) -> None:
        if isinstance(idempotent, str) or not isinstance(idempotent, bool | Collection):
            raise SettingsError(
                f"expected True or a set of methods as '/shop.Prices/Get', not {idempotent!r}",
                path=("idempotent",),
            )
        self._doors: Final = Doors(guard, send, classify)
        self._idempotent: Final = idempotent

    def unary(self, continuation: Any, details: Any, request: Any) -> tuple[Send, Exchange]:
        """The attempt behind the guard of this call, and what it is to be called with."""
        method = _text(details.method)
        idempotent = self._idempotent
        again = idempotent if isinstance(idempotent, bool) else method in idempotent
        return self._on(Terms.REPEAT if again else Terms.ONCE, continuation, details, request)

    def once(self, continuation: Any, details: Any, request: Any) -> tuple[Send, Exchange]:
        """The same for a request that is a stream, and is gone when it has been sent."""
        return self._on(Terms.ONCE, continuation, details, request)

    def stream(self, continuation: Any, details: Any, request: Any) -> Stream:
        """The same for an answer that is a stream. Raises `Rejected` and `DeadlineExceeded`."""
        return Stream(self._on(Terms.STREAM, continuation, details, request)[1])

    def _on(
        self, terms: Terms, continuation: Any, details: Any, request: Any
    ) -> tuple[Send, Exchange]:
        door = self._doors.of(_text(details.method).strip("/").partition("/")[0])
        guard, send = door.on(terms)
        return send, Exchange(guard, continuation, details, request)


def inherited(remaining: float | None, metadata: Iterable[Any], trusted: bool) -> Ambient:
    """What a call that has come in inherits: its deadline, and from a caller that is trusted also
    how much it matters and how deep it is.
    """
    now = current().now()
    values = NOTHING
    if trusted:
        headers = {name: value for name, value in metadata if isinstance(value, str)}
        values = incoming(now, headers)
    if remaining is None or remaining * SECOND >= DAY:  # to a server, no deadline is infinity
        return values
    until = now + round(remaining * SECOND)
    return values._replace(
        deadline=until if values.deadline is None else min(until, values.deadline)
    )


def _pushback(error: Any) -> float | None:
    """Seconds to stay away for, as the server says; a day for `do not come again`."""
    metadata: Callable[[], Any] | None = getattr(error, "trailing_metadata", None)
    for name, value in (metadata() if metadata is not None else None) or ():
        if name == _PUSHBACK:
            text = _text(value)
            return int(text) / 1000 if text.isdecimal() and len(text) <= 9 else DAY / SECOND
    return None


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
