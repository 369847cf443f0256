"""How do records end in a stream of NATS JetStream, once each?

`to: nats://HOST:PORT,HOST:PORT/SUBJECT?stream=NAME&replicas=3&window=2min&creds=FILE`. Every record
is published with its id (collector, lane, number) as `Nats-Msg-Id`, so the stream removes what
comes twice within its window. A batch is delivered when the stream has acknowledged all of it,
which a stream of three replicas does when two of them have it.

Without `stream` there must be one that takes the subject. With it, it is made when it is missing.

The health of a stream is its Raft group as its leader tells it, asked for through each server by a
connection of its own (`nats_answers.py`).
"""

import asyncio
import base64
import re
from pathlib import Path
from typing import Final, final

import msgspec

from tidegate.core.health import Health, View
from tidegate.core.outcome import FAILURE, TIMEOUT
from tidegate.errors import SettingsError
from tidegate.spooler.nats_client import (
    Client,
    Lost,
    Msg,
    NatsError,
    NoRespondersError,
    connect,
    credentials,
    plain,
    read_address,
    replicas,
)
from tidegate.spooler.record import Batch, Record
from tidegate.spooler.sinks.nats_answers import Answer, Error, judged, read_answer, seen
from tidegate.spooler.sinks.sink import DELIVERED, Sent
from tidegate.units import MINUTE, SECOND, Duration, parse_duration

__all__ = ["NatsSink"]

_OPTIONS: Final = ("creds", "replicas", "stream", "window")
_WINDOW: Final = 2 * MINUTE  # the server's own default
_CONNECT_S: Final = 2.0
_LOOK_S: Final = 2.0  # at one server: the other views are not to grow old beside it
_NEVER_S: Final = 3600.0
_SUBJECT: Final = re.compile(r"[^\s.*>]+(\.[^\s.*>]+)*")
_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
_UNDER_WAY_MAX: Final = 512  # records that wait for their acknowledgement
_HEADERS_MAX: Final = 1024  # besides the id and the key
_KEY: Final = "Tidegate-Key"
_KEY_BYTES: Final = "Tidegate-Key-Base64"

_MISSING: Final = 404
_LOST: Final = Sent(FAILURE, "the connection was lost")
_LARGE: Final = Sent(FAILURE, "a record is larger than the server takes", poison=True)
_UNREACHABLE: Final = Sent(FAILURE, "no server can be reached")
_STARVED: Final = Sent(FAILURE, "the stream does not answer, as without a quorum", starved=True)


class _Sending:
    """A batch that is under way."""

    __slots__ = ("_done", "_left", "number", "room")

    def __init__(self, number: int, records: int) -> None:
        self.number: Final = number
        self.room: Final = asyncio.Semaphore(_UNDER_WAY_MAX)
        self._left = records
        self._done: Final[asyncio.Future[Sent]] = asyncio.get_running_loop().create_future()

    def on_answer(self, sent: Sent) -> None:
        """One record is stored, or the first is not: then the batch is not delivered."""
        self._left -= 1
        self.room.release()
        if not self._done.done() and (sent is not DELIVERED or self._left == 0):
            self._done.set_result(sent)

    @property
    def is_over(self) -> bool:
        return self._done.done()

    async def result(self) -> Sent:
        return await self._done


