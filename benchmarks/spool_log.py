"""How fast does the log of a spool keep records, and give them back, on this disk?

    python benchmarks/spool_log.py [DIRECTORY [GIGABYTES]]

Records of 1 kB. First what the disk itself can do, since everything durable waits for it. Then the
log alone, synced after each append, and what it costs to compress and to encrypt. Then what callers
wait who share one committer: an open loop of so many records a second, each acknowledged when it is
on disk; also with 2 and 10 ms added to each sync, as cloud volumes and spinning disks have. Then a
backlog, read to its end, with the memory that this took, and the time that it takes to open a log.

CPU is that of the whole process, in which the callers are as well.
"""

import asyncio
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tidegate.errors import SpoolFull
from tidegate.spooler.log.codec import CLEAR, Codec
from tidegate.spooler.log.committer import Committer
from tidegate.spooler.log.files import Files
from tidegate.spooler.log.log import Log
from tidegate.spooler.log.options import LogOptions
from tidegate.spooler.record import Record

SECONDS = 3.0
ROUNDS = 3
RECORD = os.urandom(1000)


class SlowerFiles(Files):
    """The disk of this machine with so many seconds added to each sync."""

    __slots__ = ("added",)

    def __init__(self, added: float) -> None:
        self.added = added

    def sync(self, handle: int) -> None:
        super().sync(handle)
        if self.added:
            time.sleep(self.added)


def records(count: int) -> list[Record]:
    return [Record(RECORD, b"", time.time_ns()) for _ in range(count)]


