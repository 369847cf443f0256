"""The same id or number is meant, however an exporter writes it."""

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.analysis.ingest.fields import read_id, read_integer


@given(st.integers(1, 2**128 - 1))
def test_an_id_is_the_same_in_hex_of_either_case_and_in_base64(number: int) -> None:
    assert read_id(f"{number:x}") == read_id(f"{number:032X}") == number
    assert read_id(base64.b64encode(number.to_bytes(16, "big")).decode()) == number


@given(st.integers(1, 2**64 - 1))
def test_a_span_s_id_is_the_same_in_hex_and_in_base64(number: int) -> None:
    text = base64.b64encode(number.to_bytes(8, "big")).decode()
    assert read_id(f"{number:016x}") == read_id(text) == number


@given(st.text(), st.text())
def test_ids_that_are_neither_still_tell_spans_apart(one: str, other: str) -> None:
    junk = f"not hex: {one}"[:60], f"not hex: {other}"[:60]
    assert read_id(junk[0]) > 0
    assert (read_id(junk[0]) == read_id(junk[1])) == (junk[0] == junk[1])


@pytest.mark.parametrize("nothing", [None, "", "0", "0" * 16, "0" * 32, 0, False, 1.5, [], {}])
def test_no_id(nothing: Any) -> None:
    assert read_id(nothing) == 0


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_an_integer_is_the_same_as_text(number: int) -> None:
    assert read_integer(number) == read_integer(str(number)) == number


@pytest.mark.parametrize(
    "nothing",
    [None, "", "x", "1.5", True, [], 2**63, str(2**64), float("nan"), float("inf"), "9" * 5000],
)
def test_no_integer(nothing: Any) -> None:
    assert read_integer(nothing) is None


def test_a_float_is_cut() -> None:
    assert read_integer(1.5e9) == 1_500_000_000
