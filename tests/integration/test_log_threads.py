"""Does a log that several threads use at once keep each record once, and all of them?"""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tidegate.spooler.log.log import Log
from tidegate.spooler.log.options import LogOptions
from tidegate.spooler.record import Record

WRITERS = 3
APPENDS = 150
EACH = 4


@pytest.fixture(autouse=True)
def _hurried() -> Iterator[None]:
    """Threads take turns much more often than usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.slow  # threads that write to the disk
@pytest.mark.parametrize("mode", ["always", "interval", "never"])
def test_threads_beside_each_other_lose_nothing(mode: str, tmp_path: Path) -> None:
    options = LogOptions(segment=4000, frame=500, durable=mode)  # type: ignore[arg-type]
    log = Log.open(tmp_path / "lane", options)
    written: dict[int, Record] = {}
    seen: dict[int, Record] = {}
    total = WRITERS * APPENDS * EACH

    def write(writer: int) -> None:
        for n in range(APPENDS):
            records = [Record(b"%d %d %d" % (writer, n, i) * 5) for i in range(EACH)]
            last = log.append(records)
            written.update(enumerate(records, last - EACH + 1))

    def sync() -> None:
        while log.durable < total and len(seen) < total:
            log.sync()
            log.checkpoint()

    def deliver() -> None:
        while len(seen) < total:
            for first, last in log.pending[:1]:
                batch = log.read(first - 1, upto=last, max_bytes=300)
                if batch is not None:
                    numbered = dict(enumerate(batch.records, batch.first))
                    assert not seen.keys() & numbered.keys()
                    seen.update(numbered)
                    log.delivered(batch.first, batch.last)

    def ask() -> None:
        while len(seen) < total:
            usage = log.usage()
            assert usage.bytes >= 0
            assert log.first <= log.last + 1

    with ThreadPoolExecutor(WRITERS + 3) as pool:
        jobs = [pool.submit(write, writer) for writer in range(WRITERS)]
        jobs += [pool.submit(work) for work in (sync, deliver, ask)]
        for job in jobs:
            job.result()
    assert seen == written
    assert len(seen) == total
    assert log.pending == ()
    usage = log.usage()
    assert (usage.lost, usage.damaged, usage.suspects) == ({}, 0, 0)
    log.close()
    assert [*(tmp_path / "lane").glob("*.seg")] == []
