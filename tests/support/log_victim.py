"""A process that keeps records in a log and says so, until somebody kills it.

It writes a line after each promise (`a FIRST COUNT BASE`: records FIRST and on are on disk, and
say BASE and on) and before each delivery (`d FIRST LAST`).
"""

import asyncio
import sys
from pathlib import Path
from random import Random

from tidegate.spooler.log.committer import Committer
from tidegate.spooler.log.log import Log
from tidegate.spooler.log.options import LogOptions
from tidegate.spooler.record import Record

WRITERS = 8


def text(life: int, number: int) -> bytes:
    """What a record says."""
    return b"%d:%d:" % (life, number) + b"x" * (number * 37 % 300)


async def live(directory: Path, life: int) -> None:
    luck = Random(life)
    log = Log.open(directory, LogOptions(segment=50_000, frame=3000))
    committer = Committer(log)
    base = 0

    async def write() -> None:
        nonlocal base
        while True:
            first, count = base, luck.randint(1, 20)
            base += count
            records = [Record(text(life, n)) for n in range(first, first + count)]
            ack = await committer.append(records)
            say(f"a {ack.first} {count} {first}")

    async def deliver() -> None:
        at = 0
        while True:
            batch = await committer.read(at, max_bytes=luck.randint(1, 5000))
            if batch is None:
                at = 0
            elif luck.random() < 0.8:  # some wait for longer
                say(f"d {batch.first} {batch.last}")
                await committer.delivered(batch.first, batch.last)
                at = batch.last
            else:
                at = batch.last
            await asyncio.sleep(0)

    await asyncio.gather(deliver(), *(write() for _ in range(WRITERS)))


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(live(Path(sys.argv[1]), int(sys.argv[2])))
