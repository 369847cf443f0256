"""One clock for everything, which a test may change."""

import asyncio
import time

import pytest

from tidegate.runtime import clock
from tidegate.testing import ManualClock


@pytest.fixture
def listeners():
    before = list(clock._listeners)
    yield
    clock._listeners[:] = before


def test_it_is_the_monotonic_one_unless_somebody_says_otherwise():
    assert clock.current() is clock.MONOTONIC
    before = time.monotonic_ns()
    assert before <= clock.MONOTONIC.now() <= time.monotonic_ns()


def test_a_wait_of_nothing_waits_for_nothing_but_lets_others_run():
    clock.MONOTONIC.sleep(0)
    seen = []

    async def main():
        asyncio.get_running_loop().call_soon(seen.append, "other")
        await clock.MONOTONIC.wait(0)
        seen.append("waited")

    asyncio.run(main())
    assert seen == ["other", "waited"]


def test_a_wait_is_handed_on_in_seconds(monkeypatch):
    slept = []
    monkeypatch.setattr(time, "sleep", slept.append)
    clock.MONOTONIC.sleep(250_000_000)
    assert slept == [0.25]


def test_whoever_keeps_it_at_hand_hears_of_another(listeners):
    heard = []
    clock.on_change(heard.append)
    mine = ManualClock()
    assert clock.use(mine) is clock.MONOTONIC
    assert clock.use(clock.MONOTONIC) is mine
    assert heard == [mine, clock.MONOTONIC]
