"""A chart shows what its table says, whatever the data."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from sample_reports import curve, storm

from tidegate.findings import Timeline
from tidegate.report import charts
from tidegate.report.figures import rate

RATES = st.floats(0, 1e6)


def column(chart: str, position: int) -> list[str]:
    rows = re.findall(r"<tr>(?:(?!</tr>).)*</tr>", chart)[1:]
    return [re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", row)[position] for row in rows]


def paths(chart: str) -> dict[str, str]:
    return {kind: d for d, kind in re.findall(r'<path d="([^"]*)" class="curve (\w+)"', chart)}


def timeline(run: Timeline) -> str:
    return charts.timeline(run, key="run", of="migration")


@pytest.mark.slow  # a hundred charts are drawn and read back
@given(st.lists(st.tuples(RATES, RATES, RATES), min_size=1, max_size=400))
def test_a_timeline_of_any_length_has_a_readable_number_of_points(
    rows: list[tuple[float, float, float]],
) -> None:
    offered, goodput, attempts = (list(part) for part in zip(*rows, strict=True))
    run = Timeline(
        seconds=[float(i) for i in range(len(rows))],
        offered=offered,
        goodput=goodput,
        attempts=attempts,
        start=1,
        end=None,
        seed=1,
    )
    chart = timeline(run)
    points = len(column(chart, 0))
    assert 1 <= points <= charts.POINTS_MOST
    for path in paths(chart).values():
        places = [float(y) for y in re.findall(r"[ML][\d.]+ (-?[\d.]+)", path)]
        assert len(places) == points
        assert all(-0.1 <= y <= 200.1 for y in places)


def test_the_table_holds_the_means_that_are_drawn() -> None:
    run = storm(length=240)  # two seconds to a point
    chart = timeline(run)
    expected = [rate(sum(run.goodput[i : i + 2]) / 2) for i in range(0, 240, 2)]
    assert column(chart, 2) == expected
    assert "each point is the mean of 2s" in chart


def test_the_window_of_the_trigger_is_shaded_and_named_in_the_table() -> None:
    run = replace(storm(length=100), start=20.0, end=60.0)
    chart = timeline(run)
    assert 'x="20.00%" y="8" width="40.00%"' in chart
    assert column(chart, 4) == ["no"] * 20 + ["yes"] * 40 + ["no"] * 40


def test_a_trigger_without_an_end_is_shaded_to_the_edge() -> None:
    chart = timeline(replace(storm(length=100), start=75.0, end=None))
    assert 'x="75.00%" y="8" width="25.00%"' in chart


@pytest.mark.parametrize(
    ("length", "ticks"),
    [
        (30, ["0s", "10s", "20s", "30s"]),
        (1500, ["0s", "10min", "20min"]),
        (7200, ["0s", "30min", "1h", "1.5h", "2h"]),
    ],
)
def test_time_is_told_in_steps_that_a_clock_has(length: int, ticks: list[str]) -> None:
    chart = timeline(storm(length=length))
    plot = chart[chart.index('class="plot"') :]
    assert re.findall(r"<text[^>]*>([^<]*)</text>", plot) == ticks


def test_the_curve_is_told_in_words() -> None:
    told = timeline(storm())
    assert re.search(
        r"Goodput is 1,1\d0/s before the trigger, 12\d/s at its lowest and 1\d\d/s at the end,"
        r" where 1,1\d0/s are offered; attempts peak at [\d,]+/s\.",
        told,
    )
    early = timeline(replace(storm(length=50), start=0.0))
    assert "Goodput is 1," in early
    assert "before the trigger" not in early
    assert "which is not reached in this run" in timeline(storm(length=50))


def test_a_run_of_one_client_says_so() -> None:
    assert "client readers" in timeline(replace(storm(length=50), client="readers"))


def test_a_run_without_data_has_no_chart() -> None:
    empty = replace(storm(length=1), seconds=[], offered=[], goodput=[], attempts=[])
    assert "<svg" not in timeline(empty)
    still = replace(curve(), load=[], healthy=[], collapsed=[])
    assert "<svg" not in charts.hysteresis(still, key="h")


def test_a_state_that_does_not_exist_is_a_gap_in_the_curve_and_none_in_the_table() -> None:
    broken = replace(
        curve(),
        load=[0.0, 1.0, 2.0, 3.0, 4.0],
        healthy=[1.0, 1.0, None, 0.5, None],
        collapsed=[None] * 5,
        today=2.0,
        hidden=None,
        tips_at=None,
    )
    chart = charts.hysteresis(broken, key="h")
    assert column(chart, 1) == ["100%", "100%", "none", "50%", "none"]
    assert paths(chart)["healthy"] == "M0.0 0.0h0L250.0 0.0M750.0 100.0h0"
    assert paths(chart)["collapsed"] == ""
    assert "heals below" not in chart
    assert "tips over" not in chart


def test_the_loads_that_matter_are_marked_where_they_lie() -> None:
    chart = charts.hysteresis(curve(), key="h")
    for kind, load in (("today", 750), ("hidden", 556), ("tips", 1940)):
        assert f'x1="{100 * load / 2400:.2f}%"' in chart
        assert f'class="curve {kind}"' in chart
    assert "Below 556/s it comes back by itself" in chart


@pytest.mark.parametrize("chart", [timeline(storm()), charts.hysteresis(curve(), key="h")])
def test_curves_differ_without_colour(chart: str) -> None:
    drawn = re.findall(r'<(?:path|line)[^>]*class="curve (\w+)"([^>]*)>', chart)
    looks: dict[str, Any] = {
        kind: re.findall(r'stroke-dasharray="([^"]*)"', rest) for kind, rest in drawn
    }
    solid = [kind for kind, dash in looks.items() if not dash]
    assert set(solid) <= {"goodput", "healthy", "today"}  # a curve and an upright: no confusion
    dashes = [tuple(dash) for dash in looks.values() if dash]
    assert len(dashes) == len(set(dashes))


def test_a_chart_has_a_name_a_description_and_its_numbers() -> None:
    chart = timeline(storm())
    assert 'role="img" aria-labelledby="run-title run-desc"' in chart
    assert '<title id="run-title">migration: load' in chart
    assert '<desc id="run-desc">Goodput is' in chart
    assert chart.index("</svg>") < chart.index("<details")
    assert "<summary>The numbers of this chart</summary>" in chart
