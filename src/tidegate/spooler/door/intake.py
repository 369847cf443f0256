"""What becomes of one request that brings records?

    is its kind known, does it fit, has its client a share left, does its lane take anything,
    is there room for its body in this process       -- all before its body is read
    read it, unpack it, find its records, keep them  -- all of them or none

Room is counted in bytes as they come, packed and unpacked, and given back when the request is over,
so the bodies inside are bounded together however many clients there are and however slowly they
send. One that stops sending is let go after `timeout`.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Final, ParamSpec, TypeVar, final

from tidegate.core.client_rates import ClientRates
from tidegate.errors import SpoolError, missing_extra
from tidegate.runtime.clock import current
from tidegate.settings.admission import ClientRate
from tidegate.settings.spool import Door as Settings
from tidegate.spooler.door.answer import No
from tidegate.spooler.door.body import inflated, kind_of, records_of
from tidegate.spooler.door.keeper import Accepted, Keeper, Refused
from tidegate.spooler.door.repeats import Kept, Repeats, mark
from tidegate.units import SECOND, Duration, format_bytes, format_duration

try:
    from starlette.requests import Request
except ModuleNotFoundError as error:
    raise missing_extra(error, "spool") from None

__all__ = ["Intake"]

P = ParamSpec("P")
T = TypeVar("T")

_EACH: Final = 4096  # bytes that a request costs beside its body: buffers, a task, futures
_OFF_LOOP: Final = 256 * 1024  # a larger body is parsed on a thread: it takes a millisecond
_GROWS: Final = 64  # a packed body may take as long as one so much larger
_SOON: Final = (SECOND, 4 * SECOND)  # a process that is short for a moment is well within one


@final
class Intake:
    """The way in of all records; one for a door."""

    __slots__ = ("_inside", "_keeper", "_rates", "_repeats", "_rng", "_settings")

    def __init__(self, keeper: Keeper, settings: Settings, rng: Random) -> None:
        self._keeper: Final = keeper
        self._settings: Final = settings
        self._rng: Final = rng
        rate = settings.rate
        self._rates: Final = None if rate is None else ClientRates(ClientRate(rate=rate))
        self._repeats: Final = Repeats()
        self._inside = 0

    @property
    def inside(self) -> int:
        """Bytes of requests that are being received or written."""
        return self._inside

    async def take(self, lane: str, request: Request) -> Kept:
        """How many records were kept, and from which number on; No if none were.

        Raises what Starlette does when the client leaves before its body is here.
        """
        headers = request.headers
        kind = kind_of(headers.get("content-type", ""))
        packed = _is_packed(headers.get("content-encoding", ""))
        key = headers.get("tidegate-key", "").encode("latin-1")
        client = request.client.host if request.client else ""
        self._ask(lane, client, _length(headers.get("content-length", "0")))
        with self._room() as room:
            body = await self._read(request, room)
            if packed:
                # Counted as much as it may be, until it is known how much it is.
                room.take(self._settings.body)
                body = await _off_loop(_GROWS * len(body), inflated, body, self._settings.body)
                room.take(len(body) - self._settings.body)
            name = headers.get("idempotency-key", "")
            this = await _off_loop(len(body), mark, kind, key, body) if name else b""
            if name and (before := self._repeats.find(lane, name, this)) is not None:
                return before
            largest = self._settings.record
            records = await _off_loop(len(body), records_of, kind, body, key=key, largest=largest)
            self._charge(client, len(records))
            try:
                answer = await self._keeper.accept(lane, records)
            except SpoolError as error:
                raise No(503, str(error), self._soon()) from None
            kept = Kept(len(records), _kept(answer))
            self._repeats.remember(lane, name, this, kept)
        return kept

    # Private parts: before the body.

    def _ask(self, lane: str, client: str, length: int) -> None:
        """Raise No for whatever can be known without the body."""
        if length > self._settings.body:
            raise self._too_large()
        if self._rates is not None:
            self._charge(client, 0)
        refused = self._keeper.refuses(lane)
        if refused is not None:
            _kept(refused)
        if self._inside + length + _EACH > self._settings.inflight:
            raise self._busy()

    def _charge(self, client: str, records: int) -> None:
        """Take so many from the client's share; none is to ask whether one would be let in."""
        if self._rates is None:
            return
        now = current().now()
        wait = self._rates.retry_after(now, client)
        if wait > 0 or not (records == 0 or self._rates.try_acquire(now, client, records)):
            rate = f"{self._settings.rate:,.10g}"
            raise No(429, f"this client may send {rate} records a second", wait)

    # Private parts: the body.

    async def _read(self, request: Request, room: "_Room") -> bytes:
        parts: list[bytes] = []
        size = 0
        stream = request.stream()
        timeout = self._settings.timeout / SECOND
        while True:
            try:
                async with asyncio.timeout(timeout):
                    part = await anext(stream, None)
            except TimeoutError:
                wait = format_duration(self._settings.timeout)
                raise No(408, f"nothing came for {wait}") from None
            if part is None:
                return b"".join(parts)
            size += len(part)
            if size > self._settings.body:
                raise self._too_large()
            room.take(len(part))
            parts.append(part)

    @contextmanager
    def _room(self) -> "Iterator[_Room]":
        room = _Room(self)
        try:
            room.take(_EACH)
            yield room
        finally:
            self._inside -= room.taken

    def more(self, size: int) -> None:
        """Count so many bytes; No if they are too many."""
        if self._inside + size > self._settings.inflight:
            raise self._busy()
        self._inside += size

    def _soon(self) -> Duration:
        return self._rng.randint(*_SOON)

    def _busy(self) -> No:
        return No(503, "as many bodies are being read as fit into memory", self._soon())

    def _too_large(self) -> No:
        return No(413, f"the body is larger than {format_bytes(self._settings.body)}")


@final
class _Room:
    """What one request has taken."""

    __slots__ = ("_intake", "taken")

    def __init__(self, intake: Intake) -> None:
        self._intake: Final = intake
        self.taken = 0

    def take(self, size: int) -> None:
        self._intake.more(size)
        self.taken += size


def _length(said: str) -> int:
    if not (said.isascii() and said.isdigit() and len(said) < 20):
        raise No(400, "expected a content-length in digits")
    return int(said)


def _is_packed(encoding: str) -> bool:
    known = encoding.strip().lower()
    if known in ("gzip", "x-gzip"):
        return True
    if known in ("", "identity"):
        return False
    raise No(415, f"expected the content-encoding gzip or none, found {known[:40]!r}")


def _kept(answer: Accepted | Refused) -> Accepted:
    if isinstance(answer, Accepted):
        return answer
    raise No(413 if answer.retry_after is None else 503, answer.why, answer.retry_after)


async def _off_loop(size: int, function: Callable[P, T], *args: P.args, **keywords: P.kwargs) -> T:
    """Call it here, or on a thread if others would wait for it."""
    if size <= _OFF_LOOP:
        return function(*args, **keywords)
    return await asyncio.to_thread(function, *args, **keywords)
