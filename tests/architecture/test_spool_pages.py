"""The spool's pages: alarms go off when they should, figures and words are those of the code."""

import re
import shutil
import subprocess
from pathlib import Path
from random import Random

import pytest
import yaml
from fake_keeper import FakeKeeper

from tidegate.core.bounds import Cause
from tidegate.core.drain import plan
from tidegate.core.lane import LaneState
from tidegate.settings import spool as settings
from tidegate.spooler.door.app import Door
from tidegate.spooler.door.body import RECORDS_MAX, TYPES, kind_of
from tidegate.spooler.metrics import METRICS, STATES
from tidegate.units import DAY, format_bytes, format_duration

ROOT = Path(__file__).parents[2]
RULES = ROOT / "docs/spool/alerts.yaml"
GROUPS = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
ALERTS = {rule["alert"]: rule for group in GROUPS for rule in group["rules"]}
NAMES = {
    metric.name.replace(".", "_") + ("_total" if metric.kind == "counter" else "")
    for metric in METRICS
}

# What is seen, the minutes at which to look, and who is woken then.
STORIES = {
    "peace": (
        {'state{lane="a",state="spill"}': "0x60", 'full{lane="a"}': "0x60"},
        {60: set()},
    ),
    "a sink that is away": (
        {'state{lane="a",state="spill"}': "0x4 1x60", 'full{lane="a"}': "0x60"},
        {4: set(), 7: {"SpoolSpills"}},
    ),
    "a disk that fills": (
        {'full_in{lane="a"}': "20000-100x120", 'full{lane="a"}': "0x120"},
        {40: set(), 70: {"SpoolFullSoon"}},
    ),
    "a gate that stays closed": (
        {
            'state{lane="a",state="wait"}': "1x60",
            'gate_open{lane="a"}': "0x60",
            'full{lane="a"}': "0x60",
        },
        {29: set(), 31: {"SpoolGateClosed"}},
    ),
    "a turn that is waited for": (
        {
            'state{lane="a",state="wait"}': "1x60",
            'gate_open{lane="a"}': "1x60",
            'full{lane="a"}': "0x60",
        },
        {31: set()},
    ),
    "a fleet that replays too hard": (
        {
            'live_rate{lane="a",instance="1"}': "100x60",
            'live_rate{lane="a",instance="2"}': "100x60",
            'replay_rate{lane="a",instance="1"}': "0x30 300x30",
            'replay_rate{lane="a",instance="2"}': "0x30 200x30",
            'full{lane="a"}': "0x60",
        },
        {30: set(), 33: {"SpoolReplaysTooHard"}},
    ),
    "records that are lost": (
        {
            'lost_total{lane="a",cause="expired"}': "5x30 7x30",
            'lost_total{lane="a",cause="quarantined"}': "0x30 9x30",
            'quarantined_total{lane="a"}': "0x30 9x30",
            'damaged_total{lane="a"}': "0x60",
            'endangered{lane="a"}': "0x60",
            'full{lane="a"}': "0x60",
        },
        {30: set(), 32: {"SpoolLoses", "SpoolSetsAside"}},
    ),
    "nobody there": ({}, {4: set(), 6: {"SpoolSilent"}}),
}


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text("utf-8")


def cells(text: str, head: str) -> list[list[str]]:
    """The rows of the table that begins so."""
    table = text.partition(head)[2].partition("\n\n")[0]
    return [[c.strip() for c in line.split("|")[1:-1]] for line in table.splitlines()[2:]]


def test_two_weeks_are_as_large_as_the_page_says() -> None:
    rows = cells(page("spool/operations.md"), "| records a second |")
    assert len(rows) == 4
    for rate, day, fortnight, at_2x, at_4x in rows:
        per_second = float(rate.replace(",", ""))
        for said, days in ((day, 1), (fortnight, 14)):
            size = per_second * 1000 * 86_400 * days
            assert format_bytes(size).replace("GB", " GB").replace("TB", " TB") == said
        for said, capacity in ((at_2x, 2.0), (at_4x, 4.0)):
            fleet = settings.Fleet(rate=per_second, capacity=capacity, outage=DAY)
            least = plan(settings.Lane(to="file:out"), fleet).least
            assert least is not None
            assert format_duration(least) == said.replace(" ", "")


def test_the_states_and_labels_on_the_pages_are_all_there_are() -> None:
    states = [row[0].strip("`").lower() for row in cells(page("spool/operations.md"), "| state |")]
    assert states == list(STATES) == [*LaneState]
    spool = page("telemetry.md").partition("## Metrics of a spool")[2]
    values = {
        row[0]: re.findall(r"`([\w.]+)`", row[1]) for row in cells(spool, "| label | values |")
    }
    assert values["`state`"] == list(STATES)
    assert values["`cause`"] == [*Cause]


def test_the_kinds_and_paths_on_the_page_of_the_door_are_its_own() -> None:
    text = page("spool/door.md")
    kinds = [kind for row in cells(text, "| content-type |") for kind in row[0].split(", ")]
    assert {kind_of(kind.strip("`")) for kind in kinds} == {kind_of(kind) for kind in TYPES}
    assert f"{RECORDS_MAX:,} records" in text
    door = Door(FakeKeeper(), settings.Door(), token=None, rng=Random(1))
    paths = {route.path.replace("{lane}", "LANE") for route in door.app.routes}
    assert paths <= set(re.findall(r"/[a-z1]+(?:/LANE)?", text))


def test_every_alarm_is_about_figures_that_there_are() -> None:
    used = set(re.findall(r"tidegate_spool_\w+", RULES.read_text("utf-8")))
    assert used <= NAMES
    labels = re.findall(r'(\w+)!?="(\w+)"', RULES.read_text("utf-8"))
    known = {"state": STATES, "cause": [*Cause]}
    assert labels
    assert all(value in known[label] for label, value in labels)


def test_every_alarm_says_how_urgent_it_is_and_what_to_do() -> None:
    operations = (ROOT / "docs/spool/operations.md").read_text("utf-8")
    for name, rule in ALERTS.items():
        assert rule["labels"]["severity"] in {"page", "ticket"}
        assert rule["annotations"].keys() == {"summary", "description"}
        assert f"`{name}`" in operations


@pytest.mark.parametrize("story", STORIES)
def test_an_alarm_goes_off_when_it_should(story: str, tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    seen, looks = STORIES[story]
    document = {
        "rule_files": [str(RULES)],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [
                    {"series": f"tidegate_spool_{name}", "values": values}
                    for name, values in seen.items()
                ],
                "promql_expr_test": [
                    {
                        "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
                        "eval_time": f"{minute}m",
                        "exp_samples": [
                            {"labels": f'{{alertname="{name}"}}', "value": 1}
                            for name in sorted(woken)
                        ],
                    }
                    for minute, woken in looks.items()
                ],
            }
        ],
    }
    file = tmp_path / "story.yaml"
    file.write_text(yaml.safe_dump(document))
    command = [promtool, "test", "rules", file]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
