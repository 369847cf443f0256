"""A lane on a disk of 64 MB said that it takes records, refused each, and never ended to.

All was delivered, but the last file of a log is ended by the next record, and none had room. A file
goes now when all in it is delivered and the disk has less left than it takes.
"""

from pathlib import Path
from threading import Event

import pytest
from simulated_files import SimulatedFiles

from tidegate.errors import SpoolFull
from tidegate.settings.spool import Durable
from tidegate.spooler.log import committer
from tidegate.spooler.log.committer import Committer
from tidegate.spooler.log.log import Log
from tidegate.spooler.log.options import LogOptions
from tidegate.spooler.record import Record

LANE = Path("/lane")
BATCH = [Record(bytes(100_000), b"", 1000)] * 5


def full(files: SimulatedFiles, durable: Durable = "always") -> Log:
    log = Log.open(LANE, LogOptions(durable=durable), files)
    files.capacity = files.used() + 3_000_000
    while True:
        try:
            log.append(BATCH)
        except SpoolFull:
            return log
        log.sync()


@pytest.mark.parametrize("durable", ["always", "interval", "never"])
def test_a_disk_that_is_full_of_what_is_delivered_takes_records_again(durable: Durable) -> None:
    files = SimulatedFiles()
    log = full(files, durable)
    last = log.last
    log.delivered(1, last - 1)
    log.make_room()
    log.checkpoint()
    assert log.first == 1  # one waits still
    log.delivered(last, last)
    log.make_room()
    log.checkpoint()
    assert log.first == last + 1
    assert log.append(BATCH) == last + 5
    log.sync()
    log.close()
    log = Log.open(LANE, LogOptions(durable=durable), files)
    assert log.pending == ((last + 1, last + 5),)
    assert log.usage().lost == {}
    log.close()


def test_a_file_is_gone_on_with_where_there_is_room_and_where_it_is_not_on_disk_yet() -> None:
    files = SimulatedFiles()
    log = full(files, "interval")
    files.capacity = None
    log.delivered(1, log.last)
    log.make_room()
    assert log.first == 1
    log.append(BATCH)
    log.delivered(1, log.last)
    files.capacity = files.used()
    log.make_room()
    assert log.first == 1
    log.sync()
    log.make_room()
    assert log.first == log.last + 1
    log.close()


class Watched(SimulatedFiles):
    """Tells when a file of records has gone."""

    def __init__(self) -> None:
        super().__init__()
        self.gone = Event()

    def unlink(self, path: Path) -> None:
        super().unlink(path)
        if path.suffix == ".seg":
            self.gone.set()


def test_a_committer_sees_to_it_without_being_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committer, "_REMEMBER_EVERY", 0)
    monkeypatch.setattr(committer, "_IDLE_S", 0.001)
    files = Watched()
    log = full(files)
    log.delivered(1, log.last)
    writes = Committer(log)
    assert files.gone.wait(10)
    assert writes.append_blocking(BATCH, timeout=10).last == log.last
    writes.close()
    log.close()
