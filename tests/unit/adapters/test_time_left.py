"""Each step of a request has what is left, and an error says whose time was over."""

import pytest

import tidegate
from tidegate.adapters.time_left import (
    TimeLeft,
    attempt_ends_at,
    ends_at,
    is_over,
    seconds_until,
    too_slow,
)
from tidegate.runtime import registry
from tidegate.testing import ManualClock, instant
from tidegate.units import MILLISECOND, SECOND


@pytest.fixture
def clock():
    with instant() as clock:
        yield clock
    registry._forget()


def test_each_step_has_what_is_left_when_it_begins(clock: ManualClock) -> None:
    time = TimeLeft({"connect": 5.0, "read": None}, 2 * SECOND)
    assert time.get("connect") == 2.0
    clock.advance(1.5)
    assert time.get("read") == 0.5
    assert time.get("write", 9.0) == 0.5
    assert time["connect"] == 5.0, "what the client was given stays readable"


def test_the_client_s_own_timeout_holds_where_it_is_shorter(clock: ManualClock) -> None:
    time = TimeLeft({"connect": 0.2, "read": 9.0}, SECOND)
    assert (time.get("connect"), time.ours) == (0.2, False)
    assert (time.get("read"), time.ours) == (1.0, True)
    assert (TimeLeft({"read": 9.0}, None).get("read"), time.ours) == (9.0, True)
    assert TimeLeft(None, None).get("read") is None


def test_no_time_is_a_moment_and_not_a_refusal_to_wait(clock: ManualClock) -> None:
    clock.advance(5)
    assert TimeLeft({}, SECOND).get("read") == seconds_until(SECOND) == 0.001


def test_what_is_left_alone_has_no_time_at_all(clock: ManualClock) -> None:
    time = TimeLeft({"read": 9.0}, SECOND)
    time.abandoned = True
    assert time.get("read") == time.get("connect") == 0.0


def test_over_is_over_within_two_readings_of_the_clock(clock: ManualClock) -> None:
    assert not is_over(2 * MILLISECOND)
    assert is_over(MILLISECOND)


def test_a_call_ends_with_whoever_waits_or_by_its_own_deadline(clock: ManualClock) -> None:
    guard = tidegate.guard("timed", deadline=3.0)
    assert ends_at(tidegate.guard("endless")) is None
    assert ends_at(guard) == 3 * SECOND
    with tidegate.deadline(1.0):
        assert ends_at(guard) == ends_at(tidegate.guard("endless")) == SECOND
    with tidegate.deadline(9.0):
        assert ends_at(guard) == 3 * SECOND


def test_an_error_says_whose_time_was_over(clock: ManualClock) -> None:
    guard = tidegate.guard("slow", timeout=1.0)
    assert isinstance(too_slow(guard, SECOND, None), tidegate.AttemptTimeout)
    assert isinstance(too_slow(guard, SECOND, 5 * SECOND), tidegate.AttemptTimeout)
    assert isinstance(too_slow(guard, SECOND, SECOND), tidegate.DeadlineExceeded)
    endless = tidegate.guard("endless", timeout=None)
    assert isinstance(too_slow(endless, SECOND, SECOND), tidegate.DeadlineExceeded)


def test_an_attempt_ends_by_its_timeout_or_with_whoever_waits(clock: ManualClock) -> None:
    guard = tidegate.guard("slow", timeout=1.0)
    assert attempt_ends_at(guard) == SECOND
    assert attempt_ends_at(guard.options(timeout=None)) is None
    assert attempt_ends_at(guard.options(mode="observe")) is None
    with tidegate.deadline(0.5):
        assert attempt_ends_at(guard) == attempt_ends_at(guard.options(timeout=None)) == SECOND // 2
    with tidegate.deadline(5.0):
        assert attempt_ends_at(guard) == SECOND
