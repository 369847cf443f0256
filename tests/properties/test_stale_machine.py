"""The memory of last answers against a naive one: a list of all that was ever said."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tidegate.runtime.stale import Memory
from tidegate.units import SECOND

KEYS = st.integers(0, 5)


class AMemory(RuleBasedStateMachine):
    """Time goes on, answers are kept and asked for; what is used last stands last."""

    @initialize(entries=st.integers(1, 4), age=st.integers(1, 5))
    def begin(self, entries: int, age: int) -> None:
        self.now = 0
        self.entries, self.age = entries, age * SECOND
        self.memory = Memory(float(age), entries)
        self.known: list[tuple[int, int, int]] = []  # key, value, instant; the last used is last
        self.said = 0

    @rule(wait=st.integers(0, 3 * SECOND))
    def time_passes(self, wait: int) -> None:
        self.now += wait

    @rule(key=KEYS)
    def it_answers(self, key: int) -> None:
        self.said += 1
        self.memory.keep(self.now, key, self.said)
        self.known = [entry for entry in self.known if entry[0] != key]
        self.known.append((key, self.said, self.now))
        self.known = self.known[-self.entries :]

    @rule(key=KEYS)
    def somebody_asks(self, key: int) -> None:
        found = self.memory.find(self.now, key)
        known = [entry for entry in self.known if entry[0] == key]
        self.known = [entry for entry in self.known if entry[0] != key]
        if known and self.now - known[0][2] <= self.age:
            assert found is not None
            assert (found.value, found.at) == known[0][1:]
            self.known.append(known[0])
        else:
            assert found is None

    @invariant()
    def it_is_bounded(self) -> None:
        if hasattr(self, "memory"):
            assert len(self.memory) == len(self.known) <= self.entries


TestAMemory = pytest.mark.slow(AMemory.TestCase)  # a hundred runs
