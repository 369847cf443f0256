"""One guard for one dependency, on whatever terms."""

import gc
import weakref

import pytest

import tidegate
from tidegate import SettingsError
from tidegate.runtime.registry import _forget
from tidegate.testing import capture, instant, scripted
from tidegate.units import SECOND


@pytest.fixture(autouse=True)
def clock():
    _forget()
    with instant() as still:
        yield still
    _forget()


def test_its_settings_are_written_out_with_every_default():
    guard = tidegate.guard("d", timeout=2.0)
    assert guard.name == "d"
    assert guard.settings.timeout == 2 * SECOND
    assert guard.settings.breaker is not None
    assert repr(guard) == "<tidegate.Guard 'd'>"


def test_options_are_other_terms_on_the_same_state():
    guard = tidegate.guard("d", timeout=2.0, budget=0.5)
    quick = guard.options(timeout=0.5, attempts=1)
    assert (quick.settings.timeout, quick.settings.tries) == (SECOND // 2, 1)
    assert guard.settings.timeout == 2 * SECOND
    assert quick.pipeline.breaker is guard.pipeline.breaker
    assert quick.pipeline.budget is guard.pipeline.budget
    quick.call(scripted("fine").call)
    assert guard.snapshot().ok == 1


def test_options_of_options_add_up():
    guard = tidegate.guard("d").options(timeout=0.5, fallback=lambda: "old", expected=(KeyError,))
    both = guard.options(attempts=1)
    assert (both.settings.timeout, both.settings.tries) == (SECOND // 2, 1)
    assert both.call(scripted(ConnectionError).call) == "old"
    with pytest.raises(KeyError):
        both.call(scripted(KeyError).call)
    seen = both.snapshot()
    assert (seen.ok, seen.fallback) == (1, 1)


@pytest.mark.parametrize("name", ["budget", "breaker", "limit", "rate_limit", "throttle"])
def test_a_policy_with_a_state_is_one_for_all_calls(name):
    with pytest.raises(SettingsError, match=f"{name} is one for all calls of 'd'"):
        tidegate.guard("d").options(**{name: None})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"mode": "shadow"}, "mode"),
        ({"time_out": 1}, "did you mean 'timeout'"),
        ({"attempts": 0}, "attempts"),
    ],
)
def test_options_that_are_wrong_are_refused(options, said):
    with pytest.raises(SettingsError, match=said):
        tidegate.guard("d").options(**options)


def test_new_settings_reach_every_view_and_keep_what_is_the_same():
    guard = tidegate.guard("d")
    quick = guard.options(attempts=1)
    breaker = guard.pipeline.breaker
    tidegate.guard("d", timeout=3.0)
    assert guard.settings.timeout == quick.settings.timeout == 3 * SECOND
    assert quick.settings.tries == 1
    assert guard.pipeline.breaker is quick.pipeline.breaker is breaker


def test_a_view_that_nobody_uses_any_more_is_forgotten():
    guard = tidegate.guard("d")
    view = weakref.ref(guard.options(attempts=1))
    gc.collect()
    assert view() is None
    assert len(guard.dependency.views) == 1


def test_a_listener_hears_of_its_own_dependency():
    heard = []
    guard, other = (tidegate.guard(name, attempts=1, fallback=lambda: None) for name in "de")
    guard.listen(lambda name, change: heard.append((name, change.after)))
    with capture() as seen:
        for each in (guard, other):
            stub = scripted(*[ConnectionError] * 20)
            for _ in range(20):
                each.call(stub.call)
    assert heard == [("d", "open")]
    assert (seen.states("d"), seen.states("e")) == (["open"], ["open"])


def test_a_generator_function_is_guarded_as_a_stream_and_a_lambda_as_a_function():
    guard = tidegate.guard("d")

    @guard
    def items():
        yield 1

    stream = items()
    assert guard.snapshot().started == 0
    assert [*stream] == [1]
    assert guard.call(lambda: "fine") == "fine"
    assert guard.snapshot().ok == 2
