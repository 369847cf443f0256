"""What becomes of records when the process is killed, a bit flips, or the disk is full?

One command: the same is done to the log of a lane and to each of its peers (`.venv-spools`, as
`spool_peers.py` makes it), each in processes of its own. A record tells its number and the rest of
it follows from that, so one that comes back otherwise is seen.

    killed    records are appended ten for each commit until the process is killed (SIGKILL); then
              they are read by another
    damaged   3,000 records are kept and closed, and one bit in one of its files is flipped
    full      on a disk of 96 MB of which 16 are taken by something else, records are appended until
              one is refused; then the older half is dropped, then the 16 MB are freed

The full disk is a tmpfs in a mount namespace of its own, which goes with the process; where the
system lets nobody make one, that part is left out and said to be.

    python benchmarks/spool_faults.py [TRIALS]
"""

import contextlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent / "peers"))

from overhead import prepare
from spool_peers import ENVIRONMENT, REQUIREMENTS
from stores import KINDS, Store, Tidegate

SEED = 20
RECORD = 1000
KEPT = 3000
PATIENCE_S = 120
DISK = 96 << 20
BALLAST = 16 << 20
READ_S = 20.0
TOO_SLOW = f"not read to its end in {READ_S:.0f} s of CPU"
OFFERED = 60_000  # records until killed, at most


def record(number: int) -> bytes:
    return number.to_bytes(8, "big") + Random(number).randbytes(RECORD - 8)


class Seen(NamedTuple):
    """What a reader has got: which numbers, in which order, and how many were not what was kept."""

    numbers: list[int]
    wrong: int
    error: str
    told: str


def look(name: str, path: Path) -> Seen:
    """Open and read everything, however that ends."""
    numbers: list[int] = []
    wrong, error, told = 0, "", ""
    until = time.process_time() + READ_S
    try:
        store = KINDS[name].open(path)
        for value in store.read():
            number = int.from_bytes(value[:8], "big") if isinstance(value, bytes) else -1
            if value == record(number):
                numbers.append(number)
            else:
                wrong += 1
            if time.process_time() > until:
                error = TOO_SLOW
                break
        told = store.told()
    except Exception as raised:  # noqa: BLE001 - whatever each raises
        error = f"{type(raised).__name__}: {raised}"[:200]
    return Seen(numbers, wrong, error, told)


# What the children do.


def fill(name: str, path: Path, count: int) -> None:
    """Keep so many and close."""
    store = KINDS[name].open(path)
    for first in range(0, count, 100):
        store.append([record(first + at) for at in range(100)])
    store.close()


def write_until_killed(name: str, path: Path) -> None:
    """Say the number of the last after each commit."""
    store, number = KINDS[name].open(path), 0
    while number < OFFERED:
        store.append([record(number + at) for at in range(10)])
        number += 10
        os.write(1, b"%d\n" % number)
    time.sleep(PATIENCE_S)


def fill_disk(name: str, path: Path) -> None:
    """The story of a full disk; each step is said as soon as it is known, for it may be the end."""

    def say(**what: Any) -> None:
        os.write(1, json.dumps(what).encode() + b"\n")

    Tidegate.segment = 4 << 20  # space comes back by whole files: as a lane with `bounds: 64MB` has
    ballast = path.with_name("ballast")
    store, kept = KINDS[name].open(path), 0
    try:
        while True:
            values = [record(kept + at) for at in range(50)]
            began = time.perf_counter()
            store.append(values)
            kept += 50
    except Exception as raised:  # noqa: BLE001
        refused_ms = (time.perf_counter() - began) * 1000
        say(kept=kept, refused_ms=refused_ms, refused=f"{type(raised).__name__}: {raised}"[:120])
    say(drop=_dropped(store, half(kept)))
    after, again = _again(store, kept)
    say(append=again)
    ballast.unlink()
    after, again = _again(store, after)
    say(freed=again)
    with contextlib.suppress(Exception):
        store.close()
    say(upto=after)


def half(kept: int) -> int:
    """Fifties, as they are dropped."""
    return kept // 100 * 50


