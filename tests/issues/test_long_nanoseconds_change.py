"""`9007199254740993ns` was read as ...992: a float holds only 104 days of nanoseconds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.units import DAY, parse_duration


@given(st.integers(min_value=0, max_value=100 * 365 * DAY))
def test_every_whole_number_of_nanoseconds_survives(nanoseconds: int) -> None:
    assert parse_duration(f"{nanoseconds}ns") == nanoseconds


def test_leading_zeros_are_nothing() -> None:
    assert parse_duration("0" * 5000 + "7s") == 7_000_000_000


def test_a_century_is_the_bound() -> None:
    with pytest.raises(ValueError, match="at most 100 years"):
        parse_duration("9" * 40 + "ns")
