"""Figures keep their unit, their range and their honesty."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.findings import Measure
from tidegate.report import figures
from tidegate.report.figures import (
    clean,
    figure,
    number,
    runs_behind,
    seeds_in_short,
    sentence,
    share,
    some,
)


def simulated(value: float, low: float, high: float, unit: str, runs: int = 20) -> Measure:
    return Measure(value=value, low=low, high=high, unit=unit, runs=runs, how="simulated")


@pytest.mark.parametrize(
    ("measure", "shown"),
    [
        (simulated(0.23, 0.21, 0.25, "share"), "23% (21..25%)"),
        (simulated(0.9984, 0.9978, 0.9989, "share"), "99.8% (99.8..99.9%)"),
        (simulated(14, 12, 17, "s"), "14s (12s..17s)"),
        (simulated(58, 50, 70, "s"), "58s (50s..1.17min)"),
        (simulated(1840, 1790, 1901, "/s"), "1,840/s (1,790..1,900/s)"),
        (simulated(5.2, 4.9, 5.55, "x"), "5.2x (4.9..5.55x)"),
        (simulated(581_300, 574_200, 588_900, "requests"), "581k requests (574k..589k)"),
        (simulated(0.5, 0.5, 0.5, "share", runs=1), "50% (one run)"),
        (simulated(0, 0, 0, "share"), "0% (0..0%)"),
    ],
)
def test_a_simulated_figure_has_its_range(measure: Measure, shown: str) -> None:
    assert figure(measure) == shown


@pytest.mark.parametrize("how", ["fluid", "computed", "assumed", "stated"])
def test_a_figure_that_was_not_simulated_says_so(how: str) -> None:
    exact = Measure(value=6, low=6, high=6, unit="attempts", how=how)
    ranged = Measure(value=6, low=5, high=7, unit="attempts", how=how)
    assert figure(exact) == f"6 attempts ({how})"
    assert figure(ranged) == f"6 attempts (5..7, {how})"


def test_a_sentence_may_name_the_unit_itself() -> None:
    assert figure(simulated(6, 5, 7, "attempts per action"), unit="") == "6 (5..7)"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (0.04, "0.04"),
        (0.0004, "<0.001"),
        (5.25, "5.25"),
        (1839.6, "1,840"),
        (9999, "10k"),
        (58_130, "58.1k"),
        (1_020_000, "1.02M"),
        (7.3e9, "7.3G"),
        (math.inf, "endless"),
        (math.nan, "unknown"),
    ],
)
def test_a_number_has_three_digits(value: float, shown: str) -> None:
    assert number(value) == shown


@given(st.floats(0.001, 1e12))
def test_a_number_is_within_half_a_percent_of_what_it_shows(value: float) -> None:
    shown = number(value).replace(",", "")
    size = {"k": 1e3, "M": 1e6, "G": 1e9}.get(shown[-1], 1)
    read = float(shown.rstrip("kMG")) * size
    assert read == pytest.approx(value, rel=0.005)


@given(st.floats(0, 1))
def test_a_share_says_all_or_nothing_only_when_it_is(value: float) -> None:
    for digits in (0, 1):
        assert (share(value, digits) == "0%") == (value == 0)
        assert (share(value, digits) == "100%") == (value == 1)


def test_runs_behind_figures_are_counted_once() -> None:
    assert runs_behind([simulated(1, 1, 1, "s"), simulated(2, 2, 2, "s")]) == "simulated, 20 runs"
    mixed = [simulated(1, 1, 1, "s", runs=5), simulated(2, 2, 2, "s"), simulated(1, 1, 1, "s", 1)]
    assert runs_behind(mixed) == "simulated, 1 to 20 runs"
    assert runs_behind([Measure(value=1, low=1, high=1, unit="s")]) == ""


def test_seeds_and_names_are_shortened_and_counted() -> None:
    assert seeds_in_short([1, 2, 3, 9]) == "1..3, 9"
    assert seeds_in_short([]) == "none"
    assert seeds_in_short(list(range(0, 20, 2))) == "0, 2, 4 and 7 more"
    assert some(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"


def test_what_cannot_be_seen_is_spelled_out() -> None:
    assert clean("a\x1b[31mb\u202ec\x00\udcff") == r"a\x1b[31mb\u202ec\x00\udcff"
    assert clean("two\nlines\tand\u00a0a blank") == "two lines and a blank"
    assert clean("日本 ümlaut") == "日本 ümlaut"


def test_a_sentence_ends_once() -> None:
    assert [sentence(text) for text in ("a", "a.", " a? ", "")] == ["a.", "a.", "a?", ""]


@given(st.text())
def test_clean_text_is_one_printable_line(text: str) -> None:
    assert clean(text).isprintable()
    assert clean(clean(text)) == clean(text)


def test_endless_durations_have_a_word() -> None:
    assert figures.duration(math.inf) == "endless"
    assert figures.duration(0.25) == "250ms"