def _dropped(store: Store, count: int) -> str:
    """Drop so many as whoever delivers does, fifty at a time."""
    for gone in range(0, count, 50):
        said = _tried(lambda: store.drop(50))
        if said != "yes":
            return said if not gone else f"{said[:-1]}, after {gone:,})"
    return "yes"


def _again(store: Store, kept: int) -> tuple[int, str]:
    said = _tried(lambda: store.append([record(kept + at) for at in range(50)]))
    return (kept + 50, said) if said == "yes" else (kept, said)


def _tried(step: Any) -> str:
    try:
        step()
    except Exception as raised:  # noqa: BLE001
        return f"no ({type(raised).__name__})"
    return "yes"


# What is done to them.


def child(what: str, name: str, path: Path, *more: str) -> "subprocess.Popen[str]":
    command = [sys.executable, __file__, "--child", what, name, str(path), *more]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=path.parent
    )


def answered(process: "subprocess.Popen[str]") -> tuple[str, int]:
    try:
        out, _ = process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        out, _ = process.communicate()
    return out, process.returncode


def looked(name: str, path: Path) -> Seen:
    out, code = answered(child("look", name, path))
    if not out:
        how = signal.Signals(-code).name if code < 0 else f"exit {code}"
        return Seen([], 0, f"the reader died: {how}", "")
    return Seen(*json.loads(out))


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name) / "store"


def killed(name: str, trials: int) -> Counter[str]:
    """How often what: over all trials."""
    found: Counter[str] = Counter()
    for trial in range(trials):
        rng = Random(SEED + trial)
        with folder() as path:
            process = child("write", name, path)
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(rng.uniform(0.02, 0.3))
            process.kill()
            said = process.stdout.read().split()  # a line that was cut off is no promise
            process.wait()
            process.stdout.close()
            acknowledged = int(said[-2]) if len(said) > 1 else 10
            seen = looked(name, path)
        lost = set(range(acknowledged)) - set(seen.numbers)
        found["acknowledged"] += acknowledged
        found["lost"] += len(lost)
        found["wrong"] += seen.wrong
        found["out of order"] += seen.numbers != sorted(set(seen.numbers))
        found["errors"] += bool(seen.error)
    return found


def damaged(name: str, trials: int) -> dict[str, Any]:
    """In how many trials what came of one flipped bit."""
    found: Counter[str] = Counter()
    lost: list[int] = []
    with folder() as whole:
        answered(child("fill", name, whole))
        for trial in range(trials):
            path = whole.with_name("copy")
            shutil.copytree(whole, path)
            flip_a_bit(path, Random(SEED + trial))
            seen = looked(name, path)
            missing = KEPT - len(set(seen.numbers)) - seen.wrong
            shutil.rmtree(path)
            found["wrong"] += seen.wrong > 0
            if missing > 0:
                lost.append(missing)
                told = seen.error or seen.told
                found["lost, told" if told else "lost in silence"] += 1
            elif seen.error:
                found["error and nothing lost"] += 1
            elif not seen.wrong:
                found["nothing lost"] += 1
    return {**found, "records": lost}


def flip_a_bit(path: Path, rng: Random) -> None:
    """Any bit of any file alike, so nearly always one of a record."""
    files = sorted(file for file in path.rglob("*") if file.is_file())
    sizes = [file.stat().st_size for file in files]
    (file,) = rng.choices(files, sizes)
    with file.open("r+b") as data:
        at = rng.randrange(file.stat().st_size)
        data.seek(at)
        (byte,) = data.read(1)
        data.seek(at)
        data.write(bytes([byte ^ (1 << rng.randrange(8))]))


def full(name: str) -> dict[str, Any]:
    """One life on a small disk. Runs in a mount namespace of its own."""
    disk = Path(tempfile.mkdtemp())
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(disk)]
    subprocess.run(mount, check=True)
    (disk / "ballast").write_bytes(bytes(BALLAST))
    out, code = answered(child("disk", name, disk / "store"))
    story: dict[str, Any] = {}
    for line in out.splitlines():
        story |= json.loads(line)
    if code:
        story["died"] = signal.Signals(-code).name if code < 0 else f"exit {code}"
    seen = looked(name, disk / "store")
    kept = story.get("kept", 0)
    nobody_dropped = set(range(half(kept), story.get("upto", kept)))
    story["lost"] = len(nobody_dropped - set(seen.numbers))
    story["wrong"], story["error"] = seen.wrong, seen.error
    subprocess.run(["umount", str(disk)], check=True)
    disk.rmdir()
    return story


