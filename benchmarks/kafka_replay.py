"""What do twenty collectors do to Kafka when it comes back, with a spool each and without?

    python benchmarks/kafka_replay.py [seconds of backlog]

Three real brokers on this machine (Java, and Maven the first time). All three hang while a backlog
gathers, then go on; a while later one of them hangs again for fifteen seconds. Each collector has
25 new records of 1 kB a second all the time. Without a spool a collector is a Kafka client as it
is, `acks=all`, which keeps what it cannot send; with one it is `tidegate.spooler` with a gate of
10 s, and four leases of 5 s in NATS. One run of each.

Measured in the topic afterwards, by the brokers' own time of arrival: bytes a second in multiples
of the new ones (highest second), how late new records came, what is missing, what is there twice.
"""

import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    ExitStack,
    asynccontextmanager,
)
from pathlib import Path
from typing import Final, NamedTuple, Protocol

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from confluent_kafka import Consumer, Producer, TopicPartition
from kafka_cluster import KafkaCluster, KafkaMissingError, kafka_cluster
from nats_cluster import one_server

from tidegate.settings.spool import Gate, Lane, Spool, Turns
from tidegate.spooler import spool as shell
from tidegate.spooler.door.keeper import Accepted
from tidegate.spooler.record import Record
from tidegate.units import SECOND

COLLECTORS: Final = 20
EACH: Final = 25  # records a second and collector
SIZE: Final = 1000
PARTITIONS: Final = 6
TICK_S: Final = 0.2
FROZEN_S: Final = 15
LATE_S: Final = 10
LIMIT_S: Final = 600


class Collector(Protocol):
    """What takes records and gets them to the topic, in its way."""

    async def take(self, records: list[bytes]) -> None: ...

    def waiting(self) -> int: ...


class Plain:
    """A Kafka client: what it cannot send waits in its memory."""

    def __init__(self, producer: Producer, topic: str) -> None:
        self._producer = producer
        self._topic = topic

    async def take(self, records: list[bytes]) -> None:
        for record in records:
            self._producer.produce(self._topic, record)
        self._producer.poll(0)

    def waiting(self) -> int:
        self._producer.poll(0)
        return len(self._producer)


class Spooled:
    """A spool: what it cannot send waits on its disk."""

    def __init__(self, spool: shell.Spool) -> None:
        self._spool = spool

    async def take(self, records: list[bytes]) -> None:
        answer = await self._spool.accept("events", [Record(record) for record in records])
        assert isinstance(answer, Accepted), answer

    def waiting(self) -> int:
        return sum(lane.backlog_records for lane in self._spool.status().lanes)


class Numbered:
    """Makes the records of one collector: their kind, number and time."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.made = 0

    def __call__(self, kind: str, count: int) -> list[bytes]:
        made = range(self.made, self.made + count)
        self.made += count
        now = time.time_ns()
        return [f"{kind} {self._name} {n} {now} ".encode().ljust(SIZE, b".") for n in made]


class Found(NamedTuple):
    """What stands in the topic."""

    by_second: Counter[int]
    late: list[float]  # seconds, of the new records of the run
    ids: Counter[tuple[str, int]]


async def run(
    cluster: KafkaCluster, collectors: list[Collector], backlog_s: int
) -> tuple[float, int, float]:
    """When the outage ended, how many records were made, and seconds until none waited."""
    makers = [Numbered(f"c{number}") for number in range(COLLECTORS)]
    together = list(zip(collectors, makers, strict=True))
    ending = asyncio.Event()

    async def live() -> None:
        due = time.monotonic()
        while not ending.is_set():
            for collector, made in together:
                await collector.take(made("new", round(EACH * TICK_S)))
            due += TICK_S
            await asyncio.sleep(max(0.0, due - time.monotonic()))

    await asyncio.gather(*(c.take(made("new", EACH)) for c, made in together))
    await asyncio.sleep(3)
    for node in (1, 2, 3):
        cluster.freeze(node)
    coming = asyncio.create_task(live())
    for _ in range(backlog_s):
        await asyncio.gather(*(c.take(made("old", EACH)) for c, made in together))
        await asyncio.sleep(0.05)
    await asyncio.sleep(8)  # everybody has seen that nothing goes
    least = sum(collector.waiting() for collector, _ in together)
    for node in (1, 2, 3):
        cluster.thaw(node)
    came_back = time.time()
    second = asyncio.create_task(hang_again(cluster, collectors, least))
    while sum(c.waiting() for c, _ in together) > COLLECTORS * EACH or not second.done():
        assert time.time() < came_back + LIMIT_S, "it never ended"
        assert not coming.done(), coming.exception()
        await asyncio.sleep(0.2)
    took = time.time() - came_back
    await asyncio.sleep(3)
    ending.set()
    await coming
    while sum(c.waiting() for c, _ in together):
        await asyncio.sleep(0.2)
    return came_back, sum(made.made for made in makers), took


async def hang_again(cluster: KafkaCluster, collectors: list[Collector], least: int) -> None:
    """Once a fifth of what waited has gone, one broker hangs for a while."""
    while sum(collector.waiting() for collector in collectors) > 0.8 * least:
        await asyncio.sleep(0.05)
    cluster.freeze(3)
    await asyncio.sleep(FROZEN_S)
    cluster.thaw(3)


def found(cluster: KafkaCluster, topic: str, since: float) -> Found:
    """Read the whole topic."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "look"})
    seen = Found(Counter(), [], Counter())
    for number in range(PARTITIONS):
        place = TopicPartition(topic, number)
        _, end = consumer.get_watermark_offsets(place, timeout=10)
        consumer.assign([TopicPartition(topic, number, 0)])
        got = 0
        while got < end:
            for message in consumer.consume(1000, 1.0):
                got += 1
                kind, name, count, made_at, _ = (message.value() or b"").split(b" ", 4)
                arrived = message.timestamp()[1] / 1000
                seen.by_second[int(arrived - since)] += SIZE
                if kind == b"new" and int(made_at) / 1e9 > since:
                    seen.late.append(arrived - int(made_at) / 1e9)
                seen.ids[(name.decode(), int(count))] += 1
    consumer.close()
    return seen


