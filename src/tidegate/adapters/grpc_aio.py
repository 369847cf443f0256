"""The same as `grpc` for asyncio: `grpc.aio` has interceptors of its own, one for each kind.

channel = grpc.aio.insecure_channel(target, interceptors=client_interceptors())
server = grpc.aio.server(interceptors=[ServerInterceptor()])
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from inspect import isasyncgenfunction, iscoroutinefunction
from typing import Any, Final

from tidegate.errors import missing_extra

try:
    import grpc  # type: ignore[import-untyped]
    from grpc import aio
except ModuleNotFoundError as error:
    raise missing_extra(error, "grpc") from None

from tidegate.adapters import grpc as blocking
from tidegate.adapters.doors import Source
from tidegate.adapters.rpc import Calls, Exchange, Stream, inherited, outcome_of
from tidegate.core.outcome import FAILURE
from tidegate.runtime.context import AMBIENT, entered

__all__ = ["ServerInterceptor", "client_interceptors"]


def client_interceptors(
    guard: Source = None, *, idempotent: bool | Collection[str] = False
) -> list[Any]:
    """Interceptors for a channel of `grpc.aio` that guard what it sends, one for each kind of call.

    The arguments and what is raised are those of `tidegate.adapters.grpc.ClientInterceptor`. Here
    an attempt that takes too long is cancelled, and a call whose request is a stream is judged when
    it closes, too.
    """
    calls = Calls(guard, idempotent, _attempt)
    return [_UnaryUnary(calls), _UnaryStream(calls), _StreamUnary(calls), _StreamStream(calls)]


class _UnaryUnary(aio.UnaryUnaryClientInterceptor):  # type: ignore[misc]
    def __init__(self, calls: Calls) -> None:
        self._calls: Final = calls

    async def intercept_unary_unary(
        self, continuation: Any, client_call_details: Any, request: Any
    ) -> Any:
        send, exchange = self._calls.unary(continuation, client_call_details, request)
        return await send(exchange)


async def _attempt(exchange: Exchange) -> Any:
    try:
        call = await exchange.continuation(exchange.details_now(), exchange.request)
        await call  # the answer stays in the call
    except grpc.RpcError as error:
        raise exchange.failed(error) from error.__cause__
    return call


class _UnaryStream(aio.UnaryStreamClientInterceptor):  # type: ignore[misc]
    def __init__(self, calls: Calls) -> None:
        self._calls: Final = calls

    async def intercept_unary_stream(
        self, continuation: Any, client_call_details: Any, request: Any
    ) -> Any:
        return await _open(self._calls, continuation, client_call_details, request)


class _StreamUnary(aio.StreamUnaryClientInterceptor):  # type: ignore[misc]
    def __init__(self, calls: Calls) -> None:
        self._calls: Final = calls

    async def intercept_stream_unary(
        self, continuation: Any, client_call_details: Any, request_iterator: Any
    ) -> Any:
        return await _open(self._calls, continuation, client_call_details, request_iterator)


class _StreamStream(aio.StreamStreamClientInterceptor):  # type: ignore[misc]
    def __init__(self, calls: Calls) -> None:
        self._calls: Final = calls

    async def intercept_stream_stream(
        self, continuation: Any, client_call_details: Any, request_iterator: Any
    ) -> Any:
        return await _open(self._calls, continuation, client_call_details, request_iterator)


_closing: Final[set[asyncio.Task[None]]] = set()  # the loop alone would not keep them


async def _open(calls: Calls, continuation: Any, details: Any, request: Any) -> Any:
    stream = calls.stream(continuation, details, request)
    try:
        call = await continuation(stream.details(), request)
    except BaseException:
        stream.close(FAILURE)
        raise

    def ended(_: Any) -> None:
        task = asyncio.get_running_loop().create_task(_close(stream, call))
        _closing.add(task)
        task.add_done_callback(_closing.discard)

    call.add_done_callback(ended)
    return call


async def _close(stream: Stream, call: Any) -> None:
    stream.close(outcome_of(await call.code()))


class ServerInterceptor(aio.ServerInterceptor):  # type: ignore[misc]
    """An interceptor for `grpc.aio.server` that makes a call's deadline that of its handler.

    See `tidegate.adapters.grpc.ServerInterceptor`.
    """

    def __init__(self, *, trusted: bool = False) -> None:
        self._trusted: Final = trusted

    async def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:
        """Wrap the handler of a call."""
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        metadata = handler_call_details.invocation_metadata
        return blocking.rebuilt(handler, _wrapped, metadata, self._trusted)


def _wrapped(
    function: Callable[..., Any], metadata: Any, trusted: bool, streams: bool
) -> Callable[..., Any]:
    if isasyncgenfunction(function):

        async def stream(request: Any, context: Any) -> AsyncIterator[Any]:
            # For good: the task of this call ends with it.
            AMBIENT.set(inherited(context.time_remaining(), metadata, trusted))
            async for answer in function(request, context):
                yield answer

        return stream
    if iscoroutinefunction(function):

        async def handle(request: Any, context: Any) -> Any:
            with entered(inherited(context.time_remaining(), metadata, trusted)):
                return await function(request, context)

        return handle
    return blocking.wrapped(function, metadata, trusted, streams)
