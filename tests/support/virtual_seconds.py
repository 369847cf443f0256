"""The virtual loop for code that lives in seconds, as asyncio does; its clock in nanoseconds."""

import asyncio
import selectors
from collections.abc import Awaitable, Callable, Coroutine
from math import ceil
from typing import Any

from tidegate.runtime import clock
from tidegate.units import SECOND, Duration, Instant


class _Jumping(selectors.SelectSelector):
    loop: "SecondsLoop"

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if not ready and timeout:
            self.loop.now += ceil(timeout * SECOND)
        return ready


class SecondsLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        selector = _Jumping()
        selector.loop = self
        self.now: Instant = 0
        super().__init__(selector)
        self._clock_resolution = 1e-9

    def time(self) -> float:
        return self.now / SECOND


class SecondsClock:
    """`tidegate.runtime.clock.Clock`, of the running virtual loop."""

    def now(self) -> Instant:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SecondsLoop)
        return loop.now

    def sleep(self, wait: Duration) -> None:
        raise AssertionError("nothing in virtual time may block a thread")

    async def wait(self, wait: Duration) -> None:
        await asyncio.sleep(wait / SECOND)


def run(main: Coroutine[Any, Any, Any]) -> Any:
    with asyncio.Runner(loop_factory=SecondsLoop) as runner:
        return runner.run(main)


def told(story: Callable[[], Awaitable[None]]) -> None:
    """Run a story in virtual time, the clock of the runtime with it."""

    async def main() -> None:
        await story()

    before = clock.use(SecondsClock())
    try:
        run(main())
    finally:
        clock.use(before)
