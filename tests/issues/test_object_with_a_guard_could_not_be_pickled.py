"""An object that holds a guard could not be copied or sent to a process: "cannot pickle lock"."""

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tidegate
from tidegate.errors import SettingsError
from tidegate.runtime.registry import _forget


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    _forget()
    yield
    _forget()


def unknown() -> str:
    return "unknown"


def sent(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, sent])
def test_it_is_the_guard_of_its_name(way: Callable[[Any], Any]) -> None:
    licences = tidegate.guard("licences", timeout=0.5)
    assert way(licences) is licences


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, sent])
def test_its_terms_go_with_it(way: Callable[[Any], Any]) -> None:
    licences = tidegate.guard("licences", attempts=3)
    view = way(
        licences.options(
            timeout=0.25, mode="observe", expected=(KeyError,), fallback=unknown, attempts=1
        )
    )
    assert (view.mode, view.settings.timeout, view.settings.attempts) == ("observe", 250_000_000, 1)
    assert view.fallback is not None
    assert view.fallback() == "unknown"
    assert view.outcome_of(KeyError()) is tidegate.Outcome.SUCCESS
    assert view.dependency is licences.dependency


def test_its_settings_go_with_it_also_those_that_are_off() -> None:
    parcel = pickle.dumps(tidegate.guard("licences", attempts=7, breaker=None))
    _forget()
    settings = pickle.loads(parcel).settings
    assert (settings.attempts, settings.breaker) == (7, None)


def test_what_code_has_said_where_it_arrives_counts_more() -> None:
    parcel = pickle.dumps(tidegate.guard("licences", attempts=7))
    _forget()
    here = tidegate.guard("licences", attempts=3)
    assert pickle.loads(parcel) is here
    assert here.settings.attempts == 3


def test_given_first_by_a_parcel_they_cannot_be_contradicted() -> None:
    parcel = pickle.dumps(tidegate.guard("licences", attempts=7))
    _forget()
    pickle.loads(parcel)
    with pytest.raises(SettingsError, match="other settings elsewhere"):
        tidegate.guard("licences", attempts=3)


def test_it_arrives_in_another_process() -> None:
    parcel = pickle.dumps(tidegate.guard("licences", attempts=7))
    said = subprocess.run(
        [
            sys.executable,
            "-c",
            "import pickle, sys; print(pickle.load(sys.stdin.buffer).settings.attempts)",
        ],
        input=parcel,
        capture_output=True,
        timeout=60,
        check=True,
    ).stdout
    assert said.split() == [b"7"]
