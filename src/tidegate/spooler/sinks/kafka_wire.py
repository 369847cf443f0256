"""How does one ask a single Kafka broker what it knows of its cluster?

The client library asks whichever broker it likes best, also when it was given one address: it
learns the others and goes there. So it cannot show that two brokers disagree. This speaks the few
requests of Kafka's protocol that it takes (SaslHandshake 1, SaslAuthenticate 0, Metadata 5, which
every broker since 1.0 answers), to one address over one connection.

Who rules the cluster is not told: since KRaft a broker names any other one as controller, a new one
each time it is asked (KIP-590).
"""

import asyncio
import base64
import hashlib
import hmac
import secrets
import ssl
import struct
from typing import Final, NamedTuple, final

from tidegate.core.health import Partition, View
from tidegate.spooler.sinks.kafka_address import KafkaAddress

__all__ = ["KafkaWire", "ScramTalk", "read_metadata"]

_METADATA: Final = (3, 5)  # the request's number and version
_HANDSHAKE: Final = (17, 1)
_AUTHENTICATE: Final = (36, 0)
_ANSWER_MAX: Final = 16 * 1024 * 1024  # bytes; 10,000 partitions are about half a megabyte
_ROUNDS_MAX: Final = 1_000_000  # of SCRAM's hash; Kafka's default is 4,096


class RefusalError(Exception):
    """A broker answered, but not with what it was asked for."""


_SILENCE: Final = (OSError, EOFError, ValueError, struct.error, RefusalError)
"""What a server that is away, hangs up, or is none of Kafka's looks like."""


@final
class KafkaWire:
    """Asks brokers about one topic. `agent` is the name it gives itself.

    A connection is kept from one look to the next: getting in is what costs a broker most.
    """

    __slots__ = ("_address", "_agent", "_kept", "_tls")

    def __init__(self, address: KafkaAddress, agent: str) -> None:
        self._address: Final = address
        self._agent: Final = agent
        self._tls: Final = _tls(address) if address.encrypted else None
        self._kept: Final[dict[str, _Talk]] = {}

    async def ask(self, server: str) -> View | None:
        """What this server says; None if it does not, or not in a way that can be understood.

        The caller bounds the time.
        """
        talk = self._kept.pop(server, None)
        if talk is not None:  # it may have been closed since, for having been idle
            view = await self._asked(talk, server)
            if view is not None:
                return view
        try:
            talk = await self._connected(server)
        except _SILENCE:
            return None
        return await self._asked(talk, server)

    async def close(self) -> None:
        """Close the connections."""
        while self._kept:
            self._kept.popitem()[1].close()
        await asyncio.sleep(0)  # lets transports end before their loop may

    async def _connected(self, server: str) -> "_Talk":
        host, _, port = server.rpartition(":")
        talk = _Talk(
            *await asyncio.open_connection(host.strip("[]"), int(port), ssl=self._tls), self._agent
        )
        let_in = False
        try:
            if self._address.authenticated:
                await _authenticate(talk, self._address.properties)
            let_in = True
        finally:
            if not let_in:
                talk.close()
        return talk

    async def _asked(self, talk: "_Talk", server: str) -> View | None:
        topic = self._address.topic.encode()
        # One topic, and the wish that it be not created by asking.
        asked = struct.pack(f">ih{len(topic)}sb", 1, len(topic), topic, 0)
        view = None
        try:
            view = read_metadata(await talk.ask(_METADATA, asked), server)
        except _SILENCE:
            pass
        finally:
            if view is None:  # also when nobody waits any longer: its answer may yet come
                talk.close()
            else:
                self._kept[server] = talk
        return view


@final
class _Talk:
    """Requests and answers, one at a time, over one connection."""

    __slots__ = ("_agent", "_number", "_reader", "_writer")

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, agent: str
    ) -> None:
        self._reader: Final = reader
        self._writer: Final = writer
        self._agent: Final = _string(agent)
        self._number = 0

    async def ask(self, kind: tuple[int, int], body: bytes) -> bytes:
        self._number += 1
        request = struct.pack(">hhi", *kind, self._number) + self._agent + body
        self._writer.write(struct.pack(">i", len(request)) + request)
        await self._writer.drain()
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        if not 4 <= size <= _ANSWER_MAX:
            raise RefusalError
        answer = await self._reader.readexactly(size)
        if struct.unpack_from(">i", answer)[0] != self._number:
            raise RefusalError
        return answer[4:]

    def close(self) -> None:
        """At once; nothing is left to say."""
        self._writer.transport.abort()


