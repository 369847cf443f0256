"""In virtual time: starts keep to their plan whatever becomes of them, and nothing is hidden."""

import asyncio
from typing import Any

import pytest
from virtual_asyncio import run

from tidegate.loadgen.generator import Attempts, drive
from tidegate.loadgen.record import Record, blank
from tidegate.units import MILLISECOND, SECOND, Duration, Instant

PATIENCE = SECOND
ZERO = 7 * SECOND  # any instant


class Virtual:
    """The clock of the virtual loop, which started at zero."""

    def now(self) -> Instant:
        return int(asyncio.get_running_loop().time())

    def sleep(self, wait: Duration) -> None:
        raise AssertionError("nothing here blocks a thread")

    async def wait(self, wait: Duration) -> None:
        await asyncio.sleep(wait)


def driven(starts: list[Duration], caller: Any, **more: Any) -> Record:
    record = blank(10 * SECOND, PATIENCE)
    return run(drive(starts, caller, record, zero=ZERO, clock=Virtual(), **more))


async def prompt(attempts: Attempts) -> bool:
    attempts.sent(retry=False)
    await asyncio.sleep(20 * MILLISECOND)
    attempts.ended("success")
    return True


async def never(_: Attempts) -> bool:
    await asyncio.sleep(1000 * SECOND)
    return True


def test_each_starts_at_its_instant_and_counts_from_there() -> None:
    seen = driven([0, SECOND, SECOND, 3 * SECOND], prompt)
    assert seen.offered[:4] == [1, 2, 0, 1]
    assert seen.good[:4] == [1, 2, 0, 1]
    assert seen.attempts[:4] == [1, 2, 0, 1]
    assert seen.latencies == [20 * MILLISECOND] * 4
    assert (seen.late, seen.missed, seen.unfinished, seen.outcomes) == (0, 0, 0, {"success": 4})


def test_slow_answers_hold_no_start_back() -> None:
    seen = driven([i * SECOND for i in range(5)], never)
    assert seen.offered[:5] == [1] * 5
    assert (seen.latest, seen.unfinished, sum(seen.good)) == (0, 5, 0)


def test_without_room_a_start_is_missed_and_counted() -> None:
    seen = driven([0, 1, 2, 3], never, in_flight_max=3)
    assert (seen.missed, seen.requests, seen.unfinished) == (1, 4, 3)
    assert seen.saturated


def test_a_generator_that_was_held_up_says_so() -> None:
    async def hog(_: Attempts) -> bool:
        loop: Any = asyncio.get_running_loop()
        loop.now += 300 * MILLISECOND  # what it does takes so long, and nobody else gets a turn
        return True

    seen = driven([0, 100 * MILLISECOND, 2 * SECOND], hog)
    assert (seen.late, seen.latest) == (1, 200 * MILLISECOND)
    assert sorted(seen.latencies) == [300 * MILLISECOND, 300 * MILLISECOND, 500 * MILLISECOND]
    assert seen.saturated


def test_refusals_of_the_callers_own_side_are_counted() -> None:
    async def refused(attempts: Attempts) -> bool:
        attempts.rejected()
        return False

    seen = driven([0, 1], refused)
    assert (seen.rejected, sum(seen.eventual)) == (2, 0)


def test_a_caller_that_raises_ends_the_run_and_leaves_nothing_behind() -> None:
    left: list[str] = []

    async def breaks(_: Attempts) -> bool:
        if not left:
            left.append("first")
            try:
                await asyncio.sleep(100 * SECOND)
            finally:
                left.append("cut off")
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        driven([0, SECOND, 2 * SECOND], breaks)
    assert left == ["first", "cut off"]
