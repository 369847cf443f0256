"""A wait_for that runs out of time says that the dependency was slow; a cancelled one, nothing.

In virtual time, and with each kind of task around the call.
"""

import asyncio
import sys
from contextlib import suppress
from typing import Any

import pytest

import tidegate
from tidegate.runtime.waited_for import timed_out
from tidegate.testing import after, run, scripted


def outcome_of(give_up: Any) -> str:
    async def main() -> str:
        guard = tidegate.guard("waited for", attempts=1, breaker=None)
        before = guard.snapshot().outcomes
        await give_up(guard.acall(scripted(after(5.0, "late")).acall))
        await asyncio.sleep(0.1)
        now = guard.snapshot().outcomes
        return next(name for name, count in now.items() if count > before[name])

    return str(run(main()))


async def waits(call: Any) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(call, 0.5)


async def waits_for_a_task(call: Any) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(asyncio.create_task(call), 0.5)


async def leaves_while_waiting(call: Any) -> None:
    task = asyncio.create_task(asyncio.wait_for(call, 3.0))
    await asyncio.sleep(0.5)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def leaves_a_task_that_others_watch(call: Any) -> None:
    task = asyncio.create_task(call)
    task.add_done_callback(lambda _: None)
    watching = asyncio.gather(task, return_exceptions=True)
    await asyncio.sleep(0.5)
    task.cancel()
    await watching


@pytest.mark.parametrize(
    ("give_up", "outcome"),
    [
        (waits, "timeout"),
        (waits_for_a_task, "timeout"),
        (leaves_while_waiting, "ignored"),
        (leaves_a_task_that_others_watch, "ignored"),
    ],
)
def test_who_gave_it_up(give_up: Any, outcome: str) -> None:
    if give_up is waits_for_a_task and sys.version_info >= (3, 12):
        outcome = "ignored"  # there it cancels a task that is not its own
    assert outcome_of(give_up) == outcome


def test_a_task_that_nobody_waits_for_was_not_timed_out() -> None:
    async def main() -> bool:
        task = asyncio.current_task()
        assert task is not None
        return timed_out(task)

    assert not asyncio.run(main())
