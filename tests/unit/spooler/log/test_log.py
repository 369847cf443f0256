"""Does a log keep what it was given, in order, until it is delivered?"""

import errno
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from log_witness import all_of, numbers
from simulated_files import SimulatedFiles

from tidegate.core.bounds import Cause, Drop
from tidegate.errors import SpoolError, SpoolFull
from tidegate.spooler.log.calendar import Calendar
from tidegate.spooler.log.codec import Codec
from tidegate.spooler.log.cursor import RANGES_MAX
from tidegate.spooler.log.log import Log
from tidegate.spooler.log.options import LogOptions
from tidegate.spooler.record import Batch, Record
from tidegate.units import HOUR, MINUTE

LANE = Path("/lane")
SMALL = LogOptions(segment=2000, frame=500)


def some(count: int, size: int = 100, start: int = 0) -> list[Record]:
    return [Record(b"%0*d" % (size, start + n), b"k%d" % n, 1000 + n) for n in range(count)]


class Time:
    """A calendar that stands still until it is told to go on."""

    def __init__(self) -> None:
        self.now = 10 * HOUR
        self.calendar = Calendar(lambda: self.now, lambda: self.now)


def test_records_come_back_in_order_once_they_are_on_disk(tmp_path: Path) -> None:
    log = Log.open(tmp_path / "lane")
    records = some(50)
    assert log.append(records[:20]) == 20
    assert log.append(records[20:]) == 50
    assert log.read(0) is None
    assert log.sync() == log.durable == log.last == 50
    assert log.read(0) == Batch(1, records)
    assert log.read(17, upto=30) == Batch(18, records[17:30])
    assert log.read(17, max_records=2) == Batch(18, records[17:19])
    assert log.read(17, max_bytes=1) == Batch(18, records[17:18])
    assert log.read(50) is None
    assert log.append([]) == 50
    log.close()


def test_a_log_goes_on_where_it_stopped(tmp_path: Path) -> None:
    records = some(60)
    log = Log.open(tmp_path / "lane", SMALL)
    for start in range(0, 60, 10):
        log.append(records[start : start + 10])
    log.sync()
    log.delivered(1, 25)
    log.delivered(31, 40)
    log.close()
    log = Log.open(tmp_path / "lane", SMALL)
    assert log.recovery.words == ""
    assert log.pending == ((26, 30), (41, 60))
    assert log.append(some(1)) == 61
    found = all_of(log)
    assert {n: record for n, record in found.items() if n <= 60} == {
        n: records[n - 1] for n in found if n <= 60
    }
    assert {*range(26, 31), *range(41, 61)} <= found.keys()
    log.close()


def test_files_go_when_all_in_them_is_delivered_and_the_cursor_says_so() -> None:
    files = SimulatedFiles()
    log = Log.open(LANE, SMALL, files)
    for _ in range(10):
        log.append(some(10))
        log.sync()
    names = sorted(files.names(LANE))
    assert len(names) > 7
    log.delivered(1, 95)
    assert len(files.names(LANE)) < 5
    assert log.usage().backlog_records == 5
    assert log.first > 50
    assert sorted(all_of(log, 95)) == [*range(96, 101)]
    # A file that the cursor still asks for is never removed before the cursor is on disk.
    log.append(some(15))
    log.sync()
    before = files.names(LANE)
    files.failing = lambda what, path: (
        errno.EIO if (what, path.name) == ("sync", "cursor") else None
    )
    log.delivered(96, 115)
    assert files.names(LANE) == before
    assert "cannot write the cursor" in log.usage().trouble
    files.failing = failing()
    log.checkpoint()
    assert len(files.names(LANE)) < len(before)
    assert log.usage().trouble == ""


def test_one_process_has_a_log(tmp_path: Path) -> None:
    log = Log.open(tmp_path)
    with pytest.raises(SpoolError, match=f"{tmp_path} is in use by another process"):
        Log.open(tmp_path)
    log.close()
    Log.open(tmp_path).close()


def test_a_directory_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SpoolError, match="cannot open"):
        Log.open(tmp_path / "file")


def test_files_and_directory_are_their_owners(tmp_path: Path) -> None:
    log = Log.open(tmp_path / "lane")
    log.append(some(1))
    log.sync()
    log.set_aside(1, 1, "no")
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "lane").rglob("*")}
    assert (tmp_path / "lane").stat().st_mode & 0o777 == 0o700
    assert modes == {0o600, 0o700}
    log.close()


