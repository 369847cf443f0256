"""Three real brokers: one freezes, falls behind, comes back; and nothing is lost on the way.

What no imitation shows: replicas that fall out of step, as each broker tells it. Skipped by name
where Java or Kafka cannot be had. Times are printed (`pytest -s`), never asserted.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, TopicPartition
from kafka_cluster import PASSWORD, USER, KafkaCluster, KafkaMissingError, kafka_cluster

from tidegate.core.health import Health, flaw
from tidegate.core.outcome import Outcome
from tidegate.spooler.record import Batch, Record
from tidegate.spooler.sinks.kafka import KafkaSink
from tidegate.spooler.sinks.sink import DELIVERED, Sent
from tidegate.units import SECOND

pytestmark = pytest.mark.golden  # three Java processes, and Kafka's own times of seconds

PATIENCE = 10 * SECOND
LOOK = SECOND
LIMIT_S = 90.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    try:
        with kafka_cluster(tmp_path_factory.mktemp("kafka")) as found:
            yield found
    except KafkaMissingError as missing:
        pytest.skip(str(missing))


def batch(first: int, count: int = 60) -> Batch:
    return Batch(first, [Record(b"." * 500, b"%d" % number) for number in range(count)])


def used(cluster: KafkaCluster, topic: str, use: Callable[[KafkaSink], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        to = f"kafka://{cluster.bootstrap}/{topic}"
        sink = KafkaSink(to, sender="web-1/events", agent="tidegate-live-web-1-events")
        try:
            return await use(sink)
        finally:
            await sink.close()

    return asyncio.run(run())


async def until(sink: KafkaSink, well: Callable[[Health], bool]) -> float:
    """Seconds until the sink looks so."""
    begun = time.monotonic()
    while not well(await sink.health(LOOK)):
        assert time.monotonic() < begun + LIMIT_S, "it never looked so"
        await asyncio.sleep(0.1)
    return time.monotonic() - begun


def whole(health: Health) -> bool:
    return flaw(health, 3) is None


def number_of(message: Message) -> int:
    for name, value in list(message.headers() or ()):
        if name == "tidegate-id" and isinstance(value, bytes):
            return int(value.rpartition(b"/")[2])
    raise AssertionError("a record without its id")


def numbers(cluster: KafkaCluster, topic: str) -> list[int]:
    """The numbers in the ids of all records of the topic."""
    settings = {"bootstrap.servers": cluster.bootstrap, "group.id": "look", "log_level": 0}
    consumer = Consumer({**settings, "fetch.wait.max.ms": 10})
    found = []
    for number in range(3):
        place = TopicPartition(topic, number)
        _, end = consumer.get_watermark_offsets(place, timeout=10)
        consumer.assign([TopicPartition(topic, number, 0)])
        limit = time.monotonic() + 30
        while time.monotonic() < limit and consumer.position([place])[0].offset < end:
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                found.append(number_of(message))
    consumer.close()
    return found


@pytest.mark.parametrize("node", [1, 2, 3])
def test_a_frozen_broker_shows_from_each_of_the_others_and_heals(
    cluster: KafkaCluster, node: int
) -> None:
    topic = f"freeze-{node}"
    cluster.create_topic(topic)
    others = [name for n, name in enumerate(cluster.addresses, 1) if n != node]

    def shrunk(health: Health) -> bool:
        assert {view.seen_from for view in health.views} <= set(others)
        parts = [part for view in health.views for part in view.partitions]
        return len(health.views) == 2 and all(
            part.in_sync == 2 and part.replicas == 3 for part in parts
        )

    async def use(sink: KafkaSink) -> None:
        await until(sink, whole)
        assert await sink.send(batch(1), PATIENCE) == DELIVERED
        cluster.freeze(node)
        try:
            silent = await until(sink, lambda health: len(health.silent) == 1)
            shown = silent + await until(sink, shrunk)
            took = await sink.send(batch(61), PATIENCE)  # by the old leader, which hangs
            tries = 1
            while await sink.send(batch(61), PATIENCE) != DELIVERED:  # by a new one
                # A new client wants a producer id. When the broker that hangs rules the cluster
                # and another has none left to give, that takes until the next one rules.
                tries += 1
                assert tries < 6, "the other two brokers never took it"
        finally:
            cluster.thaw(node)
        healed = await until(sink, whole)
        assert await sink.send(batch(121), PATIENCE) == DELIVERED
        print(
            f"\nbroker {node} frozen: silent after {silent:.1f} s, out of step as seen from both"
            f" others after {shown:.1f} s; the first batch then {took.outcome.name}, a later one"
            f" taken at try {tries};"
            f" whole {healed:.1f} s after it thawed"
        )

    used(cluster, topic, use)
    assert set(numbers(cluster, topic)) == set(range(1, 181))


def test_a_topic_below_its_least_replicas_starves_the_sink_and_nothing_is_lost(
    cluster: KafkaCluster,
) -> None:
    cluster.create_topic("starved", min_insync_replicas="3")

    async def use(sink: KafkaSink) -> list[Sent]:
        await until(sink, whole)
        said = [await sink.send(batch(1), PATIENCE)]
        cluster.freeze(2)
        try:
            limit = time.monotonic() + LIMIT_S
            while not said[-1].starved and time.monotonic() < limit:
                said.append(await sink.send(batch(61), 3 * SECOND))
        finally:
            cluster.thaw(2)
        await until(sink, whole)
        said.append(await sink.send(batch(61), PATIENCE))
        said.append(await sink.send(batch(121), PATIENCE))
        return said

    said = used(cluster, "starved", use)
    assert said[0] == DELIVERED
    assert said[-3].starved
    assert said[-2:] == [DELIVERED, DELIVERED]
    found = numbers(cluster, "starved")
    assert set(found) == set(range(1, 181))
    print(f"\n{len(said) - 3} tries while it starved, {len(found) - 180} of 60 records twice")


def test_a_broker_that_is_killed_costs_no_record(cluster: KafkaCluster) -> None:
    cluster.create_topic("killed")

    async def use(sink: KafkaSink) -> int:
        await until(sink, whole)
        first, tries = 1, 0
        for turn in range(60):
            if turn == 10:
                cluster.kill(3)
            if turn == 40:
                cluster.start_broker(3)
            while (await sink.send(batch(first, 20), 3 * SECOND)).outcome is not Outcome.SUCCESS:
                tries += 1
                assert tries < 100
            first += 20
            await asyncio.sleep(0.05)
        await until(sink, whole)
        return tries

    tries = used(cluster, "killed", use)
    found = numbers(cluster, "killed")
    assert set(found) == set(range(1, 1201))
    print(f"\nkilled and started again: {tries} failed sends, {len(found) - 1200} records twice")


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_name_and_a_password_over_tls_are_enough_for_both_ways(
    cluster: KafkaCluster, mechanism: str, tmp_path: Path
) -> None:
    topic = f"secure-{mechanism.lower()}"
    cluster.create_topic(topic)
    secrets = tmp_path / "kafka.properties"

    def written(password: str) -> None:
        secrets.write_text(
            f"security.protocol=sasl_ssl\nsasl.mechanism={mechanism}\nsasl.username={USER}\n"
            f"sasl.password={password}\nssl.ca.location={cluster.authority}\n"
        )

    async def look() -> tuple[Health, Sent]:
        to = f"kafka://{cluster.secured}/{topic}?config={secrets}"
        sink = KafkaSink(to, sender="web-1/events", agent="tidegate")
        try:
            health = await sink.health(5 * SECOND)
            return health, await sink.send(batch(1), 5 * SECOND)
        finally:
            await sink.close()

    written(PASSWORD)
    health, sent = asyncio.run(look())
    assert whole(health)
    assert sent == DELIVERED
    written("wrong")
    health, sent = asyncio.run(look())
    assert health.views == ()
    assert sent.outcome is Outcome.TIMEOUT
    assert "wrong" not in sent.why
    print(f"\n{mechanism}, wrong password: {sent.why}")
