"""What an exception says about the dependency, whoever raised it."""

import asyncio
from typing import Any

import pytest

from tidegate.core.outcome import FAILURE, IGNORED, OVERLOADED, SUCCESS, TIMEOUT, Outcome
from tidegate.errors import AttemptTimeout, CircuitOpen, DeadlineExceeded
from tidegate.runtime.classify import classify, parse_retry_after, retry_after, status_outcome
from tidegate.units import SECOND


class Response:
    def __init__(self, status: int, headers: dict[str, str] | None = None) -> None:
        self.status_code = status
        self.headers = headers or {}


class StatusError(Exception):
    def __init__(self, response: Response) -> None:
        self.response = response


class PoolTimeout(Exception):  # noqa: N818 - theirs
    """As HTTP clients name theirs, of no common base."""


class SlowPool(PoolTimeout):
    pass


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (ConnectionError(), FAILURE),
        (ValueError(), FAILURE),
        (TimeoutError(), TIMEOUT),
        (PoolTimeout(), TIMEOUT),
        (SlowPool(), TIMEOUT),
        (AttemptTimeout("a", 1.0), TIMEOUT),
        (DeadlineExceeded("a", sent=True), TIMEOUT),
        (CircuitOpen("a", "closed"), IGNORED),
        (TypeError(), IGNORED),
        (AttributeError(), IGNORED),
        (asyncio.CancelledError(), IGNORED),
        (KeyboardInterrupt(), IGNORED),
        (StatusError(Response(503)), OVERLOADED),
        (StatusError(Response(404)), SUCCESS),
    ],
)
def test_an_exception_is_judged_by_its_kind(error: BaseException, outcome: Outcome) -> None:
    assert classify(error) is outcome


def test_a_status_is_an_answer_or_a_no() -> None:
    found = {status: status_outcome(status) for status in (200, 404, 429, 500, 503, 504)}
    assert found == {
        200: SUCCESS,
        404: SUCCESS,
        429: OVERLOADED,
        500: FAILURE,
        503: OVERLOADED,
        504: TIMEOUT,
    }


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("3", 3),
        (" 3 ", 3),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0),
        ("-1", 0),
        ("9" * 10, 0),
        (None, 0),
    ],
)
def test_a_wait_is_asked_for_in_seconds(text: Any, seconds: int) -> None:
    assert parse_retry_after(text) == seconds * SECOND


def test_an_exception_may_say_when_to_come_again() -> None:
    assert retry_after(StatusError(Response(503, {"retry-after": "2"}))) == 2 * SECOND
    assert retry_after(StatusError(Response(503, {"Retry-After": "2"}))) == 2 * SECOND
    assert retry_after(StatusError(Response(503))) == 0
    assert retry_after(ValueError()) == 0


@pytest.mark.parametrize(
    ("said", "wait"),
    [(0.25, SECOND // 4), (2, 2 * SECOND), (-1, 0), ("2", 0), (True, 0), (1e300, 0)],
)
def test_or_have_it_as_an_attribute(said: Any, wait: int) -> None:
    error = ValueError()
    error.retry_after = said  # type: ignore[attr-defined]
    assert retry_after(error) == wait
