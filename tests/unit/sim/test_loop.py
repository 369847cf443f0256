"""Virtual time: in order, ties by who came first, and timers that expire as they were set."""

import gc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.sim.loop import Lane, Loop


class Part:
    """Something that notes when it is called, and with what."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, Any]] = []

    def note(self, now: int, what: Any) -> None:
        self.seen.append((now, what))


class Timer:
    """An item of a lane: `frame` is None once it must not fire."""

    def __init__(self, leaves_at: int) -> None:
        self.leaves_at = leaves_at
        self.frame: Any = self


@given(st.lists(st.integers(0, 20)))
def test_events_come_in_order_and_ties_as_they_were_asked_for(instants: list[int]) -> None:
    loop, part = Loop(), Part()
    for number, when in enumerate(instants):
        loop.at(when, part.note, number)
    loop.run(21)
    assert part.seen == sorted((when, number) for number, when in enumerate(instants))


def test_a_piece_ends_before_the_events_of_its_last_instant() -> None:
    loop, part = Loop(), Part()
    loop.at(5, part.note, "at 5")
    loop.run(5)
    assert (part.seen, loop.now) == ([], 5)
    loop.run(6)
    assert (part.seen, loop.now) == ([(5, "at 5")], 6)


def test_an_event_may_ask_for_another_at_its_own_instant() -> None:
    loop, part = Loop(), Part()
    loop.at(5, lambda now, _: loop.at(now, part.note, "again"))
    loop.at(5, part.note, "first")
    loop.run(6)
    assert part.seen == [(5, "first"), (5, "again")]


def test_what_belongs_to_one_part_can_be_taken_out() -> None:
    loop, mine, other = Loop(), Part(), Part()
    for when in (9, 3, 6):
        loop.at(when, mine.note, when)
        loop.at(when, other.note, when)
    assert [event[0] for event in loop.take(mine)] == [3, 6, 9]
    loop.run(10)
    assert mine.seen == []
    assert other.seen == [(3, 3), (6, 6), (9, 9)]


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=30))
def test_a_lane_fires_each_timer_at_its_instant_unless_it_was_forgotten(
    steps: list[tuple[int, bool]],
) -> None:
    loop, part = Loop(), Part()
    lane = Lane(loop, lambda now, timer: part.note(now, timer.leaves_at))
    due: list[int] = []
    sent = 0
    for gap, forgotten in steps:
        sent += gap
        timer = Timer(sent + 7)
        loop.at(sent, lambda _, timer: lane.add(timer), timer)
        if forgotten:
            timer.frame = None
        else:
            due.append(timer.leaves_at)
    loop.run(sent + 8)
    assert part.seen == [(when, when) for when in due]


def test_the_collector_is_as_it_was_after_a_run_even_one_that_fails() -> None:
    def fail(_now: int, _what: object) -> None:
        assert not gc.isenabled()
        raise KeyError("planted")

    loop = Loop()
    loop.at(1, fail)
    with pytest.raises(KeyError, match="planted"):
        loop.run(2)
    assert gc.isenabled()