def full_disks() -> dict[str, dict[str, Any]] | None:
    """All of them, or None where no disk can be made."""
    root = [] if os.geteuid() == 0 else ["--map-root-user"]
    command = ["unshare", "--mount", *root, sys.executable, __file__, "--child", "full"]
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    if run.returncode:
        print(run.stderr, file=sys.stderr)
        return None
    stories: dict[str, dict[str, Any]] = json.loads(run.stdout)
    return stories


# What is printed.


def table(heads: list[str], rows: list[list[object]]) -> None:
    print(f"\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |")
    sys.stdout.flush()


def tell_killed(trials: int) -> None:
    heads = ["killed", "acknowledged", "of them lost", "wrong bytes", "out of order", "errors"]
    rows = []
    for name in KINDS:
        found = killed(name, trials)
        keys = ("acknowledged", "lost", "wrong", "out of order", "errors")
        rows.append([name, *(f"{found[key]:,}" for key in keys)])
    table(heads, rows)


def tell_damaged(trials: int) -> None:
    heads = [f"damaged, of {trials}", "wrong bytes given", "records lost in silence"]
    heads += ["records lost, and told", "nothing lost", "lost where any were, median (most)"]
    rows = []
    for name in KINDS:
        found = damaged(name, trials)
        lost = found["records"]
        rows.append(
            [
                name,
                found.get("wrong", 0),
                found.get("lost in silence", 0),
                found.get("lost, told", 0),
                found.get("nothing lost", 0) + found.get("error and nothing lost", 0),
                f"{median(lost):,.0f} ({max(lost):,}) of {KEPT:,}" if lost else "-",
            ]
        )
    table(heads, rows)


def tell_full() -> None:
    stories = full_disks()
    if stories is None:
        print("\nfull: left out, since no file system may be mounted here")
        return
    heads = ["full", "kept until then", "refused", "drop the older half", "append then"]
    heads += ["append with 16 MB freed", "lost after reopening", "wrong bytes"]
    rows = []
    for name, story in stories.items():
        died = f"died ({story['died']})" if "died" in story else "-"
        refused = f"{story['refused_ms']:.1f} ms" if "refused_ms" in story else died
        steps = [story.get(step, died) for step in ("drop", "append", "freed")]
        lost = f"{story['lost']:,}" + (f" ({story['error'][:60]})" if story["error"] else "")
        lost = TOO_SLOW if story["error"] == TOO_SLOW else lost
        kept = f"{story.get('kept', 0):,}"
        rows.append([name, kept, refused, *steps, lost, story["wrong"]])
    table(heads, rows)


def run_child(what: str, *given: str) -> None:
    match what:
        case "look":
            print(json.dumps(look(given[0], Path(given[1]))))
        case "fill":
            fill(given[0], Path(given[1]), KEPT)
        case "write":
            write_until_killed(given[0], Path(given[1]))
        case "disk":
            fill_disk(given[0], Path(given[1]))
        case "full":
            print(json.dumps({name: full(name) for name in KINDS}))


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        run_child(*sys.argv[2:])
        return
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 12
    if Path(sys.prefix).resolve() != ENVIRONMENT.resolve():
        prepare(ENVIRONMENT, REQUIREMENTS)
        command = [str(ENVIRONMENT / "bin/python"), __file__, str(trials)]
        sys.exit(subprocess.run(command, check=False).returncode)
    python = f"{platform.python_implementation()} {platform.python_version()}"
    seeds = f"{SEED} to {SEED + trials - 1}"
    print(f"{python}, {platform.system()} {platform.machine()}, {trials} trials, seeds {seeds}")
    tell_killed(trials)
    tell_damaged(trials)
    tell_full()


if __name__ == "__main__":
    main()
