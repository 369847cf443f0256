"""How much can be started in a step: every worker its turns, and none after one that is held."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.analysis.fluid.workers import Workers

STEP = 0.1


def pool(count: float = 10, own: float = 0.02, below: float = 0.0) -> Workers:
    workers = Workers(count, STEP)
    workers.retime(own, below)
    workers.begin_step(frozen=False)
    return workers


def test_ten_workers_of_20_ms_end_50_works_in_100() -> None:
    workers = pool()
    assert workers.startable(cautious=False) == pytest.approx(50)
    assert workers.per_step == pytest.approx(50)
    workers.start(20)
    assert workers.startable(cautious=False) == pytest.approx(30)
    workers.start(30)
    assert workers.startable(cautious=False) == 0


def test_what_is_held_is_not_there() -> None:
    workers = pool()
    workers.held = 4
    assert workers.startable(cautious=False) == pytest.approx(30)
    workers.capacity = 0.5
    assert workers.startable(cautious=False) == pytest.approx(5)
    workers.capacity = 0.4
    assert workers.startable(cautious=False) == 0


def test_the_first_wave_is_one_for_each() -> None:
    workers = pool()
    assert workers.startable(cautious=True) == 10
    workers.start(10)
    workers.work_done(10, 10)
    workers.learn(returned=10)
    assert workers.startable(cautious=True) == pytest.approx(40)


def test_all_held_means_one_for_each_and_no_more() -> None:
    workers = pool()
    workers.start(10)
    workers.work_done(10, 10)
    workers.held = 10
    workers.learn(returned=0)
    assert workers.startable(cautious=True) == 0
    workers.held = 0
    workers.begin_step(frozen=False)
    assert workers.startable(cautious=False) == pytest.approx(10)


@given(st.floats(0.01, 0.7), st.floats(1.01, 8))
def test_starting_takes_the_time_that_it_was_reckoned_with(held: float, turns: float) -> None:
    """What can be started takes all the time there is: one formula is the other's inverse."""
    workers = pool(count=1, own=STEP / turns)
    workers.start(1e-6)
    workers.work_done(1, 1)
    workers.learn(returned=1 - held)
    workers.begin_step(frozen=False)
    most = workers.startable(cautious=False)
    assert most <= turns * (1 + 1e-9)
    workers.start(most)
    assert workers.startable(cautious=False) == pytest.approx(0, abs=1e-3 * most)


def test_work_that_makes_no_calls_takes_no_time_for_them() -> None:
    workers = pool(own=0.02, below=0.03)
    assert workers.per_step == pytest.approx(20)
    workers.start(10)
    workers.work_done(10, 0)  # all of it failed before its calls
    workers.begin_step(frozen=False)
    workers.retime(0.02, 0.03)
    assert workers.per_step == pytest.approx(50)


def test_what_is_done_besides_is_owed_by_the_next_step() -> None:
    workers = pool()
    workers.charge(60)
    assert workers.startable(cautious=False) == 0
    workers.begin_step(frozen=False)
    assert workers.startable(cautious=False) == pytest.approx(40)


def test_a_frozen_step_has_no_room() -> None:
    workers = pool()
    workers.begin_step(frozen=True)
    assert workers.startable(cautious=False) == 0
    workers.begin_step(frozen=False)
    assert workers.startable(cautious=False) == pytest.approx(50)


def test_workers_without_a_limit() -> None:
    workers = pool(count=math.inf)
    assert workers.startable(cautious=True) == math.inf
    workers.start(1e9)
    assert workers.startable(cautious=True) == math.inf
    workers.capacity = 0
    assert workers.startable(cautious=True) == 0
    assert workers.per_step == 0


def test_work_of_no_time_is_bounded_by_the_workers_alone() -> None:
    workers = pool(own=0.0)
    assert workers.startable(cautious=False) == math.inf
    assert workers.startable(cautious=True) == 10
