"""Equal timeouts stand in one line, and one timer watches its head."""

import asyncio

from tidegate.core.outcome import Permit
from tidegate.runtime import timers
from tidegate.runtime.timers import Cut, Line, line_of
from tidegate.testing import ManualClock, run
from tidegate.units import SECOND


async def armed(line, clock, *, wait=0.0, sleep=60.0):
    """A task that is cut when its permit is; the instant at which it ended."""
    if wait:
        await asyncio.sleep(wait)
    permit = Permit(clock.now())
    permit.holder = asyncio.current_task()
    line.arm(permit)
    try:
        await asyncio.sleep(sleep)
    except asyncio.CancelledError:
        assert isinstance(permit.holder, Cut)
        assert permit.holder.was_ours_alone()
        return clock.seconds
    permit.settled, permit.holder = True, None
    return None


def test_each_is_cut_at_its_own_instant_and_only_if_it_is_not_settled():
    clock = ManualClock()

    async def main():
        loop = asyncio.get_running_loop()
        line = Line(loop, 2 * SECOND, clock)
        ends = await asyncio.gather(
            armed(line, clock),
            armed(line, clock, wait=0.5),
            armed(line, clock, wait=1.0, sleep=1.0),
            armed(line, clock, wait=1.5),
        )
        assert not line.armed
        assert not line.queue
        return ends

    assert run(main(), clock) == [2.0, 2.5, None, 3.5]


def test_a_line_that_was_empty_is_armed_again():
    clock = ManualClock()

    async def main():
        line = Line(asyncio.get_running_loop(), 2 * SECOND, clock)
        first = await armed(line, clock)
        await asyncio.sleep(10)
        return first, await armed(line, clock)

    assert run(main(), clock) == (2.0, 14.0)


def test_what_nobody_holds_any_more_is_passed_by():
    clock = ManualClock()

    async def main():
        line = Line(asyncio.get_running_loop(), SECOND, clock)
        line.arm(Permit(clock.now()))
        await asyncio.sleep(5)
        return len(line.queue)

    assert run(main(), clock) == 0


def test_a_cancellation_of_somebody_else_at_the_same_moment_is_theirs():
    async def main():
        task = asyncio.current_task()
        cut = Cut(task)
        task.cancel()
        try:
            await asyncio.sleep(1)
        except asyncio.CancelledError:
            ours = cut.was_ours_alone()
        left = task.cancelling()
        task.uncancel()
        return ours, left

    assert run(main()) == (False, 1)


def test_settled_permits_behind_one_that_is_out_do_not_pile_up():
    clock = ManualClock()

    async def main():
        line = Line(asyncio.get_running_loop(), SECOND, clock)
        line.arm(Permit(clock.now()))
        longest = 0
        for _ in range(5000):
            permit = Permit(clock.now())
            line.arm(permit)
            permit.settled = True
            longest = max(longest, len(line.queue))
        return longest

    assert run(main(), clock) <= 1026


def test_one_line_for_a_loop_and_a_timeout(monkeypatch):
    monkeypatch.setattr(timers, "_lines", {})
    clock = ManualClock()

    async def main():
        loop = asyncio.get_running_loop()
        line = line_of(loop, SECOND, clock)
        assert line_of(loop, SECOND, clock) is line
        assert line_of(loop, 2 * SECOND, clock) is not line
        assert line_of(loop, SECOND, ManualClock()) is not line
        return line

    first, second = run(main(), clock), run(main(), clock)
    assert first is not second


def test_the_lines_of_loops_that_are_closed_are_forgotten(monkeypatch):
    monkeypatch.setattr(timers, "_lines", {})
    clock = ManualClock()
    for _ in range(200):
        loop = asyncio.new_event_loop()
        line_of(loop, SECOND, clock)
        loop.close()
    assert len(timers._lines) == 1
