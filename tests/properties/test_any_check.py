"""Whatever system is described, a check of it ends in a report that obeys its schema."""

import json as standard
from functools import cache
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_systems import systems

from tidegate.analysis import assumed
from tidegate.analysis import check as module
from tidegate.analysis import runs as running
from tidegate.analysis.check import Check
from tidegate.analysis.rating import Case, Rating
from tidegate.analysis.runs import Runner
from tidegate.report import html, json, text
from tidegate.settings.dump import dump
from tidegate.settings.load import loads
from tidegate.settings.system import Objective, System
from tidegate.units import SECOND


@cache
def validator() -> Any:
    return jsonschema.Draft202012Validator(json.schema())


def steady(case: Case) -> Rating:
    return Rating("recovers", dict.fromkeys(case.system.clients, 0.5), 1.0)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few runs, and none is followed for long: what is asked is whether it ends in a report."""
    for name, value in {
        "RUNS_MAX": 2,
        "_BATCH": 2,
        "_WITHOUT": 1,
        "_TRIES": 1,
        "_CONFIRM": 1,
        "_CONFIRMED": 1,
        "_RATED_TRIGGERS": 1,
        "_REST": 3 * SECOND,
        "MAX_CURES": 2,
    }.items():
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(module, "rate", steady)  # the fluid has laws of its own, and takes seconds
    monkeypatch.setattr(assumed, "TRIGGERS_MAX", 2)
    monkeypatch.setattr(running, "_DRAIN_WATCH", 0)
    monkeypatch.setattr(running, "_ACT_AFTER", SECOND)


@pytest.mark.slow  # a whole check of each system: a second or two
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(systems, st.integers(0, 1000))
def test_any_system_gets_a_report(system: System, seed: int) -> None:
    system = msgspec.structs.replace(system, objective=Objective(within=5 * SECOND))
    system = loads(dump(system)).system()
    with Runner(1) as runner:
        report = Check(system, source="s.yaml", repeat="again", runner=runner, seed=seed).run()
    validator().validate(standard.loads(json.render(report)))
    assert report.exit_code == int(report.verdict in {"fails", "collapses by itself"})
    assert len(report.triggers) == len(system.triggers) or not system.triggers
    for trigger in report.triggers:
        assert 0 <= trigger.wasted.value <= 1
        for client in trigger.clients:
            for measure in (client.before, client.during, client.after, client.eventual):
                assert 0 <= measure.low <= measure.value <= measure.high <= 1
            assert client.during.value <= client.eventual.value
    assert text.render(report, width=80, color=False)
    assert html.render(report)
