"""How does a server say no, and when may the caller come back?

With the status that fits the reason: 503 for a server that is short, 429 for a client that has had
its share, 504 for a caller whose time is over. All but the last say when to come back, in whole
seconds, and not the same to everybody: callers who are refused together and come back together are
the next wave.
"""

from math import ceil
from random import Random
from typing import Final, NamedTuple

from tidegate.core.outcome import Reason
from tidegate.settings.rules import refuse
from tidegate.units import SECOND, Duration

__all__ = ["REFUSALS", "Refusal", "RetryAfter"]


class Refusal(NamedTuple):
    """What is said for a reason. `later`: whether it helps to come back."""

    status: int
    words: str
    body: bytes
    later: bool = True


def _say(status: int, words: str, *, later: bool = True) -> Refusal:
    return Refusal(status, words, f"{words}\n".encode(), later)


REFUSALS: Final = {
    Reason.LIMIT: _say(503, "overloaded: as many requests are being served as can be"),
    Reason.SHED: _say(503, "overloaded: what is left is kept for requests that matter more"),
    Reason.WAITED: _say(503, "overloaded: waited too long for a place"),
    Reason.CLIENT: _say(429, "too many requests: this client has its share of the server"),
    Reason.RATE: _say(429, "too many requests: this client may not send so many per second"),
    Reason.DEADLINE: _say(504, "the deadline of this request has passed", later=False),
}

_SECONDS_MAX: Final = 3600


class RetryAfter:
    """Draws the seconds of `Retry-After`, from `low` to `high`, each as likely."""

    __slots__ = ("_choices", "_low", "_random")

    def __init__(self, between: tuple[int, int], rng: Random) -> None:
        pair = isinstance(between, tuple | list) and len(between) == 2
        if not pair or not all(type(seconds) is int for seconds in between):
            raise refuse("retry_after", "two whole numbers of seconds", between)
        low, high = between
        if not 1 <= low <= high <= _SECONDS_MAX:
            expected = f"whole seconds, from 1 to {_SECONDS_MAX}, the lower first"
            raise refuse("retry_after", expected, between)
        self._low: Final = low
        self._choices: Final = high - low + 1
        self._random: Final = rng.random

    def draw(self, at_least: Duration = 0) -> int:
        """Seconds from now; not before `at_least`, where that is known."""
        low = self._low if at_least == 0 else max(self._low, ceil(at_least / SECOND))
        return low + int(self._random() * self._choices)
