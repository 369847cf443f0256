"""A fleet of twenty that sends 1 MB a second, and a sink that takes twice that."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.core.drain import HANDOVER, endangered, eta, least, plan, too_old, utilisation
from tidegate.settings import spool as settings
from tidegate.units import DAY, HOUR, MINUTE, SECOND

FLEET = {"collectors": 20, "rate": 1000.0, "record": 1000, "capacity": 2.0, "outage": HOUR}


def fleet(**keywords: Any) -> settings.Fleet:
    return settings.Fleet(**{**FLEET, **keywords})


def lane(**keywords: Any) -> settings.Lane:
    return settings.Lane(to="file:out", **keywords)


@pytest.mark.parametrize(
    ("capacity", "right"),
    [(2.0, HOUR), (1.5, 2 * HOUR), (4.0, HOUR // 3), (1.0, None), (0.5, None)],
)
def test_the_least_possible_is_the_backlog_by_what_is_to_spare(
    capacity: float, right: int | None
) -> None:
    assert plan(lane(), fleet(capacity=capacity)).least == right


@pytest.mark.parametrize(("speed", "ratio"), [("gentle", 1.5), ("normal", 1.2), ("fast", 1.11)])
def test_the_price_of_a_latency_is_a_longer_drain(speed: str, ratio: float) -> None:
    """At m times the latency of peace: (C - L) / ((1 - 1/m) C - L)."""
    planned = plan(lane(pace=settings.Pace(speed=speed)), fleet(outage=100 * DAY, capacity=2.0))
    assert planned.least is not None
    assert planned.likely is not None
    assert planned.likely / planned.least == pytest.approx(ratio, rel=0.01)


def test_gate_and_ramp_come_on_top() -> None:
    planned = plan(lane(), fleet())
    assert planned.likely is not None
    pace = 2 * (1 - 1 / 12) - 1  # live rates
    parts = 75 * SECOND + pace / (2 * 0.02) * SECOND + HOUR / pace
    assert planned.likely == pytest.approx(parts, rel=1e-9)


def test_a_cap_that_leaves_the_sink_idle_is_obeyed() -> None:
    assert utilisation(settings.Pace(cap=0.5), 4.0) == 1.5 / 4
    assert utilisation(settings.Pace(speed="at_once", cap=0.5), 4.0) == 1.0
    planned = plan(lane(pace=settings.Pace(cap=0.5)), fleet(capacity=4.0))
    assert planned.likely is not None
    assert planned.likely > 2 * HOUR


def test_turns_hand_over_and_each_sends_no_faster_than_it_can() -> None:
    turns = settings.Turns(through="nats://127.0.0.1", leases=2)
    slow = fleet(speed=1.0)  # each alone: a twentieth of the live rate
    planned = plan(lane(turns=turns), slow)
    backlog = FLEET["collectors"] * HOUR // 2  # two at a time, each for an hour's worth
    assert planned.likely is not None
    assert planned.likely > backlog + 10 * HANDOVER
    assert planned.turns == 17  # that a sink of 0.83 live rates to spare is used
    assert plan(lane(), slow).turns == 17


def test_what_a_collector_must_keep() -> None:
    planned = plan(lane(bounds=settings.Bounds(age=14 * DAY)), fleet())
    assert planned.backlog == 3_600_000_000
    assert planned.kept == 180_000_000
    assert planned.age_bytes == 14 * 86_400 * 50_000


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        ({"capacity": 1.0}, "it never ends: the sink takes 1 times the live rate"),
        ({"capacity": 1.05}, "it never ends: at 91.7% of a sink of 1.05 times the live rate"),
        (
            {"capacity": 1.4, "brokers": 3},
            "no time can be promised: without one of 3 brokers the sink takes 0.933 times",
        ),
        ({"brokers": 1}, "no time can be promised: without one of 1 brokers the sink takes 0"),
        ({"outage": 13 * DAY, "capacity": 1.6}, "it takes 27.9d, and records may wait 14d"),
    ],
)
def test_what_cannot_be_promised_is_not(keywords: dict[str, Any], said: str) -> None:
    refusal = plan(lane(), fleet(**keywords)).refusal
    assert refusal is not None
    assert refusal.startswith(said)


def test_what_can_be_promised_is() -> None:
    assert plan(lane(), fleet()).refusal is None


def test_nothing_is_promised_of_a_replay_without_control() -> None:
    refusal = plan(lane(pace=settings.Pace(speed="at_once")), fleet()).refusal
    assert refusal is not None
    assert "all at once" in refusal


def test_an_eta_is_the_backlog_by_its_rate() -> None:
    assert eta(1000, 10.0) == 100 * SECOND
    assert eta(0, 10.0) == 0
    assert eta(1000, 0.0) is eta(1000, 0.9) is None


def test_what_is_in_danger_is_counted_while_something_goes() -> None:
    assert endangered(1000, 13 * DAY, 15 * DAY, 14 * DAY) == 500
    assert endangered(1000, 13 * DAY, 14 * DAY, 14 * DAY) == 0
    assert endangered(1000, 13 * DAY, None, 14 * DAY) == 0
    assert endangered(0, None, 15 * DAY, 14 * DAY) == 0


def test_the_least_possible_of_one_is_that_of_its_fleet() -> None:
    assert least(180_000_000, fleet()) == HOUR
    assert least(180_000_000, fleet(capacity=1.0)) is None


TIMES = st.integers(1, 100 * DAY)


@given(TIMES, TIMES, TIMES)
def test_who_is_too_old_is_the_share_of_the_line_that_is(oldest: int, gone: int, age: int) -> None:
    share = too_old(oldest, gone, age)
    halves = range(1, 400, 2)  # the middles of two hundred places, in whole numbers
    seen = sum(oldest * (400 - x) + gone * x > 400 * age for x in halves) / 200
    assert share == pytest.approx(seen, abs=0.01)
    assert too_old(oldest, None, age) == 1.0


@given(
    capacity=st.floats(0.5, 20),
    outage=st.integers(MINUTE, 30 * DAY),
    collectors=st.integers(1, 500),
    leases=st.integers(1, 20),
    through=st.sampled_from([None, "nats://127.0.0.1"]),
    speed=st.sampled_from(["gentle", "normal", "fast", "at_once"]),
    each=st.floats(0.5, 20),
)
def test_no_plan_beats_the_least_possible_and_more_to_spare_is_never_worse(
    capacity: float,
    outage: int,
    collectors: int,
    leases: int,
    through: str | None,
    speed: str,
    each: float,
) -> None:
    planned_lane = lane(
        pace=settings.Pace(speed=speed), turns=settings.Turns(through=through, leases=leases)
    )
    facts = {"capacity": capacity, "outage": outage, "collectors": collectors, "speed": each}
    planned = plan(planned_lane, fleet(**facts))
    if planned.likely is not None:
        assert planned.least is not None
        assert planned.likely >= planned.least
    else:
        assert planned.refusal is not None
    assert 0 <= planned.too_old <= 1
    assert planned.turns >= 1
    longer = plan(planned_lane, fleet(**{**facts, "outage": 2 * outage}))
    assert planned.likely is None or (longer.likely or 0) >= planned.likely
