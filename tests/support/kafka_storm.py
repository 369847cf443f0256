"""How many bytes do clients send to a Kafka topic that has too few replicas?

Twenty clients have new records for a megabyte a second, all of them together; after a few calm
seconds every batch is answered with NOT_ENOUGH_REPLICAS. Bytes are counted on the way to the
brokers, by the second.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from statistics import mean
from typing import Final, NamedTuple

from confluent_kafka import Producer
from kafka_mock import NOT_ENOUGH_REPLICAS, PRODUCE, KafkaMock, kafka_mock

from tidegate.spooler.record import Batch, Record
from tidegate.spooler.sinks.kafka import KafkaSink
from tidegate.spooler.sinks.sink import DELIVERED
from tidegate.units import SECOND

CLIENTS: Final = 20
RATE: Final = 1_000_000  # bytes of records a second, of all clients
RECORD: Final = b"x" * 1000
TICK_S: Final = 0.1
EACH_TICK: Final = round(RATE * TICK_S / CLIENTS / len(RECORD))
BATCH: Final = 1000  # records, a megabyte
WARM: Final = 3  # seconds until connections stand, not counted
CALM: Final = 5


Work = Coroutine[None, None, None]


class Wire(NamedTuple):
    """Bytes by the second, in peace and starved."""

    calm: list[int]
    starved: list[int]

    @property
    def times(self) -> float:
        """The mean of the starved seconds, in multiples of the mean in peace."""
        return mean(self.starved) / mean(self.calm)

    @property
    def at_last(self) -> float:
        """The last second, so."""
        return self.starved[-1] / mean(self.calm)


async def counted(cluster: KafkaMock, seconds: int) -> Wire:
    """The bytes of each second, while others send."""
    await asyncio.sleep(WARM)
    found, begun = [], time.monotonic()
    for second in range(CALM + seconds):
        if second == CALM:
            cluster.fail(PRODUCE, *[NOT_ENOUGH_REPLICAS] * 1_000_000)
        before = cluster.sent
        await asyncio.sleep(max(0.0, begun + second + 1 - time.monotonic()))
        found.append(cluster.sent - before)
    return Wire(found[:CALM], found[CALM:])


async def one_client(cluster: KafkaMock, name: str, settings: dict[str, object]) -> None:
    """A client that is given everything as it comes, which is how it is meant to be used."""
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0, **settings}
    )
    try:
        while True:
            for number in range(EACH_TICK):
                producer.produce("events", RECORD, f"{name} {number}".encode())
            producer.poll(0)
            await asyncio.sleep(TICK_S)
    finally:
        producer.purge()


async def one_sink(cluster: KafkaMock, name: str) -> None:
    """Our sink under a lane that has no patience: what failed is tried again at once."""
    sink = KafkaSink(
        f"kafka://{cluster.bootstrap}/events", sender=name, agent=f"tidegate-live-{name}"
    )
    waiting: list[Record] = []
    first = 1

    async def come() -> None:
        while True:
            waiting.extend(Record(RECORD, f"{name} {n}".encode()) for n in range(EACH_TICK))
            await asyncio.sleep(TICK_S)

    coming = asyncio.create_task(come())
    try:
        while True:
            if not waiting:
                await asyncio.sleep(TICK_S / 2)
                continue
            batch = Batch(first, waiting[:BATCH])
            if await sink.send(batch, 10 * SECOND) == DELIVERED:
                del waiting[: len(batch.records)]
                first = batch.last + 1
    finally:
        coming.cancel()
        await sink.close()


def as_it_is(cluster: KafkaMock, name: str) -> Work:
    return one_client(cluster, name, {})


def idempotent(cluster: KafkaMock, name: str) -> Work:
    return one_client(cluster, name, {"enable.idempotence": True})


def ours(cluster: KafkaMock, name: str) -> Work:
    return one_sink(cluster, name)


def measured(way: Callable[[KafkaMock, str], Work], seconds: int) -> Wire:
    """One run with `CLIENTS` of this kind against a cluster of its own."""

    async def run(cluster: KafkaMock) -> Wire:
        work = [asyncio.create_task(way(cluster, f"c{n}")) for n in range(CLIENTS)]
        try:
            return await counted(cluster, seconds)
        finally:
            for task in work:
                task.cancel()
            await asyncio.gather(*work, return_exceptions=True)

    with made() as cluster:
        return asyncio.run(run(cluster))


@contextmanager
def made() -> Iterator[KafkaMock]:
    with kafka_mock() as cluster:
        cluster.create_topic("events", 12)
        yield cluster
