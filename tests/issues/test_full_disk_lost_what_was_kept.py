"""A disk got full just as the log began a new file. The file stayed, with nothing in it, and from
then on nothing before it was found: 64,801 acknowledged records were counted as damaged, and their
file was removed.
"""

from pathlib import Path

import pytest
from simulated_files import SimulatedFiles

from tidegate.errors import SpoolFull
from tidegate.spooler.log.log import Log
from tidegate.spooler.log.options import LogOptions
from tidegate.spooler.record import Record

LANE = Path("/lane")


def record(number: int) -> Record:
    return Record(b"%0100d" % number, b"", 1000)


def numbers(log: Log) -> list[int]:
    found, after = [], 0
    while (batch := log.read(after)) is not None:
        found += [int(record.value) for record in batch.records]
        after = batch.last
    return found


def full(files: SimulatedFiles, room: int) -> Log:
    log = Log.open(LANE, LogOptions(segment=2000, frame=500), files)
    files.capacity = files.used() + room
    while True:
        try:
            log.append([record(log.last + 1)])
        except SpoolFull:
            return log
        log.sync()


@pytest.mark.parametrize("room", range(200, 6200, 100))
def test_all_that_was_kept_is_there_wherever_the_disk_became_full(room: int) -> None:
    files = SimulatedFiles()
    log = full(files, room)
    kept = [*range(1, log.last + 1)]
    usage = log.usage()
    assert (usage.backlog_records, usage.lost) == (len(kept), {})
    assert usage.backlog_bytes > 0
    assert numbers(log) == kept
    assert log.usage().lost == {}
    log.delivered(1, log.last - 1)
    files.capacity = None
    log.append([record(log.last + 1)])
    log.sync()
    log.close()
    log = Log.open(LANE, LogOptions(segment=2000, frame=500), files)
    assert numbers(log)[-2:] == [kept[-1], kept[-1] + 1]
    assert log.usage().lost == {}
    log.close()