def quantiles(times: list[float]) -> str:
    times.sort()
    p50, p99 = times[len(times) // 2], times[len(times) * 99 // 100]
    return f"p50 {p50 * 1e3:6.2f} ms   p99 {p99 * 1e3:6.2f} ms"


def disk(directory: Path) -> None:
    for size in (1000, 64_000, 1_000_000):
        handle = os.open(directory / "raw", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        data, times = bytes(size), list[float]()
        for n in range(300):
            began = time.perf_counter()
            os.pwrite(handle, data, n * size)
            os.fdatasync(handle)
            times.append(time.perf_counter() - began)
        os.close(handle)
        print(f"disk: append and sync {size:>9,} B            {quantiles(times)}")
    (directory / "raw").unlink()


def alone(directory: Path) -> None:
    for per, rounds in ((1, 1000), (10, 1000), (100, 1000), (1000, 200)):
        rates, costs = [], []
        for _ in range(ROUNDS):
            log = Log.open(directory / "lane")
            some = records(per)
            began, cpu = time.perf_counter(), time.process_time()
            for _ in range(rounds):
                log.append(some)
                log.sync()
            rates.append(per * rounds / (time.perf_counter() - began))
            costs.append((time.process_time() - cpu) / per / rounds * 1e6)
            log.close()
            shutil.rmtree(directory / "lane")
        print(
            f"log: {per:>5} records a sync      {max(rates):>9,.0f}/s"
            f" (worst of {ROUNDS}: {min(rates):,.0f})   {min(costs):5.1f} us of CPU each"
        )


def events(count: int) -> list[Record]:
    """Events of a web shop as JSON, drawn with a seed."""
    luck = random.Random(1)
    made = []
    for _ in range(count):
        event = {
            "id": luck.randbytes(16).hex(),
            "user": luck.randrange(10_000_000),
            "path": luck.choice(["/", "/basket", "/product/7"]),
            "agent": luck.choice(["Mozilla/5.0 (X11; Linux x86_64)", "curl/8.0"]),
            "fields": {f"f{n}": luck.choice(["x" * 20, "yes", luck.random()]) for n in range(40)},
        }
        made.append(Record(json.dumps(event).encode(), b"", time.time_ns()))
    return made


def codecs(directory: Path) -> None:
    key = (b"k" * 32,)
    some = events(100)
    size = sum(len(record.value) for record in some) / len(some)
    kinds = {
        "in clear": CLEAR,
        "zstd": Codec(zstd=True),
        "encrypted": Codec(keys=key),
        "both": Codec(zstd=True, keys=key),
    }
    for name, codec in kinds.items():
        log = Log.open(directory / "lane", LogOptions(codec=codec))
        write = min(cpu(lambda log=log: keep(log, some, 100)) for _ in range(5)) / 10_000
        bytes_each = log.usage().bytes / log.last
        read = cpu(lambda log=log: drain(log)) / log.last
        log.close()
        shutil.rmtree(directory / "lane")
        print(
            f"events of {size:.0f} B, 100 an append, {name:>9}: {write * 1e6:.1f} us of CPU each to"
            f" write, {read * 1e6:.1f} to read, {bytes_each:.0f} B on disk"
        )


def keep(log: Log, some: list[Record], times: int) -> None:
    for _ in range(times):
        log.append(some)
        log.sync()


def drain(log: Log) -> None:
    at = 0
    while (batch := log.read(at)) is not None:
        at = batch.last


def cpu(work: Callable[[], None]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


async def offer(committer: Committer, rate: int, per: int) -> list[float]:
    """Offer so many records a second, whatever becomes of them; how long each request took."""
    waits: list[float] = []

    async def request(due: float) -> None:
        try:
            await committer.append(records(per))
        except SpoolFull:  # more than 64 MB wait: this machine cannot
            return
        waits.append(time.perf_counter() - due)

    began, sent, tasks = time.perf_counter(), 0, set[asyncio.Task[None]]()
    while (now := time.perf_counter() - began) < SECONDS:
        while sent * per < now * rate:
            task = asyncio.create_task(request(began + sent * per / rate))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            sent += 1
        await asyncio.sleep(0.0005)
    await asyncio.gather(*tasks)
    return waits


def shared(directory: Path) -> None:
    for rate, per in ((5000, 1), (20_000, 1), (100_000, 50)):
        for added in (0.0, 0.002, 0.010):
            log = Log.open(directory / "lane", files=SlowerFiles(added))
            committer = Committer(log)
            began, cpu = time.perf_counter(), time.process_time()
            waits = asyncio.run(offer(committer, rate, per))
            took, cpu = time.perf_counter() - began, time.process_time() - cpu
            syncs = committer.sync_times()
            assert syncs is not None
            done = log.durable
            committer.close()
            log.close()
            shutil.rmtree(directory / "lane")
            print(
                f"committer: {rate:>7,}/s in requests of {per:>2}, sync + {added * 1e3:2.0f} ms:"
                f" kept {done / took:>7,.0f}/s   {quantiles(waits)}"
                f"   (a sync: p50 {syncs.p50_s * 1e3:.2f}, p99 {syncs.p99_s * 1e3:.2f} ms)"
                f"   {cpu / took:4.0%} of a core"
            )


def resident() -> float:
    """Megabytes of memory that this process has."""
    status = Path("/proc/self/statm")
    if not status.exists():
        return float("nan")
    return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def backlog(directory: Path, gigabytes: float) -> None:
    log = Log.open(directory / "lane", LogOptions(durable="never"))
    some = records(1000)
    for _ in range(int(gigabytes * 1000)):
        log.append(some)
    log.close()
    opening = timed(lambda: Log.open(directory / "lane").close())
    log = Log.open(directory / "lane")
    before = peak = resident()
    count, at, began = 0, 0, time.perf_counter()
    while (batch := log.read(at)) is not None:
        count, at = count + len(batch.records), batch.last
        log.delivered(batch.first, batch.last)
        peak = max(peak, resident())
    took = time.perf_counter() - began
    log.close()
    print(
        f"backlog of {count / 1e6:.1f} million records: opened in {opening * 1e3:.1f} ms, read and"
        f" freed at {count / took:,.0f}/s, with {peak - before:.1f} MB of memory more"
    )
    shutil.rmtree(directory / "lane")


def opening(directory: Path) -> None:
    log = Log.open(directory / "lane", LogOptions(durable="never", segment=1000))
    for _ in range(1000):
        log.append(records(1))
    log.close()
    took = timed(lambda: Log.open(directory / "lane").close())
    print(f"a log of 1,000 ended files is opened in {took * 1e3:.0f} ms")
    shutil.rmtree(directory / "lane")
    log = Log.open(directory / "lane", LogOptions(durable="never"))
    for _ in range(640):
        log.append(records(100))
    [tail] = (directory / "lane").glob("*.seg")
    data = tail.read_bytes()
    log.close()
    tail.write_bytes(data)  # as a kill leaves it
    took = timed(lambda: Log.open(directory / "lane").close())
    print(f"a log whose last file, of {len(data) / 1e6:.0f} MB, was not ended: {took * 1e3:.0f} ms")
    shutil.rmtree(directory / "lane")


def timed(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main() -> None:
    where = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    gigabytes = float(sys.argv[2]) if len(sys.argv) > 2 else 2.0
    directory = Path(tempfile.mkdtemp(prefix="spool-log-", dir=where))
    try:
        disk(directory)
        alone(directory)
        codecs(directory)
        shared(directory)
        backlog(directory, gigabytes)
        opening(directory)
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
