"""How does a process ask the whole host before it retries?

A `HostBudget` stands in a pipeline in the place of its retry budget. It announces the retry that it
wants before it reads what the others have taken, and takes its announcement back if the answer is
no. Of two that want the last token, at least one sees the other; that both see each other and
neither takes it is the lesser evil, and the next call asks again.
"""

from typing import Final, final

from tidegate.core.retry_budget import RetryBudget, RetryBudgetSnapshot
from tidegate.runtime.shared import table as t
from tidegate.runtime.shared.row import Row
from tidegate.units import MILLISECOND, Duration, Instant

__all__ = ["HostBudget"]

# A no is taken as true for so long. It only refuses more than it must, and in a storm it is asked
# for a thousand times in a second.
_SURE: Final = MILLISECOND

_MILLIONTHS: Final = 1_000_000


@final
class HostBudget:
    """A retry budget, each of whose tokens is asked of the whole host. Deposits go straight to the
    original: a call that succeeds pays for nothing more.
    """

    __slots__ = (
        "_claims",
        "_left_deposited",
        "_left_refused",
        "_left_requests",
        "_left_retried",
        "_recent",
        "_row",
        "_sure_until",
        "_until_look",
        "_window",
        "on_request",
        "original",
    )

    def __init__(self, original: RetryBudget, window: Duration, row: Row) -> None:
        self.original: Final = original
        self.on_request: Final = original.on_request
        self._window: Final = window
        self._row: Final = row
        self._claims = 0
        # What the row's last owners have left, less what we had counted when we took it over.
        self._left_requests = self._left_deposited = 0
        self._left_retried = self._left_refused = 0
        # First attempts of the others: in the window at the last look, and in all until then.
        self._recent = self._until_look = 0
        self._sure_until: Instant = 0

    def calm_until(self, now: Instant) -> Instant:
        """Until when a first attempt changes nothing but its count."""
        return self.original.calm_until(now)

    def try_retry(self, now: Instant) -> bool:
        """Take one of the host's tokens; False if there is none.

        Without a row, since all are taken, the process has a budget of its own; and none at all
        in the moments in which a row may yet be had.
        """
        original, row = self.original, self._row
        if now < self._sure_until and original.tokens(now) < 1:
            return original.try_retry(now)
        if not row.is_ours(now):
            return not row.busy and original.try_retry(now)
        self.tell(now)
        words, at = row.words, row.at
        words[at + t.RETRIED] += 1  # announced
        self._hear(now, announced=1)
        if original.try_retry(now):
            return True
        words[at + t.RETRIED] -= 1
        self._sure_until = now + _SURE
        return False

    def tell(self, now: Instant) -> None:
        """Write what we have counted."""
        words, at = self._row.words, self._row.at
        requests, deposited, retried, refused, recent, _ = self.original.totals(now)
        if self._claims != self._row.claims:
            self._claims = self._row.claims
            self._left_requests = _sane(words[at + t.REQUESTS]) - requests
            self._left_deposited = _sane(words[at + t.DEPOSITED]) - deposited
            self._left_retried = _sane(words[at + t.RETRIED]) - retried
            self._left_refused = _sane(words[at + t.REFUSED]) - refused
            self._see_window(now)
        words[at + t.REQUESTS] = self._left_requests + requests
        words[at + t.DEPOSITED] = self._left_deposited + deposited
        words[at + t.RETRIED] = self._left_retried + retried
        words[at + t.REFUSED] = self._left_refused + refused
        words[at + t.RECENT] = recent

    def hear(self, now: Instant) -> None:
        """Read what the others have counted."""
        self._see_window(now)
        self._hear(now, announced=0)

    def _see_window(self, now: Instant) -> None:
        self._recent = self._row.recent(now, t.RECENT, self._window)
        self._until_look = self._requests_of_others()

    def _requests_of_others(self) -> int:
        row = self._row
        return row.table.sane_sum(t.REQUESTS) - row.words[row.at + t.REQUESTS]

    def _hear(self, now: Instant, *, announced: int) -> None:
        row, original = self._row, self.original
        table = row.table
        original.on_others(
            now,
            deposited=table.sane_sum(t.DEPOSITED),
            retried=table.sane_sum(t.RETRIED) - announced,
            recent=self._recent + self._requests_of_others() - self._until_look,
            forfeited=table.sane_max(t.FORFEITED),
        )
        row.words[row.at + t.FORFEITED] = original.totals(now).forfeited
        row.words[row.at + t.TOKENS] = max(0, round(original.tokens(now) * _MILLIONTHS))

    def tokens(self, now: Instant) -> float:
        """How many retries the host could make now, as far as this process has heard."""
        return self.original.tokens(now)

    def snapshot(self, now: Instant) -> RetryBudgetSnapshot:
        """What a person would ask of it: tokens of the host, counters of this process."""
        return self.original.snapshot(now)


def _sane(count: int) -> int:
    """What a last owner has left; nothing, if it is more than any could count to."""
    return count if count < t.DAMAGED else 0
