"""What travels with a request: what is written is read, and what cannot be read says nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.runtime import wire
from tidegate.runtime.context import NOTHING, Ambient
from tidegate.units import DAY, HOUR, MICROSECOND, MILLISECOND, SECOND

NOW = 5_000 * SECOND


def read(**headers: str) -> Ambient:
    return wire.incoming(NOW, {name.replace("_", "-"): value for name, value in headers.items()})


@given(
    st.tuples(
        st.none() | st.integers(0, 86_400_000).map(lambda ms: NOW + ms * MILLISECOND),
        st.none() | st.integers(0, 2),
        st.integers(0, 500),
    ).map(lambda said: Ambient(*said)),
    st.integers(0, 500),
)
def test_what_is_written_is_read(values: Ambient, retries: int) -> None:
    headers = wire.outgoing(NOW, values, retries=retries)
    small = {name.lower(): value for name, value in headers.items()}
    assert small.keys() <= wire.READ
    assert wire.incoming(NOW, small) == values._replace(depth=values.depth + retries)


def test_what_nobody_has_said_is_not_sent() -> None:
    assert wire.outgoing(NOW, NOTHING) == {}
    assert wire.outgoing(NOW, Ambient(), retries=1) == {"Tidegate-Retry-Depth": "1"}


def test_what_remains_is_rounded_down_and_never_below_zero() -> None:
    sent = wire.outgoing(NOW, Ambient(NOW + 2 * MILLISECOND - 1))
    assert sent == {"Tidegate-Remaining-Ms": "1"}
    assert wire.outgoing(NOW, Ambient(NOW - SECOND)) == {"Tidegate-Remaining-Ms": "0"}


def test_nothing_is_made_of_nothing() -> None:
    assert wire.incoming(NOW, {"x-request-id": "7"}) == NOTHING
    assert wire.incoming(NOW, {}) == NOTHING


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("1S", SECOND),
        ("250m", 250 * MILLISECOND),
        ("99999999u", 99_999_999 * MICROSECOND),
        ("7n", 7),
        ("2H", 2 * HOUR),
        ("3M", 180 * SECOND),
    ],
)
def test_a_timeout_of_grpc_has_its_unit(text: str, time: int) -> None:
    assert read(grpc_timeout=text).deadline == NOW + time


@pytest.mark.parametrize(
    "text", ["", "-1", "1.5", "1e3", "soon", "²", "٣", "9" * 13, "0x10", "1 2", "+5", "1S"]
)
def test_what_is_no_number_says_nothing(text: str) -> None:
    found = read(tidegate_remaining_ms=text, tidegate_retry_depth=text, x_envoy_attempt_count=text)
    assert found == NOTHING
    assert read(grpc_timeout=text + "X") == NOTHING


def test_a_deadline_is_at_most_a_day_away() -> None:
    assert read(tidegate_remaining_ms="9" * 12).deadline == NOW + DAY


def test_the_shortest_timeout_and_the_highest_count_hold() -> None:
    found = read(
        tidegate_remaining_ms="300",
        x_envoy_expected_rq_timeout_ms="200",
        grpc_timeout="1S",
        tidegate_retry_depth="1",
        x_envoy_attempt_count="4",
        grpc_previous_rpc_attempts="2",
    )
    assert found == Ambient(NOW + 200 * MILLISECOND, None, 3)


def test_envoy_s_first_attempt_is_no_retry_and_zero_is_no_number_of_it() -> None:
    assert read(x_envoy_attempt_count="1").depth == 0
    assert read(x_envoy_attempt_count="0").depth == 0


def test_a_depth_has_an_end() -> None:
    assert read(tidegate_retry_depth="123456").depth == 1000
    assert wire.outgoing(NOW, Ambient(depth=123_456)) == {"Tidegate-Retry-Depth": "1000"}


@pytest.mark.parametrize(
    ("word", "place"), [("critical", 0), (" Default ", 1), ("SHEDDABLE", 2), ("vital", None)]
)
def test_a_criticality_is_one_of_three_words(word: str, place: int | None) -> None:
    assert read(tidegate_criticality=word).said == place