@pytest.mark.parametrize("mode", ["interval", "never"])
def test_a_lane_that_does_not_wait_for_the_disk_reads_at_once(mode: str) -> None:
    log = Log.open(LANE, SMALL._replace(durable=mode), SimulatedFiles())  # type: ignore[arg-type]
    log.append(some(3))
    assert [*all_of(log)] == [1, 2, 3]
    log.close()


@pytest.mark.parametrize("mode", ["interval", "never"])
def test_a_number_never_names_two_records(mode: str) -> None:
    """Not even when it was delivered and then lost with the power."""
    options = SMALL._replace(durable=mode)  # type: ignore[arg-type]
    for seed in range(30):
        files = SimulatedFiles()
        log = Log.open(LANE, options, files)
        log.append(some(5))
        log.delivered(1, 5)
        files = files.after_power_loss(Random(seed))
        log = Log.open(LANE, options, files)
        assert log.append(some(1)) > 5
        log.close()
        log = Log.open(LANE, options, files)
        number = log.last
        log.close()
        log = Log.open(LANE, options, files)
        assert log.append(some(1)) == number + 1  # nothing is skipped when all ended well
        log.close()


def test_a_full_disk_refuses_and_leaves_the_log_as_it_was() -> None:
    files = SimulatedFiles()
    log = Log.open(LANE, SMALL, files)
    log.append(some(10))
    log.sync()
    files.capacity = files.used() + 600
    with pytest.raises(SpoolFull, match="there is no room on the disk of /lane"):
        log.append(some(10))
    assert not log.has_room(1000)
    assert log.last == 10
    assert log.pending == ((1, 10),)
    assert log.append(some(3)) == 13  # a smaller one has room
    assert log.sync() == 13
    assert [*all_of(log)] == [*range(1, 14)]
    with pytest.raises(SpoolFull):
        log.append(some(10))
    log.delivered(1, 13)  # needs no room
    files.capacity = None
    assert log.has_room(1000)
    assert log.append(some(10)) == 23
    log.sync()
    log.close()
    log = Log.open(LANE, SMALL, files)
    assert log.pending == ((14, 23),)
    log.close()


def test_a_disk_that_is_full_to_the_last_byte_lets_go_of_what_is_delivered() -> None:
    files = SimulatedFiles()
    log = Log.open(LANE, SMALL, files)
    for _ in range(10):
        log.append(some(10))
        log.sync()
    files.capacity = files.used()
    log.delivered(1, 80)
    assert files.used() < files.capacity
    assert log.append(some(10)) == 110
    log.close()


def test_a_limit_on_the_size_of_a_file_begins_the_next_one() -> None:
    files = SimulatedFiles()
    files.file_most = 9000  # the cursor fits
    log = Log.open(LANE, LogOptions(), files)
    for _ in range(20):
        log.append(some(10))
    log.sync()
    assert len(all_of(log)) == 200
    assert log.usage().segments > 2
    log.close()


def failing(*operations: str, times: int = 10**9) -> Callable[[str, Path], int | None]:
    """The operations on segments fail so many times."""
    left = [times]

    def ask(operation: str, path: Path) -> int | None:
        if operation in operations and path.suffix == ".seg" and left[0]:
            left[0] -= 1
            return errno.EIO
        return None

    return ask


def test_what_a_failed_sync_has_not_brought_to_disk_is_written_again_elsewhere() -> None:
    files = SimulatedFiles()
    log = Log.open(LANE, SMALL, files)
    log.append(some(5))
    log.sync()
    log.append(some(5, start=5))
    files.failing = failing("sync", times=1)
    assert log.sync() == 10  # callers see nothing of it
    assert log.usage().suspects == 1
    for seed in range(20):
        again = Log.open(LANE, SMALL, files.after_power_loss(Random(seed)))
        assert [record.value for record in all_of(again).values()] == [
            record.value for record in some(10)
        ]


def test_a_disk_that_syncs_nothing_is_told_and_its_numbers_are_not_used_again() -> None:
    files = SimulatedFiles()
    log = Log.open(LANE, SMALL, files)
    log.append(some(5))
    log.sync()
    log.append(some(5))
    files.failing = failing("sync")
    with pytest.raises(SpoolError, match="cannot write to /lane: Input/output error"):
        log.sync()
    assert log.pending == ((1, 5),)
    files.failing = failing()
    assert log.append(some(1)) == 11
    assert log.sync() == 11
    assert [*all_of(log)] == [1, 2, 3, 4, 5, 11]
    assert log.pending == ((1, 5), (11, 11))
    assert log.usage().lost == {}  # nobody had been told that they are kept
    log.close()


