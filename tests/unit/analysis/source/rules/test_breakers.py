"""Breakers in the wrong place beside a retry, and around what they cannot see."""

import pytest
from source_code import broken

HEAD = """
import pybreaker, tenacity, time, requests
from circuitbreaker import circuit, CircuitBreakerError
breaker = pybreaker.CircuitBreaker()
again = tenacity.retry(stop=tenacity.stop_after_attempt(3), wait=tenacity.wait_random(0, 1))
narrow = tenacity.retry(
    stop=tenacity.stop_after_attempt(3),
    wait=tenacity.wait_random(0, 1),
    retry=tenacity.retry_if_exception_type(OSError),
)
"""


@pytest.mark.parametrize(
    ("code", "rules"),
    [
        ("@breaker\nasync def f(): ...", ["breaker-blind"]),
        ("@breaker\ndef f(): ...", []),
        ("@circuit\nasync def f(): ...", []),
        ("@circuit\n@again\ndef f(): ...", ["breaker-around-retry"]),
        ("@circuit(failure_threshold=3)\n@again\ndef f(): ...", ["breaker-around-retry"]),
        ("@again\n@circuit\ndef f(): ...", ["open-breaker-retried"]),
        ("@narrow\n@circuit\ndef f(): ...", []),
        ("@narrow\n@breaker\ndef f(): ...", []),
        ("@again\ndef f(): ...", []),
    ],
)
def test_decorators(code: str, rules: list[str]) -> None:
    assert broken(HEAD + code) == rules


LOOP = """
@circuit
def f():
    for attempt in range(3):
        try:
            return requests.get("u", timeout=1)
        except requests.RequestException:
            time.sleep(later())
    {end}
"""


def test_a_loop_inside_a_breaker() -> None:
    assert broken(HEAD + LOOP.format(end="raise OSError")) == ["breaker-around-retry"]
    assert broken(HEAD + LOOP.format(end="return None")) == []
