"""Any queue, against a judge who has watched every entry and exit of it."""

from collections import deque

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tidegate.core.codel import CoDel
from tidegate.settings import policies as settings
from tidegate.units import HOUR, MILLISECOND

MS = MILLISECOND


class CoDelMachine(RuleBasedStateMachine):
    """First in, first out: the one order in which the judge can know when the queue began."""

    @initialize(aim=st.integers(1, 10), factor=st.integers(1, 10), now=st.integers(0, HOUR))
    def begin(self, aim: int, factor: int, now: int) -> None:
        self.target, self.interval = aim * MS, aim * factor * MS
        self.judge = CoDel(settings.CoDel(target=self.target, interval=self.interval))
        self.queue: deque[int] = deque()
        self.lengths = [(now, 0)]  # every length the queue ever had, and since when
        self.now = now
        self.dropped = 0

    def note(self) -> None:
        self.lengths.append((self.now, len(self.queue)))

    def empty_within(self, interval: int) -> bool:
        """Whether the queue was empty at some instant of (now - interval, now]."""
        until = self.now
        for since, length in reversed(self.lengths):
            if length == 0 and until > self.now - interval:
                return True
            until = since
        return False

    @rule(step=st.one_of(st.integers(0, 20 * MS), st.integers(0, HOUR)))
    def wait(self, step: int) -> None:
        self.now += step

    @rule(count=st.integers(1, 10))
    def enter(self, count: int) -> None:
        for _ in range(count):
            self.queue.append(self.now)
            self.note()

    @precondition(lambda self: self.queue)
    @rule()
    def take(self) -> None:
        standing = not self.empty_within(self.interval)
        entered = self.queue.popleft()
        self.note()
        late = self.now - entered > self.target
        expected = not (standing and late and self.queue)
        assert self.judge.on_dequeue(self.now, entered, not self.queue) == expected
        self.dropped += not expected

    @precondition(lambda self: hasattr(self, "judge") and not self.queue)
    @rule()
    def a_lone_item_is_always_served(self) -> None:
        self.enter(1)
        self.now += HOUR
        self.take()

    @invariant()
    def every_drop_is_counted(self) -> None:
        if hasattr(self, "judge"):
            assert self.judge.snapshot(self.now).dropped == self.dropped


TestCoDelMachine = pytest.mark.slow(CoDelMachine.TestCase)  # a hundred runs of fifty steps
