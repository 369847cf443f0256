"""Every start is fixed before the first answer, and the rate is what was asked for."""

from itertools import islice, pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import SettingsError
from tidegate.loadgen.plan import (
    Stretch,
    arrivals,
    evenly,
    expected,
    poisson,
    rate_at,
    steady,
    surging,
)
from tidegate.settings.system import Trigger
from tidegate.units import MILLISECOND, SECOND

STRETCHES = st.lists(
    st.builds(
        Stretch,
        st.integers(1, 20 * SECOND),
        st.floats(0, 500),
        st.floats(0, 500),
    ),
    min_size=1,
    max_size=5,
)


def test_an_even_plan_starts_in_the_middle_of_each_gap() -> None:
    starts = list(arrivals(steady(10, SECOND), evenly()))
    assert starts == [50 * MILLISECOND + i * 100 * MILLISECOND for i in range(10)]


@given(STRETCHES)
def test_even_starts_are_as_many_as_expected_in_order_and_within_the_plan(
    plan: list[Stretch],
) -> None:
    starts = list(arrivals(plan, evenly()))
    assert abs(len(starts) - expected(plan)) <= 1
    assert starts == sorted(starts)
    assert all(0 <= at < sum(s.lasts for s in plan) for at in starts)


@given(STRETCHES, st.integers(0, 100))
def test_the_same_luck_gives_the_same_poisson_starts(plan: list[Stretch], seed: int) -> None:
    first = list(arrivals(plan, poisson(Random(seed))))
    assert first == list(arrivals(plan, poisson(Random(seed))))
    assert first == sorted(first)


def test_poisson_starts_have_the_rate_and_the_spread_of_poisson() -> None:
    starts = list(arrivals(steady(200, 100 * SECOND), poisson(Random(1))))
    counts = [sum(at // SECOND == second for at in starts) for second in range(100)]
    mean = sum(counts) / 100
    variance = sum((count - mean) ** 2 for count in counts) / 99
    assert abs(mean - 200) < 5  # 3.5 standard deviations of the mean of 100 such seconds
    assert 0.6 < variance / mean < 1.5


def test_a_ramp_is_bent_in_time_exactly() -> None:
    starts = list(arrivals([Stretch(10 * SECOND, 0, 20)], evenly()))
    assert len(starts) == 100
    # The integral of 2t is t²: the start number n + 1/2 comes at its root.
    assert all(
        abs(at - (n + 0.5) ** 0.5 * SECOND) < 2 for n, at in enumerate(starts)
    )  # nanoseconds


def test_a_surge_with_a_ramp_is_cut_off_with_the_plan() -> None:
    surge = Trigger(client="people", load=3.0, ramp=2 * SECOND, for_=5 * SECOND)
    assert surging(10, 20 * SECOND, surge, at=4 * SECOND) == [
        Stretch(4 * SECOND, 10, 10),
        Stretch(2 * SECOND, 10, 30),
        Stretch(3 * SECOND, 30, 30),
        Stretch(11 * SECOND, 10, 10),
    ]
    assert surging(10, 5 * SECOND, surge, at=4 * SECOND) == [
        Stretch(4 * SECOND, 10, 10),
        Stretch(1 * SECOND, 10, 20),
    ]


def test_the_rate_of_any_instant_is_known() -> None:
    plan = [Stretch(2 * SECOND, 10, 30), Stretch(SECOND, 30, 30)]
    assert [rate_at(plan, at * SECOND) for at in (0, 1, 2, 3)] == [10, 20, 30, 0]


def test_a_surge_without_an_end_lasts() -> None:
    surge = Trigger(client="people", load=2.0)
    assert surging(10, 3 * SECOND, surge, at=SECOND) == [
        Stretch(SECOND, 10, 10),
        Stretch(2 * SECOND, 20, 20),
    ]


def test_nothing_comes_at_rate_zero_and_the_gap_goes_on_behind_it() -> None:
    plan = [Stretch(SECOND, 2, 2), Stretch(5 * SECOND, 0, 0), Stretch(SECOND, 2, 2)]
    starts = list(arrivals(plan, evenly()))
    assert [at / SECOND for at in starts] == [0.25, 0.75, 6.25, 6.75]


def test_gaps_of_a_clock_are_all_one() -> None:
    starts = list(islice(arrivals(steady(8, 10 * SECOND), evenly()), 20))
    assert {b - a for a, b in pairwise(starts)} == {SECOND // 8}


@pytest.mark.parametrize(("rate", "lasts"), [(-1, SECOND), (1e6, SECOND), (5, 0)])
def test_what_cannot_be_sent_is_refused(rate: float, lasts: int) -> None:
    with pytest.raises(SettingsError, match="expected a"):
        steady(rate, lasts)
