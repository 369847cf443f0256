"""How fast does a spool's sink deliver to JetStream, each record acknowledged?

    python benchmarks/nats_sink.py

Batches of 1000 records of 1 kB, one after the other, into a stream on one server and into one of
three replicas on three, all on this machine; beside it the client's own `publish`, with as many of
them under way as the sink has. CPU is this process's, of a record. Middle of five rounds of 20,000
records, with the lowest and the highest.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from nats.aio.client import Client
from nats_cluster import NatsServer, one_server, three_servers

from tidegate.core.health import flaw
from tidegate.spooler.record import Batch, Record
from tidegate.spooler.sinks.nats import NatsSink
from tidegate.spooler.sinks.sink import DELIVERED
from tidegate.units import SECOND

SIZE = 1000
BATCH = 1000
BATCHES = 20
ROUNDS = 5
UNDER_WAY = 512

Sends = Callable[[int], Awaitable[None]]


async def by_sink(servers: list[NatsServer]) -> None:
    to = sink(servers)
    brokers = len(servers)
    while flaw(await to.health(SECOND), brokers) is not None:
        await to.send(batch(0, 1), SECOND)  # makes the stream, once there is a leader
    number = 1

    async def send(_: int) -> None:
        nonlocal number
        assert await to.send(batch(number, BATCH), 10 * SECOND) == DELIVERED
        number += BATCH

    await measured(f"the sink, {brokers} server{'s' * (brokers > 1)}", send)
    await to.close()


async def by_publish(servers: list[NatsServer]) -> None:
    client = Client()
    await client.connect([f"nats://{server.address}" for server in servers])
    stream, room = client.jetstream(), asyncio.Semaphore(UNDER_WAY)

    async def publish() -> None:
        async with room:
            await stream.publish("events", b"x" * SIZE, timeout=10)

    async def send(_: int) -> None:
        await asyncio.gather(*(publish() for _ in range(BATCH)))

    await measured(f"publish, {len(servers)} server{'s' * (len(servers) > 1)}", send)
    await client.close()


async def measured(name: str, send: Sends) -> None:
    rates, costs = [], []
    for _ in range(ROUNDS):
        began, cpu = time.perf_counter(), time.process_time()
        for number in range(BATCHES):
            await send(number)
        records = BATCH * BATCHES
        rates.append(records / (time.perf_counter() - began))
        costs.append((time.process_time() - cpu) / records * 1e6)
    print(
        f"{name:22}{median(rates):9,.0f}/s ({min(rates):,.0f} to {max(rates):,.0f})"
        f"{median(costs):8.1f} us",
        flush=True,
    )


def sink(servers: list[NatsServer]) -> NatsSink:
    addresses = ",".join(server.address for server in servers)
    url = f"nats://{addresses}/events?stream=E"
    return NatsSink(url, sender="c1/events", agent="benchmark", base=Path())


def batch(first: int, count: int) -> Batch:
    return Batch(first, [Record(b"x" * SIZE) for _ in range(count)])


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        with one_server(Path(folder) / "one") as server:
            asyncio.run(by_sink([server]))
            asyncio.run(by_publish([server]))
        with three_servers(Path(folder) / "three") as servers:
            asyncio.run(by_sink(servers))
            asyncio.run(by_publish(servers))


if __name__ == "__main__":
    main()
