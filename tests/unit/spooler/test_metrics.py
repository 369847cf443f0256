"""What a scrape of a spool shows: the status, and no more than the status."""

import re
import shutil
import subprocess

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from sample_spool import lane, spool

from tidegate.spooler.metrics import METRICS, STATES, exposition, register

OUTAGE = lane(
    state="wait",
    why="the gate is closed",
    gate="closed: events-7 has 2 of 3 replicas in step",
    budget_rate=2_000_000.0,
    lease=2,
    time_to_full_s=7200.0,
    eta_s=5400.0,
    limit_s=3600.0,
    lost={"expired": 12, "dropped_oldest": 0},
)


def scraped(*lanes: object) -> str:
    body, kind = exposition(lambda: spool(*lanes))  # type: ignore[arg-type]
    assert kind.startswith("text/plain")
    return body.decode()


def test_every_figure_is_there_and_has_its_lane():
    shown = scraped(OUTAGE, lane(name="clicks"))
    for metric in METRICS:
        name = metric.name.replace(".", "_") + ("_total" if metric.kind == "counter" else "")
        assert f"# TYPE {name} {metric.kind}" in shown
        if metric.of == "lane":
            assert re.search(rf'^{name}{{(\w+="\w+",)?lane="events"', shown, re.MULTILINE)
    assert 'tidegate_spool_inside{collector="node-7"} 4096.0' in shown
    assert 'tidegate_spool_answers_total{collector="node-7",status="202"} 41.0' in shown
    assert 'tidegate_spool_accepted_total{lane="clicks"} 5000.0' in shown
    assert 'tidegate_spool_lost_total{cause="expired",lane="events"} 12.0' in shown
    assert 'tidegate_spool_lost_total{cause="damaged",lane="events"} 0.0' in shown
    assert 'tidegate_spool_sync{lane="events",percentile="99"} 0.001' in shown


def test_what_is_not_known_has_no_series():
    shown = scraped(lane(eta_s=None, sync_p99_s=None, budget_rate=None))
    assert "tidegate_spool_eta{" not in shown
    assert 'percentile="99"' not in shown
    assert "tidegate_spool_budget_rate{" not in shown


@pytest.mark.parametrize("state", STATES)
def test_one_state_is_one_and_the_others_are_zero(state):
    shown = scraped(lane(state=state))
    series = [line for line in shown.splitlines() if line.startswith("tidegate_spool_state{")]
    assert len(series) == len(STATES)
    assert [line for line in series if line.endswith(" 1.0")] == [
        f'tidegate_spool_state{{lane="events",state="{state}"}} 1.0'
    ]


@pytest.mark.parametrize(("gate", "shown"), [("open", "1.0"), ("closed: no answer", "0.0")])
def test_the_gate_is_open_or_it_is_not(gate, shown):
    assert f'tidegate_spool_gate_open{{lane="events"}} {shown}' in scraped(lane(gate=gate))


@pytest.mark.slow  # promtool is a large program
def test_prometheus_has_nothing_to_say_against_the_names() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    shown = scraped(OUTAGE, lane(name="clicks"))
    run = subprocess.run(
        [promtool, "check", "metrics"], input=shown, capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_registering_asks_nothing_and_a_scrape_asks_once():
    asked = []

    def status():
        asked.append(1)
        return spool()

    registry = CollectorRegistry()
    collector = register(status, registry)
    assert not asked
    generate_latest(registry)
    assert len(asked) == 1
    registry.unregister(collector)
    assert generate_latest(registry) == b""


def test_names_follow_the_rule_and_are_each_said_once():
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)
    assert all(metric.name.startswith("tidegate.spool.") for metric in METRICS)
    assert all(
        metric.meaning and metric.unit and metric.of in {"lane", "collector"} for metric in METRICS
    )
