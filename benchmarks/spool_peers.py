"""How fast does the log of a lane keep records, beside what else keeps them for Python?

One command: it makes `.venv-spools` with every peer in it. Each appends records of 1 kB, so many
for each commit, for part of a second, and reads them all back, in a process of its own and in
interleaved rounds. Printed is the median round, how far apart the rounds were, and how many times
as much ours does. Beside them stands what a sync of this disk took in the same run: a busy disk
makes all alike that wait for it. CPU is that of appending a hundred for each commit; what is read
back is in memory still, so its rate is for a second of CPU. It writes less than 500 MB at a time
and takes about two minutes.

    python benchmarks/spool_peers.py [ROUNDS]
"""

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "peers"))

from overhead import HERE, prepare
from stores import KINDS, Kind

ENVIRONMENT = HERE.parent / ".venv-spools"
REQUIREMENTS = HERE / "peers" / "spools.txt"

RECORD = 1000
BATCHES = (1, 10, 100, 1000)
WRITE_S = 0.4
READ_S = 0.4
MOST = 100_000  # records in one store: 100 MB, and three times as much in the hungriest
AT = 100  # the batch of which CPU, reading and bytes are shown


def values(count: int) -> list[bytes]:
    """Records that do not compress, each another."""
    return [os.urandom(RECORD) for _ in range(count)]


def write(kind: Kind, path: Path, batch: int) -> dict[str, float]:
    """Append for a while; then what is on disk is read, and weighed when it is closed."""
    store = kind.open(path)
    pool = [values(batch) for _ in range(4)]
    count = 0
    began, cpu = time.perf_counter(), time.process_time()
    while (took := time.perf_counter() - began) < WRITE_S and count < MOST:
        store.append(pool[count % 4])
        count += batch
    cpu = time.process_time() - cpu
    found = {"rate": count / took, "cpu_us": cpu / count * 1e6}
    if batch == AT:
        store.close()  # what is read is what a restart would find
        found["bytes"] = on_disk(path) / count
        store = kind.open(path)
        began, read = time.process_time(), 0
        for _ in store.read():
            read += 1
            if time.process_time() - began > READ_S:
                break
        found["read"] = read / (time.process_time() - began)
    store.close()
    return found


def on_disk(path: Path) -> int:
    return sum(file.stat().st_blocks * 512 for file in path.rglob("*") if file.is_file())


def child(name: str, directory: Path) -> None:
    """One kind, all its batches, as JSON."""
    kind, found = KINDS[name], {}
    for batch in BATCHES:
        path = directory / str(batch)
        if batch in (1, AT) or kind.batches:
            found[batch] = write(kind, path, batch)
            shutil.rmtree(path)
    print(json.dumps(found))


def syncs_ms(directory: Path) -> list[float]:
    """A hundred appends of 1 kB, each with its sync."""
    took = []
    with (directory / "probe").open("wb", buffering=0) as file:
        for _ in range(100):
            began = time.perf_counter()
            file.write(bytes(RECORD))
            os.fdatasync(file.fileno())
            took.append((time.perf_counter() - began) * 1000)
    return took


def once(name: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as directory:
        run = subprocess.run(
            [sys.executable, __file__, "--child", name, directory],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    if run.returncode:
        sys.exit(f"{name} failed:\n{run.stderr}")
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def cell(rounds: list[dict[str, Any]], ours: list[dict[str, Any]], batch: int, what: str) -> str:
    """The median, the spread, and ours as a multiple of it."""
    if str(batch) not in rounds[0]:
        return "-"
    seen = [one[str(batch)][what] for one in rounds]
    middle = median(seen)
    spread = (max(seen) - min(seen)) / middle
    rate = what in ("rate", "read")
    text = f"{middle:,.0f}" if middle >= 100 else f"{middle:.1f}"
    if what != "bytes":
        text += f" ±{spread / 2:.0%}"
    if rounds is not ours:
        other = median([one[str(batch)][what] for one in ours])
        text += f", {other / middle if rate else middle / other:.2g}x"
    return text


def table(measured: dict[str, list[dict[str, Any]]]) -> str:
    ours = measured["tidegate"]
    heads = ["", "a commit waits for", *(f"{batch:,} a commit" for batch in BATCHES)]
    heads += ["CPU, us each", "read back, a CPU second", "bytes each"]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for name, rounds in measured.items():
        columns = [name, f"the {KINDS[name].syncs}"]
        columns += [cell(rounds, ours, batch, "rate") for batch in BATCHES]
        columns += [cell(rounds, ours, AT, what) for what in ("cpu_us", "read", "bytes")]
        lines.append(f"| {' | '.join(columns)} |")
    return "\n".join(lines)


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], Path(sys.argv[3]))
        return
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    if Path(sys.prefix).resolve() != ENVIRONMENT.resolve():
        prepare(ENVIRONMENT, REQUIREMENTS)
        command = [str(ENVIRONMENT / "bin/python"), __file__, str(rounds)]
        sys.exit(subprocess.run(command, check=False).returncode)
    measured: dict[str, list[dict[str, Any]]] = {name: [] for name in KINDS}
    syncs: list[float] = []
    for number in range(1, rounds + 1):
        print(f"round {number} of {rounds}", file=sys.stderr, flush=True)
        for name, seen in measured.items():
            with tempfile.TemporaryDirectory() as directory:
                syncs += syncs_ms(Path(directory))
            seen.append(once(name))
    syncs.sort()
    p50, p99 = (syncs[int(len(syncs) * share)] for share in (0.5, 0.99))
    python = f"{platform.python_implementation()} {platform.python_version()}"
    print(
        f"{python}, {os.cpu_count()} cores, {platform.machine()}; records of {RECORD:,} bytes,"
        f" so many a second; median of {rounds} interleaved rounds, ± half of what lay between"
        f" them, and ours as a multiple of it; a sync of 1 kB in between took {p50:.2f} ms, p99"
        f" {p99:.2f} ms"
    )
    print(table(measured))


if __name__ == "__main__":
    main()
