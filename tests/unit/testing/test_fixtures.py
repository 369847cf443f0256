"""The fixtures, as a user's conftest would have them."""

import pytest

import tidegate
from tidegate.runtime import clock
from tidegate.testing import scripted
from tidegate.testing.fixtures import tidegate_clock, tidegate_seen  # noqa: F401 - fixtures


def test_the_clock_is_the_one_that_guards_go_by(tidegate_clock):  # noqa: F811
    assert clock.current() is tidegate_clock
    assert tidegate_clock.seconds == 0


def test_changes_are_seen(tidegate_clock, tidegate_seen):  # noqa: F811
    guard = tidegate.guard("test_fixtures.seen", attempts=1)
    stub = scripted(*[ConnectionError] * 20)
    for _ in stub._steps:
        with pytest.raises(ConnectionError):
            guard.call(stub.call)
    assert tidegate_seen.states("test_fixtures.seen") == ["open"]
