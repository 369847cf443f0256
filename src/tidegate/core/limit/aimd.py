"""How many may be in flight, when nobody knows what the far side can take?

Additive increase, multiplicative decrease: in each round trip without trouble the limit grows by
one, in each with trouble it is cut to `decrease` of itself. Of the simple laws it is the one that
converges to an efficient and fair share when each caller sees only its own answers (Chiu and Jain,
"Analysis of the Increase and Decrease Algorithms", 1989).

Copies of one limit, as the processes of a host have, would start n times as high and grow n times
as fast as one. Told of each other (`on_others`) they start, and grow, together as one would.
"""

from typing import Final, final

from tidegate.core.outcome import FAILURE, IGNORED, SUCCESS, Outcome
from tidegate.settings import policies as settings
from tidegate.units import Duration, Instant

__all__ = ["AimdLimit"]


@final
class AimdLimit:
    """A limit between `min` and `max` that follows what comes back.

    Trouble is a timeout, a refusal, or an answer slower than `latency`. A plain failure or a
    cancelled call says nothing about load.

    The round trip is what makes the law hold. Attempts that began before the last cut were sent
    under the old limit and say nothing about the new one, neither good nor bad (RFC 9002 section
    7.3.2, recovery): else one overload, reported by a hundred attempts, would cut a hundred times.
    And growing takes `limit` successes for one more, which is one round trip of a full limit: one
    more for each success doubles the limit per round trip and overshoots every time. It grows only
    while half of it or more is in use, since an unused limit proves nothing (RFC 7661).
    """

    __slots__ = (
        "_copies",
        "_credit",
        "_cut_at",
        "_decrease",
        "_latency",
        "_max",
        "_min",
        "_part",
        "indifferent",
        "limit",
    )

    def __init__(self, settings: settings.Adaptive) -> None:
        self._min: Final = settings.min
        self._max: Final = settings.max
        self._decrease: Final = settings.decrease
        self._latency: Final = settings.latency
        self._copies = 1  # this one included
        self._part = 0.0  # of what they may have together; `limit` is it, rounded and bounded
        self._credit = 0  # successes towards the next increase
        self._cut_at: Instant = 0
        self._set(settings.start)

    def on_sample(self, now: Instant, rtt: Duration, inflight: int, outcome: Outcome) -> int:
        """One attempt has ended after `rtt`, with `inflight` out, itself included: the limit."""
        # Told apart first by how it ended: nearly every sample is a success of a limit that is not
        # in full use, which says nothing (45 ns).
        if outcome is SUCCESS and (self._latency is None or rtt <= self._latency):
            if inflight * 2 >= self.limit and now - rtt >= self._cut_at:
                self._grow()
        elif outcome is not FAILURE and outcome is not IGNORED and now - rtt >= self._cut_at:
            self._cut(now)
        return self.limit

    def on_others(self, now: Instant, others: int) -> int:
        """As many other copies bound calls to the same far side: the limit.

        What they may have out together stays as it is: each has its part of it, and one that goes
        leaves its part to the rest. Trouble is not told: whoever overloads hears it himself.
        """
        copies = 1 + others
        if copies != self._copies:
            part = self._part * self._copies / copies
            self._copies = copies
            self._set(min(self._max, max(self._min, round(part))))
            self._part = part  # as it is, else what comes and goes often would drift
        return self.limit

    def _cut(self, now: Instant) -> None:
        self._set(max(self._min, int(self.limit * self._decrease)))
        self._cut_at = now
        self._credit = 0

    def _grow(self) -> None:
        self._credit += 1
        if self._credit >= self.limit * self._copies:
            self._credit = 0
            self._set(min(self._max, self.limit + 1))

    def _set(self, limit: int) -> None:
        assert self._min <= limit <= self._max
        self.limit = limit
        self._part = limit
        # Half of it in use is what makes a success count; with a latency each may be too slow.
        self.indifferent = (limit + 1) // 2 if self._latency is None else 0
