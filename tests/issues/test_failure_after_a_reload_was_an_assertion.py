"""A call that was out while its guard was given another limit, and then failed, raised our own
AssertionError: its place was given back to the new limit, which had never given it.
"""

import pytest

import tidegate
from tidegate import guard
from tidegate.runtime.registry import _forget
from tidegate.settings.policies import Limit
from tidegate.testing import instant


@pytest.mark.parametrize("unasked", [False, True])
def test_a_call_fails_under_the_settings_that_it_began_with(unasked: bool) -> None:
    _forget()
    with instant():
        ask = guard("shop")
        if unasked:
            ask.call(int)

        def fails() -> None:
            guard("shop", attempts=1, limit=Limit(max=3))
            raise ConnectionError("gone")

        with pytest.raises(ConnectionError, match="gone"):
            ask.call(fails)
        seen = tidegate.snapshots()["shop"]
        assert (seen.limit, seen.inflight, seen.pending, seen.failed) == (3, 0, 0, 1)
    _forget()
