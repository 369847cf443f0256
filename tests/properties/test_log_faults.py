"""Does a log keep what it promised on a disk on which anything may fail at any time?"""

import errno
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_witness import Witness, numbers
from simulated_files import SimulatedFiles

from tidegate.core.bounds import Cause, Drop
from tidegate.errors import SpoolError
from tidegate.spooler.log.log import Log
from tidegate.spooler.log.options import LogOptions

LANE = Path("/lane")
OPTIONS = LogOptions(segment=600, frame=200, aside=2000)
STEPS = ("append", "append", "sync", "sync", "deliver", "drop", "aside", "checkpoint", "reopen")


class Unlucky:
    """A log on such a disk. Whatever it says must be a `SpoolError`, and nothing else."""

    def __init__(self, luck: Random, rate: float) -> None:
        self.luck = luck
        self.rate = rate
        self.files = SimulatedFiles()
        self.witness = Witness()
        self.log: Log | None = None

    def fail(self, operation: str, path: Path) -> int | None:
        if operation in {"read", "open"} or self.luck.random() >= self.rate:
            return None  # what cannot be read is another test's
        return self.luck.choice([errno.EIO, errno.ENOSPC, errno.EDQUOT])

    def do(self, step: str) -> None:
        luck, witness = self.luck, self.witness
        self.files.failing = self.fail
        if self.log is None:
            self.log = Log.open(LANE, OPTIONS, self.files)
        log = self.log
        if step == "append":
            records = witness.records(luck.randint(1, 6))
            first = log.last + 1
            assert log.append(records) == first + len(records) - 1
            witness.on_append(first, records)
        elif step == "sync":
            before = witness.acknowledged.keys()
            try:
                witness.on_durable(log.sync())
            except SpoolError:  # what was not acknowledged is gone
                witness.now = {n: r for n, r in witness.now.items() if n in before}
                raise
        elif step == "deliver":
            batch = log.read(luck.randint(0, log.last), max_bytes=luck.randint(1, 500))
            if batch is not None:
                witness.on_done(range(batch.first, batch.last + 1))
                log.delivered(batch.first, batch.last)
        elif step == "drop":
            before_drop = numbers(log.pending)
            log.drop_oldest(Drop(Cause.DROPPED_OLDEST, bytes=1))
            witness.on_done(before_drop - numbers(log.pending))
        elif step == "aside":
            number = luck.randint(0, log.durable)
            log.set_aside(number, number, "no")
            witness.on_done([number])
        elif step == "checkpoint":
            log.checkpoint()
        else:
            self.log = None
            witness.on_end()
            log.close()

    def try_all(self, steps: list[str]) -> int:
        """How many of them were refused."""
        refused = 0
        for step in steps:
            try:
                self.do(step)
            except SpoolError:
                refused += 1
            self.files.failing = lambda operation, path: None
            if self.log is not None:
                self.witness.look(self.log)
        return refused

    def end(self) -> None:
        """All is well with the disk again."""
        self.files.failing = lambda operation, path: None
        if self.log is None or self.luck.random() < 0.5:
            self.files = self.files.after_kill()
            self.log = Log.open(LANE, OPTIONS, self.files)
            self.witness.on_end()
        self.witness.look(self.log)
        records = self.witness.records(3)
        self.witness.on_append(self.log.last + 1, records)
        self.log.append(records)
        self.witness.on_durable(self.log.sync())
        self.witness.look(self.log)
        self.log.close()
        assert not [path for path, _ in self.files.handles.values()]


@given(
    st.lists(st.sampled_from(STEPS), max_size=40),
    st.sampled_from([0.02, 0.1, 0.3]),
    st.integers(0, 2**32),
)
def test_anything_may_fail(steps: list[str], rate: float, seed: int) -> None:
    life = Unlucky(Random(seed), rate)
    life.try_all(steps)
    life.end()


@pytest.mark.slow  # long lives
def test_long_lives_on_a_bad_disk() -> None:
    refused = 0
    for seed in range(40):
        luck = Random(seed)
        life = Unlucky(luck, 0.05)
        refused += life.try_all(luck.choices(STEPS, k=100))
        life.end()
    assert refused > 200
