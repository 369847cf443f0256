"""An interval holds the share, and runs end when it settles the question."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.analysis.statistics import confidence, measure, settled, wilson


def test_wilson_matches_a_published_example() -> None:
    # Newcombe 1998, table I: 81 of 263 is 0.2553 to 0.3662 (without continuity correction).
    low, high = wilson(81, 263)
    assert (low, high) == (pytest.approx(0.2553, abs=5e-5), pytest.approx(0.3662, abs=5e-5))


def test_nothing_seen_means_anything_is_possible() -> None:
    assert wilson(0, 0) == (0.0, 1.0)


def test_four_of_four_settles_and_three_of_three_does_not() -> None:
    assert settled(4, 4)
    assert settled(0, 4)
    assert not settled(3, 3)
    assert not settled(3, 4)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_holds_the_share_and_shrinks_with_runs(case: tuple[int, int]) -> None:
    hits, runs = case
    low, high = wilson(hits, runs)
    assert 0 <= low <= hits / runs <= high <= 1
    wide, narrow = wilson(hits, runs), wilson(10 * hits, 10 * runs)
    assert narrow[1] - narrow[0] < wide[1] - wide[0]


def test_a_measure_shows_its_spread_and_runs() -> None:
    found = measure([3.0, 1.0, 2.0], "s")
    assert (found.value, found.low, found.high, found.unit, found.runs) == (2.0, 1.0, 3.0, "s", 3)
    assert found.how == "simulated"


def test_a_measure_of_no_runs_says_so() -> None:
    assert measure([], "s").runs == 0


def test_confidence_is_a_share_with_its_interval() -> None:
    found = confidence(4, 4)
    assert (found.value, found.unit, found.runs) == (1.0, "share", 4)
    assert found.low == pytest.approx(0.51, abs=0.01)
