"""A keyword means what the same key means in a file, with times in seconds."""

import pytest

from tidegate.errors import SettingsError
from tidegate.runtime.keywords import KEYWORDS, call_settings, override
from tidegate.settings.policies import Backoff, Breaker, Budget
from tidegate.settings.system import Call, default_protection
from tidegate.units import MILLISECOND, SECOND


def test_nothing_said_is_the_default_protection_of_a_file():
    assert call_settings({}) == default_protection(Call(protect="default"))


def test_times_are_seconds_and_a_bare_number_is_what_a_policy_is_mostly_about():
    settings = call_settings(
        {"timeout": 0.25, "deadline": 2, "backoff": 0.1, "budget": 0.2, "retry_on": "timeout"}
    )
    assert settings.timeout == 250 * MILLISECOND
    assert settings.deadline == 2 * SECOND
    assert settings.backoff == Backoff(base=100 * MILLISECOND)
    assert settings.budget == Budget(ratio=0.2)
    assert settings.retry_on == ("timeout",)
    assert settings.breaker == call_settings({}).breaker


def test_a_record_is_taken_as_it_is():
    assert call_settings({"breaker": Breaker(volume=5)}).breaker == Breaker(volume=5)


@pytest.mark.parametrize("name", ["timeout", "budget", "breaker", "limit", "backoff"])
def test_none_switches_off(name):
    assert getattr(call_settings({}), name) is not None
    assert getattr(call_settings({name: None}), name) is None


def test_one_attempt_that_is_said_is_one_attempt():
    assert call_settings({"attempts": 1}).tries == 1


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        ({"time_out": 1.0}, "there is no setting 'time_out'; did you mean 'timeout'"),
        ({"retries": 3}, r"here it is attempts \(tries in all"),
        ({"circuit_breaker": 0.5}, "here it is breaker"),
        ({"to": "edge"}, "there is no setting 'to'"),
        ({"timeout": "250ms"}, "timeout: expected seconds"),
        ({"timeout": -1}, "timeout: expected seconds"),
        ({"timeout": True}, "timeout: expected seconds"),
        ({"timeout": float("nan")}, "timeout: expected seconds"),
        ({"timeout": 86_401}, "timeout: expected seconds"),
        ({"breaker": "half"}, r"breaker: expected a number or a Breaker\(...\), found 'half'"),
        ({"budget": True}, r"budget: expected a number or a Budget\(...\)"),
        ({"budget": -1}, "budget.ratio"),
        ({"attempts": 0}, "attempts"),
        ({"backoff": 30}, "backoff.max: expected at least the base of 30s, found 20s"),
        ({"timeout": 0}, "timeout: expected a duration above zero and at most 24h, found 0s"),
        ({"retry_on": "always"}, "retry_on"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(keywords, said):
    with pytest.raises(SettingsError, match=said):
        call_settings(keywords)
    with pytest.raises(SettingsError, match=said):
        override(keywords)


def test_an_override_has_only_what_was_said():
    assert override({"timeout": 1.0, "deadline": None}) == {"timeout": SECOND, "deadline": None}


def test_every_keyword_is_a_field_of_a_call():
    assert {"timeout", "attempts", "breaker", "limit", "idempotent"} <= KEYWORDS.keys()
    assert KEYWORDS.keys().isdisjoint({"to", "per_request", "protect"})
