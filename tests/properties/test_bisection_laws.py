"""Any sink that refuses some records for ever, and at times everything: what is set aside?

The lane is as simple as one can be: it sends what waits first, in order, in batches, looks further
on where nothing may go, and lets time pass when nothing may be sent at all.
"""

from math import ceil, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.core.bisection import REFUSALS, Bisection

BATCH = 64


class World:
    """`poison` is never taken; in a `bad` spell nothing is, nor ever more than `most` at once."""

    def __init__(self, records: int, poison: set[int], most: int = BATCH) -> None:
        self.waits = list(range(1, records + 1))
        self.last = records
        self.poison, self.most, self.bad = poison, most, False
        self.search = Bisection()
        self.now = self.sends = 0
        self.delivered: list[int] = []
        self.set_aside: list[int] = []

    def step(self) -> bool:
        """One send, or time passes; False if nothing is left to do."""
        at = 0
        while at < len(self.waits):
            first = self.waits[at]
            last = first
            while last + 1 - first < BATCH and last + 1 - first + at < len(self.waits):
                if self.waits[at + last + 1 - first] != last + 1:
                    break
                last += 1
            part = self.search.cut(self.now, first, last)
            assert self.search._check()
            if part is not None:
                assert first <= part[0] <= part[1] <= last
                self.send(*part)
                return True
            at += last - first + 1
        wakes = self.search.next_wakeup(self.now)
        assert (wakes is not None) == bool(self.waits)  # never stuck
        if wakes is None:
            return False
        assert wakes > self.now
        self.now = wakes
        return True

    def finish(self) -> None:
        """Go on until nothing waits; a good record comes now and then, as on a lane that lives."""
        self.bad = False
        for _ in range(20_000):
            if not self.waits:
                return
            if self.poison.issuperset(self.waits):
                self.waits.append(self.last + 1)
                self.last += 1
            self.step()
        raise AssertionError("no end")

    def send(self, first: int, last: int) -> None:
        self.sends += 1
        records = range(first, last + 1)
        if self.bad or len(records) > self.most or not self.poison.isdisjoint(records):
            verdict = self.search.on_refused(self.now, first, last, "no")
            if verdict is not None:
                assert (first, last) == (verdict.number, verdict.number)
                self.set_aside.append(verdict.number)
                self.waits.remove(verdict.number)
        else:
            self.search.on_taken(self.now, first, last)
            self.delivered += records
            self.waits = [number for number in self.waits if not first <= number <= last]
        assert self.search._check()


POISON = st.sets(st.integers(1, 300), max_size=12)


@pytest.mark.slow  # three hundred records, a hundred times
@given(POISON, st.sampled_from([BATCH, 16, 3, 1]))
def test_each_poisoned_record_is_set_aside_and_every_other_delivered_once(
    poison: set[int], most: int
) -> None:
    world = World(300, poison, most)
    world.finish()
    assert sorted(world.set_aside) == sorted(poison)
    assert sorted(world.delivered) == [n for n in range(1, world.last + 1) if n not in poison]
    if most == BATCH:
        # Down to the record, both halves at each step, and its refusals.
        searches = len(poison) * (2 * ceil(log2(BATCH)) + REFUSALS)
        assert world.sends <= ceil(300 / BATCH) + searches + world.last - 300


@pytest.mark.slow  # as above
@given(
    POISON,
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 80)), max_size=REFUSALS - 1),
)
def test_a_sink_that_was_wrong_for_a_while_costs_no_good_record(
    poison: set[int], spells: list[tuple[int, int]]
) -> None:
    world = World(300, poison)
    for well, bad in spells:
        for world.bad, steps in ((False, well), (True, bad)):
            before = len(world.set_aside)
            for _ in range(steps):
                world.step()
            # What was under suspicion before may be found guilty; nothing else is.
            assert not world.bad or len(world.set_aside) - before <= len(poison)
    world.finish()
    assert sorted(world.set_aside) == sorted(poison)
    assert sorted(world.delivered) == [n for n in range(1, world.last + 1) if n not in poison]


@pytest.mark.slow  # hundreds of sends, a hundred times
@given(st.integers(1, 300), st.integers(1, 400))
def test_a_sink_that_refuses_everything_has_nothing_set_aside(records: int, steps: int) -> None:
    world = World(records, set())
    world.bad = True
    for _ in range(steps):
        world.step()
    assert not world.set_aside
    assert len(world.waits) == records


@pytest.mark.slow  # as above
@given(st.integers(2, 200))
def test_a_lane_of_poison_alone_waits_for_a_proof(records: int) -> None:
    world = World(records, set(range(1, records)))
    world.waits.pop()  # the good one comes later
    for _ in range(50):
        world.step()
    assert not world.set_aside
