"""How long may each step of a request take, and whose time was it that ran out?

HTTP clients have timeouts for connecting, sending and reading, and ask for each when its step
begins. `TimeLeft` answers with what remains then, or with the client's own timeout where that is
shorter. So the steps together take no longer than there is time, and a client that cannot be
interrupted, because it blocks, ends in time all the same.
"""

from typing import Any, Final, final

from tidegate.errors import AttemptTimeout, DeadlineExceeded
from tidegate.runtime.clock import current
from tidegate.runtime.context import AMBIENT
from tidegate.runtime.guard import Guard
from tidegate.units import MILLISECOND, SECOND, Duration, Instant

__all__ = ["TimeLeft", "attempt_ends_at", "ends_at", "is_over", "seconds_until", "too_slow"]

# To a socket, no time at all means not to wait but to fail, which is another error.
_LEAST_S: Final = 0.001

_GRAIN: Final[Duration] = MILLISECOND  # two readings of the clock apart


@final
class TimeLeft(dict[str, float | None]):
    """The timeouts of one request, each cut to what is left when it is asked for.

    `until` is the instant after which there is nothing left, None for no end. `ours` says whether
    the timeout that was given last is ours: then it is not the client's that has run out.
    `abandoned` is for a client that is left alone with a request for which nobody waits any more.
    """

    __slots__ = ("abandoned", "ours", "until")

    def __init__(self, timeouts: Any, until: Instant | None) -> None:
        super().__init__(timeouts or {})
        self.until = until
        self.ours = False
        self.abandoned = False

    def get(self, name: str, default: Any = None) -> float | None:  # noqa: ARG002 - there is none
        """Seconds that the step `name` may take; None for ever."""
        own = super().get(name)
        self.ours = False
        if self.abandoned:
            return 0.0
        if self.until is None:
            return own
        left = seconds_until(self.until)
        if own is not None and own <= left:
            return own
        self.ours = True
        return left


def seconds_until(until: Instant) -> float:
    """Seconds until then, and a millisecond if it has passed."""
    return max(_LEAST_S, (until - current().now()) / SECOND)


def is_over(until: Instant) -> bool:
    """Whether it is then, give or take what two readings of the clock lie apart."""
    return current().now() + _GRAIN >= until


def ends_at(guard: Guard) -> Instant | None:
    """When whoever waits for a call that is made now will wait no longer."""
    until = AMBIENT.get().deadline
    own = guard.settings.deadline
    if own is None:
        return until
    end = current().now() + own
    return end if until is None else min(until, end)


def attempt_ends_at(guard: Guard) -> Instant | None:
    """When an attempt that starts now is given up; None if never.

    A first attempt that has nothing of its own to hand down finds the call's deadline as ambient,
    any other its own.
    """
    until = AMBIENT.get().deadline
    if guard.mode != "enforce":
        return None  # it goes through as if there were no guard
    timeout = guard.pipeline.timeout
    if timeout is None:
        return until
    end = current().now() + timeout
    return end if until is None else min(until, end)


def too_slow(guard: Guard, end: Instant | None, until: Instant | None) -> Exception:
    """The error of an attempt whose time was ours, and is over at `end`. `until` ends the call."""
    timeout = guard.settings.timeout
    if timeout is None or (end is not None and until is not None and until <= end + _GRAIN):
        return DeadlineExceeded(guard.name, sent=True)
    return AttemptTimeout(guard.name, timeout / SECOND)
