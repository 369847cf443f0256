"""How are the calls of a gRPC channel guarded, and their deadlines carried on by a server?

    channel = grpc.intercept_channel(grpc.insecure_channel(target), ClientInterceptor())
    server = grpc.server(pool, interceptors=[ServerInterceptor()])

For `grpc.aio` see `tidegate.adapters.grpc_aio`.
"""

from collections.abc import Callable, Collection, Iterator
from contextvars import copy_context
from typing import Any, Final, final

from tidegate.errors import missing_extra

try:
    import grpc  # type: ignore[import-untyped]
except ModuleNotFoundError as error:
    raise missing_extra(error, "grpc") from None

from tidegate.adapters.doors import Source
from tidegate.adapters.rpc import Calls, Exchange, inherited, outcome_of
from tidegate.core.outcome import FAILURE
from tidegate.runtime.context import AMBIENT, entered

__all__ = ["ClientInterceptor", "ServerInterceptor", "rebuilt", "wrapped"]


class ClientInterceptor(
    grpc.UnaryUnaryClientInterceptor,  # type: ignore[misc]
    grpc.UnaryStreamClientInterceptor,  # type: ignore[misc]
    grpc.StreamUnaryClientInterceptor,  # type: ignore[misc]
    grpc.StreamStreamClientInterceptor,  # type: ignore[misc]
):
    """An interceptor for `grpc.intercept_channel` that guards what the channel sends.

    `guard` is one guard for everything, a function from a service's name to its guard, or None for
    one guard per service, named as it is (`shop.Prices`; at most 256). `idempotent` is a set of
    methods that may be repeated (`{"/shop.Prices/Get"}`), or True for all; gRPC does not say.

    An attempt's `timeout` is what remains, or the user's own where that is shorter. A call whose
    answer is a stream is tried once, has no timeout of an attempt, and is judged when it closes.
    A call by `.future()` is done when it returns, as it may have to be repeated.

    Raises what gRPC raises, and for what the guard decides `tidegate.Rejected`,
    `tidegate.AttemptTimeout` and `tidegate.DeadlineExceeded`.
    """

    def __init__(self, guard: Source = None, *, idempotent: bool | Collection[str] = False) -> None:
        self._calls: Final = Calls(guard, idempotent, _attempt)

    def intercept_unary_unary(
        self, continuation: Any, client_call_details: Any, request: Any
    ) -> Any:
        """One request, one answer."""
        send, exchange = self._calls.unary(continuation, client_call_details, request)
        return _answer(exchange, send(exchange))

    def intercept_stream_unary(
        self, continuation: Any, client_call_details: Any, request_iterator: Any
    ) -> Any:
        """A stream of requests, one answer."""
        send, exchange = self._calls.once(continuation, client_call_details, request_iterator)
        return _answer(exchange, send(exchange))

    def intercept_unary_stream(
        self, continuation: Any, client_call_details: Any, request: Any
    ) -> Any:
        """One request, a stream of answers."""
        stream = self._calls.stream(continuation, client_call_details, request)
        try:
            call = continuation(stream.details(), request)
        except BaseException:
            stream.close(FAILURE)
            raise
        if not call.add_callback(lambda: stream.close(outcome_of(call.code()))):
            stream.close(outcome_of(call.code()))  # over already
        return call

    intercept_stream_stream = intercept_unary_stream


def _attempt(exchange: Exchange) -> Any:
    answer = exchange.continuation(exchange.details_now(), exchange.request)
    error = answer.exception()
    if error is not None:
        raise exchange.failed(error)
    exchange.answer = answer
    return answer


def _answer(exchange: Exchange, answer: Any) -> Any:
    """What gRPC expects of an interceptor, also where a fallback has answered."""
    return answer if answer is exchange.answer else _Fallback(answer)


@final
class _Fallback(grpc.Call, grpc.Future):  # type: ignore[misc]
    """A call that was answered by the guard's fallback."""

    def __init__(self, value: Any) -> None:
        self._value: Final = value

    def result(self, timeout: float | None = None) -> Any:  # noqa: ARG002
        return self._value

    def exception(self, timeout: float | None = None) -> None:  # noqa: ARG002
        return None

    traceback = exception

    def code(self) -> Any:
        return grpc.StatusCode.OK

    def details(self) -> str:
        return ""

    def initial_metadata(self) -> tuple[()]:
        return ()

    trailing_metadata = initial_metadata

    def cancel(self) -> bool:
        return False

    cancelled = running = is_active = cancel

    def done(self) -> bool:
        return True

    def time_remaining(self) -> None:
        return None

    def add_done_callback(self, fn: Callable[[Any], None]) -> None:
        fn(self)

    def add_callback(self, callback: Callable[[], None]) -> bool:  # noqa: ARG002
        return False


class ServerInterceptor(grpc.ServerInterceptor):  # type: ignore[misc]
    """An interceptor for `grpc.server` that makes a call's deadline that of its handler.

    What the handler calls under a guard then ends in time, at whatever hop. `trusted` says whether
    callers are believed about criticality and retry depth: True only where none but one's own
    services can connect.
    """

    def __init__(self, *, trusted: bool = False) -> None:
        self._trusted: Final = trusted

    def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:
        """Wrap the handler of a call."""
        handler = continuation(handler_call_details)
        if handler is None:
            return None
        return rebuilt(handler, wrapped, handler_call_details.invocation_metadata, self._trusted)


def rebuilt(handler: Any, wrap: Callable[..., Any], metadata: Any, trusted: bool) -> Any:
    """The same handler, with its function wrapped."""
    asked = "stream" if handler.request_streaming else "unary"
    answered = "stream" if handler.response_streaming else "unary"
    kind = f"{asked}_{answered}"
    make = getattr(grpc, f"{kind}_rpc_method_handler")
    return make(
        wrap(getattr(handler, kind), metadata, trusted, handler.response_streaming),
        request_deserializer=handler.request_deserializer,
        response_serializer=handler.response_serializer,
    )


def wrapped(
    function: Callable[..., Any], metadata: Any, trusted: bool, streams: bool
) -> Callable[..., Any]:
    """A handler that blocks, with the deadline of each call as its own; `streams`: its answers."""
    return (_streaming if streams else _plain)(function, metadata, trusted)


def _plain(function: Callable[..., Any], metadata: Any, trusted: bool) -> Callable[..., Any]:
    def handle(request: Any, context: Any) -> Any:
        with entered(inherited(context.time_remaining(), metadata, trusted)):
            return function(request, context)

    return handle


def _streaming(function: Callable[..., Any], metadata: Any, trusted: bool) -> Callable[..., Any]:
    """Each step of a generator may be asked for by another thread, so it has its own context."""

    def handle(request: Any, context: Any) -> Iterator[Any]:
        values = inherited(context.time_remaining(), metadata, trusted)
        own = copy_context()
        own.run(AMBIENT.set, values)
        answers = iter(own.run(function, request, context))
        end = object()
        while (answer := own.run(next, answers, end)) is not end:
            yield answer

    return handle
