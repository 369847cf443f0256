"""Does a log do what a dictionary of records and a set of numbers would?"""

import errno
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from log_witness import numbers
from simulated_files import SimulatedFiles

from tidegate.core.bounds import Cause, Drop
from tidegate.errors import SpoolFull
from tidegate.spooler.log.log import Log
from tidegate.spooler.log.options import LogOptions
from tidegate.spooler.record import Batch, Record

LANE = Path("/lane")
OPTIONS = LogOptions(segment=400, frame=150, aside=600)

some_records = st.lists(
    st.builds(Record, st.binary(max_size=60), st.binary(max_size=5), st.integers(0, 2**62)),
    min_size=1,
    max_size=8,
)
somewhere = st.floats(0, 1)


class LogMachine(RuleBasedStateMachine):
    """`kept` is every record that was appended, by number; `pending` the numbers that wait."""

    def __init__(self) -> None:
        super().__init__()
        self.files = SimulatedFiles()
        self.log = Log.open(LANE, OPTIONS, self.files)
        self.kept: dict[int, Record] = {}
        self.pending: set[int] = set()
        self.durable = 0
        self.lost = {"dropped_oldest": 0, "aside": 0}

    def number(self, share: float) -> int:
        return round(share * (len(self.kept) + 2))

    @rule(records=some_records)
    def append(self, records: list[Record]) -> None:
        first = len(self.kept) + 1
        try:
            assert self.log.append(records) == first + len(records) - 1
        except SpoolFull:
            assert self.files.capacity is not None
            return
        self.kept |= dict(enumerate(records, first))
        self.pending |= set(range(first, first + len(records)))

    @rule(room=st.integers(0, 400))
    def the_disk_fills_up(self, room: int) -> None:
        self.files.capacity = self.files.used() + room

    @rule()
    def there_is_room_again(self) -> None:
        self.files.capacity = None

    @rule()
    def a_sync_fails(self) -> None:
        self.files.capacity = None
        failures = [errno.EIO]
        self.files.failing = lambda operation, path: (
            failures.pop() if failures and (operation, path.suffix) == ("sync", ".seg") else None
        )
        self.sync()
        self.files.failing = lambda operation, path: None

    @rule()
    def sync(self) -> None:
        self.durable = len(self.kept)
        assert self.log.sync() == self.durable

    @rule(after=somewhere, upto=somewhere, size=st.integers(0, 300), count=st.integers(1, 20))
    def read(self, after: float, upto: float, size: int, count: int) -> None:
        start, end = self.number(after), self.number(upto)
        batch = self.log.read(start, upto=end, max_bytes=size, max_records=count)
        first = max(start + 1, self.log.first)
        expected: list[Record] = []
        for number in range(first, min(end, self.durable) + 1):
            together = Batch(first, [*expected, self.kept[number]])
            if number not in self.there():
                if expected:
                    break
                first = number + 1
                continue
            if expected and (together.size > size or len(expected) == count):
                break
            expected.append(self.kept[number])
        assert batch == (Batch(first, expected) if expected else None)

    def there(self) -> set[int]:
        return numbers((s.first, s.last) for s in self.log._writer.segments if s.frames)

    @rule(first=somewhere, last=somewhere)
    def delivered(self, first: float, last: float) -> None:
        a, b = self.number(first), min(self.number(last), self.durable)
        self.log.delivered(a, b)
        self.pending -= set(range(a, b + 1))

    @rule(first=somewhere, count=st.integers(0, 3))
    def set_aside(self, first: float, count: int) -> None:
        a = self.number(first)
        b = min(a + count, self.durable)
        gone = self.pending & set(range(a, b + 1))
        self.log.set_aside(a, b, "no")
        self.pending -= gone
        self.lost["aside"] += len(gone)

    @rule(size=st.integers(1, 1000))
    def drop(self, size: int) -> None:
        loss = self.log.drop_oldest(Drop(Cause.DROPPED_OLDEST, bytes=size))
        dropped = self.pending - numbers(self.log.pending)
        assert loss.records == len(dropped)
        assert not dropped or max(dropped) < min(self.pending - dropped, default=10**9)
        self.pending -= dropped
        self.lost["dropped_oldest"] += len(dropped)

    @rule()
    def reopen(self) -> None:
        self.log.close()
        self.log = Log.open(LANE, OPTIONS, self.files)
        self.durable = len(self.kept)
        assert self.log.recovery.words == ""

    @rule()
    def be_killed(self) -> None:
        capacity, self.files = self.files.capacity, self.files.after_kill()
        self.files.capacity = capacity
        self.log = Log.open(LANE, OPTIONS, self.files)
        self.durable = len(self.kept)
        assert self.log.recovery.words == ""
        # What it has lost is with the cursor, which is written with the next delivery.
        lost = self.log.usage().lost
        self.lost["dropped_oldest"] = lost.get("dropped_oldest", 0)
        self.lost["aside"] = lost.get("quarantined", 0) + lost.get("discarded", 0)

    @invariant()
    def it_is_as_the_model_says(self) -> None:
        log = self.log
        assert numbers(log.pending) == self.pending
        assert log.last == len(self.kept)
        assert log.durable == self.durable
        assert self.pending <= self.there()
        usage = log.usage()
        assert usage.backlog_records == len(self.pending)
        assert usage.damaged == 0
        assert usage.lost.get("dropped_oldest", 0) == self.lost["dropped_oldest"]
        aside = usage.lost.get("quarantined", 0) + usage.lost.get("discarded", 0)
        assert aside == self.lost["aside"]
        on_disk = sum(
            len(file.data) for path, file in self.files.files.items() if path.parent == LANE
        )
        assert on_disk == usage.bytes + 8192

    def teardown(self) -> None:
        self.log.close()


LogMachine.TestCase.settings = settings(stateful_step_count=40)
TestLog = pytest.mark.slow(LogMachine.TestCase)  # long lives: a file takes several steps to fill
