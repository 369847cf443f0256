"""May one more come now, when at most so many per second may come?

The Generic Cell Rate Algorithm in its virtual scheduling form (ITU-T I.371 Annex A; ATM Forum
Traffic Management 4.0, section 4.4.2). One integer of state, the theoretical arrival time: when
the next one would come if all came at exactly the rate. Who comes no more than a tolerance before
it conforms, and moves it on by one interval; who comes earlier is refused and moves nothing. It
decides as a bucket of `burst` tokens that refills at `rate`, with nothing to refill.

The arrival time is the sum of all intervals that were taken and of all time that was left unused.
The first can be added up over the processes of a host and the second is a maximum, so copies of a
bucket in several processes are one bucket when each is told both (`on_others`).
"""

from math import ceil
from typing import NamedTuple, final

from tidegate.settings import policies as settings
from tidegate.units import SECOND, Duration, Instant

__all__ = ["TokenBucket", "TokenBucketSnapshot"]


class TokenBucketSnapshot(NamedTuple):
    """How many could come at once now (`tokens`, of `burst`), and the rate in force."""

    tokens: float
    burst: int
    rate: float


@final
class TokenBucket:
    """At most `burst` at once and, over any time t, at most `burst` + t x `rate`.

    Full at the start. The interval between two is rounded up to whole nanoseconds, so the bound
    holds exactly and the rate given falls short by less than 1 % at ten million per second, less
    than a millionth at a thousand. `arrival` is the theoretical arrival time and `interval` the
    time between two at the rate; both are there to read.
    """

    __slots__ = ("_depth", "_rate", "arrival", "interval")

    def __init__(self, settings: settings.RateLimit) -> None:
        self.arrival: Instant = 0  # the theoretical arrival time, TAT
        self._set(settings)

    def try_acquire(self, now: Instant, cost: int = 1) -> bool:
        """Let `cost` of them come now, all or none. More than `burst` never come."""
        assert cost >= 1
        arrival = self.arrival
        if arrival < now:
            arrival = now
        arrival += cost * self.interval
        if arrival - now > self._depth:
            return False
        self.arrival = arrival
        return True

    def on_others(self, arrival: Instant) -> None:
        """Copies of this bucket have together come to this theoretical arrival time."""
        self.arrival = arrival

    def retry_after(self, now: Instant) -> Duration:
        """Nanoseconds until one would be let in, if nobody else comes; zero if it is now."""
        return max(0, self.arrival + self.interval - self._depth - now)

    def reconfigure(self, now: Instant, settings: settings.RateLimit) -> None:
        """Change the limits of a bucket in use. What has been taken stays taken, in requests.

        Keeping the arrival time instead would make an hour's wait of one request taken at 1/h
        outlive the change to 1000/s.
        """
        taken = -(-max(0, self.arrival - now) // self.interval)
        self._set(settings)
        self.arrival = now + min(taken * self.interval, self._depth)

    def snapshot(self, now: Instant) -> TokenBucketSnapshot:
        """What a person would ask of it."""
        taken = max(0, self.arrival - now) / self.interval
        burst = self._depth // self.interval
        return TokenBucketSnapshot(tokens=max(0.0, burst - taken), burst=burst, rate=self._rate)

    def _set(self, settings: settings.RateLimit) -> None:
        # A tenth of a second's worth: what comes between two ticks of a busy caller is no burst.
        burst = settings.burst or max(1, int(settings.rate / 10))
        self._rate = settings.rate
        self.interval: Duration = ceil(SECOND / settings.rate)
        self._depth: Duration = burst * self.interval
