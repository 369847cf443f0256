"""An asyncio loop whose clock stands still while anything can run, then jumps to the next timer.

Its time is an int of nanoseconds, so `asyncio.sleep` takes nanoseconds here and wakes exactly.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any


class _Jumping(selectors.SelectSelector):
    """Never waits: the time that it is asked to wait has passed."""

    loop: "VirtualLoop"

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if not ready and timeout:
            self.loop.now += int(timeout)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        selector = _Jumping()
        selector.loop = self
        self.now = 0
        super().__init__(selector)
        self._clock_resolution = 1  # a nanosecond: the grain of an int

    def time(self) -> int:  # type: ignore[override]
        return self.now


def run(main: Coroutine[Any, Any, Any]) -> Any:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
