"""A batch is in the file as a whole, on disk, or not at all."""

import asyncio
import os
from pathlib import Path

import pytest

from tidegate.core.health import flaw
from tidegate.core.outcome import Outcome
from tidegate.spooler.record import Batch, Record
from tidegate.spooler.sinks.file import FileSink
from tidegate.spooler.sinks.sink import DELIVERED
from tidegate.units import SECOND

BATCH = Batch(1, [Record(b'{"a": 1}'), Record(b"two", key=b"k")])


def test_each_record_is_a_line(tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "out.jsonl")
    assert asyncio.run(sink.send(BATCH, SECOND)) == DELIVERED
    assert asyncio.run(sink.send(Batch(3, [Record(b"3")]), SECOND)) == DELIVERED
    assert (tmp_path / "out.jsonl").read_bytes() == b'{"a": 1}\ntwo\n3\n'


def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    asyncio.run(FileSink(tmp_path / "out").send(BATCH, SECOND))
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o600


def test_a_record_of_two_lines_can_never_be_written(tmp_path: Path) -> None:
    sent = asyncio.run(FileSink(tmp_path / "out").send(Batch(1, [Record(b"a\nb")]), SECOND))
    assert sent.poison
    assert not (tmp_path / "out").exists()


def test_a_disk_that_is_full_half_way_leaves_no_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = FileSink(tmp_path / "out")
    asyncio.run(sink.send(BATCH, SECOND))
    before = (tmp_path / "out").read_bytes()
    write = os.write
    turns = iter([3])

    def short(descriptor: int, data: bytes) -> int:
        for length in turns:
            return write(descriptor, data[:length])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", short)
    sent = asyncio.run(sink.send(BATCH, SECOND))
    assert sent.outcome is Outcome.FAILURE
    assert not sent.poison
    assert "No space left" in sent.why
    assert (tmp_path / "out").read_bytes() == before


def test_a_folder_that_is_not_there_shows_in_its_health(tmp_path: Path) -> None:
    well = asyncio.run(FileSink(tmp_path / "out").health(SECOND))
    assert flaw(well, brokers=1) is None
    gone = asyncio.run(FileSink(tmp_path / "gone" / "out").health(SECOND))
    assert "nobody answers" in str(flaw(gone, brokers=1))
