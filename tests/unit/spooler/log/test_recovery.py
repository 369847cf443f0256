"""Does a log open whatever has happened to its files, with all that is left?"""

import errno
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from log_witness import all_of, numbers
from simulated_files import SimulatedFiles, _File

from tidegate.errors import SpoolError
from tidegate.spooler.log.codec import Codec
from tidegate.spooler.log.frame import VERSION
from tidegate.spooler.log.log import Log
from tidegate.spooler.log.options import LogOptions
from tidegate.spooler.log.recovery import Recovery
from tidegate.spooler.record import Record

LANE = Path("/lane")
OPTIONS = LogOptions(segment=300, frame=1000)
RECORDS = [Record(b"%04d" % n * 5, b"k", n) for n in range(1, 13)]
PIECE = 2  # records in a frame
FRAME = 72 + PIECE * (16 + 1 + 20)


def a_log(*, ended: bool) -> dict[Path, bytes]:
    """The files of a log of some segments; of a process that ended well, or was killed."""
    files = SimulatedFiles()
    log = Log.open(LANE, OPTIONS, files)
    for start in range(0, len(RECORDS), PIECE):
        log.append(RECORDS[start : start + PIECE])
    log.sync()
    log.delivered(1, 1)
    if ended:
        log.close()
    return {path: bytes(file.data) for path, file in files.files.items()}


def opened(content: dict[Path, bytes]) -> tuple[Log, SimulatedFiles]:
    files = SimulatedFiles()
    files.files = {path: _File(data) for path, data in content.items()}
    return Log.open(LANE, OPTIONS, files), files


def places(data: bytes) -> range:
    """Every byte; of the cursor, which is large and mostly empty, some."""
    return range(0, len(data), 1 if len(data) < 4096 else 61)