def test_where_they_had_been_acknowledged_they_are_counted_as_lost() -> None:
    files = SimulatedFiles()
    log = Log.open(LANE, SMALL._replace(durable="interval"), files)
    log.append(some(5))
    files.failing = failing("sync")
    with pytest.raises(SpoolError):
        log.sync()
    assert log.usage().lost == {"damaged": 5}


def test_a_write_that_fails_is_told_and_leaves_the_log_as_it_was() -> None:
    files = SimulatedFiles()
    log = Log.open(LANE, SMALL, files)
    log.append(some(5))
    files.failing = failing("write", "truncate")
    with pytest.raises(SpoolError, match="cannot write to /lane: Input/output error"):
        log.append(some(5))
    files.failing = failing()
    assert log.append(some(5)) == 10
    log.sync()
    assert [*all_of(log)] == [*range(1, 11)]
    log.close()


@pytest.mark.parametrize("synced", [True, False])
def test_a_file_that_could_not_be_cut_goes_when_it_is_done_with(*, synced: bool) -> None:
    files = SimulatedFiles()
    log = Log.open(LANE, SMALL, files)
    log.append(some(5))
    if synced:
        log.sync()
    files.failing = failing("write", "truncate")
    with pytest.raises(SpoolError):
        log.append(some(5))
    files.failing = failing()
    assert log.append(some(1)) == 6
    log.sync()
    before = files.names(LANE)
    log.delivered(1, 5)
    assert len(files.names(LANE)) == len(before) - 1
    log.close()
    assert not files.handles


def test_what_cannot_be_read_back_is_passed_over_and_counted() -> None:
    files = SimulatedFiles()
    log = Log.open(LANE, LogOptions(), files)
    for start in range(0, 30, 10):
        log.append(some(10, start=start))
    log.sync()
    [path] = [path for path in files.files if path.suffix == ".seg"]
    files.files[path].data[1500] ^= 1
    assert [*all_of(log)] == [*range(1, 11), *range(21, 31)]
    usage = log.usage()
    assert (usage.lost, usage.damaged) == ({"damaged": 10}, 1)
    assert log.pending == ((1, 10), (21, 30))
    assert [*all_of(log)] == [*range(1, 11), *range(21, 31)]
    assert log.usage().damaged == 1  # counted once
    log.delivered(1, 30)
    log.append(some(1))
    log.close()
    log = Log.open(LANE, LogOptions(), files)
    assert log.usage().lost == {"damaged": 10}


def test_damage_that_opening_has_seen_is_not_counted_again_when_it_is_read() -> None:
    files = SimulatedFiles()
    log = Log.open(LANE, LogOptions(), files)
    for start in range(0, 30, 10):
        log.append(some(10, start=start))
    log.sync()
    [path] = [path for path in files.files if path.suffix == ".seg"]
    files.files[path].data[1500] ^= 1
    log = Log.open(LANE, LogOptions(), files.after_kill())
    assert log.usage().damaged == 1
    assert [*all_of(log)] == [*range(1, 11), *range(21, 31)]
    assert (log.usage().lost, log.usage().damaged) == ({"damaged": 10}, 1)
    log.close()


def test_a_sector_that_cannot_be_read_costs_what_is_in_it() -> None:
    files = SimulatedFiles()
    log = Log.open(LANE, LogOptions(frame=1000), files)
    log.append(some(200))
    log.sync()
    real = files.read

    class Bad(SimulatedFiles):
        def read(self, handle: int, size: int, offset: int) -> bytes:
            if offset <= 9000 < offset + size:
                raise OSError(errno.EIO, "bad sector")
            return real(handle, size, offset)

    log._reader._files = Bad()  # type: ignore[misc]
    log._reader._files.handles = files.handles  # type: ignore[attr-defined]
    log._reader._files.files = files.files  # type: ignore[attr-defined]
    found = [*all_of(log)]
    assert 100 < len(found) < 200
    assert log.usage().lost == {"damaged": 200 - len(found)}


def test_a_disk_that_has_gone_is_told_and_nothing_is_counted_as_lost() -> None:
    files = SimulatedFiles()
    log = Log.open(LANE, SMALL, files)
    log.append(some(20))
    log.sync()
    files.failing = failing("read")
    with pytest.raises(SpoolError, match="cannot read /lane"):
        log.read(0)
    files.failing = failing()
    assert len(all_of(log)) == 20
    assert log.usage().lost == {}


