"""Whatever comes over the wire, as bytes, to the door's own server: nothing breaks, nothing false.

The server's protocol is fed by hand, without a socket: requests behind each other, spoilt anywhere
in their heads and bodies, and cut anywhere.
"""

import asyncio
import json
import logging
from random import Random
from typing import Any

import pytest
from fake_keeper import FakeKeeper
from hypothesis import given
from hypothesis import strategies as st
from uvicorn.server import ServerState
from virtual_seconds import told

from tidegate.settings import spool as settings
from tidegate.spooler.door.app import Door
from tidegate.spooler.door.server import configured

BODY = b'{"a": 1}\n[2]\n'
HEADS = (
    b"POST /v1/events HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\n",
    b"POST /v1/clicks HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n",
    b"GET /status HTTP/1.1\r\nHost: x\r\n",
    b"POST /hold/events?reason=%C3%A9%00 HTTP/1.1\r\nHost: x\r\n",
    b"PUT /v1/%2e%2e/events HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n",
)


class Wire(asyncio.Transport):
    """A connection whose other end is a list."""

    def __init__(self) -> None:
        super().__init__({"peername": ("10.0.0.1", 4711)})
        self.sent: list[bytes] = []
        self.closed = False
        self.protocol: asyncio.Protocol | None = None

    def write(self, data: Any) -> None:
        assert not self.closed
        self.sent.append(bytes(data))

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        """As a socket's: the protocol hears of it in the next turn of the loop, once."""
        if not self.closed:
            self.closed = True
            assert self.protocol is not None
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


def request(luck: Random) -> bytes:
    head = luck.choice(HEADS)
    body = BODY[: luck.randrange(len(BODY) + 1)] if luck.random() < 0.5 else BODY
    if luck.random() < 0.3:
        chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        return head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


def spoilt(data: bytes, luck: Random) -> bytes:
    at = luck.randrange(len(data) + 1)
    match luck.randrange(4):
        case 0:
            return data[:at] + luck.randbytes(luck.randrange(1, 5)) + data[at:]
        case 1:
            return data[:at] + data[at + luck.randrange(1, 9) :]
        case 2:
            return data[:at]
        case _:
            return data[:at] + luck.choice((b"\r\n", b"\x00", b": ", b"\xff", b"\n")) + data[at:]


def is_a_record(value: bytes) -> bool:
    try:
        json.loads(value.decode("utf-8"))
    except ValueError:
        return False
    return b"\n" not in value


@pytest.mark.slow  # twenty connections with each seed
@given(st.integers(0, 2**64))
def test_spoilt_requests_break_nothing_and_leave_only_records(seed: int) -> None:
    luck, broken = Random(seed), []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            broken.append(record)

    async def story() -> None:
        keeper = FakeKeeper()
        limits = settings.Door(body=1000, record=1000, inflight=10_000)
        door = Door(keeper, limits, token=None, rng=Random(1))
        config = configured(door, "127.0.0.1", 0)
        config.load()
        for _ in range(20):
            protocol, wire = config.http_protocol_class(config, ServerState(), {}), Wire()
            wire.protocol = protocol
            protocol.connection_made(wire)
            data = b"".join(request(luck) for _ in range(luck.randrange(1, 4)))
            for _ in range(luck.choice((0, 1, 1, 2, 4))):
                data = spoilt(data, luck)
            cuts = sorted(luck.randrange(len(data) + 1) for _ in range(luck.randrange(4)))
            for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
                if not wire.closed and data[start:end]:
                    protocol.data_received(data[start:end])
                await asyncio.sleep(0.001)
            wire.close()
            await asyncio.sleep(0.001)
            assert door.inside == 0
            said = b"".join(wire.sent)
            assert not said or said.startswith(b"HTTP/1.1 ")
            assert b"HTTP/1.1 500" not in said
        assert all(is_a_record(record.value) for kept in keeper.kept.values() for record in kept)

    handler, log = Handler(logging.ERROR), logging.getLogger("uvicorn.error")
    log.addHandler(handler)
    try:
        told(story)
    finally:
        log.removeHandler(handler)
    assert broken == []
