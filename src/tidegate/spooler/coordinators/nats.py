"""How does a fleet keep its leases in NATS JetStream?

Records are keys of one bucket, and their versions the revisions, which JetStream counts over the
whole bucket. What collectors say of themselves is not kept anywhere: it is published, everybody
listens, and who comes later asks for it once.

`nats://HOST:PORT,HOST:PORT?bucket=tidegate&replicas=3&creds=FILE`. The bucket is made when it is
missing, with three replicas if at least three servers are named.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple, cast, final

import msgspec

from tidegate.errors import SettingsError
from tidegate.runtime.clock import current
from tidegate.spooler.coordinators.coordinator import CoordinatorLost
from tidegate.spooler.coordinators.store import Entry
from tidegate.spooler.nats_client import (
    Client,
    JetStreamContext,
    KeyValue,
    Msg,
    NatsError,
    connect,
    credentials,
    js_errors,
    plain,
    read_address,
    replicas,
    token,
)
from tidegate.units import Duration, Instant

__all__ = ["NatsStore"]

_ANY: Final = "lease.0"
_BUCKET: Final = "tidegate"
_WORDS_MAX: Final = 10_000  # collectors of one fleet that are listened to
_WORD_BYTES_MAX: Final = 4096
_FIRST_WORDS_S: Final = 0.1  # for the others to answer who is new


class _Word(NamedTuple):
    """What one collector has said of itself, and for how long it stands."""

    who: str
    value: bytes
    kept: Duration


class _Link(NamedTuple):
    client: Client
    bucket: KeyValue


@final
class NatsStore:
    """The records of one fleet in a bucket of JetStream."""

    __slots__ = ("_address", "_creds", "_fleet", "_heard", "_link", "_mine", "_replicas", "where")

    def __init__(self, url: str, fleet: str, base: Path) -> None:
        self._address: Final = read_address(url, ("bucket", "creds", "replicas"))
        self._creds: Final = credentials(self._address, base)
        self._replicas: Final = replicas(self._address)
        if self._address.path:
            raise SettingsError("expected nats://HOST:PORT and nothing after a slash")
        self.where = f"NATS at {', '.join(self._address.servers)}"
        self._fleet: Final = token(fleet)
        self._link: _Link | None = None
        self._mine: bytes | None = None  # what we have said last
        self._heard: Final[dict[str, tuple[_Word, Instant]]] = {}

    async def read(self, key: str) -> Entry | None:
        """The record under this key, as JetStream has it."""
        async with self._asked() as link:
            entry: KeyValue.Entry | None
            try:
                entry = await link.bucket.get(f"{self._fleet}.{key}")
            except js_errors.KeyNotFoundError as error:
                # There is one when somebody has deleted the key; the library's types forget it.
                entry = cast("KeyValue.Entry | None", error.entry)
            if entry is None:
                return None
            return Entry(entry.value or b"", entry.revision or 0)

    async def write(self, key: str, value: bytes, version: int) -> int | None:
        """Replace the record of this revision (0: there must be none)."""
        async with self._asked() as link:
            try:
                return await link.bucket.update(f"{self._fleet}.{key}", value, last=version)
            except js_errors.KeyWrongLastSequenceError:
                return None

    async def say(self, who: str, value: bytes, kept: Duration) -> None:
        """Tell everybody now, and later whoever is new and asks."""
        self._mine = msgspec.msgpack.encode(_Word(who, value, kept))
        async with self._asked() as link:
            await link.client.publish(self._subject("words"), self._mine)

    async def said(self) -> list[bytes]:
        """What was heard last of each, unless that is too long ago."""
        await self.read(_ANY)  # a server that is silent may be away, and then it does not answer
        now = current().now()
        for who, (word, heard) in list(self._heard.items()):
            if now - heard >= word.kept:
                del self._heard[who]
        return [word.value for word, _ in self._heard.values()]

    async def close(self) -> None:
        """Give up the connection."""
        link, self._link = self._link, None
        if link is not None:
            await link.client.close()

    @asynccontextmanager
    async def _asked(self) -> AsyncIterator[_Link]:
        try:
            if self._link is None or self._link.client.is_closed:  # as when refused twice
                self._link = None
                self._link = await self._connect()
            if not self._link.client.is_connected:
                raise CoordinatorLost(f"{self.where} cannot be reached")
            yield self._link
        except (NatsError, OSError, TimeoutError) as error:
            raise CoordinatorLost(f"{self.where}: {plain(error)}") from None

    async def _connect(self) -> _Link:
        client = await connect(self._address.servers, self._creds, "tidegate turns", _nothing)
        try:
            bucket = await self._bucket(client.jetstream())
            await self._listen(client)
        except BaseException:
            await asyncio.shield(client.close())
            raise
        return _Link(client, bucket)

    async def _bucket(self, stream: JetStreamContext) -> KeyValue:
        name = self._address.options.get("bucket", _BUCKET)
        try:
            return await stream.key_value(name)
        except js_errors.BucketNotFoundError:
            return await stream.create_key_value(
                bucket=name, replicas=self._replicas, description="leases of Tidegate's spools"
            )

    async def _listen(self, client: Client) -> None:
        inbox = client.new_inbox()
        await client.subscribe(self._subject("words"), cb=self._on_word)
        await client.subscribe(inbox, cb=self._on_word)
        await client.publish(self._subject("ask"), reply=inbox)

        async def answer(question: Msg) -> None:
            if self._mine is not None and question.reply:
                await client.publish(question.reply, self._mine)

        await client.subscribe(self._subject("ask"), cb=answer)
        # Only here, where the connection is closed if this is given up: the answer to a flush that
        # was cancelled ends the library's task that reads, and the connection is deaf from then on.
        await client.flush()
        await asyncio.sleep(_FIRST_WORDS_S)

    async def _on_word(self, message: Msg) -> None:
        try:
            word = msgspec.msgpack.decode(message.data[:_WORD_BYTES_MAX], type=_Word)
        except msgspec.DecodeError:
            return  # of another version, or of a stranger
        if word.who in self._heard or len(self._heard) < _WORDS_MAX:
            self._heard[word.who] = (word, current().now())

    def _subject(self, what: str) -> str:
        return f"tidegate.{what}.{self._fleet}"


async def _nothing() -> None:
    """A connection that is lost comes back; what is asked meanwhile is told."""
