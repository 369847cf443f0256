"""Is it worth sending, when the far side refuses much of what it is sent?

Client-side throttling (Google SRE book, chapter 21): over the last `window`, while `requests` are
more than `ratio` times the `accepts`, a request stays at home with the probability

    (requests - ratio x accepts) / (requests + 1)

and counts as a request all the same. So a service that can take c of what is wanted is sent
`ratio` x c, whatever is wanted: enough to notice within the window when it can take more, and not
so much that refusing takes all of its time. No state is open or shut, and nobody waits for a probe.
"""

from random import Random
from typing import Final, NamedTuple, final

from tidegate.core.outcome import FAILURE, IGNORED, SUCCESS, Outcome
from tidegate.core.window import Window
from tidegate.settings import policies as settings
from tidegate.units import Instant

__all__ = ["Throttle", "ThrottleSnapshot"]


class ThrottleSnapshot(NamedTuple):
    """Of the window: what was wanted, what of it was accepted, and the share that is kept back.

    `throttled` is how many were kept back since the start.
    """

    requests: int
    accepts: int
    probability: float
    throttled: int


@final
class Throttle:
    """What one dependency has accepted of all that was wanted of it.

    An attempt counts when it has ended: while it is under way nobody knows. An error is an accept,
    since the far side has spent its time on it; a refusal and a timeout are not; IGNORED says
    nothing. Luck is drawn only while something is to be kept back, so that a healthy dependency
    leaves a seeded run as it is without a throttle.
    """

    __slots__ = (
        "_accepts",
        "_accepts_start",
        "_accepts_window",
        "_ends",
        "_random",
        "_ratio",
        "_requests",
        "_requests_start",
        "_requests_window",
        "_settings",
        "_throttled",
    )

    def __init__(self, settings: settings.Throttle, rng: Random) -> None:
        self._settings: Final = settings
        self._random: Final = rng.random
        self._ratio: Final = settings.ratio
        self._requests_window: Final = Window(settings.window)
        self._accepts_window: Final = Window(settings.window)
        self._ends: Instant = 0  # of the windows' present bucket
        self._requests = self._requests_start = 0
        self._accepts = self._accepts_start = 0
        self._throttled = 0

    def try_acquire(self, now: Instant) -> bool:
        """Whether this one may be sent; False counts it among the requests.

        Flat for a healthy dependency, since every call pays for it: 99 ns on CPython 3.11
        (`benchmarks/policies.py`).
        """
        if now >= self._ends:
            self._slide(now)
        wanted = self._requests - self._requests_start
        if wanted <= self._ratio * (self._accepts - self._accepts_start):
            return True
        probability = self._probability()
        if probability <= 0 or self._random() >= probability:
            return True
        self._requests += 1
        self._throttled += 1
        return False

    def settle(self, now: Instant, outcome: Outcome) -> None:
        """One that was sent has ended."""
        if outcome is IGNORED:
            return
        if now >= self._ends:
            self._slide(now)
        self._requests += 1
        if outcome is SUCCESS or outcome is FAILURE:
            self._accepts += 1

    def snapshot(self, now: Instant) -> ThrottleSnapshot:
        """What a person would ask of it."""
        if now >= self._ends:
            self._slide(now)
        return ThrottleSnapshot(
            requests=self._requests - self._requests_start,
            accepts=self._accepts - self._accepts_start,
            probability=self._probability(),
            throttled=self._throttled,
        )

    def _probability(self) -> float:
        """Of staying at home: the book's formula, and never more than `most`."""
        requests = self._requests - self._requests_start
        excess = requests - self._ratio * (self._accepts - self._accepts_start)
        if excess <= 0 or requests < self._settings.volume:
            return 0.0
        return min(self._settings.most, excess / (requests + 1))

    def _slide(self, now: Instant) -> None:
        self._requests_start = self._requests_window.slide(now, self._requests)
        self._accepts_start = self._accepts_window.slide(now, self._accepts)
        self._ends = self._requests_window.ends

    def _check(self) -> bool:
        """What always holds. For tests."""
        requests = self._requests - self._requests_start
        return (
            0 <= self._accepts - self._accepts_start <= requests
            and 0 <= self._probability() <= self._settings.most
        )
