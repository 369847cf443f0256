"""In which order does a request make its calls, and when has it failed?

Calls come as written, one after another, or all together. `per_request` is how many of each: the
whole part always, the rest by chance. The first failure of a required call ends the request; that
of an optional one only degrades it. A call that nobody waits for is started and forgotten.
"""

from random import Random
from typing import Any, Final, final

from tidegate.sim.parts.caller import CallSite
from tidegate.sim.parts.work import Frame
from tidegate.units import Instant

__all__ = ["Step", "Steps"]

_SENDING: Final = -1
"""`Frame.pending` while one of its calls is being sent: the answer may come before that is over."""


@final
class Step:
    """One call with how often it is made; `per_request` may change while the system runs."""

    __slots__ = ("per_request", "site", "wait")

    def __init__(self, site: CallSite, per_request: float, wait: bool) -> None:
        self.site: Final = site
        self.per_request = per_request
        self.wait: Final = wait


@final
class Steps:
    """The calls of one caller in their order."""

    __slots__ = ("_luck", "_parallel", "empty", "entries")

    def __init__(self, entries: list[Step], luck: Random, *, parallel: bool) -> None:
        self.entries: Final = entries
        self.empty: Final = not entries
        self._luck: Final = luck.random
        self._parallel: Final = parallel

    def begin(self, now: Instant, frame: Frame) -> bool:
        """Start the first call, or all; true when there is none to make and the frame is done."""
        if self._parallel:
            return self._begin_all(now, frame)
        return self._next(now, frame)

    def after(self, now: Instant, frame: Frame, optional: bool, ok: bool) -> bool | None:
        """A call is over: true or false when the request is, None while it goes on."""
        if frame.done:
            return None
        if not ok:
            if not optional:
                frame.done = True
                return False
            frame.degraded = True
        if self._parallel:
            frame.pending -= 1
            if frame.pending:
                return None
            frame.done = True
            return True
        if frame.pending == _SENDING:  # `_next` below us goes on: a thousand calls do not nest
            frame.pending = 0
            return None
        return True if self._next(now, frame) else None

    def _next(self, now: Instant, frame: Frame) -> bool:
        while frame.index < len(self.entries):
            entry = self.entries[frame.index]
            if frame.repeat < 0:
                frame.repeat = self._times(entry)
            if frame.repeat == 0:
                frame.index += 1
                frame.repeat = -1
                continue
            frame.repeat -= 1
            if not entry.wait:
                entry.site.begin_unwaited(now, Frame(_NOBODY, None, now, frame.depth))
                continue
            frame.pending = _SENDING
            entry.site.begin(now, frame)
            if frame.pending == _SENDING:
                frame.pending = 1
                return False
        frame.done = True
        return True

    def _begin_all(self, now: Instant, frame: Frame) -> bool:
        waited: list[CallSite] = []
        for entry in self.entries:
            for _ in range(self._times(entry)):
                if entry.wait:
                    waited.append(entry.site)
                else:
                    entry.site.begin_unwaited(now, Frame(_NOBODY, None, now, frame.depth))
        frame.pending = len(waited)
        for site in waited:
            site.begin(now, frame)
        if not waited:
            frame.done = True
        return not waited

    def _times(self, entry: Step) -> int:
        whole = int(entry.per_request)
        rest = entry.per_request - whole
        return whole + (rest > 0 and self._luck() < rest)


@final
class _Nobody:
    """Owns the frames of calls that nobody waits for."""

    __slots__ = ()

    def call_done(self, now: Instant, frame: Any, optional: bool, ok: bool) -> None:
        """Nothing waits for it, so nothing happens."""


_NOBODY: Final = _Nobody()
