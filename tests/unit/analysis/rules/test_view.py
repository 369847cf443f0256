"""What the rules share: how long, how often, and how a fix is written."""

import math

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tidegate.analysis.rules.view import (
    View,
    amplification,
    average,
    change,
    longest,
    number,
    outlasting,
    p99,
    patience,
    rounded_up,
    tries,
)
from tidegate.settings.load import loads
from tidegate.settings.policies import Backoff, Budget, Hedge
from tidegate.settings.system import Call, Time
from tidegate.units import HOUR, MILLISECOND, SECOND, parse_duration

MS = MILLISECOND


def test_a_call_is_tried_as_often_as_it_says_and_once_when_nothing_is_repeated() -> None:
    assert tries(Call(attempts=3)) == 3
    assert tries(Call(attempts=3, retry_on=())) == 1


def test_a_budget_bounds_the_load_and_never_adds_to_it() -> None:
    assert amplification(Call(attempts=3)) == 3
    assert amplification(Call(attempts=3, budget=Budget(ratio=0.1))) == 1.1
    assert amplification(Call(attempts=2, budget=Budget(ratio=5))) == 2
    assert amplification(Call(budget=Budget(ratio=0.1))) == 1


def test_a_hedge_asks_again_within_the_budget_that_it_has_in_any_case() -> None:
    hedge = Hedge(after=SECOND)
    assert amplification(Call(hedge=hedge)) == 1.1
    assert amplification(Call(hedge=hedge, budget=Budget(ratio=5))) == 2
    assert amplification(Call(hedge=hedge, attempts=3, budget=Budget(ratio=9))) == 6
    assert amplification(Call(hedge=hedge, idempotent=False)) == 1


def test_an_attempt_ends_at_the_earlier_of_timeout_and_deadline() -> None:
    assert patience(Call()) == math.inf
    assert patience(Call(timeout=2 * SECOND)) == 2 * SECOND
    assert patience(Call(timeout=2 * SECOND, deadline=SECOND)) == SECOND


def test_a_call_takes_its_attempts_and_waits_or_its_deadline() -> None:
    backoff = Backoff(base=100 * MS, factor=2, max=150 * MS)
    call = Call(timeout=SECOND, attempts=4, backoff=backoff)
    assert longest(call) == 4 * SECOND + (100 + 150 + 150) * MS
    assert longest(Call(timeout=SECOND, attempts=4, deadline=3 * SECOND)) == 3 * SECOND
    assert longest(Call(attempts=4)) == math.inf


TIMES = [
    (Time(mean=10 * MS), 10, 46.05),
    (Time(constant=10 * MS), 10, 10),
    (Time(median=8 * MS, p99=40 * MS), 10.16, 40),
    (Time(median=8 * MS, p99=8 * MS), 8, 8),
    (None, 0, 0),
]


@pytest.mark.parametrize(("time", "mean", "ninety_nine"), TIMES)
def test_the_mean_and_the_p99_of_each_form(
    time: Time | None, mean: float, ninety_nine: float
) -> None:
    assert average(time) / MS == pytest.approx(mean, rel=1e-3)
    assert p99(time) / MS == pytest.approx(ninety_nine, rel=1e-3)


@pytest.mark.parametrize("time", [Time(mean=10 * MS), Time(median=8 * MS, p99=40 * MS)])
def test_one_in_a_hundred_outlasts_the_p99(time: Time) -> None:
    assert outlasting(time, p99(time)) == pytest.approx(0.01, rel=1e-6)


def test_constant_work_outlasts_all_or_nothing() -> None:
    assert outlasting(Time(constant=10 * MS), 10 * MS) == 0
    assert outlasting(Time(constant=10 * MS), 10 * MS - 1) == 1
    assert outlasting(Time(median=8 * MS, p99=8 * MS), 8 * MS) == 0
    assert outlasting(None, 1) == 0


@given(st.floats(1, 100 * HOUR))
def test_a_rounded_duration_is_no_shorter_and_at_most_a_tenth_longer(value: float) -> None:
    rounded = parse_duration(rounded_up(value))
    assert value <= rounded <= max(value * 1.1 + 1, 1)


def test_durations_are_written_as_people_do() -> None:
    assert [rounded_up(x) for x in (46.05 * MS, 92.1 * MS, SECOND, 90 * SECOND)] == [
        "47ms",
        "93ms",
        "1s",
        "90s",
    ]


def test_numbers_are_written_to_three_digits_or_whole() -> None:
    written = [number(x) for x in (1.1, 2.25, 6, 99.96, 100.2, 3100, 1e30)]
    assert written == ["1.1", "2.25", "6", "100", "100", "3,100", "1.0e+30"]


@given(st.lists(st.text(min_size=1), min_size=1, max_size=3), st.text(min_size=1))
def test_a_fix_leads_to_its_path_whatever_the_names_are(path: list[str], key: str) -> None:
    names = [name for name in (*path, key) if name.isprintable()]
    expected: object = "10%"
    for name in reversed(names):
        expected = {name: expected}
    if names:
        assert yaml.safe_load(change((tuple(names), "10%"))) == expected


def test_changes_that_share_their_way_are_written_once() -> None:
    text = change((("a", "x y"), "1"), (("a", "on"), "2"), (("b", "c", "d"), "3"))
    assert text == 'a:\n  x y: 1\n  "on": 2\nb:\n  c:\n    d: 3'


CHAIN = """
tidegate: 1
clients:
  people: {rate: 1/s, calls: {open: {to: a, attempts: 2}, look: {to: c, attempts: 5}}}
services:
  a: {calls: {b: {attempts: 3, retry_on: [overloaded]}, c2: {to: c, attempts: 2, budget: 10%}}}
  b: {calls: {c: {attempts: 4}}}
  c: {}
"""


def test_the_worst_path_multiplies_what_failures_make_each_layer_repeat() -> None:
    # The call to b repeats refusals alone, not what b itself gives up on: 2 x 4, not 2 x 3 x 4.
    path = View(loads(CHAIN).system()).worst["people"]
    assert path.attempts == 8
    assert [edge.name for edge in path.edges] == ["open", "b", "c"]


def test_who_comes_to_a_service_through_calls_that_are_waited_for() -> None:
    text = CHAIN.replace("c: {attempts: 4}", "c: {attempts: 4, optional: true, wait: false}")
    other = "  others: {rate: 1/s, calls: {ask: {to: b}}}\nservices:"
    view = View(loads(text.replace("services:", other, 1)).system())
    assert view.reached_by == {
        "a": {"people"},
        "b": {"people", "others"},
        "c": {"people"},
    }
