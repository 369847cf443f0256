"""A rate that forgets, and is not low for being young."""

import pytest

from tidegate.core.flow import Flow
from tidegate.units import HOUR, MILLISECOND, SECOND


def test_a_steady_flow_has_its_rate_from_the_first_second_on() -> None:
    flow = Flow()
    assert flow.rate(0) == 0
    for second in range(300):
        flow.on_bytes(second * SECOND, 1000)
        assert flow.rate(second * SECOND) == pytest.approx(1000, rel=0.01)


def test_it_does_not_matter_in_what_pieces_it_is_told() -> None:
    fine, coarse = Flow(), Flow()
    for tick in range(1, 1201):
        fine.on_bytes(tick * 100 * MILLISECOND, 100)
        if tick % 50 == 0:
            coarse.on_bytes(tick * 100 * MILLISECOND, 5000)
    now = 120 * SECOND
    assert fine.rate(now) == pytest.approx(1000, rel=0.01)
    assert coarse.rate(now) == pytest.approx(1000, rel=0.1)


def test_what_has_ended_is_forgotten() -> None:
    flow = Flow()
    for second in range(300):
        flow.on_bytes(second * SECOND, 1000)
    assert flow.rate(340 * SECOND) == pytest.approx(500, rel=0.05)
    assert flow.rate(HOUR) < 1


def test_a_burst_moves_it_little() -> None:
    flow = Flow()
    for second in range(300):
        flow.on_bytes(second * SECOND, 1000)
    flow.on_bytes(300 * SECOND, 6000)
    assert flow.rate(300 * SECOND) == pytest.approx(1100, rel=0.05)
