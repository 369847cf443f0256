"""The same for pytest: put `pytest_plugins = ["tidegate.testing.fixtures"]` in `conftest.py`.

It is not registered by itself, so that no test run pays for it unasked.
"""

from collections.abc import Iterator

import pytest

from tidegate.testing.clock import ManualClock, instant
from tidegate.testing.watching import Captured, capture

__all__ = ["tidegate_clock", "tidegate_seen"]


@pytest.fixture
def tidegate_clock() -> Iterator[ManualClock]:
    """Every guard begins anew and goes by this clock, which the test moves."""
    with instant() as clock:
        yield clock


@pytest.fixture
def tidegate_seen() -> Iterator[Captured]:
    """The changes of state of every dependency during the test."""
    with capture() as captured:
        yield captured
