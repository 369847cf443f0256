"""What people write becomes whole nanoseconds and floats; what is shown keeps three digits."""

import math
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tidegate.units import (
    DAY,
    HOUR,
    MICROSECOND,
    MILLISECOND,
    MINUTE,
    SECOND,
    format_bytes,
    format_duration,
    format_rate,
    format_share,
    parse_bytes,
    parse_count,
    parse_duration,
    parse_factor,
    parse_per_request,
    parse_rate,
    parse_share,
    seconds,
)

SIZES = {
    "ns": 1,
    "us": MICROSECOND,
    "ms": MILLISECOND,
    "s": SECOND,
    "min": MINUTE,
    "h": HOUR,
    "d": DAY,
}


@given(st.integers(0, 36_500), st.sampled_from(sorted(SIZES)), st.sampled_from(["", " "]))
def test_a_whole_number_of_any_unit_is_exact(count: int, unit: str, gap: str) -> None:
    assert parse_duration(f"{count}{gap}{unit}") == count * SIZES[unit]


@given(st.decimals(0, 1000, places=3), st.sampled_from(["us", "ms", "s", "min"]))
def test_a_fraction_is_right_to_the_nanosecond(number, unit: str) -> None:
    exact = Fraction(number) * SIZES[unit]
    assert abs(parse_duration(f"{number:f}{unit}") - exact) <= 1


@given(st.integers(1, 100 * 365 * DAY))
def test_a_duration_is_shown_to_three_digits(nanoseconds: int) -> None:
    shown = format_duration(nanoseconds)
    number = shown.rstrip("abcdefghijklmnopqrstuvwxyz")
    assert len(number.replace(",", "").replace(".", "").strip("0")) <= 3 or shown.endswith("d")
    again = float(number.replace(",", "")) * SIZES[shown.removeprefix(number)]
    assert math.isclose(again, nanoseconds, rel_tol=0.005)


@given(st.integers(1, 1000 * DAY))
@example(SECOND - 1)
@example(MINUTE - 1)
def test_a_duration_is_shown_in_its_largest_unit(nanoseconds: int) -> None:
    shown = format_duration(nanoseconds)
    number = shown.rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = shown.removeprefix(number)
    next_larger = {"ns": 1000, "us": 1000, "ms": 1000, "s": 60, "min": 60, "h": 24}
    assert 1 <= float(number.replace(",", "")) < next_larger.get(unit, math.inf)


@pytest.mark.parametrize(
    ("nanoseconds", "shown"),
    [
        (0, "0s"),
        (250 * MILLISECOND, "250ms"),
        (1_500 * MILLISECOND, "1.5s"),
        (1_267 * SECOND, "21.1min"),
        (2 * DAY, "2d"),
        (math.inf, "for ever"),
    ],
)
def test_a_duration_as_people_write_it(nanoseconds: float, shown: str) -> None:
    assert format_duration(nanoseconds) == shown


@pytest.mark.parametrize("text", ["5", "", "ms", "-1s", "1e3s", "1 000s", "5 sec", "inf", "1,5s"])
def test_a_duration_without_a_plain_number_and_unit_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a duration with its unit, as 250ms"):
        parse_duration(text)


@pytest.mark.parametrize(("text", "rate"), [("600/s", 600), ("30 / min", 0.5), ("900/h", 0.25)])
def test_a_rate_is_per_second(text: str, rate: float) -> None:
    assert parse_rate(text) == rate


@pytest.mark.parametrize("text", ["600", "600/d", "600 s", "/s"])
def test_a_rate_without_its_unit_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a rate with its unit, as 600/s"):
        parse_rate(text)


def test_shares_factors_and_counts_may_be_bare() -> None:
    assert parse_share("30%") == parse_share("0.3") == 0.3
    assert parse_factor("4x") == parse_factor("4") == 4
    assert parse_per_request("30%") == 0.3
    assert parse_per_request("2.5") == 2.5
    assert parse_count(" 100 ") == 100


@pytest.mark.parametrize("parse", [parse_share, parse_factor, parse_count, parse_per_request])
@pytest.mark.parametrize("text", ["", "x", "-1", "1_000", "nan", "9" * 400])
def test_what_is_no_number_is_refused_in_one_short_sentence(parse, text: str) -> None:
    with pytest.raises(ValueError, match=r"expected .*, found ") as refused:
        parse(text)
    assert len(str(refused.value)) < 140


@given(st.floats(0, 1e6))
def test_seconds_are_the_nearest_nanosecond(value: float) -> None:
    assert abs(seconds(value) - Fraction(value) * SECOND) <= max(1, value * SECOND * 1e-15)


@pytest.mark.parametrize("value", [-0.001, math.nan, math.inf])
def test_seconds_are_never_negative_nor_endless(value: float) -> None:
    with pytest.raises(ValueError, match="zero or more"):
        seconds(value)


@pytest.mark.parametrize(
    ("share", "shown"), [(0, "0%"), (0.5, "50%"), (0.123, "12.3%"), (0.0004, "<0.1%"), (1, "100%")]
)
def test_a_share_never_rounds_to_nothing(share: float, shown: str) -> None:
    assert format_share(share) == shown


@pytest.mark.parametrize(
    ("rate", "shown"), [(600, "600/s"), (0.5, "0.5/s"), (1840, "1,840/s"), (0, "0/s")]
)
def test_a_rate_as_people_write_it(rate: float, shown: str) -> None:
    assert format_rate(rate) == shown


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("512B", 512),
        ("64kB", 64_000),
        ("1.5 MB", 1_500_000),
        ("16MiB", 16 << 20),
        ("0.1TB", 10**11),
    ],
)
def test_a_size_is_in_bytes(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["64", "64KB", "64 mb", "-1B", "1e3B", "", "2000000TB"])
def test_a_size_without_a_plain_number_and_unit_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^expected a size .*, found "):
        parse_bytes(text)


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (0, "0B"),
        (999, "999B"),
        (999.9, "1kB"),
        (1_536, "1.54kB"),
        (5e10, "50GB"),
        (6.05e12, "6.05TB"),
    ],
)
def test_a_size_as_people_write_it(size: float, shown: str) -> None:
    assert format_bytes(size) == shown
