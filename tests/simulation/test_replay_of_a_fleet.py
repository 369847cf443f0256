"""A fleet gives an hour of backlog to a sink that is hardly well and loses a broker meanwhile.

One seed of what `make golden` asks of five, and of every head-room.
"""

import pytest
from replay_bars import BARS, TIGHT, Bar, hold

pytestmark = pytest.mark.slow  # an hour of twenty collectors: four seconds


def test_scenario_a_at_a_normal_pace() -> None:
    hold("A, normal", BARS["A, normal"], 1)


def test_a_sink_with_little_to_spare() -> None:
    """Ten minutes of backlog, which need 25; the gate and the rise before it weigh more then."""
    short = TIGHT._replace(backlog=TIGHT.backlog / 6)
    hold("1.4x, ten minutes", Bar(short, "normal", 1.5, peak=1.54), 1)
