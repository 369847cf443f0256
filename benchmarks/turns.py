"""What does a lease cost on each kind of server, and how long is it before another has it?

    python benchmarks/turns.py

For every coordinator: the time of a renewal (middle and slowest percent of 500, one after the
other), of a look at reports and budget together, and how long a lease of 2 s is nobody's after its
holder was last heard of, when another has been asking every 50 ms since before (five trials), or
has not asked before. Servers are started on the loopback, each alone and with nothing else to do.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from lease_servers import postgres_server, valkey_server
from nats_cluster import one_server, three_servers

from tidegate.settings.spool import Turns
from tidegate.spooler.coordinators.choose import open_coordinator
from tidegate.spooler.coordinators.coordinator import Coordinator, CoordinatorLost, Report
from tidegate.units import SECOND

TTL = 2 * SECOND
RENEWALS = 500
TRIALS = 5


@contextmanager
def places(folder: Path) -> Iterator[dict[str, str]]:
    with (
        one_server(folder / "one") as nats,
        three_servers(folder / "three") as three,
        valkey_server(folder / "valkey") as valkey,
        postgres_server() as postgres,
    ):
        yield {
            "NATS": f"nats://{nats.address}",
            "NATS, three replicas": "nats://" + ",".join(server.address for server in three),
            "Valkey, appendfsync always": f"valkey://127.0.0.1:{valkey.port}",
            "PostgreSQL": f"postgresql://postgres@127.0.0.1:{postgres.port}/postgres",
        }


async def measured(url: str) -> str:
    turns = Turns(through=url)
    one, other = (open_coordinator(turns, "benchmark", who, Path()) for who in ("one", "other"))
    while True:
        try:
            fence = await one.take(0, 60 * SECOND)
            break
        except CoordinatorLost:  # three servers have a leader to elect first
            await asyncio.sleep(0.2)
    assert fence is not None
    renewals = [await timed(one.renew(0, fence, 60 * SECOND)) for _ in range(RENEWALS)]
    await one.report(Report("one", 1, 1, 1.0))
    looks = [await timed(one.reports()) + await timed(one.budget()) for _ in range(RENEWALS)]
    watched = [await takeover(one, other, slot, watching=True) for slot in range(1, TRIALS + 1)]
    late = await takeover(one, other, TRIALS + 1, watching=False)
    await one.close()
    await other.close()
    slowest = quantiles(renewals, n=100)[-1]
    return (
        f"{median(renewals) * 1e3:8.2f}{slowest * 1e3:8.2f}{median(looks) * 1e3:8.2f}"
        f"{min(watched):10.2f} to {max(watched):.2f}{late:12.2f}"
    )


async def timed(call: Awaitable[object]) -> float:
    began = time.perf_counter()
    await call
    return time.perf_counter() - began


async def takeover(one: Coordinator, other: Coordinator, slot: int, *, watching: bool) -> float:
    """Seconds from the death of a holder to the next."""
    assert await one.take(slot, TTL) is not None
    died = time.perf_counter()
    if not watching:
        await asyncio.sleep(1)
    while await other.take(slot, TTL) is None:
        await asyncio.sleep(0.05)
    return time.perf_counter() - died


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, places(Path(folder)) as urls:
        print(f"{'':28}{'renew ms':>8}{'99 %':>8}{'look ms':>8}{'next after s':>18}{'unseen':>12}")
        for name, url in urls.items():
            print(f"{name:28}{asyncio.run(measured(url))}", flush=True)


if __name__ == "__main__":
    main()
