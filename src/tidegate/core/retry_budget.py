"""May this call be tried again, given what all the calls beside it have asked for?

Every first attempt deposits `ratio` of a token and every retry takes a whole one, so that in an
outage, when everybody wants to retry, the load is 1 + `ratio` times the requests and not one more.
That bound is what attempts per call cannot give: three attempts each are harmless until all fail.

Saved tokens are capped at `ratio` times the first attempts of the last `window`, else a quiet week
would pay for a storm; and the cap is never below one, so that a rare caller can retry once. Only
requests that are nobody's retry deposit (depth 0, see `Pipeline.admit`), so that n layers, each
with its budget, hold 1 + n x `ratio` together and not (1 + `ratio`)^n.

Processes that share one budget each keep a copy and tell each other three sums: what was deposited,
what was retried, and what the cap has taken away. The tokens follow from these, 1 + deposited -
retried - forfeited; the first two only grow and the third is a maximum, so copies agree in whatever
order they hear of each other, also when one already goes by another `ratio`.
"""

from typing import Final, NamedTuple, final

from tidegate.core.window import Window
from tidegate.settings import policies as settings
from tidegate.units import Instant

__all__ = ["RetryBudget", "RetryBudgetSnapshot", "RetryBudgetTotals"]

# Tokens are counted in millionths: with floats ten deposits of 0.1 fall short of one token.
_TOKEN: Final = 1_000_000


class RetryBudgetSnapshot(NamedTuple):
    """`tokens` saved of at most `cap`, after `requests` first attempts in the window."""

    tokens: float
    cap: float
    requests: int
    retried: int
    refused: int


class RetryBudgetTotals(NamedTuple):
    """What a budget tells its copies in other processes.

    `requests`, what they `deposited`, `retried` and `refused` are its own, since its start;
    `recent` are the requests of its window. `forfeited` is what the cap has taken from the tokens
    of all copies, as far as this one has seen. Deposits and forfeits are in millionths of a token.
    """

    requests: int
    deposited: int
    retried: int
    refused: int
    recent: int
    forfeited: int


@final
class RetryBudget:
    """The retries of all calls to one dependency together.

    With n deposits since the last withdrawal, tokens = min(saved + n x ratio, cap). That holds for
    deposits made one by one as well, because a deposit lifts the cap by no more than the tokens
    (until something leaves the window, and then the lower cap counts anyway). So a deposit is no
    more than a count, and is turned into tokens when somebody asks.
    """

    __slots__ = (
        "_cap_min",
        "_credited",
        "_deposit",
        "_ends",
        "_forfeited",
        "_others",
        "_refused",
        "_retried",
        "_saved",
        "_start",
        "_window",
        "requests",
    )

    def __init__(self, settings: settings.Budget) -> None:
        self._deposit: Final = round(settings.ratio * _TOKEN)
        self._cap_min: Final = _TOKEN if settings.ratio else 0  # 0 %: no retry, not even the first
        self._window: Final = Window(settings.window)
        self._ends: Instant = 0  # of the window's present bucket
        self._start = 0  # what `_requests` was when the window began
        self.requests = 0
        self._credited = 0  # how many of the requests are in `_saved` already
        self._saved = self._cap_min  # below zero: a debt to other copies
        self._others = 0  # first attempts of other copies in the window
        self._forfeited = 0
        self._retried = 0
        self._refused = 0

    def on_request(self, now: Instant) -> None:
        """A first attempt of a request that is itself nobody's retry: it deposits.

        Flat on purpose, since every guarded call pays for it: 52 ns on CPython 3.11
        (`benchmarks/policies.py`).
        """
        if now >= self._ends:
            self._slide(now)
        self.requests += 1

    @property
    def original(self) -> "RetryBudget":
        """Itself; what stands in for it, as for all processes of a host, names it here."""
        return self

    def calm_until(self, now: Instant) -> Instant:
        """Until when `on_request` does no more than to add one to `requests`.

        That is the end of this bucket of the window; whoever knows it may add the one himself.
        """
        if now >= self._ends:
            self._slide(now)
        return self._ends

    def try_retry(self, now: Instant) -> bool:
        """Take one token for a retry; False if there is none, and nothing is taken."""
        self._settle(now)
        if self._saved < _TOKEN:
            self._refused += 1
            return False
        self._saved -= _TOKEN
        self._retried += 1
        return True

    def on_others(
        self, now: Instant, *, deposited: int, retried: int, recent: int, forfeited: int
    ) -> None:
        """What all copies have counted together, this one included.

        `deposited` and `retried` are sums since the copies began, `recent` is how many requests
        the others had in the last window, `forfeited` the most that any of them has seen. Two
        copies that took the last token in the same instant leave a debt, which the next deposits
        repay.
        """
        if now >= self._ends:
            self._slide(now)
        self._saved = self._cap_min + deposited - retried * _TOKEN - forfeited
        self._credited = self.requests
        self._others = recent
        self._forfeited = forfeited
        self._settle(now)

    def totals(self, now: Instant) -> RetryBudgetTotals:
        """What other copies need to know of this one. Changes no token."""
        if now >= self._ends:
            self._slide(now)
        recent = self.requests - self._start
        deposited = self.requests * self._deposit
        return RetryBudgetTotals(
            self.requests, deposited, self._retried, self._refused, recent, self._forfeited
        )

    def tokens(self, now: Instant) -> float:
        """How many retries could be made at once now; a fraction is saved towards the next.

        Below zero while other copies have taken more than there was.
        """
        self._settle(now)
        return self._saved / _TOKEN

    def snapshot(self, now: Instant) -> RetryBudgetSnapshot:
        """What a person would ask of it."""
        return RetryBudgetSnapshot(
            tokens=self.tokens(now),
            cap=self._cap() / _TOKEN,
            requests=self.requests - self._start,
            retried=self._retried,
            refused=self._refused,
        )

    def _settle(self, now: Instant) -> None:
        """Turn the deposits since the last time into tokens, as far as the cap allows.

        Flat as well: in an outage every call that fails asks for a retry.
        """
        if now >= self._ends:
            self._slide(now)
        requests = self.requests
        saved = self._saved + (requests - self._credited) * self._deposit
        cap = (requests - self._start + self._others) * self._deposit
        if cap < self._cap_min:
            cap = self._cap_min
        if saved > cap:
            self._forfeited += saved - cap
            saved = cap
        self._saved = saved
        self._credited = requests

    def _cap(self) -> int:
        recent = self.requests - self._start + self._others
        return max(self._cap_min, recent * self._deposit)

    def _slide(self, now: Instant) -> None:
        self._start = self._window.slide(now, self.requests)
        self._ends = self._window.ends

    def _check(self) -> bool:
        """What holds after each question. For tests: it would cost as much as the question."""
        return self._saved <= self._cap() and self._start <= self._credited <= self.requests
