"""What does one spool do as a whole: take records over HTTP, keep them on disk, give them on?

    python benchmarks/spool_process.py [SECONDS [RATE]]

A spool of its own process is offered 20,000 records of 1 kB a second in an open loop, 100 and then
10 in a request, over at most 64 connections, and delivers them to a file meanwhile. A wait runs
from the instant at which a request was due to its answer, so one that is held up counts for all
behind it. Printed are what was acknowledged on disk, the waits beside the disk's own sync in the
same run, the spool's CPU and memory, and whether the file has all of it in the end.

On a machine with other work a sync, and each step of an answer, waits for a turn of the scheduler:
`chrt -f 5 python ...` shows what is the spool's own.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/support"))

from ports import free_port
from spool_door import FILE, answer, cpu_s, request

SIZES = (100, 10)
CONNECTIONS = 64
RECORD = 1000


class Load:
    """So many requests at their instants, however long answers take."""

    def __init__(self, port: int, lines: int, rate: float, seconds: float) -> None:
        line = json.dumps({"n": 1, "pad": "x" * (RECORD - 20)}).encode() + b"\n"
        self._sent = request(b"/v1/events", line * lines)
        self._port = port
        self._gap = lines / rate
        self._count = int(seconds / self._gap)
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self._places = asyncio.Semaphore(CONNECTIONS)
        self.waits: list[float] = []
        self.records = lines * self._count
        self.took = 0.0

    async def run(self) -> None:
        began = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            for number in range(self._count):
                due = began + number * self._gap
                await asyncio.sleep(max(0, due - time.monotonic()))
                tasks.create_task(self._one(due))
        self.took = time.monotonic() - began
        self.waits.sort()
        for _, writer in self._idle:
            writer.close()

    async def _one(self, due: float) -> None:
        async with self._places:
            if self._idle:
                reader, writer = self._idle.pop()
            else:
                reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
            writer.write(self._sent)
            await answer(reader)
            self._idle.append((reader, writer))
        self.waits.append(time.monotonic() - due)

    def ms(self, share: float) -> float:
        return self.waits[int(len(self.waits) * share)] * 1000


def status(port: int) -> dict[str, Any]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/status", timeout=10) as response:
        lane: dict[str, Any] = json.load(response)["lanes"][0]
        return lane


def memory_mb(pid: int) -> float:
    """The most that it ever had."""
    words = Path(f"/proc/{pid}/status").read_text().split()
    return int(words[words.index("VmHWM:") + 1]) / 1000


async def measure(port: int, pid: int, rate: float, seconds: float) -> int:
    records = 0
    for lines in SIZES:
        load, cpu = Load(port, lines, rate, seconds), cpu_s(pid)
        await load.run()
        cpu = cpu_s(pid) - cpu
        records += load.records
        lane = await asyncio.to_thread(status, port)
        print(
            f"{lines:4} a request: {load.records / load.took:,.0f} records/s acknowledged, waits"
            f" p50 {load.ms(0.5):.1f} ms, p99 {load.ms(0.99):.1f} ms, beside syncs of p50"
            f" {lane['sync_p50_s'] * 1000:.2f} ms, p99 {lane['sync_p99_s'] * 1000:.2f} ms;"
            f" {cpu / load.records * 1e6:.1f} us of CPU each, {cpu / load.took:.0%} of a core",
            flush=True,
        )
    return records


def main() -> int:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    rate = float(sys.argv[2]) if len(sys.argv) > 2 else 20_000.0
    port = free_port()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "spool.yaml").write_text(FILE.format(port=port))
        command = [sys.executable, "-m", "tidegate", "spool", "run", "spool.yaml"]
        log = (directory / "log").open("w")
        with log, subprocess.Popen(command, cwd=directory, stdout=-1, stderr=log) as spool:
            try:
                assert spool.stdout is not None
                spool.stdout.readline()
                before = memory_mb(spool.pid)
                records = asyncio.run(measure(port, spool.pid, rate, seconds))
                until = time.monotonic() + 60
                while status(port)["backlog_records"] and time.monotonic() < until:
                    time.sleep(0.1)
                most = memory_mb(spool.pid)
            finally:
                spool.terminate()
        with (directory / "out.jsonl").open("rb") as out:
            delivered = sum(1 for _ in out)
    print(f"memory: {most:.0f} MB at most, {before:.0f} MB at the start")
    print(f"{delivered:,} of {records:,} records are in the file")
    return int(delivered != records)


if __name__ == "__main__":
    sys.exit(main())
