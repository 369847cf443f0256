"""A trigger of `per_request` divided by zero in the fluid, at callers that make another call."""

import msgspec
import pytest

from tidegate.analysis.fluid import simulate_graph
from tidegate.settings.system import System
from tidegate.units import MILLISECOND, SECOND


def test_a_call_made_three_times_as_often_fills_its_callee_and_nobody_elses() -> None:
    system = msgspec.convert(
        {
            "clients": {"users": {"rate": 50.0, "calls": {"front": {"timeout": SECOND}}}},
            "services": {
                "front": {"blocking": False, "calls": {"shop": {"timeout": SECOND}}},
                "shop": {"workers": 10, "time": {"mean": 100 * MILLISECOND}},
            },
            "triggers": {"release": {"call": "shop", "per_request": 3.0, "for": 20 * SECOND}},
        },
        System,
    )
    course = simulate_graph(system, system.triggers["release"])
    first, last = int(course.start) + 2, int(course.end)
    during = sum(course.arrived["shop"][first:last]) / (last - first)
    assert sum(course.arrived["front"][first:last]) / (last - first) == pytest.approx(50)
    assert 50 < during <= 150
