"""A real JetStream as a sink: one server, and three of which some are killed."""

import asyncio
import base64
import json
import shutil
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from nats_cluster import NatsMissingError, NatsServer, one_server, three_servers
from ports import free_port

from tidegate.core.health import Health, flaw
from tidegate.core.outcome import FAILURE, OVERLOADED, TIMEOUT
from tidegate.errors import SettingsError
from tidegate.settings import spool as settings
from tidegate.spooler.coordinators.choose import open_coordinator
from tidegate.spooler.record import Batch, Record
from tidegate.spooler.sinks.sink import DELIVERED, Sink
from tidegate.units import SECOND

pytest.importorskip("nats")

from nats.aio.client import Client

from tidegate.spooler.sinks.nats import NatsSink
from tidegate.spooler.spool import Spool

pytestmark = pytest.mark.slow  # servers are started, and time is real

TIMEOUT_NS = 5 * SECOND
PATIENCE_S = 60.0


def batch(first: int, count: int, size: int = 10) -> Batch:
    return Batch(first, [Record(b"%d " % number + b"x" * size) for number in range(count)])


def sink(address: str, query: str = "") -> NatsSink:
    url = f"nats://{address}/events.orders?{query}"
    return NatsSink(url, sender="c1/events", agent="tidegate-live-c1-events", base=Path())


