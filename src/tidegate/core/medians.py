"""How long does an answer take now, and how long does it take in peace?

Answers are gathered in windows of equal length. Of each window the median counts: one slow answer
in it says nothing of the sink. The smallest median of the last hour or so of peace is the
baseline. It is a minimum, because whatever else happens makes answers slower and never faster; and
it is of the last hour, because a minimum of all time would hold a busy day against the quietest
night. What is seen while somebody replays, or while the sink is not well, is not peace.
"""

from typing import Final, final

from tidegate.units import Duration, Instant

__all__ = ["PEACE", "Medians"]

PEACE: Final = 360
"""Windows of peace after which an older one begins to be forgotten: half an hour of 5 s each."""

_SAMPLES: Final = 128  # of a window; then the latest replace the first


@final
class Medians:
    """The median of each window, and the smallest of those in peace.

    A baseline is never taken to be less than `floor`: below it the differences are those of the
    machine that measures.
    """

    __slots__ = (
        "_best",
        "_best_before",
        "_ends",
        "_floor",
        "_learned",
        "_samples",
        "_taken",
        "_window",
        "last",
    )

    def __init__(self, window: Duration, floor: Duration) -> None:
        self._window: Final = window
        self._floor: Final = floor
        self._samples: Final[list[Duration]] = []
        self._taken = 0
        self._ends: Instant | None = None
        self._best: Duration | None = None  # of the present half hour of peace
        self._best_before: Duration | None = None  # of the one before
        self._learned = 0
        self.last: Duration | None = None
        """The median of the last window that had any answer."""

    def is_over(self, now: Instant) -> bool:
        """Whether the present window has ended with something in it; `close` it then."""
        return self._ends is not None and now >= self._ends

    def close(self, *, peace: bool) -> Duration:
        """End the present window: its median, which is learned from if it was one of peace."""
        samples = self._samples
        median = sorted(samples)[len(samples) // 2]
        samples.clear()
        self._taken = 0
        self._ends = None
        self.last = median
        # Any first value is better than none: with none nothing could be found slow.
        if peace or self.baseline is None:
            self._learn(median)
        return median

    def on_answer(self, now: Instant, latency: Duration) -> None:
        """An answer took so long."""
        if self._ends is None:
            self._ends = now + self._window
        if len(self._samples) < _SAMPLES:
            self._samples.append(latency)
        else:
            self._samples[self._taken % _SAMPLES] = latency
        self._taken += 1

    @property
    def baseline(self) -> Duration | None:
        """How long an answer takes in peace; None before anything is known."""
        best, before = self._best, self._best_before
        if best is None or (before is not None and before < best):
            best = before
        return None if best is None else max(best, self._floor)

    def _learn(self, median: Duration) -> None:
        if self._learned == PEACE:
            self._best_before, self._best, self._learned = self._best, None, 0
        self._learned += 1
        self._best = median if self._best is None else min(self._best, median)
