"""The fluid took a trigger without an end away after a while, and called recovered what was not."""

import msgspec

from tidegate.analysis.fluid import simulate_graph
from tidegate.settings.system import System
from tidegate.units import MILLISECOND, SECOND


def test_what_fails_while_it_lasts_does_not_recover() -> None:
    system = msgspec.convert(
        {
            "clients": {"users": {"rate": 80.0, "calls": {"shop": {"timeout": SECOND}}}},
            "services": {
                "shop": {"workers": 10, "time": {"mean": 100 * MILLISECOND}, "queue": {"limit": 50}}
            },
            "triggers": {
                "half": {"service": "shop", "capacity": 0.5},
                "half for a while": {"service": "shop", "capacity": 0.5, "for": 60 * SECOND},
            },
        },
        System,
    )
    assert simulate_graph(system, system.triggers["half"]).outcome == "sticks"
    assert simulate_graph(system, system.triggers["half for a while"]).outcome == "recovers"
