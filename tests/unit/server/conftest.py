"""Every test of the server's side lives in the time of the virtual loop that it runs on."""

from collections.abc import Iterator

import pytest
from virtual_seconds import SecondsClock

from tidegate.runtime import clock


@pytest.fixture(autouse=True)
def virtual_clock() -> Iterator[None]:
    before = clock.use(SecondsClock())
    yield
    clock.use(before)
