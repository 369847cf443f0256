"""Numbers of the file come back as they were, and the patterns say what the reader takes."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.settings.numbers import parse_number, parse_range, pattern, people, write_number
from tidegate.settings.shapes import Unit
from tidegate.units import DAY

UNITS: list[Unit] = ["duration", "bytes", "rate", "share", "factor", "count", "per_request"]
WHOLE = ("duration", "bytes", "count")
UNIT = st.sampled_from(UNITS)
WRITTEN = st.text("0123456789.%x/ smhindkMGTiB", max_size=12)


@given(UNIT, st.data())
def test_what_is_written_reads_as_the_same_number(unit: Unit, data: st.DataObject) -> None:
    whole = st.integers(0, 36_500 * DAY if unit == "duration" else 10**18 - 1)
    broken = st.floats(0, 1e12, allow_subnormal=False)
    value = data.draw(whole if unit in WHOLE else broken)
    assert parse_number(unit, write_number(unit, value)) == value


@settings(max_examples=50)  # drawing from a pattern is slow
@given(UNIT, st.data())
def test_the_pattern_takes_what_the_reader_takes(unit: Unit, data: st.DataObject) -> None:
    right = st.from_regex(pattern(unit), fullmatch=True, alphabet=st.characters(codec="ascii"))
    written = data.draw(WRITTEN | right).strip()
    try:
        parse_range(unit, written) or parse_number(unit, written)
    except ValueError as refused:
        size = re.search("from low to high|at most 1", str(refused))  # no pattern sees it
        assert size or not re.fullmatch(pattern(unit), written)
    else:
        assert re.fullmatch(pattern(unit), written)


@pytest.mark.parametrize(
    ("unit", "value", "written"),
    [
        ("duration", 0, "0s"),
        ("duration", 250_000_000, "250ms"),
        ("duration", 90_000_000_000, "90s"),
        ("duration", 600_000_000_000, "10min"),
        ("duration", 7_200_000_000_000, "2h"),
        ("duration", 1, "1ns"),
        ("bytes", 0, "0B"),
        ("bytes", 1_500, "1500B"),
        ("bytes", 64_000, "64kB"),
        ("bytes", 16 << 20, "16MiB"),
        ("bytes", 50 * 10**9, "50GB"),
        ("rate", 600.0, "600/s"),
        ("rate", 1e-7, "0.0000001/s"),
        ("share", 0.07, "7%"),
        ("share", 0.0, "0%"),
        ("share", 1.1, "110%"),
        ("factor", 4.0, "4x"),
        ("count", 100, "100"),
        ("per_request", 0.3, "30%"),
        ("per_request", 2.5, "2.5"),
    ],
)
def test_a_number_is_written_as_a_person_would(unit: Unit, value: float, written: str) -> None:
    assert write_number(unit, value) == written


@pytest.mark.parametrize(
    ("unit", "text", "ends"),
    [
        ("duration", "1s..10s", (10**9, 10**10)),
        ("duration", "1 .. 10ms", (10**6, 10**7)),
        ("share", "10..40%", (0.1, 0.4)),
        ("share", "0.1..0.4", (0.1, 0.4)),
        ("rate", "100..1000/s", (100, 1000)),
        ("factor", "2..4x", (2, 4)),
        ("count", "3..30", (3, 30)),
        ("duration", "1s", None),
        ("per_request", "2.5", None),
    ],
)
def test_a_range_may_have_its_unit_at_the_end(
    unit: Unit, text: str, ends: tuple[float, float] | None
) -> None:
    assert parse_range(unit, text) == ends


@pytest.mark.parametrize(
    ("unit", "text", "says"),
    [
        ("duration", "5", "write 5s or 5ms"),
        ("rate", "600", "write 600/s or 600/min"),
        ("duration", "10s..5s", "from low to high"),
        ("share", "10%..40", "a unit at the end"),
        ("duration", "1s..10", "a unit at the end"),
        ("duration", "1..10", "a duration with its unit"),
        ("duration", "..5s", "found nothing"),
        ("duration", "1...5s", "found"),
        ("duration", "-5s", "a duration with its unit"),
        ("share", "-1", "a share"),
        ("share", ".nan", "a share"),
        ("share", "1e999", "a share"),
        ("share", "9" * 400, "a share"),
        ("factor", ".inf", "a factor"),
        ("count", "9" * 19, "a whole number"),
        ("count", "1_000", "a whole number"),
        ("count", "1e3", "a whole number"),
        ("count", "٣", "a whole number"),
    ],
)
def test_what_could_be_misread_is_refused_with_the_right_thing(
    unit: Unit, text: str, says: str
) -> None:
    with pytest.raises(ValueError, match="expected") as caught:
        parse_range(unit, text) or parse_number(unit, text)
    assert says in str(caught.value)
    assert len(str(caught.value)) < 150


@pytest.mark.parametrize(
    ("unit", "value", "shown"),
    [
        ("duration", 1_414_213_562, "1.41s"),
        ("rate", 547.3728, "547/s"),
        ("share", 0.30822, "30.8%"),
        ("factor", 2.71828, "2.72x"),
        ("count", 31622, "31622"),
        ("per_request", 0.2, "20%"),
    ],
)
def test_a_report_shows_three_digits(unit: Unit, value: float, shown: str) -> None:
    assert people(unit, value) == shown
