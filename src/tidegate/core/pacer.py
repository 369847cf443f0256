"""How fast may a whole fleet replay, when nobody knows how much the sink can bear?

    begin        start x live
    each second  + step x live     while answers take less than the threshold allows
    a window     x cut             when they take longer, once in `pause`
                 x 0.6             when any failed, once in `pause`
    the gate     begin anew        whenever it closes

Additive increase and multiplicative decrease finds what is free and lets go when it is less (Chiu
and Jain 1989). A budget that was kept over a closed gate would come back whole at the moment when
the sink is weakest: in simulation that alone was a burst of four times the live rate. It grows
only while it is used (RFC 7661): a budget beyond what the present senders can send says nothing
about the sink, and the next sender would spend it at once.
"""

from typing import Final, NamedTuple, final

from tidegate.settings import spool as settings
from tidegate.units import SECOND, Duration, Instant

__all__ = ["WINDOW", "Pacer", "PacerSnapshot"]

WINDOW: Final = SECOND
"""How long a pacer looks before it moves."""

_ERROR_CUT: Final = 0.6  # deeper than for latency: an error is harm that was done
_WINDOWS_MAX: Final = 2 * SECOND  # a pause without a window earns no growth for all of it


class PacerSnapshot(NamedTuple):
    """The budget and what bounds it, in bytes a second; how often it was cut since its begin."""

    rate: float
    cap: float
    live: float
    cuts: int


@final
class Pacer:
    """The budget of a fleet, kept by one of its members at a time.

    `threshold` is how many times the latency in peace is too much.
    """

    __slots__ = ("_cut_at", "_cuts", "_live", "_rate", "_settings", "_threshold", "_window_at")

    def __init__(self, settings: settings.Pace) -> None:
        self._settings: Final = settings
        self._threshold: Final = settings.THRESHOLDS.get(settings.speed, 1.0)
        self._live = float(settings.least)
        self._rate = 0.0  # 0: at its beginning, whatever the live rate is by then
        self._cut_at: Instant | None = None
        self._cuts = 0
        self._window_at: Instant | None = None

    def on_live(self, rate: float) -> None:
        """The fleet takes in so many bytes a second."""
        assert rate >= 0
        self._live = max(rate, float(self._settings.least))

    def on_window(
        self,
        now: Instant,
        latency: Duration | None,
        baseline: Duration | None,
        errors: int,
        *,
        used: bool = True,
    ) -> None:
        """A window has ended: the median of its answers, and how many have failed.

        `used`: what might be sent was sent, or near enough.
        """
        before, self._window_at = self._window_at, now
        elapsed = WINDOW if before is None else min(now - before, _WINDOWS_MAX)
        slow = latency is not None and baseline is not None and latency > self._threshold * baseline
        if errors:
            self._cut(now, _ERROR_CUT)
        elif slow:
            self._cut(now, self._settings.cut)
        elif used and latency is not None:
            grown = self.rate() + self._settings.step * self._live * elapsed / SECOND
            self._rate = min(grown, self._cap())

    def adopt(self, rate: float) -> None:
        """Go on from what another member has said last."""
        self.reset()
        self._rate = min(max(rate, self._start()), self._cap())

    def reset(self) -> None:
        """Begin anew: the gate has closed, and what was free then is no longer known."""
        self._rate = 0.0
        self._cut_at = self._window_at = None
        self._cuts = 0

    def rate(self) -> float:
        """How many bytes of replay the fleet may send in a second now."""
        return min(self._rate or self._start(), self._cap())

    @property
    def has_cut(self) -> bool:
        """Whether it has found since its begin where the sink becomes slow."""
        return self._cuts > 0

    def is_at_cap(self) -> bool:
        """Whether only the operator's bound keeps it from more."""
        return self.rate() >= self._cap()

    def snapshot(self) -> PacerSnapshot:
        """What a person would ask of it."""
        return PacerSnapshot(self.rate(), self._cap(), self._live, self._cuts)

    def _start(self) -> float:
        return self._settings.start * self._live

    def _cap(self) -> float:
        return self._settings.cap * self._live

    def _cut(self, now: Instant, share: float) -> None:
        if self._cut_at is not None and now - self._cut_at < self._settings.pause:
            return  # what is seen now was sent before the last cut
        self._cut_at = now
        self._cuts += 1
        self._rate = max(self.rate() * share, self._start())
