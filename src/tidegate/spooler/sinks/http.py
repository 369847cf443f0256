"""How do records go to whatever takes them over HTTP, and to another spool?

`to: https://HOST/PATH` sends the records of a batch as JSON lines, so a record is one line.
`to: spool://HOST:PORT/LANE` is another spool's door, which takes them as they are, with their keys
(`batch_bytes`). Either way a batch has its id in `Idempotency-Key`: collector, lane, and the
numbers of its records. It is sent once; whether and when again is the lane's to say.

2xx is delivered. 400, 413, 415 and 422 would be said of this batch at any time. Everything else,
401 and 404 among it, is the sink's state: nothing is lost by waiting until it is put right.
"""

import asyncio
import io
import os
from pathlib import Path
from typing import Final, final

import msgspec

from tidegate.core.health import Health, View
from tidegate.core.outcome import FAILURE, SUCCESS, TIMEOUT
from tidegate.errors import missing_extra
from tidegate.runtime.classify import parse_retry_after, status_outcome
from tidegate.spooler.record import Batch, Record
from tidegate.spooler.sinks.sink import DELIVERED, Sent
from tidegate.units import SECOND, Duration

try:
    import aiohttp
except ModuleNotFoundError as error:
    raise missing_extra(error, "spool") from None

__all__ = ["BATCH_TYPE", "HttpSink", "batch_bytes", "read_batch"]

BATCH_TYPE: Final = "application/x-tidegate-batch"
LINES_TYPE: Final = "application/x-ndjson"

_POISON: Final = frozenset({400, 413, 415, 422})
_TWO_LINES: Final = Sent(
    FAILURE, "a record holds a line feed, and a line holds a record", poison=True
)
_ANSWER_MAX: Final = 64 * 1024  # of an answer's body, read so that the connection can be used again

_Pairs = list[tuple[bytes, bytes]]
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Pairs).decode


def batch_bytes(records: list[Record]) -> bytes:
    """The records as spools hand them to each other: a MessagePack array of [key, value]."""
    return _encode([(record.key, record.value) for record in records])


def read_batch(data: bytes) -> list[tuple[bytes, bytes]]:
    """Pairs of key and value; ValueError in one sentence for anything else."""
    try:
        return _decode(data)
    except msgspec.MsgspecError as error:
        raise ValueError(f"expected a MessagePack array of [key, value]: {error}") from None


@final
class HttpSink:
    """Posts each batch to one address.

    `sender` is who sends (collector and lane) in the ids of batches, `agent` tells live records and
    replay apart at the far side. `token_file` holds a token, which is read anew for each batch.
    """

    __slots__ = ("_agent", "_health", "_raw", "_sender", "_session", "_token_file", "_url")

    def __init__(
        self,
        url: str,
        *,
        sender: str,
        agent: str,
        token_file: Path | None = None,
        raw: bool = False,
        health: str | None = None,
    ) -> None:
        self._url: Final = url
        self._sender: Final = sender
        self._agent: Final = agent
        self._token_file: Final = token_file
        self._raw: Final = raw
        self._health: Final = health
        self._session: aiohttp.ClientSession | None = None

    async def send(self, batch: Batch, timeout: Duration) -> Sent:
        """One POST, one connection at most, no redirect followed."""
        if self._raw:
            body = batch_bytes(batch.records)
        elif any(b"\n" in record.value for record in batch.records):
            return _TWO_LINES
        else:
            body = b"\n".join(record.value for record in batch.records) + b"\n"
        headers = {
            "Content-Type": BATCH_TYPE if self._raw else LINES_TYPE,
            "Idempotency-Key": f"{self._sender}/{batch.first}-{batch.last}",
        }
        try:
            headers |= self._authorization()
            limit = aiohttp.ClientTimeout(total=timeout / SECOND)
            async with self._open().post(
                self._url,
                data=io.BytesIO(body),
                headers=headers,
                timeout=limit,
                allow_redirects=False,
            ) as response:
                await response.content.read(_ANSWER_MAX)
                return _judged(response.status, response.headers.get("Retry-After"))
        except TimeoutError:
            return Sent(TIMEOUT, "no answer in time")
        except (aiohttp.ClientError, OSError) as error:
            return Sent(FAILURE, _plain(error))

    async def health(self, timeout: Duration) -> Health:
        """Whether it answers: another spool by its readiness, anything else to a HEAD request."""
        name = self._url.partition("://")[2].partition("/")[0].rpartition("@")[2]
        try:
            limit = aiohttp.ClientTimeout(total=timeout / SECOND)
            method, url = ("GET", self._health) if self._health else ("HEAD", self._url)
            async with self._open().request(
                method, url, headers=self._authorization(), timeout=limit, allow_redirects=False
            ) as response:
                well = response.status < (300 if self._health else 500)
        except (TimeoutError, aiohttp.ClientError, OSError):
            well = False
        return Health((View(seen_from=name),)) if well else Health((), (name,))

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            await asyncio.sleep(0)  # lets transports end before their loop may

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                headers={"User-Agent": self._agent}, cookie_jar=aiohttp.DummyCookieJar()
            )
        return self._session

    def _authorization(self) -> dict[str, str]:
        if self._token_file is None:
            return {}
        return {"Authorization": f"Bearer {self._token_file.read_text('ascii').strip()}"}


def _judged(status: int, retry_after: str | None) -> Sent:
    if 200 <= status < 300:
        return DELIVERED
    why = f"answered {status}"
    if status in _POISON:
        return Sent(FAILURE, why, poison=True)
    outcome = status_outcome(status)
    wait = parse_retry_after(retry_after) or None
    return Sent(FAILURE if outcome is SUCCESS else outcome, why, retry_after=wait)


def _plain(error: Exception) -> str:
    """What happened without addresses, headers or anything of what was sent."""
    number = error.errno if isinstance(error, OSError) else None
    if number is None:
        return type(error).__name__
    connecting = isinstance(error, aiohttp.ClientConnectorError)
    return f"{'cannot connect: ' if connecting else ''}{os.strerror(number)}"
