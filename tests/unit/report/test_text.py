"""One screen that somebody who was just woken can act on."""

import re

import pytest
from msgspec.structs import replace
from sample_reports import SAMPLES, big, cures, empty, marketplace, mixed, stable

from tidegate.findings import CheckReport
from tidegate.report import text
from tidegate.report.terminal import cells

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def shown(report: CheckReport, width: int = 100) -> str:
    return text.render(report, width=width, color=False)


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("width", [1, 60, 80, 100, 120])
def test_every_line_fits_but_the_command(name: str, width: int) -> None:
    lines = shown(SAMPLES[name](), width).splitlines()
    assert lines[-1].startswith("repeat")
    assert max(cells(line) for line in lines[:-1]) <= max(width, 40)
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize("name", SAMPLES)
def test_colour_adds_nothing_but_colour(name: str) -> None:
    report = SAMPLES[name]()
    painted = text.render(report, width=80, color=True)
    assert painted != shown(report, 80)
    assert COLOUR.sub("", painted) == shown(report, 80)


@pytest.mark.parametrize(("name", "most"), [("marketplace", 57), ("big", 68), ("stable", 24)])
def test_it_is_one_screen_however_large_the_system(name: str, most: int) -> None:
    assert shown(SAMPLES[name]()).count("\n") <= most


def test_the_verdict_comes_first_then_the_three_numbers() -> None:
    lines = shown(marketplace()).splitlines()
    assert lines[0].startswith("FAILS       10min of a marketplace")
    heads = [line.split("  ")[0] for line in lines if line[:1].isalpha()]
    assert heads[1:6] == ["harm", "falls too", "stays down", "binding", "loop"]


@pytest.mark.parametrize(
    "told",
    [
        "Modelled from marketplace.yaml",
        "3.33x: 581k (574k..589k) requests fail in migration, 174k (171k..178k) without retries",
        "readers -(pages)-> tracker x1 -(licences)-> edge x2 -(market)-> marketplace x6",
        "heals below 556/s, falls by itself from 1,940/s, once down",
        "sure to return only above 2.25x its capacity (computed)",
        "marketplace        750/s   37.5%       2,000/s        556/s        x6  vulnerable",
        "edge               750/s       -             -            -        x2  no limit",
        "STICKS: stays down in 100% (84..100%) of 20 runs; harm 3.33x; objective missed",
        "99.8% (99.8..99.9%)  6% (5..8%)     3% (2..4%)           12% (10..14%)",
        "RECOVERS: back 8s (5s..13s) after its end in 95% (76..99%) of 20 runs",
        "roll back + open licences  recovers in 41s (36s..55s)            99.7% (99.5..99.9%)",
        "retry budget 10% on market    yes    58% (56..60%)   9s (6s..14s)",
        "in services.edge.calls.market:",
        "budget: 10%",
        "too little  backoff 100ms on market (1 of 2)",
        "1 error, 2 warnings, 1 note, found in the file alone; the first 2:",
        "in 87% (81..92%) of what the file leaves open (150 samples)",
        "clients.shoppers.rate (400/s..800/s) decides 71% of it. Measure that first",
        "seeds       1..20; took 24.3s of CPU time; tidegate 0.1.0, exit code 1",
        "repeat      tidegate check marketplace.yaml --seed 1 --runs 20",
    ],
)
def test_the_marketplace_is_told_in_full(told: str) -> None:
    assert told in shown(marketplace())


def test_a_stable_system_is_told_briefly() -> None:
    told = shown(stable())
    assert told.startswith("STABLE ")
    assert "loop        none: no path multiplies attempts" in told
    assert not re.search("^(CURES|GETTING OUT|AUDIT|not known|disagree)", told, re.MULTILINE)


def test_every_kind_of_outcome_is_told() -> None:
    told = shown(mixed(), 120)
    assert "INTERRUPTED this is what was known when it was stopped" in told
    assert "SLOW TO DRAIN: done 21.1min (19.8min..22.3min) after its end" in told
    assert "all from retries" in told
    assert "OSCILLATES: comes and goes in 60% (39..78%)" in told
    assert "UNHARMED: small dip (assumed): nobody notices" in told
    assert "skipped     cures: interrupted before they were tried" in told
    assert "and 2 more unknowns" in told
    assert "disagree    backlog: the fluid model says sticks" in told


def test_empty_lists_leave_no_empty_tables() -> None:
    told = shown(empty())
    assert "TRIGGERS    none was tried" in told
    assert "SERVICES" not in told
    assert told.count("\n") <= 15


def test_what_does_not_fit_is_counted() -> None:
    told = shown(big())
    for counted in (
        *("and 46 more services", "client1 (2 of 8)", "and 35 more triggers: 7 sticks, 28"),
        *("and 6 more cures", "8 errors, 15 warnings, 7 notes", "and 38 more"),
    ):
        assert counted in told


def test_when_nothing_cures_the_best_of_the_rest_is_shown() -> None:
    told = shown(replace(marketplace(), cures=cures()[2:]))
    assert "backoff 100ms on market" in told
    assert "write" not in told
    assert "too little" not in told


def test_a_cure_without_lines_to_write_shows_none() -> None:
    assert "write" not in shown(replace(marketplace(), cures=[replace(cures()[0], yaml="\n")]))


def test_a_binding_service_without_a_curve_is_named_alone() -> None:
    told = shown(replace(marketplace(), hysteresis=None, services=[]))
    assert re.search("^binding     marketplace$", told, re.MULTILINE)


def test_a_service_that_needs_no_more_than_it_has_is_not_told_so() -> None:
    enough = [replace(facts, escape=0.9) for facts in marketplace().services]
    assert "once down" not in shown(replace(marketplace(), services=enough))


def test_an_escape_sequence_in_a_name_reaches_no_terminal() -> None:
    told = shown(replace(marketplace(), source="\x1b]0;owned\x07.yaml", repeat="\x1b[2J"))
    assert "\x1b" not in told
    assert r"\x1b]0;owned\x07.yaml" in told
