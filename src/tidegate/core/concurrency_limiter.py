"""May one more be in flight now?

The enforcer: it counts what is out and compares with a limit that an estimator gives, fixed or
adaptive (the split is that of Netflix concurrency-limits). Concurrency is the right thing to bound
when the far side slows down: at a bounded rate a slow dependency still collects rate x latency of
our threads, at a bounded concurrency it never has more than the limit (Little's law).

Which permit is out, and that each is given back once, is for the pipeline's own permit to know:
here there is only the number. A permit that is never given back is lost for good, so whoever takes
one must bound how long it is out.
"""

from typing import NamedTuple, Protocol, final

from tidegate.core.limit.aimd import AimdLimit
from tidegate.core.limit.fixed import FixedLimit
from tidegate.core.limit.gradient import GradientLimit
from tidegate.core.limit.vegas import VegasLimit
from tidegate.core.outcome import IGNORED, Outcome
from tidegate.settings import policies as settings
from tidegate.units import Duration, Instant

__all__ = ["ConcurrencyLimiter", "ConcurrencyLimiterSnapshot", "Estimator"]


class Estimator(Protocol):
    """What gives the limit."""

    @property
    def limit(self) -> int:
        """How many may be in flight; one or more."""
        ...

    @property
    def indifferent(self) -> int:
        """With fewer in flight than this, a success teaches the present limit nothing."""
        ...

    def on_sample(self, now: Instant, rtt: Duration, inflight: int, outcome: Outcome) -> int:
        """Learn from an attempt that has ended; the answer is the limit from now on."""
        ...


class ConcurrencyLimiterSnapshot(NamedTuple):
    """How many are out, of how many, and how many were refused since the start."""

    inflight: int
    limit: int
    refused: int


@final
class ConcurrencyLimiter:
    """At most `limit` in flight. Both numbers are there to read.

    With fewer in flight than `indifferent` a success need not be told: a place is given back by
    counting it.

    A limit that falls below what is out cuts nothing off: it lets no more in until enough has come
    back.
    """

    __slots__ = ("_estimator", "_refused", "indifferent", "inflight", "limit")

    def __init__(self, settings: settings.Limit) -> None:
        self._estimator = _estimator(settings)
        self.limit = self._estimator.limit
        self.indifferent = self._estimator.indifferent
        self.inflight = 0
        self._refused = 0

    def try_acquire(self, now: Instant) -> bool:  # noqa: ARG002  `now` comes first everywhere
        """Take a place; False if all are taken."""
        if self.inflight >= self.limit:
            self._refused += 1
            return False
        self.inflight += 1
        return True

    def release(self, now: Instant, rtt: Duration, outcome: Outcome) -> None:
        """Give a place back, once for each that was taken. IGNORED teaches the limit nothing."""
        assert self.inflight > 0
        # The place last of all: whoever is interrupted before it gives it back again.
        if outcome is not IGNORED:
            self.limit = self._estimator.on_sample(now, rtt, self.inflight, outcome)
            self.indifferent = self._estimator.indifferent
        self.inflight -= 1

    def on_others(self, now: Instant, others: int) -> None:
        """So many other processes have such a limit for the same far side; see `AimdLimit`.

        Those that go by latency are not told: a queue that all of them make is seen by each.
        """
        estimator = self._estimator
        if isinstance(estimator, AimdLimit):
            self.limit = estimator.on_others(now, others)
            self.indifferent = estimator.indifferent

    def snapshot(self, now: Instant) -> ConcurrencyLimiterSnapshot:  # noqa: ARG002
        """What a person would ask of it."""
        return ConcurrencyLimiterSnapshot(self.inflight, self.limit, self._refused)


def _estimator(settings: settings.Limit) -> Estimator:
    if settings.adaptive is not None:
        return AimdLimit(settings.adaptive)
    if settings.gradient is not None:
        return GradientLimit(settings.gradient)
    if settings.vegas is not None:
        return VegasLimit(settings.vegas)
    assert settings.max is not None
    return FixedLimit(settings.max)