def told(story: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await story()

    asyncio.run(main())


async def ask(address: str, what: str, **question: Any) -> dict[str, Any]:
    """The API of JetStream, without a line of ours."""
    client = Client()
    await client.connect(f"nats://{address}")
    try:
        answer = await client.request(f"$JS.API.{what}", json.dumps(question).encode(), timeout=5)
    finally:
        await client.close()
    return dict(json.loads(answer.data))


async def stored(address: str) -> int:
    return int((await ask(address, "STREAM.INFO.E"))["state"]["messages"])


async def until(done: Callable[[Health], bool], looking: Sink) -> float:
    """Look until it is as wanted; the seconds that took."""
    began = time.monotonic()
    while not done(await looking.health(TIMEOUT_NS)):
        await asyncio.sleep(0.1)
    return time.monotonic() - began


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    try:
        with one_server(tmp_path, "max_payload: 64KB\n") as one:
            yield one
    except NatsMissingError as missing:
        pytest.skip(str(missing))


@pytest.fixture
def three(tmp_path: Path) -> Iterator[list[NatsServer]]:
    try:
        with three_servers(tmp_path) as servers:
            yield servers
    except NatsMissingError as missing:
        pytest.skip(str(missing))


def test_what_is_sent_twice_is_stored_once(server: NatsServer) -> None:
    async def story() -> None:
        to = sink(server.address, "stream=E")
        for _ in range(2):
            assert await to.send(batch(1, 1000), TIMEOUT_NS) == DELIVERED
        assert await to.send(batch(1001, 10), TIMEOUT_NS) == DELIVERED
        assert await stored(server.address) == 1010
        health = await to.health(TIMEOUT_NS)
        assert flaw(health, 1) is None
        assert health.views[0].partitions[0].replicas == 1
        await to.close()

    told(story)


def test_a_record_has_its_id_and_its_key_as_headers(server: NatsServer) -> None:
    async def story() -> None:
        to = sink(server.address, "stream=E")
        keys = [b"", "Käse 7".encode(), b"\x00\xff", b" a"]
        records = [Record(b"value", key) for key in keys]
        assert await to.send(Batch(7, records), TIMEOUT_NS) == DELIVERED
        headers = []
        for number in range(1, 5):
            message = (await ask(server.address, "STREAM.MSG.GET.E", seq=number))["message"]
            assert message["subject"] == "events.orders"
            assert base64.b64decode(message["data"]) == b"value"
            headers.append(base64.b64decode(message["hdrs"]).decode())
        assert [f"Nats-Msg-Id: c1/events/{n}\r" in headers[n - 7] for n in (7, 8, 9, 10)]
        assert "Tidegate-Key" not in headers[0]
        assert "Tidegate-Key: Käse 7\r" in headers[1]
        assert "Tidegate-Key-Base64: AP8=\r" in headers[2]
        assert "Tidegate-Key-Base64: IGE=\r" in headers[3]
        await to.close()

    told(story)


def test_a_log_that_is_begun_anew_loses_nothing_to_the_memory_of_the_old(
    server: NatsServer, tmp_path: Path
) -> None:
    """It counts from one again, and the stream remembers the ids of two minutes."""
    lane = settings.Lane(to=f"nats://{server.address}/events?stream=E")
    record = settings.Spool(lanes={"events": lane}, collector="c1", directory="spool")

    async def story() -> None:
        for _ in range(2):
            async with Spool(record, tmp_path) as spool:
                await spool.accept("events", [Record(b"x")] * 10)
                await spool._lanes["events"].drained()
            shutil.rmtree(tmp_path / "spool")
        assert await stored(server.address) == 20

    told(story)


def test_a_full_stream_is_overloaded_and_takes_more_when_there_is_room(server: NatsServer) -> None:
    async def story() -> None:
        limits = {"max_msgs": 50, "discard": "new", "storage": "file"}
        await ask(server.address, "STREAM.CREATE.E", name="E", subjects=["events.*"], **limits)
        to = sink(server.address)
        assert await to.send(batch(1, 50), TIMEOUT_NS) == DELIVERED
        full = await to.send(batch(51, 3), TIMEOUT_NS)
        assert full.outcome is OVERLOADED
        assert "maximum messages exceeded (10077)" in full.why
        assert not full.poison
        assert not full.starved
        await ask(server.address, "STREAM.PURGE.E")
        assert await to.send(batch(51, 3), TIMEOUT_NS) == DELIVERED
        await to.close()

    told(story)


def test_a_record_that_is_too_large_is_poison_and_costs_no_connection(server: NatsServer) -> None:
    async def story() -> None:
        limits = {"max_msg_size": 20_000, "storage": "file"}
        await ask(server.address, "STREAM.CREATE.E", name="E", subjects=["events.*"], **limits)
        to = sink(server.address)
        for size in (30_000, 64_000, 100_000):  # of the stream; of the server, with headers
            large = await to.send(batch(1, 2, size), TIMEOUT_NS)
            assert large.poison, size
        assert await to.send(batch(3, 2), TIMEOUT_NS) == DELIVERED
        assert await stored(server.address) == 2
        await to.close()

    told(story)


def test_without_a_stream_it_says_what_to_do(server: NatsServer) -> None:
    async def story() -> None:
        to = sink(server.address)
        none = await to.send(batch(1, 1), TIMEOUT_NS)
        assert none.outcome is FAILURE
        assert none.why.startswith("no stream takes the subject events.orders; make one")
        assert flaw(await to.health(TIMEOUT_NS), 1) == "events.orders has no leader"
        await ask(server.address, "STREAM.CREATE.E", name="E", subjects=["events.>"])
        assert await to.send(batch(1, 1), TIMEOUT_NS) == DELIVERED
        other = sink(server.address, "stream=F")  # whose subject is taken
        refused = await other.send(batch(1, 1), TIMEOUT_NS)
        assert refused.outcome is FAILURE
        assert "overlap" in refused.why
        for one in (to, other):
            await one.close()

    told(story)


def test_a_server_that_dies_under_a_batch_is_found_again(server: NatsServer) -> None:
    async def story() -> None:
        to = sink(server.address, "stream=E")
        assert await to.send(batch(1, 10), TIMEOUT_NS) == DELIVERED
        server.freeze()
        frozen = await to.send(batch(11, 10), SECOND)
        assert frozen.outcome is TIMEOUT
        assert (await to.health(SECOND)).silent == (server.address,)
        under_way = asyncio.create_task(to.send(batch(11, 10), 30 * SECOND))
        await asyncio.sleep(0.1)
        server.kill()
        lost = await under_way
        assert lost.outcome is FAILURE
        gone = await to.send(batch(11, 10), TIMEOUT_NS)
        assert (gone.outcome, gone.why) == (FAILURE, "no server can be reached")
        server.start()
        while (await to.send(batch(11, 10), TIMEOUT_NS)) != DELIVERED:
            await asyncio.sleep(0.1)
        assert await stored(server.address) == 20
        await to.close()

    told(story)


def test_nobody_there_is_a_failure_and_no_error() -> None:
    async def story() -> None:
        address = f"127.0.0.1:{free_port()}"
        to = sink(address)
        nobody = await to.send(batch(1, 1), SECOND)
        assert (nobody.outcome, nobody.why) == (FAILURE, "no server can be reached")
        assert await to.health(SECOND) == Health((), (address,))
        await to.close()

    told(story)


def test_a_follower_that_dies_is_seen_and_seen_to_be_back(
    three: list[NatsServer], capsys: pytest.CaptureFixture[str]
) -> None:
    """And then two of three: nothing is acknowledged, nothing is lost, nothing is stored twice."""

    async def story() -> None:
        to = sink(",".join(server.address for server in three), "stream=E&replicas=3")
        first = 1
        while await to.send(batch(first, 10), SECOND) != DELIVERED:
            await asyncio.sleep(0.2)  # the servers have yet to elect a leader
        await until(lambda health: flaw(health, 3) is None, to)
        leader = (await to.health(TIMEOUT_NS)).views[0].partitions[0].leader
        followers = [server for server in three if server.name != leader]

        followers[0].kill()

        def one_short(health: Health) -> bool:
            parts = [view.partitions[0] for view in health.views]
            return bool(parts) and all((part.replicas, part.in_sync) == (3, 2) for part in parts)

        seen_s = await until(one_short, to)
        gone = f"{followers[0].address} does not answer"
        assert flaw(await to.health(TIMEOUT_NS), 3) == gone
        assert await to.send(batch(11, 10), TIMEOUT_NS) == DELIVERED  # by two of three
        followers[0].start()
        back_s = await until(lambda health: flaw(health, 3) is None, to)

        followers[0].kill()
        followers[1].kill()
        while not (refused := await to.send(batch(21, 10), SECOND)).starved:
            assert refused.outcome in {FAILURE, TIMEOUT}
            await asyncio.sleep(0.1)
        assert refused.outcome is FAILURE
        for follower in followers:
            follower.start()
        while await to.send(batch(21, 10), TIMEOUT_NS) != DELIVERED:
            await asyncio.sleep(0.2)
        await until(lambda health: flaw(health, 3) is None, to)
        assert await stored(three[0].address) == 30
        await to.close()
        with capsys.disabled():
            print(f"\na dead follower was missed after {seen_s:.1f} s, back after {back_s:.1f} s")

    told(story)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("nats://127.0.0.1", "to: expected the subject after the slash"),
        ("nats://127.0.0.1/events.*", "without wildcards"),
        ("nats://127.0.0.1/events?stream=a.b", "expected the name of a stream"),
        ("nats://127.0.0.1/events?window=5", "to: window: expected a duration"),
        ("nats://127.0.0.1/events?replicas=two", "expected 1, 3 or 5 replicas"),
        ("nats://me:hunter2@127.0.0.1/events", "no user or password in the address"),
    ],
)
def test_an_address_that_cannot_be_meant_is_refused_in_a_sentence(url: str, says: str) -> None:
    with pytest.raises(SettingsError) as refused:
        NatsSink(url, sender="c1/events", agent="tests", base=Path())
    assert says in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_who_we_are_is_read_from_a_file(tmp_path: Path) -> None:
    pytest.importorskip("nkeys")
    from nats_accounts import accounts

    more = accounts(tmp_path / "spool.creds")
    stranger = tmp_path / "stranger.creds"
    accounts(stranger)

    async def story(server: NatsServer) -> None:
        def as_(creds: str) -> NatsSink:
            url = f"nats://{server.address}/events?stream=E&creds={creds}"
            return NatsSink(url, sender="c1/events", agent="tests", base=tmp_path)

        to = as_("spool.creds")
        assert await to.send(batch(1, 10), TIMEOUT_NS) == DELIVERED
        assert flaw(await to.health(TIMEOUT_NS), 1) is None
        turns = settings.Turns(through=f"nats://{server.address}?creds=spool.creds")
        coordinator = open_coordinator(turns, "events", "c1", tmp_path)
        assert await coordinator.take(0, SECOND) is not None
        other = as_("stranger.creds")
        refused = await other.send(batch(1, 1), TIMEOUT_NS)
        assert refused.outcome is FAILURE
        assert await other.health(SECOND) == Health((), (server.address,))
        for part in (to, other, coordinator):
            await part.close()

    try:
        with one_server(tmp_path, more) as server:
            told(lambda: story(server))
    except NatsMissingError as missing:
        pytest.skip(str(missing))
