"""How a server says no, and when it is worth coming back."""

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.core.outcome import Reason
from tidegate.errors import SettingsError
from tidegate.server.refusal import REFUSALS, RetryAfter
from tidegate.units import SECOND


def test_the_status_fits_the_reason() -> None:
    assert {reason.name: refusal.status for reason, refusal in REFUSALS.items()} == {
        "LIMIT": 503,
        "SHED": 503,
        "WAITED": 503,
        "CLIENT": 429,
        "RATE": 429,
        "DEADLINE": 504,
    }
    assert [reason for reason, refusal in REFUSALS.items() if not refusal.later] == [
        Reason.DEADLINE
    ]


@given(st.integers(1, 20), st.integers(0, 20), st.integers(0, 100 * SECOND), st.integers())
def test_nobody_is_told_to_come_back_too_early(
    low: int, spread: int, at_least: int, seed: int
) -> None:
    drawn = RetryAfter((low, low + spread), Random(seed)).draw(at_least)
    assert drawn * SECOND >= at_least
    assert low <= drawn <= max(low, at_least // SECOND + 1) + spread


def test_not_everybody_is_told_the_same() -> None:
    later = RetryAfter((1, 4), Random(1))
    drawn = [later.draw() for _ in range(400)]
    assert {drawn.count(n) > 60 for n in (1, 2, 3, 4)} == {True}


@pytest.mark.parametrize("wrong", [(0, 1), (3, 2), (1, 3601), 5, (1,), "12", (1.0, 2.0), None])
def test_it_is_seconds_the_lower_first(wrong: Any) -> None:
    with pytest.raises(SettingsError, match=r"retry_after: expected .* seconds"):
        RetryAfter(wrong, Random(1))
