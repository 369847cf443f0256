"""A clock that a test moves, and guards that wait on it in no time."""

import asyncio

import pytest

import tidegate
from tidegate.errors import SettingsError
from tidegate.runtime import clock as clocks
from tidegate.testing import ManualClock, instant, scripted
from tidegate.units import SECOND


def test_it_goes_when_it_is_told_to_and_when_somebody_waits():
    clock = ManualClock()
    assert (clock.now(), clock.seconds) == (0, 0)
    clock.advance(1.5)
    clock.sleep(SECOND // 2)
    asyncio.run(clock.wait(SECOND))
    assert (clock.now(), clock.seconds) == (3 * SECOND, 3.0)


@pytest.mark.parametrize("wrong", [-1, float("nan")])
def test_it_never_goes_back(wrong):
    clock = ManualClock()
    with pytest.raises(SettingsError, match="a clock goes forward"):
        clock.advance(wrong)
    clock.sleep(-5)
    asyncio.run(clock.wait(-5))
    assert clock.now() == 0


def assert_changed(before):
    assert clocks.current() is not before


def test_the_clock_before_is_put_back_also_after_an_error():
    before = clocks.current()
    with pytest.raises(KeyError), instant():
        raise KeyError(assert_changed(before))
    assert clocks.current() is before


def test_a_wait_is_on_the_clock_and_not_in_the_room():
    guard = tidegate.guard("test_clock.waits", attempts=2, backoff=10.0, budget=None)
    with instant() as clock:
        stub = scripted(ConnectionError, "fine")
        assert guard.call(stub.call) == "fine"
        assert clock.seconds == stub.instants[1] > 0


def test_guards_begin_anew_on_the_way_in_and_out_and_keep_their_settings():
    guard = tidegate.guard("test_clock.anew", attempts=1)
    for _ in range(2):
        with instant():
            assert guard.snapshot().started == 0
            guard.call(scripted("fine").call)
            assert guard.snapshot().started == 1
    assert guard.snapshot().started == 0
    assert guard.settings.attempts == 1


def jitter(name, seed):
    with instant(seed=seed) as clock:
        guard = tidegate.guard(name, attempts=2, backoff=10.0, budget=None)
        guard.call(scripted(ConnectionError, "fine").call)
        return clock.seconds


def test_the_same_seed_draws_the_same_jitter_for_old_guards_and_new():
    first = jitter("test_clock.luck", 7)
    assert jitter("test_clock.luck", 7) == first
    assert jitter("test_clock.luck", 8) != first
    assert jitter("test_clock.luck.other", 7) != first
