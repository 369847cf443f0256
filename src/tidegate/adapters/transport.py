"""What do the transports of httpx and httpx2 have in common?

All but the library that they are written for. A transport wraps another one, and guards what goes
through: it asks the origin's guard, sends, judges the response by its status, and sends again where
that is allowed and worth it. It ends at the response's headers, as a client may read the body for
as long as it likes; but a body is not read on past the deadline of whoever waits for it.

A response that may be followed by another attempt gives its connection back before the wait: its
body is read if it is short, and thrown away when the next attempt begins if it is not.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any, ClassVar, Final, final

from tidegate.adapters.doors import Doors, Send, Source, Terms
from tidegate.adapters.http import (
    SaidNo,
    may_follow,
    origin_of,
    propagate,
    repeatable,
    says_no,
    short,
)
from tidegate.adapters.time_left import TimeLeft, attempt_ends_at, ends_at, too_slow
from tidegate.errors import DeadlineExceeded, SettingsError, nearest
from tidegate.runtime.clock import current
from tidegate.runtime.guard import Guard
from tidegate.units import Instant

__all__ = ["AsyncBody", "AsyncSending", "Body", "Exchange", "Sending"]

_EXTENSION: Final = "tidegate"
_OPTIONS: Final = ("guard", "idempotent")
_SWITCHING: Final = 101  # the connection is no longer one of HTTP, and its body no body


@final
class Exchange:
    """One request, all its attempts, and the response of the last one."""

    __slots__ = (
        "_number",
        "_timeouts",
        "end",
        "guard",
        "request",
        "response",
        "time",
        "until",
    )

    def __init__(self, guard: Guard, request: Any) -> None:
        self.guard: Final = guard
        self.request: Final = request
        self.until: Final[Instant | None] = ends_at(guard)
        self.response: Any = None
        self.time: TimeLeft
        self.end: Instant | None  # of the attempt
        self._number = 0
        self._timeouts: Final = request.extensions.get("timeout")

    def begin(self) -> None:
        """Prepare the request for one attempt: its headers, its timeouts."""
        self._number += 1
        end = self.end = attempt_ends_at(self.guard)
        self.time = TimeLeft(self._timeouts, end)
        self.request.extensions = {**self.request.extensions, "timeout": self.time}
        headers = self.request.headers
        # One look at all of them: httpx goes through its list for each name that it is asked for.
        stale = any(name[:9].lower() == b"tidegate-" for name, _ in headers.raw)
        propagate(self.guard, headers, end, stale=stale)

    def may_go_on(self) -> bool:
        """Whether another attempt may follow the response, and its body is known to be short."""
        response = self.response
        again = may_follow(self.guard, self._number, response, response.status_code)
        return again and short(response.headers)

    def body_is_watched(self, response: Any) -> bool:
        """Set the time for the response's body; whether there is an end to it."""
        if response is not self.response:
            return False  # a fallback's
        self.time.until = self.until if self.guard.mode == "enforce" else None
        ends = self.time.until is not None and not response.is_closed
        return ends and bool(response.status_code != _SWITCHING)


class _Common:
    """The parts that neither wait nor block. `library` is httpx or httpx2."""

    library: ClassVar[Any]
    body: ClassVar[Callable[..., Any]]

    _doors: Doors

    def _behind(self, request: Any) -> tuple[Send, Exchange]:
        """The attempt behind the guard of this request, and what it is to be called with."""
        said = request.extensions.get(_EXTENSION)
        guard = idempotent = None
        if said is not None:
            _check(said)
            guard, idempotent = said.get("guard"), said.get("idempotent")
        if guard is None:
            url = request.url
            door = self._doors.of(origin_of(url.scheme, url.host, url.port))
        else:
            door = self._doors.to(guard)
        view, send = door.on(self._terms(door.guard, request, idempotent))
        return send, Exchange(view, request)

    def _terms(self, guard: Guard, request: Any, said: bool | None) -> Terms:
        if not isinstance(request.stream, self.library.ByteStream):
            return Terms.ONCE  # a generator or a file: what has been sent of it is gone
        if said is None:
            said = guard.settings.idempotent and repeatable(request.method, request.headers)
        return Terms.REPEAT if said else Terms.UNLESS_DONE


class AsyncSending(_Common):
    """An async transport, but for its base class and the name of its library."""

    def __init__(self, guard: Source, wrapped: Any) -> None:
        self._wrapped: Final = wrapped
        self._doors = Doors(guard, self._attempt)

    async def handle_async_request(self, request: Any) -> Any:
        """Send a request under the guard of its origin."""
        send, exchange = self._behind(request)
        response = None
        try:
            response = await send(exchange)
        except SaidNo as no:
            response = no.response
        finally:
            if exchange.response is not None and exchange.response is not response:
                await exchange.response.stream.aclose()
        if exchange.body_is_watched(response):
            response.stream = self.body(response.stream, exchange.time, exchange.guard.name)
        return response

    async def aclose(self) -> None:
        """Close the transport that is wrapped."""
        await self._wrapped.aclose()

    async def _attempt(self, exchange: Exchange) -> Any:
        if exchange.response is not None:
            response, exchange.response = exchange.response, None
            await response.stream.aclose()
        exchange.begin()
        try:
            response = exchange.response = await self._pass_on(exchange)
            if exchange.may_go_on():
                content = b"".join([part async for part in response.stream])
                await response.stream.aclose()
                response.stream = self.library.ByteStream(content)
        except self.library.TimeoutException as error:
            if exchange.time.ours:
                raise too_slow(exchange.guard, exchange.end, exchange.until) from error
            raise
        if says_no(exchange.guard, response.status_code):
            raise SaidNo(response)
        return response

    async def _pass_on(self, exchange: Exchange) -> Any:
        return await self._wrapped.handle_async_request(exchange.request)