def test_the_oldest_are_dropped_by_whole_files_and_counted() -> None:
    files = SimulatedFiles()
    log = Log.open(LANE, SMALL, files)
    for _ in range(10):
        log.append(some(10))
        log.sync()
    before = log.usage()
    loss = log.drop_oldest(Drop(Cause.DROPPED_OLDEST, bytes=3000))
    after = log.usage()
    assert loss.cause is Cause.DROPPED_OLDEST
    assert 3000 <= loss.bytes < 6000
    assert before.bytes - after.bytes == loss.bytes
    assert before.backlog_records - after.backlog_records == loss.records > 0
    assert after.lost == {"dropped_oldest": loss.records}
    assert [*all_of(log)] == [*range(loss.records + 1, 101)]
    assert log.drop_oldest(Drop(Cause.DROPPED_OLDEST, records=25)).records >= 25
    assert log.drop_oldest(Drop(Cause.DROPPED_OLDEST, bytes=10**9)).records > 0
    left = log.pending
    assert left  # the file that is being written stays
    assert log.drop_oldest(Drop(Cause.DROPPED_OLDEST, bytes=10**9)).records == 0
    log.close()
    log = Log.open(LANE, SMALL, files)
    assert log.pending == left
    assert log.usage().lost["dropped_oldest"] == left[0][0] - 1


def test_what_is_too_old_goes_but_not_in_the_first_minute() -> None:
    time, files = Time(), SimulatedFiles()
    log = Log.open(LANE, LogOptions(), files, time.calendar)
    log.append([Record(b"old", b"", log.now())])
    log.sync()
    drop = Drop(Cause.EXPIRED, age=10)
    time.now += MINUTE - 1
    assert log.drop_oldest(drop).records == 0
    time.now += 1
    log.drop_oldest(drop)  # ends the file
    log.sync()
    assert log.drop_oldest(drop).records == 1
    log.append([Record(b"new", b"", log.now())])
    log.sync()
    assert log.drop_oldest(drop).records == 0
    assert [record.value for record in all_of(log).values()] == [b"new"]
    assert log.usage().lost == {"expired": 1}


def test_a_file_is_ended_when_it_is_old_so_that_its_records_can_go() -> None:
    time = Time()
    log = Log.open(LANE, LogOptions(age=HOUR), SimulatedFiles(), time.calendar)
    log.append(some(1))
    time.now += HOUR
    log.append(some(1))
    assert log.usage().segments == 2


def test_what_nobody_takes_is_kept_aside_and_done_with() -> None:
    files = SimulatedFiles()
    log = Log.open(LANE, SMALL, files)
    log.append(some(10))
    log.sync()
    log.set_aside(4, 5, "too large")
    assert log.pending == ((1, 3), (6, 10))
    usage = log.usage()
    assert usage.lost == {"quarantined": 2}
    assert usage.aside == sum(
        len(file.data) for path, file in files.files.items() if path.parent == LANE / "quarantine"
    )
    assert usage.aside > 200
    log.close()


def test_a_full_quarantine_discards_and_counts() -> None:
    log = Log.open(LANE, SMALL._replace(aside=500), SimulatedFiles())
    log.append(some(10))
    log.sync()
    log.set_aside(1, 3, "no")
    log.set_aside(4, 10, "no")
    assert log.pending == ()
    assert log.usage().lost == {"quarantined": 3, "discarded": 7}
    log.close()


def test_a_lost_cursor_delivers_again_and_loses_nothing() -> None:
    files = SimulatedFiles()
    log = Log.open(LANE, SMALL, files)
    log.append(some(10))
    log.sync()
    log.delivered(1, 3)
    log.close()
    files.files[LANE / "cursor"].data[:] = bytes(8192)
    log = Log.open(LANE, SMALL, files)
    assert log.pending == ((1, 10),)
    assert "the cursor was lost" in log.recovery.words
    log.close()


def test_a_file_of_which_nothing_can_be_read_is_moved_aside() -> None:
    files = SimulatedFiles()
    log = Log.open(LANE, SMALL, files)
    log.append(some(10))
    log.sync()
    [path] = [path for path in files.files if path.suffix == ".seg"]
    log.close()
    files.files[path].data[:] = b"x" * 5000
    log = Log.open(LANE, SMALL, files)
    assert log.recovery.aside == (path.name,)
    assert log.recovery.missing == 10
    assert log.usage().lost == {"damaged": 10}
    assert LANE / "damaged" / path.name in files.files
    assert log.append(some(1)) == 11
    log.close()


def test_a_damaged_file_is_kept_for_a_person_when_it_is_done_with() -> None:
    files = SimulatedFiles()
    log = Log.open(LANE, SMALL, files)
    for _ in range(3):
        log.append(some(10))
        log.sync()
    path = min(path for path in files.files if path.suffix == ".seg")
    files.files[path].data[100] ^= 1
    all_of(log)
    log.delivered(1, 30)
    assert LANE / "damaged" / path.name in files.files


