"""A storm on a screen and on a page: the same figures, nothing of another's making in between."""

import re
from typing import Any

import pytest
from msgspec.structs import replace
from stormy import report, run

from tidegate.report.storm import render_html, render_text


def text(width: int = 100, **changes: Any) -> str:
    return render_text(replace(report(), **changes), width=width, color=False)


def test_the_screen_leads_with_the_verdict_and_compares_side_by_side() -> None:
    lines = text().splitlines()
    assert lines[0].startswith("HOLDS       with a guard all of what market could still do")
    head = next(line for line in lines if "unguarded, predicted" in line)
    assert head.split("  ")[-1].strip() == "guarded, live"
    kept = next(line for line in lines if line.startswith("of what is left"))
    assert kept.split() == ["of", "what", "is", "left", "4%", "(3..5%)", "4%", "98%",
                            "(97..99%)", "100%"]  # fmt: skip
    assert next(line for line in lines if line.startswith("back after")).split()[-1] == "1s"
    assert "not while watched" in text()


def test_it_says_how_far_the_simulator_was_off() -> None:
    assert "goodput with a guard 0.95 live, 0.9 (0.85..0.95) predicted (+5.6%)" in " ".join(
        text().split()
    )


def test_a_guard_that_does_not_hold_is_said_first() -> None:
    assert text(exit_code=1).startswith("DOES NOT HOLD")


def test_doubts_about_a_live_run_are_told_with_its_name() -> None:
    runs = [run("guarded", "measured", doubt="the generator was saturated: 9 of 10 starts")]
    shown = text(runs=runs)
    assert "doubt       with a guard, live: the generator was saturated" in shown
    assert "Doubts" in render_html(replace(report(), runs=runs))


@pytest.mark.parametrize("width", [40, 60, 100, 140])
def test_no_line_is_wider_than_the_window_but_the_command(width: int) -> None:
    lines = text(width).splitlines()
    assert [line for line in lines if len(line) > width and not line.startswith("repeat")] == []


def test_the_page_shows_every_run_in_both_pictures_and_in_the_table() -> None:
    page = render_html(report())
    assert page.startswith("<!DOCTYPE html>")
    for kind in ("unguarded-said", "unguarded", "guarded-said", "guarded"):
        assert len(re.findall(rf'<path d="[^"]+" class="curve {kind}"', page)) == 2
    assert len(re.findall(r'<rect x="25.00%"[^>]* class="window"', page)) == 2
    assert "98% (97..99%)" in page
    assert "<title>holds: storm.yaml (tidegate lab storm)</title>" in page


def test_names_from_the_file_cannot_act() -> None:
    evil = replace(report(), says="<script>alert(1)</script>", trigger="\x1b[2Jgone")
    assert "<script>" not in render_html(evil)
    assert "\x1b" not in render_text(evil, width=100, color=False)
