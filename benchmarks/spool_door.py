"""What does a record cost that comes in over HTTP and is acknowledged when it is on disk?

    python benchmarks/spool_door.py [SECONDS]

A spool of its own process takes records of 1 kB from 16 connections, in requests of 1, 10, 100 and
1000 lines, and keeps them: its lane is held, so nothing is read again. For each size it prints
records a second, the CPU that the spool took for one, and how long an answer took. The disk's own
sync stands beside it, since an answer waits for one.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/support"))

from ports import free_port

CONNECTIONS = 16
SIZES = (1, 10, 100, 1000)
RECORD = 1000
FILE = """\
tidegate: 1
spool:
  listen: 127.0.0.1:{port}
  lanes: {{events: {{to: 'file:out.jsonl', bounds: {{free: 0%}}}}}}
"""


def request(path: bytes, body: bytes) -> bytes:
    head = b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\n" % path
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


async def answer(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
    body = await reader.readexactly(length)
    if not head.startswith((b"HTTP/1.1 202", b"HTTP/1.1 200")):
        raise SystemExit(f"the spool answered {head.splitlines()[0]!r}: {body!r}")
    return body


async def load(port: int, lines: int, seconds: float) -> tuple[int, list[float]]:
    """Records that were acknowledged, and how long each request took."""
    line = json.dumps({"n": 1, "pad": "x" * (RECORD - 20)}).encode() + b"\n"
    sent = request(b"/v1/events", line * lines)
    until, took = time.monotonic() + seconds, []

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.monotonic() < until:
            began = time.monotonic()
            writer.write(sent)
            await answer(reader)
            took.append(time.monotonic() - began)
        writer.close()

    await asyncio.gather(*(client() for _ in range(CONNECTIONS)))
    return lines * len(took), sorted(took)


async def hold(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request(b"/hold/events?reason=benchmark", b""))
    await answer(reader)
    writer.close()


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def disk_ms(directory: Path) -> float:
    """The median of a hundred appends of 64 kB, each with its sync."""
    took = []
    with (directory / "probe").open("wb") as file:
        for _ in range(100):
            began = time.monotonic()
            file.write(bytes(65_536))
            file.flush()
            os.fdatasync(file.fileno())
            took.append(time.monotonic() - began)
    return sorted(took)[50] * 1000


def main() -> int:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
    port = free_port()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "spool.yaml").write_text(FILE.format(port=port))
        print(f"the disk's own sync of 64 kB: {disk_ms(directory):.2f} ms")
        command = [sys.executable, "-m", "tidegate", "spool", "run", "spool.yaml"]
        with subprocess.Popen(command, cwd=directory, stdout=subprocess.PIPE) as spool:
            try:
                assert spool.stdout is not None
                spool.stdout.readline()
                asyncio.run(hold(port))
                for lines in SIZES:
                    before = cpu_s(spool.pid)
                    records, took = asyncio.run(load(port, lines, seconds))
                    each = (cpu_s(spool.pid) - before) / records * 1e6
                    p50, p99 = (took[int(len(took) * share)] * 1000 for share in (0.5, 0.99))
                    print(
                        f"{lines:5,} lines a request: {records / seconds:8,.0f} records/s,"
                        f" {each:6.1f} us of CPU each, p50 {p50:.1f} ms, p99 {p99:.1f} ms"
                    )
            finally:
                spool.terminate()
    return 0


if __name__ == "__main__":
    sys.exit(main())
