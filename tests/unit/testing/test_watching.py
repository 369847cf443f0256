"""What changed, and a dependency that refuses."""

import pytest

import tidegate
from tidegate.testing import capture, instant, refusing, scripted


def fail(guard, times):
    stub = scripted(*[ConnectionError] * times)
    for _ in range(times):
        with pytest.raises(ConnectionError):
            guard.call(stub.call)


def test_changes_of_state_are_noted_in_order_and_only_in_the_block():
    guard = tidegate.guard("test_watching.changes", attempts=1)
    with instant() as clock:
        with capture() as seen:
            fail(guard, 20)
            with pytest.raises(tidegate.CircuitOpen) as refused:
                guard.call(scripted().call)
            clock.advance(refused.value.retry_after)
            guard.call(scripted("well again").call)
            later = tidegate.guard("test_watching.later", attempts=1)
            fail(later, 20)
            assert seen.snapshot(guard.name) == guard.snapshot()
        states = seen.states(guard.name)
        assert states[:2] == ["open", "half-open"]
        assert seen.states("test_watching.later") == ["open"]
        first = seen.changes[0]
        assert first.dependency == guard.name
        assert (first.transition.before, first.transition.after) == ("closed", "open")
        clock.advance(3600)
        noted = len(seen.changes)
        fail(later, 1)  # it is half-open, and then open
        assert len(seen.changes) == noted


def test_a_guard_that_refuses_sends_nothing_on_any_terms_and_is_itself_again_afterwards():
    guard = tidegate.guard("test_watching.held")
    other = guard.options(attempts=1, fallback=lambda: "instead")
    with instant():
        with refusing(guard):
            with pytest.raises(tidegate.Held):
                guard.call(scripted().call)
            assert other.call(scripted().call) == "instead"
            assert guard.snapshot().state == "held"
        assert guard.call(scripted("sent").call) == "sent"
        assert other.call(scripted("sent").call) == "sent"


def test_a_name_that_nobody_has_made_has_no_snapshot():
    with capture() as seen, pytest.raises(KeyError):
        seen.snapshot("test_watching.nobody")