class _Answer:
    """Reads the fields of an answer in their order."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data: Final = data
        self._at = 0

    def number(self, form: str) -> int:
        found: int = struct.unpack_from(form, self._data, self._at)[0]
        self._at += struct.calcsize(form)
        return found

    def skip(self, size: int) -> None:
        self._at += size

    def text(self) -> str:
        return self._piece(self.number(">h")).decode()

    def data(self) -> bytes:
        return self._piece(self.number(">i"))

    def many(self) -> range:
        """As many turns as the array has elements; each is at least two bytes."""
        count = self.number(">i")
        if not 0 <= count <= (len(self._data) - self._at) // 2:
            raise RefusalError
        return range(count)

    def numbers(self) -> int:
        """How many numbers the array has; their values are not of interest."""
        count = len(self.many())
        self.skip(4 * count)
        return count

    def _piece(self, size: int) -> bytes:
        size = max(size, 0)  # -1 is no text at all
        piece = self._data[self._at : self._at + size]
        if len(piece) < size:
            raise RefusalError
        self._at += size
        return piece


def read_metadata(data: bytes, server: str) -> View:
    """The answer to a Metadata request of version 5 for one topic.

    A topic that this broker does not know, or may not tell of, is shown as one without a leader:
    whatever the reason, nothing can be written to it through there.
    """
    answer = _Answer(data)
    answer.skip(4)  # how long it has made the asker wait
    brokers = 0
    for _ in answer.many():
        answer.skip(4)  # its number
        answer.text()  # host
        answer.skip(4)  # port
        answer.text()  # rack
        brokers += 1
    cluster = answer.text()
    answer.skip(4)  # the controller, see above
    parts: list[Partition] = []
    for _ in answer.many():
        error = answer.number(">h")
        name = answer.text()
        answer.skip(1)  # whether it is internal
        found = [_partition(answer, name) for _ in answer.many()]
        parts += [Partition(name, None, 1, 0)] if error or not found else found
    if not parts:  # nothing said of the topic is not yet well
        raise RefusalError
    return View(server, cluster, "", brokers, tuple(sorted(parts, key=_number_of)))


def _number_of(part: Partition) -> tuple[int, str]:
    return len(part.name), part.name  # events-9 before events-10


def _partition(answer: _Answer, topic: str) -> Partition:
    answer.skip(2)  # the partition's error: one without a leader says so below as well
    number = answer.number(">i")
    leader = answer.number(">i")
    replicas = answer.numbers()
    in_sync = answer.numbers()
    answer.numbers()  # replicas on brokers that are away; they are out of step too
    name = None if leader < 0 else str(leader)
    return Partition(f"{topic}-{number}", name, replicas, in_sync)


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _tls(address: KafkaAddress) -> ssl.SSLContext:
    at = address.properties
    context = ssl.create_default_context(cafile=at.get("ssl.ca.location"))
    if "ssl.certificate.location" in at:
        context.load_cert_chain(
            at["ssl.certificate.location"],
            at.get("ssl.key.location"),
            at.get("ssl.key.password", ""),  # never asked for at a terminal
        )
    return context


async def _authenticate(talk: _Talk, at: dict[str, str]) -> None:
    mechanism = at["sasl.mechanism"]
    answer = _Answer(await talk.ask(_HANDSHAKE, _string(mechanism)))
    if answer.number(">h"):
        raise RefusalError
    name, password = at["sasl.username"], at["sasl.password"]
    if mechanism == "PLAIN":  # RFC 4616
        await _sasl(talk, f"\0{name}\0{password}".encode())
        return
    scram = ScramTalk(mechanism, name, password, secrets.token_urlsafe(24))
    final = scram.answer(await _sasl(talk, scram.first))
    scram.check(await _sasl(talk, final))


async def _sasl(talk: _Talk, token: bytes) -> bytes:
    answer = _Answer(await talk.ask(_AUTHENTICATE, struct.pack(">i", len(token)) + token))
    if answer.number(">h"):
        raise RefusalError
    answer.text()  # why not, when it was refused
    return answer.data()


class _Keys(NamedTuple):
    proof: bytes
    server_signature: bytes


@final
class ScramTalk:
    """The client's side of SCRAM (RFC 5802): it shows that it knows the password, and sees that the
    server does. One use.
    """

    __slots__ = ("_expected", "_hash", "_name", "_nonce", "_password")

    def __init__(self, mechanism: str, name: str, password: str, nonce: str) -> None:
        self._hash: Final = "sha" + mechanism.rpartition("-")[2]
        self._name: Final = name.replace("=", "=3D").replace(",", "=2C")
        self._password: Final = password
        self._nonce: Final = nonce
        self._expected = b""

    @property
    def first(self) -> bytes:
        """The opening: who it is, and a number used once."""
        return f"n,,{self._bare}".encode()

    @property
    def _bare(self) -> str:
        return f"n={self._name},r={self._nonce}"

    def answer(self, challenge: bytes) -> bytes:
        """The proof for a server's salt and number of rounds; `RefusalError` for bad ones."""
        parts = _parts(challenge)
        rounds = int(parts.get("i", "0"))
        if not parts.get("r", "").startswith(self._nonce) or not 0 < rounds <= _ROUNDS_MAX:
            raise RefusalError
        ending = f"c=biws,r={parts['r']}"  # biws: "n,," in base64, no channel is bound
        said = f"{self._bare},{challenge.decode()},{ending}".encode()
        keys = self._keys(base64.b64decode(parts.get("s", ""), validate=True), rounds, said)
        self._expected = keys.server_signature
        return f"{ending},p={base64.b64encode(keys.proof).decode()}".encode()

    def check(self, ending: bytes) -> None:
        """Raise `RefusalError` unless the server has shown that it knows the password too."""
        signature = base64.b64decode(_parts(ending).get("v", ""), validate=True)
        if not self._expected or not hmac.compare_digest(signature, self._expected):
            raise RefusalError

    def _keys(self, salt: bytes, rounds: int, said: bytes) -> _Keys:
        salted = hashlib.pbkdf2_hmac(self._hash, self._password.encode(), salt, rounds)
        client = self._keyed(salted, b"Client Key")
        stored = hashlib.new(self._hash, client).digest()
        signature = self._keyed(stored, said)
        proof = bytes(one ^ other for one, other in zip(client, signature, strict=True))
        return _Keys(proof, self._keyed(self._keyed(salted, b"Server Key"), said))

    def _keyed(self, key: bytes, text: bytes) -> bytes:
        return hmac.new(key, text, self._hash).digest()


def _parts(message: bytes) -> dict[str, str]:
    return {part[:1]: part[2:] for part in message.decode().split(",")}
