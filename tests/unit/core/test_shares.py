"""Shares: a retry ranks one class lower, and the last places are kept for what matters more."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.core.shares import CRITICAL, DEFAULT, LAST, RANKS, SHEDDABLE, ceilings, rank
from tidegate.settings.admission import Shares


@pytest.mark.parametrize("criticality", [CRITICAL, DEFAULT, SHEDDABLE])
def test_a_retry_ranks_one_class_lower_and_never_two(criticality: int) -> None:
    assert rank(criticality, 0) == criticality
    assert [rank(criticality, depth) for depth in (1, 2, 50)] == [criticality + 1] * 3


def test_retries_of_what_is_sheddable_are_the_last() -> None:
    assert rank(SHEDDABLE, 1) == LAST == RANKS[-1]


def test_by_default_only_the_lower_classes_are_kept_from_the_last_places() -> None:
    assert ceilings(Shares(), 10) == (10, 10, 8, 6)


def test_a_share_is_rounded_up_but_not_for_a_slip_of_the_float() -> None:
    assert ceilings(Shares(), 1) == (1, 1, 1, 1)
    assert ceilings(Shares(sheddable=0.07, last=0.0), 100) == (100, 100, 7, 0)


@given(
    st.integers(0, 1_000_000),
    st.lists(st.floats(0, 1), min_size=3, max_size=3).map(sorted),
)
def test_no_class_has_more_than_the_one_above_it(places: int, shares: list[float]) -> None:
    last, sheddable, default = shares
    found = ceilings(Shares(default=default, sheddable=sheddable, last=last), places)
    assert found[0] == places
    assert list(found) == sorted(found, reverse=True)
    for share, ceiling in zip((default, sheddable, last), found[1:], strict=True):
        assert places * share - 1e-5 <= ceiling < places * share + 1
