"""The sink takes what it can, breaks under more, heals in peace, and is seen late."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.core.health import flaw
from tidegate.sim.fleet.sink import BASE_S, STEP_S, Case, Sink

CASE = Case(live=1e6, backlog=0.0, capacity=2e6, collapsed=1e6)


def sink(case: Case = CASE) -> Sink:
    return Sink(case, Random(1))


def feed(sink: Sink, rate: float, seconds: float) -> None:
    for _ in range(round(seconds / STEP_S)):
        sink.step(rate * STEP_S)


@given(st.lists(st.floats(0, 1e8), max_size=200), st.floats(0, 1))
def test_it_takes_no_more_than_its_capacity_and_its_line(
    offers: list[float], health: float
) -> None:
    case = CASE._replace(health=health, lost=(5.0, 10.0))
    it = sink(case)
    taken = 0.0
    for offered in offers:
        it.step(offered)
        assert 0 <= it.failed <= 1
        assert 0 <= it.health <= 1
        assert case.collapsed * 2 / 3 <= it.capacity <= case.capacity
        taken += offered * (1 - it.failed)
    assert taken <= case.capacity * (len(offers) * STEP_S + 2)


def test_with_room_it_answers_at_once() -> None:
    it = sink()
    feed(it, 1e6, 10)
    assert it.failed == 0
    assert it.latency_s == pytest.approx(2 * BASE_S)  # half in use


def test_overload_fills_the_line_and_then_fails_what_comes() -> None:
    it = sink()
    feed(it, 4e6, 0.75)
    assert it.failed == 0
    feed(it, 4e6, 5)
    assert it.failed > 0.8  # half is refused, and of the rest three in four come too late
    assert it.latency_s > 1.5


def test_health_goes_only_above_capacity_and_comes_back_only_with_room() -> None:
    it = sink()
    feed(it, 2.05e6, 60)
    assert it.health == 1
    feed(it, 4e6, 60)
    assert it.health == pytest.approx(0.5)
    feed(it, 1.49e6, 60)
    assert it.health == pytest.approx(0.5)  # as much as it takes: no room to heal
    feed(it, 1e6, 60)
    assert it.health == pytest.approx(0.6)


def test_a_lost_broker_takes_its_share_and_is_seen_five_seconds_later() -> None:
    it = sink(CASE._replace(lost=(10.0, 20.0)))
    feed(it, 1e6, 10.25)
    assert it.capacity == pytest.approx(2e6 * 2 / 3)
    assert flaw(it.replicas, 3) is None
    feed(it, 1e6, 5)
    assert flaw(it.replicas, 3) == "1 knows 2 of 3 brokers"
    feed(it, 1e6, 10)
    assert flaw(it.replicas, 3) is None


def test_replicas_out_of_step_show_until_they_have_caught_up() -> None:
    it = sink(CASE._replace(health=0.9))
    assert flaw(it.replicas, 3) == "events has 2 of 3 replicas in step"
    feed(it, 1e6, 50)
    assert flaw(it.replicas, 3) is not None
    feed(it, 1e6, 20)
    assert flaw(it.replicas, 3) is None


def test_a_sink_of_one_broker_that_is_lost_takes_nothing() -> None:
    it = sink(CASE._replace(brokers=1, lost=(0.0, 60.0)))
    feed(it, 1e6, 6)
    assert it.failed == pytest.approx(1)
    assert flaw(it.replicas, 1) == "nobody answers (the broker)"


def test_failures_are_seen_a_second_late() -> None:
    it = sink()
    feed(it, 20e6, 0.75)
    assert it.failed > 0
    assert it.seen.failed == 0
    feed(it, 20e6, 0.25)
    assert it.seen.failed > 0
