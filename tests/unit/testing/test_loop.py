"""An event loop that nobody waits for."""

import asyncio

import pytest

import tidegate
from tidegate.errors import AttemptTimeout
from tidegate.testing import ManualClock, after, run, scripted


def test_timers_of_many_tasks_go_off_in_order_and_at_their_instants():
    clock = ManualClock()
    seen = []

    async def sleeper(name, *naps):
        for nap in naps:
            await asyncio.sleep(nap)
            seen.append((name, clock.seconds))

    async def main():
        await asyncio.gather(sleeper("a", 1, 1, 3600), sleeper("b", 1.5, 1000))

    run(main(), clock)
    assert seen == [("a", 1), ("b", 1.5), ("a", 2), ("b", 1001.5), ("a", 3602)]


def test_an_attempt_is_given_up_at_its_very_instant():
    guard = tidegate.guard("test_loop.slow", attempts=1, timeout=0.25)
    clock = ManualClock()

    async def main():
        with pytest.raises(AttemptTimeout):
            await guard.acall(scripted(after(10.0, "late")).acall)
        return clock.seconds

    assert run(main(), clock) == 0.25


def test_the_shortest_timer_is_no_endless_loop():
    async def main():
        await asyncio.sleep(1e-12)
        return "over"

    assert run(main()) == "over"


def test_it_takes_the_answer_of_a_thread():
    async def main():
        return await asyncio.to_thread(lambda: "from a thread")

    assert run(main()) == "from a thread"
