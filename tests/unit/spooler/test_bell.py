"""Who waits wakes when it rings or when their time has come, and leaves nothing behind."""

import asyncio

from tidegate.runtime.clock import current
from tidegate.spooler.bell import Bell
from tidegate.testing import run
from tidegate.units import SECOND


def test_it_wakes_all_who_wait() -> None:
    async def main() -> list[str]:
        bell, woken = Bell(), list[str]()

        async def sleeper(name: str) -> None:
            await bell.heard()
            woken.append(name)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(sleeper("a"))
            tasks.create_task(sleeper("b"))
            await asyncio.sleep(1)
            assert woken == []
            bell.ring()
        return woken

    assert run(main()) == ["a", "b"]


def test_a_time_that_comes_first_wakes_as_well() -> None:
    async def main() -> int:
        bell = Bell()
        await bell.heard(current().now() + 3 * SECOND)
        bell.ring()  # nobody waits any more
        await bell.heard(current().now() - SECOND)
        return current().now()

    assert run(main()) == 3 * SECOND
