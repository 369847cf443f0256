"""Any life of the processes of a host: what they do together is what one of them might do.

The processes have real tables, in a file, and die without a word: their rows stay as they were.
Who lives is known to the machine alone, which answers when they ask.
"""

import shutil
import tempfile
from fractions import Fraction
from pathlib import Path
from unittest.mock import patch

import pytest
from host_rig import NAME, Process
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tidegate.core.outcome import REJECTIONS, Outcome, Permit, Reason
from tidegate.runtime.shared import table as t
from tidegate.runtime.shared.owner import Owner
from tidegate.runtime.shared.table import Hold, Table
from tidegate.settings import policies
from tidegate.settings.system import Call
from tidegate.units import MILLISECOND, SECOND

CALL = Call(
    attempts=2,
    budget=policies.Budget(),
    breaker=policies.Breaker(window=SECOND, volume=4, open_for=2 * SECOND, ramp=SECOND),
    limit=policies.Limit(max=6),
)
STEPS = st.one_of(
    st.integers(0, 300 * MILLISECOND),
    st.sampled_from([SECOND, 2 * SECOND, 30 * SECOND, 100 * SECOND]),
)
WHO = st.integers(0, 4)


class HostMachine(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.directory = Path(tempfile.mkdtemp()) / "state"
        self.now = SECOND
        self.born = 0
        self.processes: list[Process] = []
        self.out: list[tuple[Process, Permit]] = []
        self.requests = self.granted = 0
        self.sums = [0] * 4
        self.held = False
        self.alive: set[Owner] = set()
        self.patches = [
            patch(f"tidegate.runtime.shared.{module}.is_alive", self.alive.__contains__)
            for module in ("row", "table")
        ]
        for each in self.patches:
            each.start()
        self.start()
        self.table = Table.open(self.directory, NAME)

    def teardown(self) -> None:
        if hasattr(self, "patches"):
            for each in self.patches:
                each.stop()
            shutil.rmtree(self.directory.parent)

    def process(self, who: int) -> Process:
        process = self.processes[who % len(self.processes)]
        if self.now >= process.lane.look_at:
            process.lane.look(self.now)
        return process

    # What may happen.

    @rule(step=STEPS)
    def wait(self, step: int) -> None:
        self.now += step

    @precondition(lambda self: len(self.processes) < 5)
    @rule()
    def start(self) -> None:
        self.born += 1
        owner = Owner(pid=self.born, started=self.born, namespace=1)
        self.alive.add(owner)
        self.processes.append(Process(self.directory, CALL, self.now, self.born, owner))

    @precondition(lambda self: len(self.processes) > 1)
    @rule(who=WHO)
    def die(self, who: int) -> None:
        """Killed: its row is there with all that it had out, until somebody finds it dead."""
        process = self.processes.pop(who % len(self.processes))
        self.alive -= {process.lane._row._owner}
        self.out = [(other, permit) for other, permit in self.out if other is not process]

    @rule(who=WHO, times=st.integers(1, 5))
    def admit(self, who: int, times: int) -> None:
        process = self.process(who)
        for _ in range(times):
            answer = process.pipeline.admit(self.now, 0)
            if isinstance(answer, Permit):
                self.out.append((process, answer))
                self.requests += 1

    @precondition(lambda self: self.out)
    @rule(data=st.data(), outcome=st.sampled_from(Outcome))
    def settle(self, data: st.DataObject, outcome: Outcome) -> None:
        process, permit = self.out.pop(data.draw(st.integers(0, len(self.out) - 1)))
        process.pipeline.settle(self.now, permit, outcome)
        if process.pipeline.drain_transitions():
            process.lane.look(self.now)

    @rule(who=WHO, times=st.integers(1, 5))
    def retry(self, who: int, times: int) -> None:
        self.granted += self.process(who).retries(self.now, times)

    @rule()
    def all_look(self) -> None:
        for process in (*self.processes, *self.processes):
            process.lane.look(self.now)
        assert len({process.lane.hold for process in self.processes}) == 1

    @rule(data=st.data())
    def hold(self, data: st.DataObject) -> None:
        until = data.draw(st.sampled_from([0, self.now + SECOND]))
        self.table.write_hold(Hold("by hand", "ada", until, 1.0, 1.0))
        self.all_look()
        for process in self.processes:
            assert process.pipeline.admit(self.now, 0) is REJECTIONS[Reason.HELD]

    @rule()
    def release(self) -> None:
        self.table.write_hold(None)
        self.all_look()
        for process in self.processes:
            answer = process.pipeline.admit(self.now, 1)
            assert answer is not REJECTIONS[Reason.HELD]
            if isinstance(answer, Permit):
                process.pipeline.settle(self.now, answer, Outcome.IGNORED)

    # What always holds.

    @invariant()
    def retries_of_all_that_ever_lived_are_their_share_and_one(self) -> None:
        if hasattr(self, "table"):
            assert self.granted <= 1 + Fraction(1, 10) * self.requests

    @invariant()
    def no_more_are_in_flight_than_the_limit(self) -> None:
        if hasattr(self, "table"):
            assert len(self.out) <= 6

    @invariant()
    def sums_never_fall(self) -> None:
        if hasattr(self, "table"):
            words = (t.REQUESTS, t.DEPOSITED, t.RETRIED, t.FORFEITED)
            sums = [sum(self.table.column(word)) for word in words]
            assert all(now >= before for now, before in zip(sums, self.sums, strict=True))
            self.sums = sums

    @invariant()
    def no_more_than_lived_at_a_time_need_rows(self) -> None:
        if hasattr(self, "table"):
            assert self.table.used <= 5


TestHostMachine = pytest.mark.slow(HostMachine.TestCase)  # a hundred runs
