"""An error says where, what, and the nearest right thing; every error of ours has one base."""

import pickle

import pytest

import tidegate
from tidegate.errors import (
    AttemptTimeout,
    DeadlineExceeded,
    InputError,
    InvariantError,
    SettingsError,
    TidegateError,
    WorkerLost,
    nearest,
)


@pytest.mark.parametrize("kind", [SettingsError, InputError, InvariantError, WorkerLost])
def test_one_clause_catches_them_all(kind: type[Exception]) -> None:
    assert issubclass(kind, TidegateError)
    assert getattr(tidegate, kind.__name__) is kind


def test_a_setting_wrong_in_python_is_a_value_error() -> None:
    assert issubclass(SettingsError, ValueError)


def test_the_place_comes_first_then_the_path_then_the_sentence() -> None:
    error = SettingsError(
        "expected a rate", path=("clients", "readers", "rate"), where="s.yaml:4:5"
    )
    assert str(error) == "s.yaml:4:5: clients.readers.rate: expected a rate"


def test_what_is_unknown_leaves_no_empty_place() -> None:
    assert str(SettingsError("expected a rate")) == "expected a rate"


def test_an_error_seen_from_further_up_keeps_all_else() -> None:
    inner = SettingsError("no", path=("rate",), where="s.yaml:4:5", expected="a rate")
    outer = inner.under("clients", "readers")
    assert outer.path == ("clients", "readers", "rate")
    assert (outer.message, outer.where, outer.expected) == ("no", "s.yaml:4:5", "a rate")
    assert inner.path == ("rate",)


@pytest.mark.parametrize(
    ("word", "known", "hint"),
    [
        ("timout", ["timeout", "attempts"], "; did you mean 'timeout'?"),
        ("zzz", ["timeout", "attempts"], "; known: attempts, timeout"),
        ("zzz", [f"service-{number}" for number in range(13)], ""),
        ("zzz", [], ""),
    ],
)
def test_the_nearest_word_or_a_short_list_or_nothing(
    word: str, known: list[str], hint: str
) -> None:
    assert nearest(word, known) == hint


def test_a_time_that_is_over_is_no_error_of_the_system() -> None:
    """Some clients ask an OSError for its errno: ours has none."""
    for error in (AttemptTimeout("licences", 0.25), DeadlineExceeded("licences", sent=True)):
        assert error.errno is None
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))
