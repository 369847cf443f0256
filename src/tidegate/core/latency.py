"""How long does the sink take, when live records and a backlog go to it in batches of other sizes?

A replay sends a second's worth at once and a live batch is what has just come in, so their answers
take differently long at any load. Live answers are what counts, against live answers in peace: they
are what must not become slow. Only where nothing has come in for two windows those of the replay
count, against the fastest of their own, since there is no peace to learn them in.
"""

from typing import Final, final

from tidegate.core.medians import Medians
from tidegate.units import Duration, Instant

__all__ = ["Latency"]

_FRESH: Final = 2  # windows: an older one says nothing of now


@final
class Latency:
    """The medians of live and of replayed batches, and which of them count now."""

    __slots__ = ("_closed_at", "_fresh", "_live_until", "live", "replayed")

    def __init__(self, window: Duration, floor: Duration) -> None:
        self.live: Final = Medians(window, floor)
        self.replayed: Final = Medians(window, floor)
        self._fresh: Final = _FRESH * window
        self._live_until: Instant = 0
        self._closed_at: Instant | None = None  # the last window that counts

    def on_answer(self, now: Instant, latency: Duration, *, replayed: bool) -> None:
        """A batch was taken, after so long."""
        if replayed:
            self.replayed.on_answer(now, latency)
        else:
            self.live.on_answer(now, latency)
            self._live_until = now + self._fresh

    def roll(self, now: Instant, *, peace: bool) -> bool:
        """End the windows that are over; whether one that counts was among them.

        `peace`: what live answers took in it may be learned from.
        """
        counts = False
        if self.live.is_over(now):
            self.live.close(peace=peace)
            counts = True
        if self.replayed.is_over(now):
            self.replayed.close(peace=True)
            counts = counts or not self.is_live(now)
        if counts:
            self._closed_at = now
        return counts

    def is_live(self, now: Instant) -> bool:
        """Whether live answers count now."""
        return now < self._live_until or self.replayed.last is None

    def medians(self, now: Instant) -> Medians:
        """Those that count now."""
        return self.live if self.is_live(now) else self.replayed

    def recent(self, now: Instant) -> Duration | None:
        """The median of the last window that counts; None if that is too long ago."""
        if self._closed_at is None or now - self._closed_at >= self._fresh:
            return None
        return self.medians(now).last
