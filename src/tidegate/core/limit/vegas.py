"""How many may be in flight, judged by how many of them stand in a queue?

TCP Vegas (Brakmo and Peterson, 1995), in the form of Netflix concurrency-limits. If an answer takes
`least` when nothing waits and `rtt` now, then of those in flight

    queue = limit x (1 - least / rtt)

wait somewhere. Few is a sign that more could be sent, many that it is too much. With the scale
log10(limit), at least one:

    queue <= scale            limit + beta x scale      nothing waits: up quickly
    queue <  alpha x scale    limit + scale
    queue >  beta x scale     limit - scale

and between alpha and beta it stays. A timeout or a refusal lowers it as well.
"""

from math import ceil, log10
from typing import Final, final

from tidegate.core.limit.rounds import Rounds
from tidegate.core.outcome import Outcome
from tidegate.settings import policies as settings
from tidegate.units import Duration, Instant

__all__ = ["VegasLimit"]


# Rounds until the smoothed latency, at first their plain mean, is believed; and what each counts in
# it from then on is one in so many, a memory of about twenty.
_WARM_UP: Final = 10


@final
class VegasLimit:
    """A limit between `min` and `max` that keeps a short queue at the far side.

    `least` is the smallest that the smoothed latency of the rounds has been in the last `baseline`,
    half of which is forgotten at a time. Where it comes from, the smallest of all samples is taken,
    and every now and then the latest one instead. With service times that vary the smallest is
    near zero, and the limit falls to it; and the latest is as slow as the queue that it should
    reveal.
    """

    __slots__ = (
        "_before",
        "_exact",
        "_half",
        "_half_ends",
        "_present",
        "_round",
        "_rounds",
        "_settings",
        "_smooth",
        "indifferent",
        "limit",
    )

    def __init__(self, settings: settings.Vegas) -> None:
        self._settings: Final = settings
        self.limit = settings.start
        self.indifferent: Final = 0  # every sample counts
        self._exact = float(settings.start)
        self._round: Final = Rounds(settings.samples)
        self._half: Final = settings.baseline // 2
        self._half_ends: Instant = 0
        self._before = 0.0  # the smallest mean of the half before; zero: there was none
        self._present = 0.0
        self._smooth = 0.0
        self._rounds = 0  # that it has seen, up to the warm-up

    def on_sample(self, now: Instant, rtt: Duration, inflight: int, outcome: Outcome) -> int:
        """One attempt has ended after `rtt`, with `inflight` out, itself included: the limit."""
        seen = self._round
        if seen.add(now, rtt, inflight, outcome):
            self.on_round(now, seen.mean, seen.most, trouble=seen.trouble)
            seen.begin(now)
        return self.limit

    @property
    def least(self) -> float:
        """The latency without a queue, in nanoseconds; zero until a round has ended well."""
        known = [value for value in (self._before, self._present) if value]
        return min(known, default=self._smooth)

    def on_round(self, now: Instant, mean: float, most: float, *, trouble: bool) -> int:
        """A round is over: its mean latency (zero: no success), most in flight, any trouble."""
        limit, given = self._exact, self._settings
        if mean > 0:
            self._learn(now, mean)
        scale = max(1.0, log10(limit))
        if trouble:
            limit -= scale
        elif most * 2 < limit:
            return self.limit  # a limit that nobody needs proves nothing
        else:
            queue = ceil(limit * (1 - self.least / mean))
            if queue <= scale:
                limit += given.beta * scale
            elif queue < given.alpha * scale:
                limit += scale
            elif queue > given.beta * scale:
                limit -= scale
        self._exact = max(float(given.min), min(float(given.max), limit))
        self.limit = int(self._exact)
        return self.limit

    def _learn(self, now: Instant, mean: float) -> None:
        if now >= self._half_ends:
            long_ago = now >= self._half_ends + self._half
            self._before = 0.0 if long_ago else self._present
            self._present = 0.0
            self._half_ends = now + self._half
        self._rounds = min(_WARM_UP, self._rounds + 1)
        self._smooth += (mean - self._smooth) / self._rounds
        if self._rounds == _WARM_UP and (not self._present or self._smooth < self._present):
            self._present = self._smooth
