"""What did the latest round trip of a limit look like?

A limit that goes by latency cannot judge single attempts: with exponential service every tenth
takes more than twice the mean. So samples are gathered in rounds, and a law sees one round at a
time. A round is over when `samples` attempts have ended and the latest of them began in it: so a
law moves once per round trip or more slowly, however many answers a round trip brings.

The latency of what began before the round counts as well. Without it only the fastest of those
that began in the round would have ended before it does, and the more are out, the faster they would
seem. Trouble of what began before does not count: it was sent under the limit of an earlier round,
which has heard of it (RFC 9002 section 7.3.2).
"""

from typing import Final, final

from tidegate.core.outcome import OVERLOADED, SUCCESS, TIMEOUT, Outcome
from tidegate.units import Duration, Instant

__all__ = ["Rounds"]


@final
class Rounds:
    """The samples of the present round: what `add` completes is there to read until `begin`.

    `trouble` says that an attempt timed out or was refused. `most` is the largest number that was
    out. An error says nothing about load and is not counted.
    """

    __slots__ = ("_began", "_count", "_samples", "_successes", "_sum", "most", "trouble")

    def __init__(self, samples: int) -> None:
        self._samples: Final = samples
        self.begin(0)

    def begin(self, now: Instant) -> None:
        """Forget the round that is over; the next has begun."""
        self._began = now
        self._count = self._successes = self._sum = self.most = 0
        self.trouble = False

    def add(self, now: Instant, rtt: Duration, inflight: int, outcome: Outcome) -> bool:
        """An attempt has ended after `rtt`, with `inflight` out; True: the round is over."""
        fresh = now - rtt >= self._began
        if outcome is SUCCESS:
            self._successes += 1
            self._sum += rtt
        elif fresh and (outcome is TIMEOUT or outcome is OVERLOADED):
            self.trouble = True
        else:
            return False
        if inflight > self.most:
            self.most = inflight
        self._count += 1
        return fresh and self._count >= self._samples

    @property
    def mean(self) -> float:
        """Of the successes, in nanoseconds; zero only if there was none."""
        return max(1, self._sum) / self._successes if self._successes else 0.0