@asynccontextmanager
async def plain(cluster: KafkaCluster, topic: str, _: Path) -> AsyncIterator[list[Collector]]:
    settings = {"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0}
    yield [Plain(Producer(settings), topic) for _ in range(COLLECTORS)]


@asynccontextmanager
async def spooled(cluster: KafkaCluster, topic: str, base: Path) -> AsyncIterator[list[Collector]]:
    with ExitStack() as servers:
        server = servers.enter_context(one_server(base))
        async with AsyncExitStack() as spools:
            found: list[Collector] = []
            for number in range(COLLECTORS):
                lane = Lane(
                    to=f"kafka://{cluster.bootstrap}/{topic}",
                    durable="never",
                    timeout=3 * SECOND,
                    gate=Gate(hold=10 * SECOND, jitter=5 * SECOND),
                    turns=Turns(through=f"nats://{server.address}", slice=5 * SECOND),
                )
                name = f"c{number}"
                settings = Spool(lanes={"events": lane}, directory=name, collector=name)
                spool = await spools.enter_async_context(shell.Spool(settings, base))
                found.append(Spooled(spool))
            yield found


Way = Callable[[KafkaCluster, str, Path], AbstractAsyncContextManager[list[Collector]]]


async def measured(cluster: KafkaCluster, name: str, way: Way, base: Path, old_s: int) -> None:
    topic = name.replace(" ", "-")
    cluster.create_topic(topic, PARTITIONS, message_timestamp_type="LogAppendTime")
    async with way(cluster, topic, base) as collectors:
        since, made, took = await run(cluster, collectors, old_s)
    seen = await asyncio.to_thread(found, cluster, topic, since)
    late = sorted(seen.late)
    rate = COLLECTORS * EACH * SIZE
    beyond = sum(seconds > LATE_S for seconds in late) / len(late)
    peak = max(size for second, size in seen.by_second.items() if second >= 0) / rate
    print(
        f"{name:16}{peak:9.1f}x{took:9.0f} s{late[len(late) // 2]:9.2f} s"
        f"{late[len(late) * 99 // 100]:9.2f} s{beyond:9.1%}{made - len(seen.ids):9,}"
        f"{seen.ids.total() - len(seen.ids):9,}",
        flush=True,
    )


def main() -> None:
    old_s = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    print(f"{COLLECTORS} collectors, {EACH} records of {SIZE} B each, {old_s} s of backlog")
    print(
        f"{'':16}{'highest':>10}{'drained':>11}{'late p50':>11}{'late p99':>11}"
        f"{f'> {LATE_S} s':>9}{'missing':>9}{'twice':>9}"
    )
    for name, way in {"a client as it is": plain, "a spool": spooled}.items():
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            try:
                cluster = stack.enter_context(kafka_cluster(Path(folder)))
            except KafkaMissingError as missing:
                sys.exit(f"no Kafka here: {missing}")
            asyncio.run(measured(cluster, name, way, Path(folder), old_s))


if __name__ == "__main__":
    main()
