"""How many may be in flight, judged by how much slower answers are than they used to be?

Gradient2 of Netflix concurrency-limits. The latency of the present round trip is compared with the
one of the last minutes: while it is no more than `tolerance` times that, the limit grows by what
may stand in a queue, `smoothing` of it per round; when answers become slower, it shrinks in
proportion, to half at the worst. So it acts before anything times out, and needs no latency that a
person has set:

    gradient = max(1/2, min(1, tolerance x long / short))
    limit <- (1 - smoothing) x limit + smoothing x (gradient x limit + queue)

Where it comes from it differs in three ways. It moves once per round trip and not once per sample,
as the limits beside it. A timeout or a refusal counts as a gradient of one half without a queue:
there, refusals that come back in a millisecond look like the best of answers. And the long latency
is averaged over time and not over a number of samples, so that its memory does not depend on the
load.
"""

from math import exp
from typing import Final, final

from tidegate.core.limit.rounds import Rounds
from tidegate.core.outcome import Outcome
from tidegate.settings import policies as settings
from tidegate.units import Duration, Instant

__all__ = ["GradientLimit"]

_WORST: Final = 0.5  # Gradient2: no round takes more than half, times the smoothing
_WARM_UP: Final = 10  # Gradient2: of so many rounds the long latency is the plain mean
_FALLS: Final = 0.9  # Gradient2: per round, while the long latency is twice the short one


@final
class GradientLimit:
    """A limit between `min` and `max` that follows the gradient of latency."""

    __slots__ = (
        "_exact",
        "_learnt_at",
        "_long",
        "_round",
        "_rounds",
        "_settings",
        "indifferent",
        "limit",
    )

    def __init__(self, settings: settings.Gradient) -> None:
        self._settings: Final = settings
        self.limit = settings.start
        self.indifferent: Final = 0  # every sample counts
        self._exact = float(settings.start)
        self._round: Final = Rounds(settings.samples)
        self._rounds = 0  # that the long latency has seen, up to the warm-up
        self._long = 0.0
        self._learnt_at: Instant = 0

    def on_sample(self, now: Instant, rtt: Duration, inflight: int, outcome: Outcome) -> int:
        """One attempt has ended after `rtt`, with `inflight` out, itself included: the limit."""
        seen = self._round
        if seen.add(now, rtt, inflight, outcome):
            self.on_round(now, seen.mean, seen.most, trouble=seen.trouble)
            seen.begin(now)
        return self.limit

    def on_round(self, now: Instant, short: float, most: float, *, trouble: bool) -> int:
        """A round is over: its mean latency (zero: no success), most in flight, any trouble."""
        limit, given = self._exact, self._settings
        if short > 0:
            self._learn(now, short)
        if trouble:
            wanted = limit * _WORST
        elif most * 2 < limit:
            return self.limit  # a limit that nobody needs proves nothing
        else:
            gradient = max(_WORST, min(1.0, given.tolerance * self._long / short))
            wanted = gradient * limit + given.queue
        limit += given.smoothing * (wanted - limit)
        self._exact = max(float(given.min), min(float(given.max), limit))
        self.limit = int(self._exact)
        return self.limit

    @property
    def baseline(self) -> float:
        """The long latency in nanoseconds; zero until a round has ended well."""
        return self._long

    def _learn(self, now: Instant, short: float) -> None:
        """The long latency after one more round: an average over time, and at first a mean."""
        if self._rounds < _WARM_UP:
            self._rounds += 1
            share = 1 / self._rounds
        else:
            share = min(1 / _WARM_UP, 1 - exp((self._learnt_at - now) / self._settings.baseline))
        self._long += share * (short - self._long)
        self._learnt_at = now
        if self._long > 2 * short:
            self._long *= _FALLS
