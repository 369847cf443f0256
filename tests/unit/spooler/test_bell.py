"""Who waits wakes when it rings or when their time has come, and no ring is missed."""

import asyncio

from tidegate.runtime.clock import current
from tidegate.spooler.bell import Bell
from tidegate.testing import run
from tidegate.units import SECOND


def test_it_wakes_all_who_wait() -> None:
    async def main() -> list[str]:
        bell, woken = Bell(), list[str]()

        async def sleeper(name: str) -> None:
            await bell.heard(bell.rings)
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
        await bell.heard(bell.rings, current().now() + 3 * SECOND)
        bell.ring()  # nobody waits any more
        await bell.heard(bell.rings, current().now() - SECOND)
        return current().now()

    assert run(main()) == 3 * SECOND


def test_a_ring_before_one_lies_down_is_heard() -> None:
    async def main() -> int:
        bell = Bell()
        looked = bell.rings
        bell.ring()
        await bell.heard(looked, current().now() + SECOND)
        return current().now()

    assert run(main()) == 0
