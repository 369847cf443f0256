"""How long does this call wait before its next attempt?

The wait before retry n is `base` x `factor`^(n-1), at most `max`, then jittered. Jitter is not a
refinement but the point: callers that failed together would come back together, in a wave as high
as the one that broke the dependency. Backoff alone cures no storm, though: it spreads the load of
retries over time and takes none of it away; the retry budget does that.

Decorrelated jitter has another law: each wait is drawn from `base` to three times the one before,
at most `max`, where the wait before the first counts as `base`.
"""

from math import ceil, log
from random import Random
from typing import Final, final

from tidegate.settings import policies as settings
from tidegate.units import Duration

__all__ = ["Backoff"]

# How much of the wait is left to chance: Brooker, "Exponential Backoff and Jitter" (AWS, 2015).
_CHANCE: Final = {"full": 1.0, "equal": 0.5, "none": 0.0, "decorrelated": 1.0}
_SPREAD: Final = settings.Backoff.SPREAD  # of a decorrelated wait, times the one before


@final
class Backoff:
    """The waits of all calls to one dependency; nothing is remembered of any of them.

    What decorrelated jitter needs to know of a call, its wait before, the call itself brings along.
    Each delay takes one `rng.random()`, without jitter too, so that changing the jitter leaves
    every other draw of a seeded run where it was.
    """

    __slots__ = (
        "_base",
        "_certain",
        "_chance",
        "_decorrelated",
        "_factor",
        "_grows_until",
        "_max",
        "_random",
    )

    def __init__(self, settings: settings.Backoff, rng: Random) -> None:
        self._decorrelated: Final = settings.jitter == "decorrelated"
        grows = settings.base > 0 and settings.factor > 1
        self._base: Final = float(settings.base)
        self._factor: Final = settings.factor
        self._max: Final = float(settings.max if grows else settings.base)
        # Past this retry the wait is `max` for sure, and its power could overflow a float.
        self._grows_until: Final = (
            1 + ceil(log(settings.max / settings.base) / log(settings.factor))
            if grows and not self._decorrelated
            else 0
        )
        self._chance: Final = _CHANCE[settings.jitter]
        self._certain: Final = 1 - self._chance
        self._random: Final = rng.random

    def delay(self, retry: int, previous: Duration = 0) -> Duration:
        """Nanoseconds to wait before retry number `retry`, of which the first is 1.

        From zero up to the ceiling with `full` jitter, from half of it with `equal`. `previous` is
        what this gave for the retry before of the same call, which `decorrelated` goes by; 0 before
        the first.
        """
        assert retry >= 1
        ceiling = self._max
        if retry <= self._grows_until:
            grown = self._base * self._factor ** (retry - 1)
            if grown < ceiling:
                ceiling = grown
        elif self._decorrelated:
            return self._decorrelate(previous)
        return int(ceiling * (self._certain + self._chance * self._random()))

    def _decorrelate(self, previous: Duration) -> Duration:
        """Brooker 2015: sleep = min(cap, random_between(base, sleep * 3))."""
        low = self._base
        high = _SPREAD * max(low, previous)
        return int(min(self._max, low + (high - low) * self._random()))
