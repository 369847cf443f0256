"""The door on a real server and real sockets: what clients do to a body on its way."""

import asyncio
import gzip
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
import uvicorn
from fake_keeper import FakeKeeper
from ports import free_port

from tidegate.core.outcome import OVERLOADED
from tidegate.settings import spool as settings
from tidegate.spooler.door.app import Door
from tidegate.spooler.door.keeper import Refused
from tidegate.spooler.door.server import configured
from tidegate.spooler.record import Batch, Record
from tidegate.spooler.sinks.choose import open_sink
from tidegate.spooler.sinks.sink import DELIVERED
from tidegate.units import SECOND

PATIENCE_S = 20.0
HEAD = b"POST /v1/events HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\n"


Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Answer = tuple[int, dict[str, str], bytes]


class Served(NamedTuple):
    door: Door
    keeper: FakeKeeper
    server: uvicorn.Server
    port: int

    @asynccontextmanager
    async def line(self) -> AsyncIterator[Line]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            yield reader, writer
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def say(self, *parts: bytes) -> Answer:
        """The answer to what is sent in these parts, on a connection of its own."""
        async with self.line() as (reader, writer):
            for part in parts:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(0.01)
            return await answer(reader)


async def answer(reader: asyncio.StreamReader) -> Answer:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return int(head[0].split()[1]), headers, body


@asynccontextmanager
async def served(keeper: FakeKeeper, **keywords: Any) -> AsyncIterator[Served]:
    door = Door(keeper, settings.Door(**keywords), token=None, rng=Random(1))
    server = uvicorn.Server(configured(door, "127.0.0.1", free_port()))
    # Signals are the test runner's.
    task = asyncio.create_task(server._serve())
    while not server.started:
        await asyncio.sleep(0.005)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield Served(door, keeper, server, port)
    finally:
        server.should_exit = True
        await task


def told(story: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(story(), PATIENCE_S))


def request(body: bytes, extra: bytes = b"") -> bytes:
    return HEAD + extra + b"Content-Length: %d\r\n\r\n" % len(body) + body


def test_a_body_in_chunks_is_one_body() -> None:
    async def story() -> None:
        async with served(FakeKeeper()) as at:
            chunks = [b'5\r\n1\n{"a\r\n', b'6\r\n": 2}\n\r\n', b"0\r\n\r\n"]
            status, _, body = await at.say(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *chunks)
            assert (status, json.loads(body)["accepted"]) == (202, 2)
            assert at.keeper.values() == [b"1", b'{"a": 2}']

    told(story)


@pytest.mark.slow  # six writes of 20 ms, one after another
def test_requests_behind_each_other_on_one_connection_are_answered_in_order() -> None:
    async def story() -> None:
        async with served(FakeKeeper(takes_s=0.02)) as at, at.line() as (reader, writer):
            writer.write(b"".join(request(b"%d" % n) for n in range(5)) + request(b"x"))
            answers = [await answer(reader) for _ in range(6)]
            assert [status for status, _, _ in answers] == [202] * 5 + [400]
            assert [json.loads(body)["first"] for _, _, body in answers[:5]] == [1, 2, 3, 4, 5]
            assert at.keeper.values() == [b"0", b"1", b"2", b"3", b"4"]

    told(story)


@pytest.mark.parametrize(
    "sent",
    [
        HEAD + b"Content-Length: 100\r\n\r\n1\n2\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n4\r\n1\n2\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        HEAD + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n1\n2\n\r\n",
        HEAD,
    ],
)
def test_who_hangs_up_before_the_end_has_sent_nothing(sent: bytes) -> None:
    async def story() -> None:
        async with served(FakeKeeper()) as at, at.line() as (_, writer):
            writer.write(sent)
            await writer.drain()
            await asyncio.sleep(0.05)
            writer.transport.abort()
            while at.server.server_state.connections:
                await asyncio.sleep(0.005)
            await asyncio.sleep(0.01)
            assert at.keeper.requests == at.door.inside == 0

    told(story)


@pytest.mark.slow  # a client is let go after a second
def test_who_stops_in_the_middle_is_let_go() -> None:
    async def story() -> None:
        async with served(FakeKeeper(), timeout=SECOND) as at:
            status, _, body = await at.say(HEAD + b"Content-Length: 9\r\n\r\n1\n")
            assert (status, body) == (408, b"nothing came for 1s\n")
            assert at.keeper.requests == at.door.inside == 0

    told(story)


