"""What a scrape shows."""

import pytest
from prometheus_client import CollectorRegistry, generate_latest

import tidegate
from tidegate.runtime.metrics import METRICS
from tidegate.runtime.prometheus import register
from tidegate.runtime.registry import _forget
from tidegate.testing import instant, scripted


@pytest.fixture(autouse=True)
def clock():
    _forget()
    with instant() as still:
        yield still
    _forget()


def test_every_figure_of_every_dependency_is_there():
    registry = CollectorRegistry()
    register(registry)
    for name in ("a", "b"):
        guard = tidegate.guard(name, attempts=2, backoff=None)
        guard.call(scripted(ConnectionError, "fine").call)
    shown = generate_latest(registry).decode()
    for name in ("a", "b"):
        assert f'tidegate_calls_total{{dependency="{name}",result="ok"}} 1.0' in shown
        assert f'tidegate_attempts_total{{dependency="{name}",outcome="failure"}} 1.0' in shown
        assert f'tidegate_retries_total{{dependency="{name}"}} 1.0' in shown
        assert f'tidegate_state{{dependency="{name}",state="closed"}} 1.0' in shown
    for metric in METRICS:
        assert f"# TYPE {metric.name.replace('.', '_')}" in shown


def test_registering_asks_nothing_and_can_be_undone(monkeypatch):
    def ask(self):
        raise AssertionError("a guard was asked")

    tidegate.guard("a")
    registry = CollectorRegistry()
    with monkeypatch.context() as patched:
        patched.setattr("tidegate.runtime.dependency.Dependency.snapshot", ask)
        collector = register(registry)
    assert "tidegate_calls" in generate_latest(registry).decode()
    registry.unregister(collector)
    assert generate_latest(registry) == b""


def test_a_name_with_a_quote_in_it_is_escaped():
    registry = CollectorRegistry()
    register(registry)
    tidegate.guard('a "b"')
    assert r'dependency="a \"b\""' in generate_latest(registry).decode()