def damages(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Bytes flipped; some runs of zeros."""
    for at in places(data):
        yield at, at + 1, data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]
    for at in places(data)[::7]:
        end = min(len(data), at + 50)
        yield at, end, data[:at] + bytes(end - at) + data[end:]


@pytest.mark.slow  # each byte of every file
@pytest.mark.parametrize("ended", [True, False])
def test_any_damage_costs_what_it_touches_and_the_log_opens_and_goes_on(*, ended: bool) -> None:
    content = a_log(ended=ended)
    assert sum(path.suffix == ".seg" for path in content) >= 3
    for path, data in content.items():
        for start, end, bad in damages(data):
            log, _ = opened(content | {path: bad})
            found = all_of(log)
            assert all(record == RECORDS[number - 1] for number, record in found.items())
            touched = 0
            if path.suffix == ".seg":  # of which a footer is as dear as a frame here
                touched = PIECE * ((end - 1) // FRAME - start // FRAME + 1)
            assert len(found) >= len(RECORDS) - touched, (path, start)
            assert found.keys() - {1} <= numbers(log.pending) | {1}
            assert log.append([Record(b"new")]) > 12
            log.sync()
            assert all_of(log)[log.last] == Record(b"new")
            log.close()


@pytest.mark.slow  # each length of every file
@pytest.mark.parametrize("ended", [True, False])
def test_any_file_may_end_early_or_be_gone(*, ended: bool) -> None:
    content = a_log(ended=ended)
    for path, data in content.items():
        for end in places(data):
            log, _ = opened(content | {path: data[:end]})
            found = all_of(log)
            assert all(record == RECORDS[number - 1] for number, record in found.items())
            assert log.append([Record(b"new")]) > 12 or path.suffix == ".seg"
            log.close()
        less = {name: kept for name, kept in content.items() if name != path}
        log, _ = opened(less)
        assert len(all_of(log)) >= len(RECORDS) - 5
        log.close()


def test_nothing_is_said_of_a_log_that_ended_well_or_was_killed() -> None:
    for ended in (True, False):
        log, _ = opened(a_log(ended=ended))
        assert log.recovery.words == ""
        assert log.recovery.segments >= 3
        assert log.recovery.scanned == (not ended)
        assert log.pending == ((2, 12),)
        log.close()


def test_a_write_that_was_not_finished_is_passed_over() -> None:
    content = a_log(ended=False)
    tail = max(path for path in content if path.suffix == ".seg")
    log, files = opened(content | {tail: content[tail] + b"\xf5TgF unfinished"})
    assert log.recovery.torn == 15
    assert log.recovery.words == "15 bytes of an unfinished write were passed over"
    assert log.pending == ((2, 12),)
    assert log.usage().damaged == 0
    log.append([Record(b"new")])  # not behind what is torn
    log.close()
    log = Log.open(LANE, OPTIONS, files.after_kill())
    assert log.recovery.words == ""
    assert log.pending == ((2, 13),)
    assert len(all_of(log)) >= 12


def test_what_is_sealed_at_opening_need_not_be_scanned_again() -> None:
    log, files = opened(a_log(ended=False))
    assert log.recovery.scanned == 1
    log = Log.open(LANE, OPTIONS, files.after_kill())
    assert log.recovery.scanned == 0


def test_files_that_are_not_ours_are_left_alone() -> None:
    strange = {LANE / "notes.txt": b"x", LANE / "1.seg": b"x", LANE / "000000000x.seg": b"x"}
    log, files = opened(a_log(ended=True) | strange)
    assert log.recovery.words == ""
    assert {path: bytes(files.files[path].data) for path in strange} == strange


def test_a_sector_that_cannot_be_read_costs_what_is_in_it_and_not_its_file() -> None:
    class Bad(SimulatedFiles):
        """One sector in the middle of the first segment, and the one that has its footer."""

        def read(self, handle: int, size: int, offset: int) -> bytes:
            path, file = self.handles[handle]
            for bad in (9000, len(file.data) - 1):
                if path.name == "0000000001.seg" and offset <= bad < offset + size:
                    raise OSError(errno.EIO, "bad sector")
            return super().read(handle, size, offset)

    files = SimulatedFiles()
    log = Log.open(LANE, LogOptions(frame=500), files)
    log.append([Record(b"%0*d" % (100, n)) for n in range(300)])
    log.close()
    bad = Bad()
    bad.files = files.files
    log = Log.open(LANE, LogOptions(), bad)
    assert log.recovery.aside == ()
    assert log.recovery.scanned == 1
    found = all_of(log)
    assert 200 < len(found) < 300
    assert log.usage().lost["damaged"] == 300 - len(found)


def test_a_file_that_cannot_be_opened_is_moved_aside() -> None:
    files = SimulatedFiles()
    files.files = {path: _File(data) for path, data in a_log(ended=True).items()}
    first = min(path for path in files.files if path.suffix == ".seg")
    files.failing = lambda operation, path: (
        errno.EIO if (operation, path) == ("open", first) else None
    )
    log = Log.open(LANE, OPTIONS, files)
    assert log.recovery.aside == (first.name,)
    assert len(all_of(log)) == 12 - 2 * PIECE


def test_the_cursor_of_another_log_is_not_believed() -> None:
    other = a_log(ended=True)
    log, _ = opened(a_log(ended=True) | {LANE / "cursor": other[LANE / "cursor"]})
    assert log.pending == ((1, 12),)
    assert log.recovery.cursor_lost
    assert len(all_of(log)) == 12


def test_one_damaged_slot_of_the_cursor_is_made_up_for_by_the_other() -> None:
    content = a_log(ended=True)
    cursor = content[LANE / "cursor"]
    for slot in (0, 1):
        bad = bytearray(cursor)
        bad[slot * 4096 + 100] ^= 1
        log, _ = opened(content | {LANE / "cursor": bytes(bad)})
        assert not log.recovery.cursor_lost
        assert len(all_of(log)) >= 11
        assert numbers(log.pending) >= set(range(2, 13))
        log.close()


def test_what_a_killed_process_wrote_of_the_cursor_is_on_disk_before_it_is_relied_upon() -> None:
    for seed in range(100):
        files = SimulatedFiles()
        log = Log.open(LANE, OPTIONS, files)
        log.append(RECORDS)
        log.sync()
        log.delivered(1, 1)
        files = files.after_kill()
        Log.open(LANE, OPTIONS, files).delivered(2, 2)
        files = files.after_power_loss(Random(seed))
        assert not Log.open(LANE, OPTIONS, files).recovery.cursor_lost


def test_a_file_of_a_later_version_is_not_taken_for_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.spooler.log.frame.VERSION", VERSION + 1)
    content = a_log(ended=False)
    monkeypatch.undo()
    with pytest.raises(SpoolError, match=r"written by a newer version \(format 2\)"):
        opened(content)


def test_a_refusal_gives_the_lock_back() -> None:
    files = SimulatedFiles()
    log = Log.open(LANE, OPTIONS._replace(codec=Codec(keys=(b"k" * 32,))), files)
    log.append(RECORDS)
    log.close()
    with pytest.raises(SpoolError, match="not in the key file"):
        Log.open(LANE, OPTIONS, files)
    assert not files.handles
    Log.open(LANE, OPTIONS._replace(codec=Codec(keys=(b"k" * 32,))), files).close()


def test_all_handles_are_given_back() -> None:
    log, files = opened(a_log(ended=False))
    all_of(log)
    log.delivered(1, 12)
    log.close()
    assert not files.handles


def test_the_words_say_all_that_was_found() -> None:
    words = Recovery(1, 1, 5, 2, 3, ("0000000001.seg",), cursor_lost=True).words
    assert words == (
        "the cursor was lost, so what is kept is delivered again;"
        " moved aside as unreadable: 0000000001.seg; damaged in 2 places; 3 records are missing;"
        " 5 bytes of an unfinished write were passed over"
    )
