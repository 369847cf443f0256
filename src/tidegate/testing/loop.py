"""How does asyncio run when nobody waits?

On a loop whose time is a `ManualClock`. While any task can run, time stands still; when none can,
it jumps to the next timer. So timeouts, deadlines and backoff of many tasks happen in their right
order and at their exact instants, and an hour of them takes as long as the code in between.

A thread is not in this time: a task that waits for `asyncio.to_thread` sees every timer that is set
go off before it.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, Final, TypeVar, final

from tidegate.testing.clock import ManualClock, instant
from tidegate.units import SECOND

__all__ = ["VirtualLoop", "run"]

_T = TypeVar("_T")


@final
class _Jumping(selectors.SelectSelector):
    """Looks at what is ready and never waits: the time that it is asked to wait has passed."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self._clock: Final = clock

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            return super().select()  # no timer is set: somebody outside must speak
        ready = super().select(0)
        if not ready and timeout > 0:
            # A timer is a float of seconds: one that is due within a nanosecond counts as due.
            self._clock.advance(max(timeout, 1 / SECOND))
        return ready


@final
class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in the time of `clock`."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock: Final = clock
        super().__init__(_Jumping(clock))
        # A tenth of the grain: what is due a nanosecond later is not due yet.
        self._clock_resolution = 0.1 / SECOND

    def time(self) -> float:
        """Seconds, as of any loop."""
        return self.clock.seconds

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ARG002
        """Wait for real threads as long as they take.

        Python 3.12 and newer give them five minutes, which in virtual time are over at once.
        """
        await super().shutdown_default_executor()


def run(main: Coroutine[Any, Any, _T], /, clock: ManualClock | None = None, *, seed: int = 0) -> _T:
    """Run a coroutine in virtual time, like `asyncio.run`; guards go by the same clock."""
    with (
        instant(clock, seed=seed) as still,
        asyncio.Runner(loop_factory=lambda: VirtualLoop(still)) as runner,
    ):
        return runner.run(main)
