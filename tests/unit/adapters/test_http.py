"""What HTTP says of a request and of its answer, header by header."""

import pytest
from httpx2 import Headers

import tidegate
from tidegate.adapters.http import IDEMPOTENT, origin_of, propagate, repeatable, short, verdict
from tidegate.core.outcome import FAILURE, OVERLOADED, TIMEOUT
from tidegate.runtime.context import AMBIENT, Ambient, entered
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
    assert verdict(status, {}) is None


@pytest.mark.parametrize(
    ("status", "outcome"),
    [(429, OVERLOADED), (503, OVERLOADED), (504, TIMEOUT), (500, FAILURE), (502, FAILURE)],
)
def test_a_no_is_judged(status: int, outcome: tidegate.Outcome) -> None:
    assert verdict(status, {}) == (outcome, 0)
    assert verdict(status, {"Retry-After": "3"}) == (outcome, 3 * SECOND)
    assert verdict(status, {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}) == (outcome, 0)


def test_an_origin_has_no_port_that_goes_without_saying() -> None:
    assert origin_of("https", "example.com", None) == "https://example.com"
    assert origin_of("https", "example.com", 443) == "https://example.com"
    assert origin_of("http", "example.com", 443) == "http://example.com:443"
    assert origin_of("http", "::1", 8080) == "http://[::1]:8080"


def test_headers_of_before_are_taken_out() -> None:
    guard = tidegate.guard("quiet")
    headers = Headers({"Tidegate-Remaining-Ms": "5", "Tidegate-Retry-Depth": "1", "Accept": "*/*"})
    with tidegate.deadline(1.0):
        propagate(guard, headers)
    assert dict(headers) == {"accept": "*/*"}


def test_headers_say_what_is_handed_down() -> None:
    with instant():
        guard = tidegate.guard("open", propagate=True)
        headers = Headers({"tidegate-criticality": "critical"})
        with entered(Ambient(deadline=1_500_000_000, said=2, depth=3)):
            assert AMBIENT.get().depth == 3
            propagate(guard, headers)
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
