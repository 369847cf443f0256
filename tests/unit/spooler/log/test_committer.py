"""Do many callers share one sync, and is each told the truth?"""

import asyncio
import errno
from collections.abc import Iterator
from contextlib import contextmanager
from os import sched_yield
from pathlib import Path
from threading import Event

import pytest
from simulated_files import SimulatedFiles

from tidegate.errors import SpoolError, SpoolFull
from tidegate.spooler.log.committer import Ack, Committer
from tidegate.spooler.log.log import Log
from tidegate.spooler.log.options import LogOptions
from tidegate.spooler.record import Record
from tidegate.units import HOUR, MILLISECOND

LANE = Path("/lane")
PATIENCE_S = 60  # only a hang takes so long


class SlowFiles(SimulatedFiles):
    """A disk whose syncs of segments wait until a test lets them."""

    __slots__ = ("entered", "go")

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.go = Event(), Event()
        self.go.set()

    def sync(self, handle: int) -> None:
        if self.handles[handle][0].suffix == ".seg":
            self.entered.set()
            assert self.go.wait(PATIENCE_S)
        super().sync(handle)


@contextmanager
def committing(files: SimulatedFiles) -> Iterator[Committer]:
    log = Log.open(LANE, LogOptions(), files)
    committer = Committer(log)
    try:
        yield committer
    finally:
        committer.close()
        log.close()


def some(count: int, size: int = 10) -> list[Record]:
    return [Record(b"x" * size) for _ in range(count)]


def test_an_answer_says_that_it_is_on_disk() -> None:
    files = SimulatedFiles()
    with committing(files) as committer:
        assert committer.append_blocking(some(3), PATIENCE_S) == Ack(1, 3, "disk")
        assert any(b"xxx" in file.disk for file in files.files.values())
        assert asyncio.run(committer.append(some(2))) == Ack(4, 5, "disk")
        times = committer.sync_times()
        assert times is not None
        assert 0 <= times.p50_s <= times.p99_s


def test_who_comes_during_a_sync_shares_the_next_one() -> None:
    async def main() -> list[Ack]:
        files.go.clear()
        first = asyncio.create_task(committer.append(some(1)))
        assert await asyncio.to_thread(files.entered.wait, PATIENCE_S)
        before = files.syncs
        others = [asyncio.create_task(committer.append(some(2))) for _ in range(50)]
        await asyncio.sleep(0)
        files.go.set()
        acks = [await first, *await asyncio.gather(*others)]
        assert files.syncs - before == 2
        return acks

    files = SlowFiles()
    with committing(files) as committer:
        acks = asyncio.run(main())
    assert [ack.first for ack in acks] == [1, *range(2, 102, 2)]


def test_without_a_sync_the_answer_says_that_the_system_has_it() -> None:
    files = SimulatedFiles()
    for number, mode in enumerate(("interval", "never")):
        options = LogOptions(durable=mode)  # type: ignore[arg-type]
        log = Log.open(LANE / mode, options, files)
        committer = Committer(log, interval=HOUR)
        before = files.syncs
        ack = committer.append_blocking(some(1), PATIENCE_S)
        assert ack.durable == "system", number
        assert files.syncs == before
        committer.close()
        log.close()


def test_an_interval_is_kept_without_anybody_asking() -> None:
    files = SlowFiles()
    log = Log.open(LANE, LogOptions(durable="interval"), files)
    committer = Committer(log, interval=1000)
    assert committer.append_blocking(some(1), PATIENCE_S).durable == "system"
    assert files.entered.wait(PATIENCE_S)
    committer.close()
    log.close()


def test_a_full_disk_refuses_at_once_until_a_trial_goes_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tidegate.spooler.log.committer._PROBE_EVERY", 100 * MILLISECOND)
    files = SimulatedFiles()
    with committing(files) as committer:
        committer.append_blocking(some(1), PATIENCE_S)
        files.capacity = files.used()
        with pytest.raises(SpoolFull, match="no room on the disk"):
            committer.append_blocking(some(1), PATIENCE_S)
        assert committer.full
        with pytest.raises(SpoolFull, match="no room on the disk"):
            committer.append_blocking(some(1), PATIENCE_S)
        files.capacity = None
        while committer.full:
            sched_yield()
        assert committer.append_blocking(some(1), PATIENCE_S).first == 2


