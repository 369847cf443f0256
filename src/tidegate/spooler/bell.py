"""How does a task sleep until something happens, or until a time comes, whichever is first?

Several tasks wait for the same thing; each has heard of it once it has rung since it last looked.
"""

import asyncio
from typing import Final, final

from tidegate.runtime.clock import current
from tidegate.units import SECOND, Instant

__all__ = ["Bell"]


@final
class Bell:
    """Rung by whoever changes something; heard by all who wait."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: Final[set[asyncio.Future[None]]] = set()

    def ring(self) -> None:
        """Wake all who wait. On the loop's own thread."""
        for future in self._waiting:
            if not future.done():
                future.set_result(None)

    async def heard(self, until: Instant | None = None) -> None:
        """Sleep until it rings, or until this instant of the clock that everything goes by."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        timer = None
        if until is not None:
            wait = max(0, until - current().now()) / SECOND
            timer = asyncio.get_running_loop().call_later(wait, _wake, future)
        try:
            await future
        finally:
            self._waiting.discard(future)
            if timer is not None:
                timer.cancel()


def _wake(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
