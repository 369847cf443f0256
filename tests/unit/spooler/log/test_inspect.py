"""Does a person see what is in a log, and get out of it what can be got?"""

import json
from pathlib import Path

import pytest
from log_witness import all_of

from tidegate.core.bounds import Cause, Drop
from tidegate.errors import InputError, SpoolError
from tidegate.spooler.log.codec import CLEAR, Codec
from tidegate.spooler.log.inspect import Trouble, check, dump, repair, stats
from tidegate.spooler.log.log import Log
from tidegate.spooler.log.options import LogOptions
from tidegate.spooler.record import Record

OPTIONS = LogOptions(segment=300)
RECORDS = [Record(b"%04d" % n * 5, b"k" * (n % 2), n * 10**9) for n in range(1, 13)]
FRAME = 72 + 16 * 3 + 20 * 3 + 2  # the first, of three records


def a_log(directory: Path, codec: Codec = CLEAR, *, ended: bool = True) -> Log:
    """Twelve records in frames of three; 1 and 2 are delivered, 6 is set aside."""
    log = Log.open(directory, OPTIONS._replace(codec=codec))
    for start in range(0, 12, 3):
        log.append(RECORDS[start : start + 3])
    log.sync()
    log.set_aside(6, 6, "too large")
    log.delivered(1, 2, fence=3)
    if ended:
        log.close()
    return log


def spoil(file: Path, at: int) -> None:
    data = bytearray(file.read_bytes())
    data[at] ^= 1
    file.write_bytes(data)


def files(directory: Path) -> dict[str, bytes]:
    return {p.relative_to(directory).as_posix(): p.read_bytes() for p in directory.rglob("*.*")}


def rows(directory: Path, **which: bool | int) -> list[dict[str, object]]:
    return [json.loads(line) for line in dump(directory, **which)]  # type: ignore[arg-type]


def test_a_good_log_is_called_good(tmp_path: Path) -> None:
    a_log(tmp_path)
    checked = check(tmp_path)
    assert checked.good
    assert (checked.records, checked.segments, checked.cursor) == (12, 4, "good")
    assert checked.pending == [(3, 5), (7, 12)]
    assert checked.bytes == sum(p.stat().st_size for p in tmp_path.glob("*.seg"))


def test_a_log_in_use_may_be_looked_at(tmp_path: Path) -> None:
    log = a_log(tmp_path, ended=False)
    tail = max(tmp_path.glob("*.seg"))
    with tail.open("ab") as file:
        file.write(b"\xf5TgF half")
    checked = check(tmp_path)
    assert checked.good
    [trouble] = checked.trouble
    assert trouble.unfinished
    assert trouble.end - trouble.start == 9
    assert stats(tmp_path).records == 12
    log.close()


def test_damage_is_told_with_its_place_and_price(tmp_path: Path) -> None:
    a_log(tmp_path)
    first, second, *_ = sorted(tmp_path.glob("*.seg"))
    spoil(first, 100)
    spoil(second, 10)
    checked = check(tmp_path)
    assert not checked.good
    assert checked.trouble == [
        Trouble(file=first.name, start=0, end=FRAME, records=3),
        Trouble(file=second.name, start=0, end=FRAME - 1, records=None),
    ]
    assert checked.missing == 3  # 3, 4 and 5; the others were delivered or set aside
    assert checked.records == 6


def test_a_lost_cursor_is_told(tmp_path: Path) -> None:
    a_log(tmp_path)
    spoil(tmp_path / "cursor", 50)
    assert check(tmp_path).cursor == "half"
    spoil(tmp_path / "cursor", 5000)
    checked = check(tmp_path)
    assert (checked.cursor, checked.good) == ("lost", False)
    assert checked.pending == [(1, 12)]
    (tmp_path / "cursor").unlink()
    assert check(tmp_path) == checked


def test_the_numbers_of_a_log(tmp_path: Path) -> None:
    log = a_log(tmp_path, ended=False)
    log.drop_oldest(Drop(Cause.DROPPED_OLDEST, bytes=1))
    log.close()
    found = stats(tmp_path)
    assert (found.frames, found.records, found.first, found.last) == (3, 9, 4, 12)
    assert (found.oldest, found.newest) == (4 * 10**9, 12 * 10**9)
    assert found.pending == [(4, 5), (7, 12)]
    assert found.pending_records == 8
    assert found.lost == {"dropped_oldest": 1, "quarantined": 1}
    assert (found.fence, found.keys) == (3, [])
    assert found.raw_bytes == 9 * 36 + 4  # with four keys of a byte
    assert found.quarantine_bytes > 100