class Sending(_Common):
    """A transport that blocks, but for its base class and the name of its library."""

    def __init__(self, guard: Source, wrapped: Any) -> None:
        self._wrapped: Final = wrapped
        self._doors = Doors(guard, self._attempt)

    def handle_request(self, request: Any) -> Any:
        """Send a request under the guard of its origin."""
        send, exchange = self._behind(request)
        response = None
        try:
            response = send(exchange)
        except SaidNo as no:
            response = no.response
        finally:
            if exchange.response is not None and exchange.response is not response:
                exchange.response.stream.close()
        if exchange.body_is_watched(response):
            response.stream = self.body(response.stream, exchange.time, exchange.guard.name)
        return response

    def close(self) -> None:
        """Close the transport that is wrapped."""
        self._wrapped.close()

    def _attempt(self, exchange: Exchange) -> Any:
        if exchange.response is not None:
            response, exchange.response = exchange.response, None
            response.stream.close()
        exchange.begin()
        try:
            response = exchange.response = self._pass_on(exchange)
            if exchange.may_go_on():
                content = b"".join(list(response.stream))
                response.stream.close()
                response.stream = self.library.ByteStream(content)
        except self.library.TimeoutException as error:
            if exchange.time.ours:
                raise too_slow(exchange.guard, exchange.end, exchange.until) from error
            raise
        if says_no(exchange.guard, response.status_code):
            raise SaidNo(response)
        return response

    def _pass_on(self, exchange: Exchange) -> Any:
        return self._wrapped.handle_request(exchange.request)


# Bodies: read no further than somebody waits.


class AsyncBody:
    """The body of a response, until `time` is over. `done` is called when it is closed."""

    def __init__(
        self,
        stream: Any,
        time: TimeLeft | None = None,
        name: str = "",
        done: Callable[[], object] | None = None,
    ) -> None:
        self._stream: Final = stream
        self._time: Final = time
        self._name: Final = name
        self._done = done

    async def __aiter__(self) -> AsyncIterator[bytes]:
        time = self._time
        try:
            async for part in self._stream:
                if _is_over(time):
                    raise DeadlineExceeded(self._name, sent=True)
                yield part
        except BaseException as error:
            await self.aclose()
            if _was_ours(time, error):
                raise DeadlineExceeded(self._name, sent=True) from error
            raise

    async def aclose(self) -> None:
        """Give the connection back."""
        done, self._done = self._done, None
        try:
            await self._stream.aclose()
        finally:
            if done is not None:
                done()


class Body:
    """The twin of `AsyncBody` for a thread that blocks."""

    def __init__(
        self,
        stream: Any,
        time: TimeLeft | None = None,
        name: str = "",
        done: Callable[[], object] | None = None,
    ) -> None:
        self._stream: Final = stream
        self._time: Final = time
        self._name: Final = name
        self._done = done

    def __iter__(self) -> Iterator[bytes]:
        time = self._time
        try:
            for part in self._stream:
                if _is_over(time):
                    raise DeadlineExceeded(self._name, sent=True)
                yield part
        except BaseException as error:
            self.close()
            if _was_ours(time, error):
                raise DeadlineExceeded(self._name, sent=True) from error
            raise

    def close(self) -> None:
        """Give the connection back."""
        done, self._done = self._done, None
        try:
            self._stream.close()
        finally:
            if done is not None:
                done()


def _is_over(time: TimeLeft | None) -> bool:
    return time is not None and time.until is not None and current().now() >= time.until


def _was_ours(time: TimeLeft | None, error: BaseException) -> bool:
    return time is not None and time.ours and type(error).__name__ == "ReadTimeout"


def _check(said: Any) -> None:
    if not isinstance(said, Mapping):
        raise SettingsError(f"expected a mapping, found {said!r}", path=("extensions", _EXTENSION))
    for name in said:
        if name not in _OPTIONS:
            raise SettingsError(
                f"there is no option {name!r}{nearest(str(name), _OPTIONS)}",
                path=("extensions", _EXTENSION),
            )
    idempotent: Any = said.get("idempotent")
    if idempotent is not None and not isinstance(idempotent, bool):
        raise SettingsError(
            f"expected True or False, found {idempotent!r}",
            path=("extensions", _EXTENSION, "idempotent"),
        )
