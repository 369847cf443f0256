"""The figures of a guard add up, whoever exports them."""

import pytest

import tidegate
from tidegate.runtime.metrics import METRICS, SOURCES
from tidegate.runtime.registry import _forget
from tidegate.testing import instant, refusing, scripted

GUARDS = [metric for metric in METRICS if metric.of == "dependency"]


@pytest.fixture(autouse=True)
def clock():
    _forget()
    with instant() as still:
        yield still
    _forget()


def read(seen):
    return {metric.name: dict(metric.read(seen)) for metric in GUARDS}


def test_what_has_happened_is_read_and_adds_up():
    guard = tidegate.guard("d", attempts=2, backoff=None, limit=7)
    guard.call(scripted(ConnectionError, "fine").call)
    with refusing(guard), pytest.raises(tidegate.Held):
        guard.call(scripted().call)
    with guard.attempt():
        seen = guard.snapshot()
    figures = read(seen)
    assert figures["tidegate.calls"] == {"ok": 1, "failed": 0, "rejected": 1, "fallback": 0}
    assert figures["tidegate.calls.pending"] == {"": 1}
    assert sum(figures["tidegate.calls"].values()) + 1 == seen.started
    assert figures["tidegate.attempts"]["failure"] == 1
    assert figures["tidegate.retries"] == {"": 1}
    assert figures["tidegate.refused"] == {"held": 1}
    assert figures["tidegate.would_refuse"] == {}
    assert figures["tidegate.inflight"] == {"": 1}
    assert figures["tidegate.limit"] == {"": 7}
    assert figures["tidegate.calls.shared"] == {"": 0}
    assert [*figures["tidegate.retry_tokens"]] == [""]


def test_the_circuit_is_in_one_state():
    guard = tidegate.guard("d", attempts=1)
    assert read(guard.snapshot())["tidegate.state"]["closed"] == 1
    stub = scripted(*[ConnectionError] * 20)
    for _ in range(20):
        with pytest.raises(ConnectionError):
            guard.call(stub.call)
    states = read(guard.snapshot())["tidegate.state"]
    assert states.pop("open") == 1
    assert set(states.values()) == {0}
    with refusing(guard):
        assert read(guard.snapshot())["tidegate.state"]["held"] == 1


def test_what_is_switched_off_has_no_figure():
    guard = tidegate.guard("d", limit=None, budget=None)
    figures = read(guard.snapshot())
    assert figures["tidegate.limit"] == figures["tidegate.inflight"] == {}
    assert figures["tidegate.retry_tokens"] == {}


def test_names_are_unique_and_say_what_they_mean():
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)
    assert all(name.startswith("tidegate.") for name in names)
    assert all(metric.meaning and metric.unit for metric in METRICS)
    assert {metric.of for metric in METRICS} == SOURCES.keys()


def test_figures_of_one_name_are_added_up():
    guard = tidegate.guard("d")
    guard.call(scripted("fine").call)
    (calls,) = (metric for metric in METRICS if metric.name == "tidegate.calls")
    seen = [(name, guard.snapshot()) for name in ("a", "b", "a")]
    found = calls.series(seen)
    assert {key: number for key, number in found.items() if number} == {
        ("a", "ok"): 2,
        ("b", "ok"): 1,
    }
