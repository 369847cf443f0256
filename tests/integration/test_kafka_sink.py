"""A batch reaches Kafka once, or the lane hears why not; a client that fails makes no storm of it.

Against the client library's own imitation of three brokers, behind relays that count bytes.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka_mock import PRODUCE, KafkaMock, MockMissingError, kafka_mock

from tidegate.core.outcome import Outcome
from tidegate.errors import SettingsError
from tidegate.spooler.record import Batch, Record
from tidegate.spooler.sinks.kafka import KafkaSink
from tidegate.spooler.sinks.sink import DELIVERED, Sent
from tidegate.units import MILLISECOND, SECOND

pytestmark = pytest.mark.slow  # a cluster is started, and time is real

PATIENCE = 10 * SECOND
SHORT = 300 * MILLISECOND
STARVED = 19
AFTER_APPEND = 20
TOO_LARGE = 10
INVALID_RECORD = 87
NOT_LEADER = 6


@pytest.fixture
def cluster() -> Iterator[KafkaMock]:
    try:
        with kafka_mock() as mock:
            mock.create_topic("events")
            yield mock
    except MockMissingError as missing:
        pytest.skip(str(missing))


def batch(first: int, count: int, size: int = 1000) -> Batch:
    records = [
        Record(b"%d" % number + b"." * size, b"key %d" % (number % 7), (number + 1) * SECOND)
        for number in range(first, first + count)
    ]
    return Batch(first, records)


def used(cluster: KafkaMock, use: Callable[[KafkaSink], Awaitable[Any]], query: str = "") -> Any:
    async def run() -> Any:
        to = f"kafka://{cluster.bootstrap}/events{query}"
        sink = KafkaSink(to, sender="web-1/events", agent="tidegate-live-web-1-events")
        try:
            return await use(sink)
        finally:
            await sink.close()

    return asyncio.run(run())


def sent(cluster: KafkaMock, *batches: Batch, timeout: int = PATIENCE) -> list[Sent]:
    async def use(sink: KafkaSink) -> list[Sent]:
        return [await sink.send(each, timeout) for each in batches]

    found: list[Sent] = used(cluster, use)
    return found


def ids(cluster: KafkaMock) -> Counter[str]:
    """How often each id is in the topic."""
    return Counter(
        dict(message.headers())["tidegate-id"].decode() for message in cluster.records("events")
    )


def expected(*batches: Batch) -> Counter[str]:
    return Counter(
        f"web-1/events/{number}" for each in batches for number in range(each.first, each.last + 1)
    )


def test_what_is_delivered_is_there_once_with_key_time_and_id_in_the_order_of_its_key(
    cluster: KafkaMock,
) -> None:
    batches = [batch(1, 200), batch(201, 50), batch(251, 1)]
    assert sent(cluster, *batches) == [DELIVERED] * 3
    assert ids(cluster) == expected(*batches)
    numbers: dict[bytes, list[int]] = {}
    places: dict[bytes, set[int]] = {}
    for message in cluster.records("events"):
        number = int(dict(message.headers())["tidegate-id"].rpartition(b"/")[2])
        record = batch(number, 1).records[0]
        assert (message.value(), message.key()) == (record.value, record.key)
        assert message.timestamp()[1] == record.time // MILLISECOND
        numbers.setdefault(message.key(), []).append(number)
        places.setdefault(message.key(), set()).add(message.partition())
    assert all(found == sorted(found) for found in numbers.values())
    assert all(len(found) == 1 for found in places.values())


@pytest.mark.parametrize("error", [STARVED, AFTER_APPEND])
def test_a_starved_topic_gets_the_batch_twice_and_then_one_record_at_a_time(
    cluster: KafkaMock, error: int
) -> None:
    tries, events = 8, batch(1, 300)

    async def use(sink: KafkaSink) -> int:
        assert (
            await sink.send(batch(1, 1), PATIENCE) == DELIVERED
        )  # connections and their greetings
        before = cluster.sent
        cluster.fail(PRODUCE, *[error] * 1000)
        for _ in range(tries):
            said = await sink.send(batch(2, 300), PATIENCE)
            assert said.starved
            assert said.outcome is Outcome.OVERLOADED
        spent = cluster.sent - before
        cluster.heal()
        assert await sink.send(batch(2, 300), PATIENCE) == DELIVERED
        return spent

    spent = used(cluster, use)
    assert spent < 2.2 * events.size + tries * 5000  # the client alone: without end
    assert ids(cluster) == expected(batch(1, 301))


def test_what_was_taken_of_a_failed_batch_is_not_sent_again(cluster: KafkaMock) -> None:
    cluster.fail_partition("events", 1, STARVED, STARVED)
    first, second = sent(cluster, batch(1, 300), batch(1, 300))
    assert first.starved
    assert second == DELIVERED
    assert ids(cluster) == expected(batch(1, 300))


def test_a_new_leader_is_found_without_the_lane_hearing_of_it(cluster: KafkaMock) -> None:
    cluster.fail(PRODUCE, NOT_LEADER, NOT_LEADER)
    assert sent(cluster, batch(1, 50)) == [DELIVERED]
    assert ids(cluster) == expected(batch(1, 50))


@pytest.mark.parametrize("error", [TOO_LARGE, INVALID_RECORD])
def test_what_no_broker_would_ever_take_is_poison_and_the_next_batch_is_not(
    cluster: KafkaMock, error: int
) -> None:
    cluster.fail(PRODUCE, error)
    first, second = sent(cluster, batch(1, 1), batch(2, 3))
    assert (first.outcome, first.poison, first.starved) == (Outcome.FAILURE, True, False)
    assert second == DELIVERED


def test_a_record_that_is_too_large_for_the_client_is_poison_too(cluster: KafkaMock) -> None:
    large = Batch(1, [Record(b"x" * 2_000_000), Record(b"small")])
    first, second = sent(cluster, large, Batch(2, large.records[1:]))
    assert (first.outcome, first.poison) == (Outcome.FAILURE, True)
    assert "too large" in first.why
    assert second == DELIVERED
    assert ids(cluster) == expected(batch(2, 1))


def test_records_that_are_more_than_the_client_holds_go_all_the_same(cluster: KafkaMock) -> None:
    many = Batch(1, [Record(b"")] * 100_001)  # queue.buffering.max.messages and one
    assert sent(cluster, many) == [DELIVERED]


def test_a_batch_waits_for_a_broker_that_is_away_no_longer_than_it_may(cluster: KafkaMock) -> None:
    async def use(sink: KafkaSink) -> list[Sent]:
        warm = await sink.send(batch(1, 50), PATIENCE)
        for node in (1, 2, 3):
            cluster.down(node)
        down = await sink.send(batch(51, 50), SHORT)
        looked = await sink.health(SHORT)
        assert looked.views == ()
        assert looked.silent == tuple(cluster.addresses)
        for node in (1, 2, 3):
            cluster.up(node)
        return [warm, down, await sink.send(batch(51, 50), PATIENCE)]

    warm, down, up = used(cluster, use)
    assert (warm, up) == (DELIVERED, DELIVERED)
    assert down.outcome is Outcome.TIMEOUT
    assert down.why.startswith("no answer in time")
    assert ids(cluster) == expected(batch(1, 100))


def test_a_broker_that_hangs_is_silent_and_the_others_are_heard(cluster: KafkaMock) -> None:
    async def use(sink: KafkaSink) -> list[Sent]:
        warm = await sink.send(batch(1, 50), PATIENCE)
        cluster.relays[2].freeze()
        hung = await sink.send(batch(51, 50), SHORT)
        looked = await sink.health(SHORT)
        assert looked.silent == (cluster.addresses[1],)
        assert [view.seen_from for view in looked.views] == [
            cluster.addresses[0],
            cluster.addresses[2],
        ]
        assert all(view.brokers == 3 and len(view.partitions) == 3 for view in looked.views)
        cluster.relays[2].thaw()
        return [warm, hung, await sink.send(batch(51, 50), PATIENCE)]

    warm, hung, thawed = used(cluster, use)
    assert (warm, thawed) == (DELIVERED, DELIVERED)
    assert hung.outcome is Outcome.TIMEOUT
    assert set(ids(cluster)) == set(expected(batch(1, 100)))  # some perhaps twice


def test_a_call_that_is_cancelled_ends_at_once_and_the_next_goes_on(cluster: KafkaMock) -> None:
    async def use(sink: KafkaSink) -> Sent:
        await sink.send(batch(1, 1), PATIENCE)
        for relay in cluster.relays.values():
            relay.freeze()
        sending = asyncio.create_task(sink.send(batch(2, 50), 100 * SECOND))
        await asyncio.sleep(0.05)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        for relay in cluster.relays.values():
            relay.thaw()
        return await sink.send(batch(2, 50), PATIENCE)

    assert used(cluster, use) == DELIVERED
    assert set(ids(cluster)) == set(expected(batch(1, 51)))


def threads() -> int:
    """Of this process, those of the client library among them."""
    return len(list(Path("/proc/self/task").iterdir()))


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc")
def test_a_sink_that_is_closed_while_it_sends_leaves_no_thread(cluster: KafkaMock) -> None:
    async def use() -> Sent:
        sink = KafkaSink(
            f"kafka://{cluster.bootstrap}/events", sender="web-1/events", agent="tidegate"
        )
        await sink.send(batch(1, 1), PATIENCE)
        for relay in cluster.relays.values():
            relay.freeze()
        sending = asyncio.create_task(sink.send(batch(2, 50), 100 * SECOND))
        await asyncio.sleep(0.05)
        await sink.close()
        await sink.close()  # a second time is no harm
        return await sending

    before = threads()
    assert asyncio.run(use()).outcome is Outcome.TIMEOUT
    until = time.monotonic() + 10
    while threads() > before and time.monotonic() < until:
        time.sleep(0.01)  # the relays' other ends close on their own
    assert threads() <= before


def test_what_the_client_does_not_take_is_told_at_once_without_a_secret(tmp_path: Path) -> None:
    (tmp_path / "f").write_text(
        "security.protocol=sasl_ssl\nsasl.mechanism=PLAIN\nsasl.username=spool\n"
        "sasl.password=correct horse\nssl.ca.location=nowhere.pem\n"
    )
    with pytest.raises(SettingsError, match=r"^to: the Kafka client does not take") as refused:
        KafkaSink("kafka://a:1/t?config=f", sender="a/b", agent="c", base=tmp_path)
    assert "correct horse" not in str(refused.value)
