"""Does a step of the wall clock let nothing expire?"""

from hypothesis import given
from hypothesis import strategies as st

from tidegate.spooler.log.calendar import Calendar
from tidegate.units import DAY, HOUR, MINUTE

WALL = 1_700_000_000 * 10**9


class Clocks:
    """A wall that steps, and a clock that does not."""

    def __init__(self) -> None:
        self.wall = WALL
        self.steady = 12_345
        self.calendar = Calendar(lambda: self.wall, lambda: self.steady)

    def go_on(self, time: int) -> None:
        self.wall += time
        self.steady += time


def test_time_goes_on_without_the_steps_of_the_wall() -> None:
    clocks = Clocks()
    clocks.go_on(HOUR)
    clocks.wall -= 5 * DAY
    assert clocks.calendar.now() == WALL + HOUR


def test_nothing_is_too_old_in_the_first_minute() -> None:
    clocks = Clocks()
    clocks.go_on(MINUTE - 1)
    assert clocks.calendar.older_than(0) is None
    clocks.go_on(1)
    assert clocks.calendar.older_than(HOUR) == WALL + MINUTE - HOUR


@given(st.integers(-100 * DAY, 100 * DAY), st.integers(0, 100 * DAY), st.integers(0, 100 * DAY))
def test_no_step_makes_a_record_too_old_before_its_time(step: int, age: int, after: int) -> None:
    clocks = Clocks()
    accepted = clocks.calendar.now()
    clocks.wall += step
    clocks.go_on(MINUTE + after)
    before = clocks.calendar.older_than(age)
    assert before is not None
    if accepted < before:
        assert MINUTE + after > age


@given(st.integers(0, 100 * DAY))
def test_a_clock_that_was_fast_at_opening_expires_nothing_once_it_is_right(fast: int) -> None:
    clocks = Clocks()
    accepted = clocks.calendar.now() - fast  # by an earlier process, whose clock was right
    clocks.wall -= fast
    clocks.go_on(MINUTE)
    before = clocks.calendar.older_than(MINUTE)
    assert before is not None
    assert accepted >= before