@final
class NatsSink:
    """Publishes each record to one subject and waits for the stream to have it.

    `sender` begins the ids of records; `agent` is the name of the connection. Paths are relative
    to `base`.
    """

    __slots__ = (
        "_address",
        "_agent",
        "_client",
        "_creds",
        "_inbox",
        "_lookouts",
        "_made",
        "_number",
        "_replicas",
        "_sender",
        "_sending",
        "_stream",
        "_subject",
        "_window",
    )

    def __init__(self, url: str, *, sender: str, agent: str, base: Path) -> None:
        try:
            self._address: Final = read_address(url, _OPTIONS)
            self._replicas: Final = replicas(self._address)
            self._subject: Final = _subject(self._address.path)
            self._creds: Final = credentials(self._address, base)
            self._made: Final = _stream(self._address.options.get("stream"))
            self._window: Final = _window(self._address.options.get("window"))
        except SettingsError as error:
            raise error.under("to") from None
        self._sender: Final = sender
        self._agent: Final = agent
        self._client: Client | None = None
        self._stream: str | None = None  # its name, once it is known to be there
        self._inbox = ""
        self._number = 0
        self._sending: _Sending | None = None
        self._lookouts: Final[dict[str, Client]] = {}  # a connection to each server, for health

    async def send(self, batch: Batch, timeout: Duration) -> Sent:
        """Publish all, at most 512 ahead of what is acknowledged; the first error ends it."""
        try:
            async with asyncio.timeout(timeout / SECOND):
                client = await self._open()
                if client is None:
                    return _UNREACHABLE
                return await self._find(client) or await self._publish(client, batch)
        except TimeoutError:
            if self._client is None:
                return _UNREACHABLE
            return Sent(TIMEOUT, "not all was acknowledged in time")
        except (NatsError, OSError, msgspec.DecodeError) as error:
            return Sent(FAILURE, plain(error))
        finally:
            self._sending = None

    async def health(self, timeout: Duration) -> Health:
        """The stream's Raft group, asked for through each server by a connection of its own."""
        servers = self._address.servers
        views = await asyncio.gather(*(self._view(server, timeout) for server in servers))
        seen = tuple(view for view in views if view is not None)
        silent = (server for server, view in zip(servers, views, strict=True) if view is None)
        return Health(seen, tuple(silent))

    async def close(self) -> None:
        """Close the connections."""
        clients = [self._client, *self._lookouts.values()]
        self._client = None
        self._lookouts.clear()
        for client in clients:
            if client is not None:
                await client.close()

    async def _open(self) -> Client | None:
        """The connection, if there is one now. A lost one comes back by itself."""
        if self._client is None or self._client.is_closed:  # as after two refusals of who we are
            self._client = None
            async with asyncio.timeout(_CONNECT_S):
                client = await self._connect(self._address.servers, self._on_lost)
            try:
                self._inbox = client.new_inbox()
                await client.subscribe(f"{self._inbox}.*", cb=self._on_answer)
            except BaseException:
                await client.close()
                raise
            self._client = client
        return self._client if self._client.is_connected else None

    async def _connect(self, servers: tuple[str, ...], lost: Lost | None = None) -> Client:
        return await connect(servers, self._creds, self._agent, lost)

    async def _find(self, client: Client) -> Sent | None:
        """See once that there is a stream, and make it if it has a name; what is wrong, else."""
        if self._stream is not None:
            return None
        name = self._made
        if name is None:
            answer = await self._named(client)
            if answer.error is None and not answer.streams:
                return Sent(
                    FAILURE,
                    f"no stream takes the subject {self._subject}; make one, or name it in the"
                    " address: ?stream=NAME",
                )
            name = answer.streams[0] if answer.streams else None
        else:
            answer = await _ask(client, f"STREAM.INFO.{name}")
            if answer.error is not None and answer.error.code == _MISSING:
                answer = await _ask(client, f"STREAM.CREATE.{name}", self._wanted(name))
        if answer.error is not None:
            return judged(answer.error)
        self._stream = name
        return None

    async def _named(self, client: Client) -> Answer:
        return await _ask(client, "STREAM.NAMES", msgspec.json.encode({"subject": self._subject}))

    def _wanted(self, name: str) -> bytes:
        return msgspec.json.encode(
            {
                "name": name,
                "subjects": [self._subject],
                "num_replicas": self._replicas,
                "storage": "file",
                "retention": "limits",
                "discard": "new",  # full is an answer: the spool has the room that it lacks
                "duplicate_window": self._window,
            }
        )

    async def _publish(self, client: Client, batch: Batch) -> Sent:
        allowed = client.max_payload - _HEADERS_MAX
        if any(len(record.value) + 2 * len(record.key) > allowed for record in batch.records):
            return _LARGE  # the server would end the connection
        self._number += 1
        sending = self._sending = _Sending(self._number, len(batch.records))
        for number, record in enumerate(batch.records, batch.first):
            await sending.room.acquire()
            if sending.is_over:
                break
            await client.publish(
                self._subject,
                record.value,
                reply=f"{self._inbox}.{sending.number}",
                headers=self._headers(number, record),
            )
        return await sending.result()

    def _headers(self, number: int, record: Record) -> dict[str, str]:
        headers = {"Nats-Msg-Id": f"{self._sender}/{number}"}
        name = self._made
        if name is not None:
            headers["Nats-Expected-Stream"] = name
        if record.key:
            headers |= _key(record.key)
        return headers

    async def _on_answer(self, message: Msg) -> None:
        """An acknowledgement or a refusal; one that belongs to an earlier batch says nothing."""
        sending = self._sending
        if sending is None or message.subject != f"{self._inbox}.{sending.number}":
            return
        if message.headers:  # nobody is there to answer, the server says
            self._stream = None  # so that it is looked for again
            sending.on_answer(_STARVED)
        elif b'"error"' in message.data:
            sending.on_answer(judged(read_answer(message.data).error))
        else:
            sending.on_answer(DELIVERED)

    async def _on_lost(self) -> None:
        if self._sending is not None:
            self._sending.on_answer(_LOST)

    async def _view(self, server: str, timeout: Duration) -> View | None:
        try:
            async with asyncio.timeout(min(timeout / SECOND, _LOOK_S)):
                client = self._lookouts.get(server)
                if client is None or client.is_closed:
                    client = self._lookouts[server] = await self._connect((server,))
                return await self._seen(client, server)
        except (NatsError, OSError, TimeoutError, msgspec.DecodeError):
            return None

    async def _seen(self, client: Client, server: str) -> View:
        name = self._stream or self._made
        if name is None:
            name = next(iter((await self._named(client)).streams or ()), None)
        answer = Answer() if name is None else await _ask(client, f"STREAM.INFO.{name}")
        return seen(answer, server, name or self._subject, self._replicas)


async def _ask(client: Client, what: str, question: bytes = b"") -> Answer:
    """Ask the API of JetStream; whoever calls bounds the time."""
    try:
        answer = await client.request(f"$JS.API.{what}", question, timeout=_NEVER_S)
    except NoRespondersError:
        return Answer(error=Error(503, 0, "JetStream is not there, or cannot answer now"))
    return read_answer(answer.data)


def _key(key: bytes) -> dict[str, str]:
    """A key as a header: as text where a header can hold it as it is."""
    try:
        text = key.decode()
    except UnicodeDecodeError:
        text = ""
    if text.isprintable() and text and text == text.strip():
        return {_KEY: text}
    return {_KEY_BYTES: base64.b64encode(key).decode()}


def _subject(path: str) -> str:
    if not _SUBJECT.fullmatch(path):
        raise SettingsError(
            "expected the subject after the slash, as nats://HOST:PORT/events.orders, without"
            " wildcards"
        )
    return path


def _stream(name: str | None) -> str | None:
    if name is not None and not _NAME.fullmatch(name):
        raise SettingsError("expected the name of a stream in letters, digits, - and _")
    return name


def _window(text: str | None) -> Duration:
    try:
        return _WINDOW if text is None else parse_duration(text)
    except ValueError as error:
        raise SettingsError(f"window: {error}") from None