def test_records_come_out_as_lines(tmp_path: Path) -> None:
    a_log(tmp_path)
    lines = rows(tmp_path)
    assert [line["number"] for line in lines] == [*range(1, 13)]
    assert lines[0] == {
        "number": 1,
        "time": "1970-01-01T00:00:01+00:00",
        "key": "k",
        "value": "0001" * 5,
    }
    assert "key" not in lines[1]
    assert [line["number"] for line in rows(tmp_path, pending=True)] == [3, 4, 5, *range(7, 13)]
    assert [line["number"] for line in rows(tmp_path, after=10)] == [11, 12]


def test_what_is_no_text_comes_in_base64(tmp_path: Path) -> None:
    log = Log.open(tmp_path)
    log.append([Record(b"\xff\x00", b"\xfe")])
    log.close()
    [line] = rows(tmp_path)
    assert (line["value_base64"], line["key_base64"]) == ("/wA=", "/g==")
    assert "value" not in line


def test_what_was_set_aside_comes_with_the_reason(tmp_path: Path) -> None:
    a_log(tmp_path)
    why, line = rows(tmp_path, quarantine=True)
    assert why == {"why": "too large", "first": 6}
    assert line["number"] == 6
    log = Log.open(tmp_path / "none")
    log.close()
    assert rows(tmp_path / "none", quarantine=True) == []


def test_an_encrypted_log_wants_its_key_for_what_is_in_it_alone(tmp_path: Path) -> None:
    codec = Codec(zstd=True, keys=(b"k" * 32,))
    a_log(tmp_path, codec)
    assert stats(tmp_path).keys == [f"{codec.key_id:08x}"]
    with pytest.raises(SpoolError, match="not in the key file"):
        check(tmp_path)
    assert check(tmp_path, codec).good
    assert len([*dump(tmp_path, codec)]) == 12
    repair(tmp_path, tmp_path / "new", codec)
    assert b"0001" not in b"".join(files(tmp_path / "new").values())


def test_a_repair_carries_over_what_can_be_read_and_leaves_the_old_log(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    a_log(old)
    second = sorted(old.glob("*.seg"))[1]
    spoil(second, 10)
    before = files(old)
    repaired = repair(old, new)
    assert (repaired.records, repaired.pending, repaired.missing) == (9, 7, 2)
    assert [trouble.file for trouble in repaired.trouble] == [second.name]
    assert files(old) == before
    assert check(new).good
    log = Log.open(new)
    assert log.recovery.words == ""
    assert log.pending == ((3, 3), (7, 12))
    assert log.fence == 3
    assert log.append([Record(b"new")]) == 13
    log.sync()
    found = all_of(log)
    assert {n: found[n] for n in range(7, 13)} == dict(enumerate(RECORDS[6:], 7))
    log.close()


def test_a_repair_takes_frames_that_are_not_in_their_place(tmp_path: Path) -> None:
    """A file has lost bytes in its middle, and another was put behind it by hand."""
    old, new = tmp_path / "old", tmp_path / "new"
    log = Log.open(old)
    for start in range(0, 12, 3):
        log.append(RECORDS[start : start + 3])
    log.close()
    [file] = old.glob("*.seg")
    data = file.read_bytes()
    file.write_bytes(data[:50] + data[80:] + data)
    (old / "cursor").unlink()
    assert len(rows(old)) < 12
    assert repair(old, new).records == 12
    log = Log.open(new)
    assert sorted(all_of(log)) == [*range(1, 13)]
    log.close()


def test_what_is_no_log_is_one_sentence(tmp_path: Path) -> None:
    for look in (check, stats, lambda path: next(dump(path)), lambda path: repair(path, tmp_path)):
        with pytest.raises(InputError, match=f"there is no log in {tmp_path / 'x'}"):
            look(tmp_path / "x")
    a_log(tmp_path / "old")
    (tmp_path / "new").mkdir()
    (tmp_path / "new/file").write_text("")
    with pytest.raises(InputError, match="is not empty"):
        repair(tmp_path / "old", tmp_path / "new")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad/0000000001.seg").write_bytes(b"x" * 1000)
    with pytest.raises(InputError, match=r"nothing in .*/bad can be read"):
        repair(tmp_path / "bad", tmp_path / "other")