def test_a_disk_that_fails_is_told_to_all_who_wait() -> None:
    async def main() -> list[Ack | BaseException]:
        return await asyncio.gather(
            *(committer.append(some(1)) for _ in range(5)), return_exceptions=True
        )

    files = SimulatedFiles()
    with committing(files) as committer:
        files.failing = lambda operation, path: (
            errno.EIO if operation == "sync" and path.suffix == ".seg" else None
        )
        answers = asyncio.run(main())
        files.failing = lambda operation, path: None
        assert {type(answer) for answer in answers} == {SpoolError}
        assert len({id(answer) for answer in answers}) == 5
        assert committer.append_blocking(some(1), PATIENCE_S).first > 5


def test_more_than_may_wait_is_refused() -> None:
    async def main() -> None:
        files.go.clear()
        first = asyncio.create_task(committer.append(some(1)))
        assert await asyncio.to_thread(files.entered.wait, PATIENCE_S)
        second = asyncio.create_task(committer.append(some(1, 200)))  # alone it may be larger
        await asyncio.sleep(0)
        with pytest.raises(SpoolFull, match="more waits for the disk than it can write"):
            await committer.append(some(1))
        files.go.set()
        await asyncio.gather(first, second)

    files = SlowFiles()
    log = Log.open(LANE, LogOptions(), files)
    committer = Committer(log, waiting=100)
    asyncio.run(main())
    committer.close()
    log.close()


def test_a_closed_one_has_written_what_waited_and_takes_no_more() -> None:
    async def main() -> Ack:
        task = asyncio.create_task(committer.append(some(1)))
        await asyncio.sleep(0)
        await asyncio.to_thread(committer.close)
        with pytest.raises(SpoolError, match="the spool is closed"):
            await committer.append(some(1))
        return await task

    log = Log.open(LANE, LogOptions(), SimulatedFiles())
    committer = Committer(log)
    assert asyncio.run(main()) == Ack(1, 1, "disk")
    log.close()


def test_a_caller_who_leaves_disturbs_nobody() -> None:
    async def main() -> None:
        files.go.clear()
        first = asyncio.create_task(committer.append(some(1)))
        second = asyncio.create_task(committer.append(some(1)))
        assert await asyncio.to_thread(files.entered.wait, PATIENCE_S)
        first.cancel()
        files.go.set()
        assert (await second).durable == "disk"

    files = SlowFiles()
    with committing(files) as committer:
        asyncio.run(main())
        files.go.clear()
        with pytest.raises(TimeoutError):
            committer.append_blocking(some(1), 0.0)
        files.go.set()


def test_reads_and_deliveries_go_beside_the_loop() -> None:
    async def main() -> None:
        await committer.append(some(5))
        batch = await committer.read(0, upto=3)
        assert batch is not None
        assert batch.last == 3
        await committer.delivered(1, 3, fence=2)

    log = Log.open(LANE, LogOptions(), SimulatedFiles())
    grown = Event()
    committer = Committer(log, grown=grown.set)
    asyncio.run(main())
    assert grown.wait(PATIENCE_S)
    assert log.pending == ((4, 5),)
    assert log.fence == 2
    committer.close()
    log.close()


def test_what_is_delivered_is_remembered_within_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.spooler.log.committer._REMEMBER_EVERY", MILLISECOND)
    monkeypatch.setattr("tidegate.spooler.log.committer._IDLE_S", 0.001)
    log = Log.open(LANE, LogOptions(), SimulatedFiles())
    committer = Committer(log)
    committer.append_blocking(some(1), PATIENCE_S)
    log.delivered(1, 1)
    while log.unremembered:
        sched_yield()
    committer.close()
    log.close()


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (Record("text"), "bytes, not str"),  # type: ignore[arg-type]
        (Record(b"x", bytearray(b"k")), "bytes, not bytearray"),  # type: ignore[arg-type]
        (Record(b"x", b"", 2**63), "nanoseconds since 1970, not 9223372036854775808"),
    ],
)
def test_what_is_no_record_is_refused_to_its_caller_alone(record: Record, why: str) -> None:
    with committing(SimulatedFiles()) as committer:
        with pytest.raises((TypeError, ValueError), match=why):
            committer.append_blocking([Record(b"good"), record], PATIENCE_S)
        assert committer.append_blocking(some(1), PATIENCE_S) == Ack(1, 1, "disk")


def test_a_fault_of_ours_leaves_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    def fault(self: Log, records: list[Record]) -> int:
        raise ZeroDivisionError

    log = Log.open(LANE, LogOptions(), SimulatedFiles())
    committer = Committer(log)
    monkeypatch.setattr("threading.excepthook", lambda args: None)
    monkeypatch.setattr(Log, "append", fault)
    for _ in range(2):
        with pytest.raises(SpoolError, match="the spool is closed"):
            committer.append_blocking(some(1), PATIENCE_S)
    committer.close()
    log.close()