def test_an_encrypted_log_without_its_key_is_not_opened_and_not_touched() -> None:
    files = SimulatedFiles()
    options = SMALL._replace(codec=Codec(keys=(b"k" * 32,), zstd=True))
    log = Log.open(LANE, options, files)
    log.append(some(10))
    log.close()
    with pytest.raises(SpoolError, match="not in the key file"):
        Log.open(LANE, SMALL, files)
    assert not any(b"000000" in file.data for file in files.files.values())
    log = Log.open(LANE, options, files)
    assert len(all_of(log)) == 10
    log.close()


def test_a_fence_is_remembered_and_only_rises() -> None:
    files = SimulatedFiles()
    log = Log.open(LANE, SMALL, files)
    log.append(some(3))
    log.sync()
    log.delivered(1, 1, fence=7)
    log.delivered(2, 2, fence=5)
    assert log.fence == 7
    files = files.after_kill()
    assert Log.open(LANE, SMALL, files).fence == 7


def test_usage_estimates_what_waits() -> None:
    log = Log.open(LANE, LogOptions(), SimulatedFiles())
    log.append(some(10))
    log.sync()
    assert log.usage().oldest == 1000
    log.delivered(1, 5)
    usage = log.usage()
    assert usage.backlog_records == 5
    assert abs(usage.backlog_bytes - usage.bytes / 2) <= 1
    assert usage.oldest == 1004  # as if they were spread evenly
    log.delivered(6, 10)
    assert log.usage()[2:5] == (0, 0, None)
    assert log.space().free > 0


@pytest.mark.slow  # thirty megabytes of records
def test_a_backlog_is_read_in_memory_that_does_not_grow() -> None:
    files = SimulatedFiles()
    log = Log.open(LANE, LogOptions(segment=1 << 20), files)
    for _ in range(300):
        log.append([Record(b"x" * 1000)] * 100)
        log.sync()
    peaks: list[int] = []
    tracemalloc.start()
    at = 0
    while (batch := log.read(at, max_bytes=100_000)) is not None:
        at = batch.last
        if at % 3000 == 0:
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.reset_peak()
    tracemalloc.stop()
    assert at == 30_000
    assert len(peaks) == 10
    assert max(peaks) < 2_000_000
    assert max(peaks[5:]) <= 1.2 * max(peaks[:5])


def test_more_gaps_than_the_cursor_holds_deliver_again_and_lose_nothing() -> None:
    files = SimulatedFiles()
    log = Log.open(LANE, LogOptions(), files)
    log.append(some(1000))
    log.sync()
    for number in range(1, 1000, 2):
        log.delivered(number, number)
    log.delivered(1, 101)
    waiting = numbers(log.pending)
    assert len(waiting) == 450
    log.close()
    log = Log.open(LANE, LogOptions(), files)
    pending = numbers(log.pending)
    assert waiting < pending
    assert len(pending - waiting) == len(waiting) - RANGES_MAX
    assert min(pending) == min(waiting)
    log.close()


def test_a_number_that_cannot_be_reserved_is_not_given_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.spooler.log.log._RESERVE", 10)
    files = SimulatedFiles()
    log = Log.open(LANE, SMALL._replace(durable="interval"), files)
    log.append(some(10))
    files.failing = lambda what, path: (
        errno.EIO if (what, path.name) == ("sync", "cursor") else None
    )
    with pytest.raises(SpoolError, match="cannot write the cursor"):
        log.append(some(1))
    assert log.last == 10
    files.failing = failing()
    assert log.append(some(25)) == 35
    log.close()


def test_a_file_that_somebody_has_taken_away_is_counted_as_lost() -> None:
    files = SimulatedFiles()
    log = Log.open(LANE, SMALL, files)
    for _ in range(4):
        log.append(some(10))
        log.sync()
    del files.files[min(path for path in files.files if path.suffix == ".seg")]
    found = all_of(log)
    assert 0 < len(found) < 40
    assert log.usage().lost == {"damaged": 40 - len(found)}
    assert log.pending == ((41 - len(found), 40),)
    log.close()


def test_an_open_that_fails_late_gives_the_lock_back() -> None:
    files = SimulatedFiles()
    files.failing = lambda what, path: errno.EIO if files.syncs and what == "sync" else None
    with pytest.raises(SpoolError):
        Log.open(LANE, SMALL._replace(durable="never"), files)
    assert not files.handles
