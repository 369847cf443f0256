"""`expected="KeyError"` and `fallback="unknown"` were taken, and raised in the outage only."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tidegate
from tidegate.errors import SettingsError
from tidegate.runtime.registry import _forget
from tidegate.testing import instant


@pytest.fixture(autouse=True)
def clock() -> Iterator[None]:
    _forget()
    with instant():
        yield
    _forget()


def test_a_single_exception_type_will_do() -> None:
    def fails() -> None:
        raise KeyError

    with pytest.raises(KeyError):
        tidegate.guard("licences", expected=KeyError).call(fails)
    assert tidegate.guard("licences").snapshot().ok == 1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"expected": "KeyError"}, "expected: expected a tuple of exception types"),
        ({"expected": [KeyError]}, "expected: expected a tuple of exception types"),
        ({"expected": (KeyError, int)}, "expected: expected a tuple of exception types"),
        ({"fallback": "unknown"}, "fallback: expected a function, found 'unknown'"),
        ({"classify": 3}, "classify: expected a function, found 3"),
        ({"judge": 3}, "judge: expected a function, found 3"),
    ],
)
def test_what_no_call_could_use_is_refused_at_once(options: dict[str, Any], says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        tidegate.guard("licences", **options)
    with pytest.raises(SettingsError, match=says):
        tidegate.guard("licences").options(**options)


@pytest.mark.parametrize("kind", [classmethod, staticmethod, property])
def test_a_guard_above_a_descriptor_says_to_turn_them_round(kind: Callable[..., Any]) -> None:
    licences = tidegate.guard("licences")
    for decorate in (licences, licences.stream(), licences.stale(60.0)):
        with pytest.raises(SettingsError, match=f"write @{kind.__name__} above the guard"):
            decorate(kind(lambda _: 1))


@pytest.mark.parametrize("seconds", ["2s", None, True])
def test_a_deadline_that_is_no_number_is_no_riddle(seconds: Any) -> None:
    with pytest.raises(SettingsError, match="a deadline is above 0"):
        tidegate.deadline(seconds)


@pytest.mark.parametrize(
    "terms", [{"max_age": "1h"}, {"max_age": -1}, {"max_age": 5, "entries": 0}, {"max_age": True}]
)
def test_stale_says_at_once_what_is_wrong(terms: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=r"max_age|entries"):
        tidegate.guard("licences").stale(**terms)
    with pytest.raises(SettingsError, match="key: expected a function"):
        tidegate.guard("licences").stale(5.0, key="user")  # type: ignore[arg-type]


def test_a_listener_is_a_function() -> None:
    for listen in (tidegate.listen, tidegate.guard("licences").listen):
        with pytest.raises(SettingsError, match="listener: expected a function"):
            listen("page somebody")  # type: ignore[arg-type]
