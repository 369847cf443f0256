"""How does a task sleep until something happens, or until a time comes, whichever is first?

Several tasks wait for the same thing. Each says up to which ring it has heard, so that one that
came while it looked at the state of things is not missed.
"""

import asyncio
from typing import Final, final

from tidegate.runtime.clock import current
from tidegate.units import SECOND, Instant

__all__ = ["Bell"]


@final
class Bell:
    """Rung by whoever changes something; heard by all who wait. `rings` counts."""

    __slots__ = ("_waiting", "rings")

    def __init__(self) -> None:
        self.rings = 0
        self._waiting: Final[dict[asyncio.Future[None], None]] = {}  # in order, so runs repeat

    def ring(self) -> None:
        """Wake all who wait. On the loop's own thread."""
        self.rings += 1
        for future in self._waiting:
            if not future.done():
                future.set_result(None)

    async def heard(self, rings: int, until: Instant | None = None) -> None:
        """Sleep until it has rung more often than `rings`, or until this instant."""
        if self.rings != rings:
            return
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self._waiting[future] = None
        timer = None
        if until is not None:
            timer = loop.call_later(max(0, until - current().now()) / SECOND, _wake, future)
        try:
            await future
        finally:
            del self._waiting[future]
            if timer is not None:
                timer.cancel()


def _wake(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
