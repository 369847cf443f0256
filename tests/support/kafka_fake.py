"""Brokers that answer one question, what they know of their cluster, as they are told.

What no other imitation shows: replicas out of step, and two brokers that disagree.
"""

import asyncio
import base64
import hashlib
import hmac
import struct
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from tidegate.core.health import Partition, View

HANDSHAKE: Final = 17
AUTHENTICATE: Final = 36


def text(value: str | None) -> bytes:
    return (
        struct.pack(">h", -1)
        if value is None
        else struct.pack(">h", len(value.encode())) + value.encode()
    )


def numbers(count: int) -> bytes:
    return struct.pack(">i", count) + b"".join(struct.pack(">i", n) for n in range(count))


def metadata(view: View, topic: str = "events", error: int = 0) -> bytes:
    """An answer of version 5, written from the protocol's description."""
    said = struct.pack(">ii", 0, view.brokers)
    for node in range(view.brokers):
        said += struct.pack(">i", node) + text("host") + struct.pack(">i", 9092) + text(None)
    said += text(view.cluster) + struct.pack(">i", 7) + struct.pack(">i", 1)
    said += struct.pack(">h", error) + text(topic) + b"\0" + struct.pack(">i", len(view.partitions))
    for part in view.partitions:
        leader = -1 if part.leader is None else int(part.leader)
        said += struct.pack(">hii", 0, int(part.name.rpartition("-")[2]), leader)
        said += numbers(part.replicas) + numbers(part.in_sync) + numbers(0)
    return said


def whole(
    *, brokers: int = 3, in_sync: int = 3, leader: str | None = "1", cluster: str = "c"
) -> View:
    """Two partitions; the first is as it is told, the second is well."""
    first = Partition("events-0", leader, 3, in_sync)
    return View("", cluster, "", brokers, (first, Partition("events-1", "2", 3, 3)))


class FakeBroker:
    """`view` is what it says, or bytes to say instead, or None to say nothing."""

    def __init__(self, view: View | bytes | None, name: str = "", password: str = "") -> None:
        self.view = view
        self.name = name
        self.password = password
        self.asked: list[tuple[int, bytes]] = []
        self.address = ""
        self.connections = 0
        self._writers: list[asyncio.StreamWriter] = []
        self._let_in = not name
        self._scram: tuple[str, str] | None = None
        self._mechanism = ""

    def hang_up(self) -> None:
        for writer in self._writers:
            writer.close()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.append(writer)
        try:
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                request = await reader.readexactly(size)
                kind, _, number, named = struct.unpack_from(">hhih", request)
                body = request[10 + named :]
                self.asked.append((kind, body))
                answer = self._answer(kind, body)
                if answer is None:
                    await reader.read()  # until the other side has had enough
                    return
                writer.write(struct.pack(">ii", len(answer) + 4, number) + answer)
        except (EOFError, OSError):
            pass
        finally:
            writer.close()

    def _answer(self, kind: int, body: bytes) -> bytes | None:
        if kind == HANDSHAKE:
            self._mechanism = body[2:].decode()
            return struct.pack(">hi", 0, 1) + text(self._mechanism)
        if kind == AUTHENTICATE:
            return self._authenticate(body[4:].decode())
        assert self._let_in, "asked before it was let in"
        return metadata(self.view) if isinstance(self.view, View) else self.view

    def _authenticate(self, token: str) -> bytes:
        if self._mechanism == "PLAIN":
            self._let_in = token == f"\0{self.name}\0{self.password}"
            return self._verdict(b"")
        if self._scram is None:
            first = token.removeprefix("n,,")
            nonce = first.partition(",r=")[2] + "more"
            challenge = f"r={nonce},s={base64.b64encode(b'salt').decode()},i=4096"
            self._scram = (first, challenge)
            return struct.pack(">h", 0) + text(None) + data(challenge.encode())
        ending, _, proof = token.rpartition(",p=")
        said = ",".join((*self._scram, ending)).encode()
        algorithm = "sha" + self._mechanism[-3:]
        salted = hashlib.pbkdf2_hmac(algorithm, self.password.encode(), b"salt", 4096)
        client = hmac.new(salted, b"Client Key", algorithm).digest()
        signature = hmac.new(hashlib.new(algorithm, client).digest(), said, algorithm).digest()
        shown = bytes(a ^ b for a, b in zip(base64.b64decode(proof), signature, strict=True))
        self._let_in = shown == client
        server = hmac.new(salted, b"Server Key", algorithm).digest()
        mine = hmac.new(server, said, algorithm).digest()
        return self._verdict(b"v=" + base64.b64encode(mine))

    def _verdict(self, token: bytes) -> bytes:
        if self._let_in:
            return struct.pack(">h", 0) + text(None) + data(token)
        return struct.pack(">h", 58) + text("no") + data(b"")


def data(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


@asynccontextmanager
async def fake_brokers(*brokers: FakeBroker) -> AsyncIterator[str]:
    """Their addresses, as a URL has them."""
    async with AsyncExitStack() as stack:
        for broker in brokers:
            server = await asyncio.start_server(broker.serve, "127.0.0.1", 0)
            stack.callback(server.close)
            broker.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield ",".join(broker.address for broker in brokers)
