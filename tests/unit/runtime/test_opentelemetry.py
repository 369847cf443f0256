"""What a reader collects."""

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

import tidegate
from tidegate.runtime.metrics import METRICS
from tidegate.runtime.opentelemetry import instrument
from tidegate.runtime.registry import _forget
from tidegate.testing import instant, scripted


@pytest.fixture(autouse=True)
def clock():
    _forget()
    with instant() as still:
        yield still
    _forget()


@pytest.fixture
def reader():
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    instrument(provider)
    yield reader
    provider.shutdown()


def collected(reader):
    """(name, unit): {attributes: value}."""
    data = reader.get_metrics_data()
    (resource,) = data.resource_metrics
    (scope,) = resource.scope_metrics
    assert scope.scope.name == "tidegate"
    return {
        (metric.name, metric.unit): {
            tuple(sorted(point.attributes.items())): point.value
            for point in metric.data.data_points
        }
        for metric in scope.metrics
    }


def test_every_figure_of_every_dependency_is_collected(reader):
    for name in ("a", "b"):
        guard = tidegate.guard(name, attempts=2, backoff=None)
        guard.call(scripted(ConnectionError, "fine").call)
    figures = collected(reader)
    calls = figures["tidegate.calls", "{call}"]
    retries = figures["tidegate.retries", "{attempt}"]
    for name in ("a", "b"):
        assert calls[("dependency", name), ("result", "ok")] == 1
        assert retries[(("dependency", name),)] == 1
    shown = {name for name, _ in figures}
    nothing_yet = {"tidegate.refused", "tidegate.would_refuse"}
    assert shown >= {m.name for m in METRICS if m.of == "dependency"} - nothing_yet


def test_a_call_does_nothing_for_it(reader, monkeypatch):
    def observed(*_):
        raise AssertionError("an exporter ran")

    guard = tidegate.guard("a")
    monkeypatch.setattr("tidegate.runtime.dependency.Dependency.snapshot", observed)
    assert guard.call(scripted("fine").call) == "fine"