def test_a_refusal_reaches_who_is_still_sending_and_the_connection_lives_on() -> None:
    async def story() -> None:
        keeper = FakeKeeper()
        keeper.refused["events"] = Refused("full: its disk takes no more", 7 * SECOND)
        async with served(keeper) as at, at.line() as (reader, writer):
            body = b"1\n" * 2_000_000
            writer.write(HEAD + b"Content-Length: %d\r\n\r\n" % len(body))
            for start in range(0, len(body), 65_536):
                writer.write(body[start : start + 65_536])
                await writer.drain()
            status, headers, said = await answer(reader)
            assert (status, headers["retry-after"]) == (503, "7")
            assert said == b"full: its disk takes no more\n"
            keeper.refused.clear()
            writer.write(request(b"1"))
            assert (await answer(reader))[0] == 202

    told(story)


def test_who_asks_first_is_not_told_to_send_what_will_be_refused() -> None:
    async def story() -> None:
        keeper = FakeKeeper()
        async with served(keeper) as at:
            asks = HEAD + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n"
            async with at.line() as (reader, writer):
                writer.write(asks)
                assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
                writer.write(b"1\n")
                assert (await answer(reader))[0] == 202
            keeper.refused["events"] = Refused("full", SECOND)
            async with at.line() as (reader, writer):
                writer.write(asks)
                assert (await answer(reader))[0] == 503

    told(story)


def test_a_body_without_end_is_refused_at_its_bound() -> None:
    async def story() -> None:
        async with (
            served(FakeKeeper(), body=100_000, record=1000) as at,
            at.line() as (reader, writer),
        ):
            writer.write(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
            piece = b"1\n" * 5000
            for _ in range(30):
                writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                await writer.drain()
            assert (await answer(reader))[0] == 413
            assert at.keeper.requests == at.door.inside == 0

    told(story)


def test_a_bomb_is_refused_at_its_bound() -> None:
    async def story() -> None:
        async with served(FakeKeeper(), body=1_000_000) as at:
            bomb = gzip.compress(bytes(5_000_000), 6)
            status, _, body = await at.say(request(bomb, b"Content-Encoding: gzip\r\n"))
            assert (status, body) == (413, b"unpacked, the body is larger than 1MB\n")

    told(story)


def test_another_spool_hands_its_records_over_with_their_keys_and_hears_of_a_full_lane(
    tmp_path: Path,
) -> None:
    records = [Record(b"\x00\n", b"user 7"), Record(b"{}", b"")]

    async def story() -> None:
        async with served(FakeKeeper(), record=1000) as at:
            lane = settings.Lane(to=f"spool://127.0.0.1:{at.port}/events")
            sink = open_sink(lane, sender="c/events", log=7, purpose="live", base=tmp_path)
            assert await sink.send(Batch(1, records), 10 * SECOND) == DELIVERED
            assert at.keeper.kept["events"] == records
            assert (await sink.health(10 * SECOND)).silent == ()
            at.keeper.refused["events"] = Refused("full", 9 * SECOND)
            full = await sink.send(Batch(3, records), 10 * SECOND)
            assert (full.outcome, full.retry_after, full.poison) == (OVERLOADED, 9 * SECOND, False)
            assert (await sink.health(10 * SECOND)).silent != ()
            del at.keeper.refused["events"]
            large = await sink.send(Batch(5, [Record(bytes(2000))]), 10 * SECOND)
            assert large.poison  # whatever is tried, that record is larger than the lane takes
            await sink.close()

    told(story)


@pytest.mark.slow  # uvicorn looks ten times a second whether it is to stop
def test_a_stop_lets_those_finish_who_are_inside() -> None:
    async def story() -> None:
        async with served(FakeKeeper(takes_s=0.2)) as at, at.line() as (reader, writer):
            writer.write(request(b"1"))
            while not at.door.inside:
                await asyncio.sleep(0.005)
            at.server.should_exit = True
            assert (await answer(reader))[0] == 202

    told(story)


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x16\x03\x01\x02\x00\x01\x00",  # a TLS hello
        b"POST /v1/events HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        HEAD + b"X: " + b"y" * 100_000 + b"\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused_and_nothing_of_it_logged(
    garbage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with served(FakeKeeper()) as at:
            async with at.line() as (reader, writer):
                writer.write(garbage)
                assert (await reader.readline()).startswith(b"HTTP/1.1 400")
            status, _, _ = await at.say(request(b"1"))
            assert status == 202

    with caplog.at_level(logging.INFO):
        told(story)
    assert "yyy" not in caplog.text
    assert "127.0.0.1" not in "".join(r.getMessage() for r in caplog.records if "HTTP" in r.msg)
