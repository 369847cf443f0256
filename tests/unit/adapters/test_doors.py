"""Which guard is asked, on which terms, and that there is an end to their number."""

import pytest

import tidegate
from tidegate.adapters.doors import ORIGINS_MAX, OTHERS, Doors, Terms
from tidegate.core.outcome import FAILURE, OVERLOADED, TIMEOUT
from tidegate.errors import SettingsError
from tidegate.runtime import registry


class Exchange:
    request = "GET /"


@pytest.fixture(autouse=True)
def _forgotten():
    yield
    registry._forget()


def sent(_: object) -> str:
    return "answer"


def test_each_origin_has_a_guard_of_its_own_and_keeps_it() -> None:
    found = Doors(None, sent)
    first, second = found.of("https://a"), found.of("https://b")
    assert first.guard.name == "https://a"
    assert second.guard.dependency is not first.guard.dependency
    assert found.of("https://a") is first
    assert first.guard.dependency is tidegate.guard("https://a").dependency


def test_strangers_without_end_share_one_guard_that_cuts_nobody_off() -> None:
    found = Doors(None, sent)
    for n in range(ORIGINS_MAX + 50):
        last = found.of(f"https://{n}.example.com")
    assert last.guard.name == OTHERS
    assert last is found.of("https://yet.another")
    assert last.guard.settings.breaker is None
    assert last.guard.settings.limit is None
    assert last.guard.settings.budget is not None
    assert len(tidegate.snapshots()) == ORIGINS_MAX + 1
    assert found.of("https://7.example.com").guard.name == "https://7.example.com"


def test_the_others_may_have_settings_of_their_own() -> None:
    tidegate.guard(OTHERS, attempts=1)
    long = "https://" + "x" * 250
    assert Doors(None, sent).of(long).guard.settings.tries == 1


def test_a_name_too_long_for_a_guard_is_one_of_the_others() -> None:
    assert Doors(None, sent).of("https://" + "x" * 250).guard.name == OTHERS


def test_the_user_may_say_which() -> None:
    mine = tidegate.guard("mine")
    assert Doors(mine, sent).of("https://a").guard is mine
    found = Doors(lambda origin: tidegate.guard(origin.removeprefix("https://")), sent)
    assert found.of("https://shop").guard is tidegate.guard("shop")
    assert found.to("mine").guard is mine
    assert found.to(mine) is found.to("mine")
    for wrong in (7, "mine"):
        with pytest.raises(SettingsError, match="expected a guard, a function"):
            Doors(wrong, sent)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="or the name of one"):
        found.to(7)  # type: ignore[arg-type]


def test_terms_say_what_may_be_done_again() -> None:
    door = Doors(None, sent).of("https://a")
    repeat, _ = door.on(Terms.REPEAT)
    unless_done, _ = door.on(Terms.UNLESS_DONE)
    once, _ = door.on(Terms.ONCE)
    assert repeat.pipeline.retryable[FAILURE]
    assert not unless_done.pipeline.retryable[TIMEOUT]
    assert unless_done.pipeline.retryable[OVERLOADED]
    assert (repeat.pipeline.attempts, once.pipeline.attempts) == (2, 1)
    assert door.on(Terms.REPEAT) is door.on(Terms.REPEAT)
    assert repeat.pipeline.budget is once.pipeline.budget, "one state for all terms"


def test_the_user_s_classifier_comes_first() -> None:
    guard = tidegate.guard(
        "asked",
        classify=lambda error: TIMEOUT if isinstance(error, KeyError) else None,
    )
    door = Doors(guard, sent, lambda error: OVERLOADED).of("https://a")
    view, _ = door.on(Terms.ONCE)
    assert view.outcome_of(KeyError()) is TIMEOUT
    assert view.outcome_of(ValueError()) is OVERLOADED


def test_a_fallback_is_given_the_request() -> None:
    def broken(_: object) -> str:
        raise ConnectionError

    guard = tidegate.guard("helped", attempts=1, fallback=lambda request: f"old {request}")
    _, send = Doors(guard, broken).of("https://a").on(Terms.ONCE)
    assert send(Exchange()) == "old GET /"
