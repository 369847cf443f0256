"""The collectors of July 2017: what giving all back at once does, and what one budget does.

13 times the normal traffic and 4.06 % of the hour's requests lost are stated in the report. The
model was fitted to these two, so that they come out is no proof of it; that the same fleet behind
a gate and under one budget harms nobody is what it was made to ask.
"""

from functools import cache
from pathlib import Path

import pytest

from tidegate.analysis.replays import CONFIGURED, Asked, Drain, led, replay
from tidegate.settings.load import load

pytestmark = pytest.mark.slow  # an hour of twenty collectors each: one to four seconds

EXAMPLE = Path(__file__).parents[2] / "examples" / "collectors.yaml"


@cache
def given_back(*, with_a_pace: bool) -> Drain:
    spool = load(EXAMPLE).system().spool
    assert spool is not None
    lane = spool.lanes["events"]
    assert lane.fleet is not None
    lane = led(lane, lane.fleet) if with_a_pace else lane
    assert lane.fleet is not None
    return replay(Asked(lane=lane, facts=lane.fleet, way=CONFIGURED, seed=1))


def test_all_at_once_is_thirteen_times_the_normal_traffic() -> None:
    assert given_back(with_a_pace=False).ran.peak == pytest.approx(13, abs=0.1)


def test_four_percent_of_the_hour_are_lost() -> None:
    assert given_back(with_a_pace=False).ran.lost == pytest.approx(0.0406, abs=0.001)


def test_led_the_same_fleet_loses_nothing_and_never_doubles_the_traffic() -> None:
    drain = given_back(with_a_pace=True)
    assert drain.ran.lost == 0
    assert drain.ran.late == 0
    assert drain.ran.peak <= 2.02
    assert drain.drained_s is not None
    assert drain.drained_s < 700
