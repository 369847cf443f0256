"""What HTTP says of a request and of its answer, header by header."""

import pytest
from httpx2 import Headers, Response

import tidegate
from tidegate.adapters.http import (
    IDEMPOTENT,
    SaidNo,
    may_follow,
    origin_of,
    propagate,
    repeatable,
    says_no,
    short,
    true_false_or_none,
)
from tidegate.core.outcome import FAILURE, OVERLOADED, TIMEOUT
from tidegate.errors import SettingsError
from tidegate.runtime.classify import retry_after
from tidegate.runtime.context import Ambient, entered
from tidegate.runtime.guard import Verdict
from tidegate.testing import instant
from tidegate.units import SECOND


@pytest.fixture(autouse=True)
def _forgotten():
    from tidegate.runtime import registry

    yield
    registry._forget()


@pytest.mark.parametrize("method", sorted(IDEMPOTENT))
def test_what_does_the_same_twice_may_be_repeated(method: str) -> None:
    assert repeatable(method, {})
    assert repeatable(method.lower(), {})


def test_what_does_more_may_be_with_a_key() -> None:
    for method in ("POST", "PATCH", "CONNECT", "PURGE"):
        assert not repeatable(method, Headers())
        assert repeatable(method, Headers({"idempotency-key": "7"}))


@pytest.mark.parametrize("status", [101, 200, 204, 301, 304, 400, 401, 404, 409, 422])
def test_an_answer_is_an_answer(status: int) -> None:
    guard = tidegate.guard("asked")
    assert not says_no(guard, status)
    assert not may_follow(guard, 1, Response(status), status)


@pytest.mark.parametrize(
    ("status", "outcome"),
    [(429, OVERLOADED), (503, OVERLOADED), (504, TIMEOUT), (500, FAILURE), (502, FAILURE)],
)
def test_a_no_is_judged(status: int, outcome: tidegate.Outcome) -> None:
    guard = tidegate.guard("asked")
    assert says_no(guard, status)
    assert guard.outcome_of(SaidNo(Response(status))) is outcome
    for text, seconds in (("3", 3), ("Wed, 21 Oct 2015 07:28:00 GMT", 0)):
        no = SaidNo(Response(status, headers={"Retry-After": text}))
        assert retry_after(no) == seconds * SECOND


def test_the_user_s_own_judge_is_given_the_response() -> None:
    guard = tidegate.guard(
        "judged", judge=lambda response: Verdict(FAILURE) if response.status_code == 200 else None
    )
    assert not says_no(guard, 503)
    assert may_follow(guard, 1, Response(200), 200)
    assert not may_follow(guard, 1, Response(503), 503)


def test_another_may_follow_a_no_that_is_worth_repeating() -> None:
    guard = tidegate.guard("asked")
    assert may_follow(guard, 1, Response(500), 500)
    assert not may_follow(guard, 2, Response(500), 500), "the last attempt"
    unless_done = guard.options(idempotent=False)
    assert not may_follow(unless_done, 1, Response(500), 500)
    assert may_follow(unless_done, 1, Response(503), 503)
    assert not may_follow(guard.options(mode="observe"), 1, Response(503), 503)


def test_an_origin_has_no_port_that_goes_without_saying() -> None:
    assert origin_of("https", "example.com", None) == "https://example.com"
    assert origin_of("https", "example.com", 443) == "https://example.com"
    assert origin_of("http", "example.com", 443) == "http://example.com:443"
    assert origin_of("http", "::1", 8080) == "http://[::1]:8080"


def test_headers_of_before_are_taken_out() -> None:
    guard = tidegate.guard("quiet")
    headers = Headers({"Tidegate-Remaining-Ms": "5", "Tidegate-Retry-Depth": "1", "Accept": "*/*"})
    with tidegate.deadline(1.0):
        propagate(guard, headers, SECOND)
    assert dict(headers) == {"accept": "*/*"}


def test_headers_say_what_is_handed_down() -> None:
    with instant():
        guard = tidegate.guard("open", propagate=True)
        headers = Headers({"tidegate-criticality": "critical"})
        with entered(Ambient(said=2, depth=3)):
            propagate(guard, headers, 3 * SECOND // 2)
        assert dict(headers) == {
            "tidegate-remaining-ms": "1500",
            "tidegate-criticality": "sheddable",
            "tidegate-retry-depth": "3",
        }


def test_a_body_is_short_if_it_says_so() -> None:
    assert short({"Content-Length": "65536"})
    assert not short({"Content-Length": "65537"})
    assert not short({"Content-Length": "some"})
    assert not short({})


def test_what_may_be_repeated_is_said_by_true_false_or_nothing() -> None:
    assert [true_false_or_none(said) for said in (True, False, None)] == [True, False, None]
    for wrong in ("yes", 1, 0, ()):
        with pytest.raises(SettingsError, match="idempotent: expected True, False or None, found"):
            true_false_or_none(wrong)
