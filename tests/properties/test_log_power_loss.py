"""Does a log keep what it promised when the power goes, at any moment, again and again?"""

from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_witness import Witness, numbers
from simulated_files import PowerLostError, SimulatedFiles

from tidegate.core.bounds import Cause, Drop
from tidegate.settings.spool import Durable
from tidegate.spooler.log.codec import Codec
from tidegate.spooler.log.log import Log
from tidegate.spooler.log.options import LogOptions

LANE = Path("/lane")
OPTIONS = LogOptions(segment=600, frame=200)
STEPS = (
    *("append", "append", "append", "sync", "sync", "deliver", "deliver", "checkpoint", "drop"),
    *("reopen", "kill"),
)
SCRIPT = (
    *("append", "sync", "append", "append", "sync", "deliver", "append", "sync", "checkpoint"),
    *("append", "append", "sync", "deliver", "deliver", "append", "reopen", "append", "sync"),
    *("drop", "append", "sync", "deliver", "deliver", "append", "kill", "deliver", "append"),
    *("append", "deliver", "checkpoint", "sync", "deliver", "kill", "deliver", "append"),
)


class Life:
    """One process after the other with one log, and a witness to all of them."""

    def __init__(self, options: LogOptions = OPTIONS) -> None:
        self.options = options
        self.files = SimulatedFiles()
        self.witness = Witness()
        self.log: Log | None = None

    def do(self, step: str, luck: Random) -> None:
        """One thing that a process does."""
        log, witness = self.opened(), self.witness
        if step == "append":
            records = witness.records(luck.randint(1, 6))
            witness.on_append(log.last + 1, records)
            assert log.append(records) == log.last
        elif step == "sync":
            number = log.sync()
            if self.options.durable != "never":
                witness.on_durable(number)
        elif step == "deliver":
            batch = log.read(luck.randint(0, log.last), max_bytes=luck.randint(1, 500))
            if batch is not None:
                witness.on_done(range(batch.first, batch.last + 1))
                log.delivered(batch.first, batch.last, fence=luck.randint(0, 9))
        elif step == "checkpoint":
            log.checkpoint()
        elif step == "drop":
            before = numbers(log.pending)
            try:
                log.drop_oldest(Drop(Cause.DROPPED_OLDEST, bytes=1))
            finally:
                witness.on_done(before - numbers(log.pending))
        elif step == "reopen":
            last = log.last
            log.close()
            if self.options.durable != "never":
                witness.on_durable(last)
            self.end()
        elif step == "kill":
            self.files = self.files.after_kill()
            self.end()

    def opened(self) -> Log:
        """The log, by a new process if there is none."""
        if self.log is None:
            self.log = Log.open(LANE, self.options, self.files)
            self.witness.look(self.log)
            # Nothing that was on disk is gone, so files went after the cursor, and it is whole.
            assert not self.log.recovery.cursor_lost
            assert not self.log.recovery.missing or self.options.durable != "always"
        return self.log

    def end(self) -> None:
        self.log = None
        self.witness.on_end()

    def run(self, script: tuple[str, ...], luck: Random, power_until: int | None) -> bool:
        """Whether the power has lasted for all of it. If not it went, and is back."""
        self.files.steps, self.files.power_until = 0, power_until
        try:
            for step in script:
                self.do(step, luck)
            self.opened()
        except PowerLostError:
            self.files = self.files.after_power_loss(luck)
            self.end()
            return False
        self.files.power_until = None
        return True


def after_power_loss_at(step: int, seed: int, options: LogOptions = OPTIONS) -> bool:
    """Live until the power goes at this step, and twice more a while after it is back."""
    luck = Random(seed)
    life = Life(options)
    lasted = life.run(SCRIPT, luck, step)
    if not lasted:
        for _ in range(2):
            life.run(SCRIPT, luck, luck.randint(0, 40))
        assert life.run(SCRIPT, luck, None)
        life.witness.look(life.opened())
    return lasted


def lasts(step: int, seeds: range, options: LogOptions = OPTIONS) -> bool:
    """Whether the script is shorter than so many steps, with each of these lucks."""
    return sum(after_power_loss_at(step, seed, options) for seed in seeds) == len(seeds)


@pytest.mark.slow  # each moment of a script, several times
def test_the_power_goes_at_every_step() -> None:
    step = 0
    while not lasts(step, range(3)):
        step += 1
    assert step > 60


@pytest.mark.slow  # each moment of a script
@pytest.mark.parametrize("durable", ["interval", "never"])
def test_where_records_go_before_they_are_on_disk_no_number_is_given_out_twice(
    durable: Durable,
) -> None:
    step, options = 0, OPTIONS._replace(durable=durable)
    while not lasts(step, range(3), options):
        step += 1


@pytest.mark.golden
@pytest.mark.parametrize(
    "options", [OPTIONS, OPTIONS._replace(codec=Codec(zstd=True, keys=(b"k" * 32,)))]
)
def test_the_power_goes_at_every_step_many_times(options: LogOptions) -> None:
    step = 0
    while not lasts(step, range(10, 40), options):
        step += 1


scripts = st.lists(st.sampled_from(STEPS), max_size=30).map(tuple)


@pytest.mark.slow  # three lives in each example
@given(
    st.lists(st.tuples(scripts, st.integers(0, 60)), min_size=1, max_size=3),
    st.integers(0, 2**32),
)
def test_any_life_with_losses_of_power(lives: list[tuple[tuple[str, ...], int]], seed: int) -> None:
    luck = Random(seed)
    life = Life()
    for script, power_until in lives:
        life.run(script, luck, power_until)
    life.files.power_until = None
    life.witness.look(life.opened())


@given(scripts, st.integers(0, 2**32))
def test_any_life_with_kills(script: tuple[str, ...], seed: int) -> None:
    """What a process wrote outlives it, synced or not."""
    luck = Random(seed)
    life = Life()
    for step in script:
        life.do(step, luck)
        if luck.random() < 0.2:
            due = life.witness.now.copy()
            life.files = life.files.after_kill()
            life.end()
            log = life.opened()
            assert {n for n in due if n not in life.witness.done} <= numbers(log.pending)


def test_a_log_that_promises_too_early_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimulatedFiles, "sync", lambda self, handle: None)
    with pytest.raises(AssertionError, match=r"lost|not to be delivered|another|changed|twice"):
        test_the_power_goes_at_every_step()
