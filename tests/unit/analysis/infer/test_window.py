"""Rates over a window that one wrong clock cannot stretch; how many there were at once."""

from array import array
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.analysis.infer.window import Window, most_at_once, window_of
from tidegate.units import SECOND

intervals = st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20)), max_size=30)


@given(intervals)
def test_most_at_once_is_what_counting_every_instant_gives(found: list[tuple[int, int]]) -> None:
    starts = array("q", (start for start, _ in found))
    ends = array("q", (start + length for start, length in found))
    alive = [sum(s <= now < s + n for s, n in found) for now in range(71)]
    assert most_at_once(starts, ends) == max(alive)


def test_an_instant_counts_while_nothing_else_does() -> None:
    assert most_at_once(array("q", [5]), array("q", [5])) == 1


@pytest.mark.parametrize("wild", [0, 5])
def test_a_rate_is_found_whatever_a_few_clocks_say(wild: int) -> None:
    rng, now, starts = Random(1), 0.0, array("q")
    while now < 100:
        now += rng.expovariate(50)
        starts.append(round(now * SECOND))
    starts.extend(10**18 * n for n in range(1, wild + 1))
    window, counted = window_of([starts], 1.0)
    assert window.rate(starts, of_all=counted) == pytest.approx(50, rel=0.05)


def test_evenly_spaced_requests_give_their_rate_exactly() -> None:
    starts = array("q", range(0, 11 * SECOND, SECOND))
    window, counted = window_of([starts], 0.5)
    assert (window.length, counted) == (10 * SECOND, 11)
    assert window.rate(starts, of_all=counted) == pytest.approx(2.0)
    assert window.rate([], of_all=counted) == 0


@pytest.mark.parametrize("starts", [[], [5], [5, 5]])
def test_no_time_passes_so_there_is_no_rate(starts: list[int]) -> None:
    window, counted = window_of([array("q", starts)], 1.0)
    assert window.rate(starts, of_all=counted) is None
    assert Window(0, 0, 1.0).length == 0
