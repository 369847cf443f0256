"""How a record refuses: one sentence, with the key, what was expected and what was found."""

import math
from typing import Any

import pytest

from tidegate.errors import SettingsError
from tidegate.settings.rules import finite, lasting, not_so_long, one_of, refuse, whole


def test_a_refusal_says_all_three() -> None:
    error = refuse("window", "a duration from 1s to 1h", 7)
    assert str(error) == "window: expected a duration from 1s to 1h, found 7"
    assert (error.path, error.expected) == (("window",), "a duration from 1s to 1h")


@pytest.mark.parametrize("value", [1, 1.5, 2])
def test_both_ends_belong_to_a_range(value: float) -> None:
    finite("key", value, 1, 2, "from 1 to 2")


@pytest.mark.parametrize("value", [0.999, 2.001, math.nan, math.inf, -math.inf, True, "1", None])
def test_outside_a_range_and_no_number_are_refused(value: float) -> None:
    with pytest.raises(SettingsError, match="key: expected from 1 to 2, found"):
        finite("key", value, 1, 2, "from 1 to 2")


@pytest.mark.parametrize("value", [1.0, 1.5, True, 0, 3])
def test_a_count_is_whole_and_in_its_range(value: float) -> None:
    whole("key", 2, 1, 2, "1 or 2")
    with pytest.raises(SettingsError, match="key: expected 1 or 2, found"):
        whole("key", value, 1, 2, "1 or 2")


def test_an_unknown_word_is_answered_with_the_nearest() -> None:
    one_of("order", "lifo", ("fifo", "lifo"))
    with pytest.raises(SettingsError, match="there is no order 'fifi'; did you mean 'fifo'"):
        one_of("order", "fifi", ("fifo", "lifo"))


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (0, "0s"),
        (20_000_000_000, "20s"),
        (-5, "-5ns"),
        (0.5, "0.5"),
        ("20s", "'20s'"),
        (True, "True"),
    ],
)
def test_a_duration_is_shown_as_a_person_writes_it(value: Any, found: str) -> None:
    lasting("key", 7, 1, 10, "a duration from 1ns to 10ns")
    with pytest.raises(SettingsError) as refused:
        lasting("key", value, 1, 10, "a duration from 1ns to 10ns")
    assert str(refused.value) == f"key: expected a duration from 1ns to 10ns, found {found}"
    assert not_so_long("key", "less", 60_000_000_000).expected == "less"
