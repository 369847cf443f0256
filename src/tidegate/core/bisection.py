"""Which record of a batch is it that the sink will never take, and is it the record at all?

A sink that refuses a batch for what it is (400, too large, malformed) would refuse it for ever, and
everything behind it would wait. So the batch is halved until the record is found: about twice log2
of the batch's length in sends, and all others are delivered meanwhile.

What is found is not yet guilty. A sink with a wrong schema refuses everything in those same words,
and whoever believed it would set a whole backlog aside. So a record is set aside after `REFUSALS`
refusals with something else accepted between any two of them. A sink that is wrong for a while
counts as one refusal, however long it lasts and however often it is asked; only one that went wrong
and well again so many times could deceive. While nothing is accepted nothing is set aside: after
`IN_A_ROW` refusals the sink is asked once in `PAUSE`, and `snapshot` says that it refuses all.

Records behind a suspect go on, also where order is kept: if they are taken, the suspect is at fault
and will be set aside, and if not, nothing has moved. Out of order comes only what was refused for
what it is and taken later after all.

    cut         which part of what one has may be sent now
    on_taken    the sink has taken it
    on_refused  it has refused it for what it is; the answer is the record to set aside, if any

Any other failure says nothing here: it is the breaker's.
"""

from bisect import bisect_left
from itertools import pairwise
from typing import Final, NamedTuple, final

from tidegate.units import HOUR, MINUTE, SECOND, Duration, Instant

__all__ = [
    "AGAIN",
    "AGAIN_MAX",
    "IN_A_ROW",
    "PAUSE",
    "REFUSALS",
    "SUSPECTS_MAX",
    "Bisection",
    "BisectionSnapshot",
    "SetAside",
]

REFUSALS: Final = 3
"""As many as SQS users commonly set for `maxReceiveCount`, from which a dead-letter queue takes."""

IN_A_ROW: Final = 32
"""Enough to halve a batch of 65,536 to a record, with as many left for its neighbours."""

PAUSE: Final[Duration] = 10 * SECOND
"""Between two tries while nothing is accepted."""

AGAIN: Final[Duration] = MINUTE
AGAIN_MAX: Final[Duration] = HOUR
"""When a suspect is tried again although nothing else was accepted: doubled each time."""

SUSPECTS_MAX: Final = 10_000
"""With so many the sink is asked once in `PAUSE`, as when it refuses everything."""


class SetAside(NamedTuple):
    """A record to set aside: its number, and the sink's words of the last refusal."""

    number: int
    why: str


class BisectionSnapshot(NamedTuple):
    """What a person would ask: how many ranges are suspected, how many refusals came in a row.

    `refuses_all`: nothing was accepted for so long that it is taken to be the sink; `set_aside`
    counts records since the start.
    """

    suspects: int
    in_a_row: int
    refuses_all: bool
    set_aside: int


class _Suspect:
    """A range that was refused, or a part of one. Sent by itself until it is clear."""

    __slots__ = ("again", "first", "fresh", "last", "refused", "wait")

    def __init__(self, first: int, last: int) -> None:
        self.first = first
        self.last = last
        self.refused = 0  # times that count
        self.fresh = True  # something else was accepted since the last of them
        self.again: Instant = 0  # not before, unless something else is accepted
        self.wait: Duration = AGAIN


@final
class Bisection:
    """One lane. Ranges are of record numbers, both ends inclusive."""

    __slots__ = ("_again", "_in_a_row", "_set_aside", "_suspects")

    def __init__(self) -> None:
        self._suspects: list[_Suspect] = []  # disjoint, in order
        self._in_a_row = 0
        self._set_aside = 0
        self._again: Instant = 0  # nothing at all before, while everything is refused

    def cut(self, now: Instant, first: int, last: int) -> tuple[int, int] | None:
        """The first part of this range that may be sent now, alone; None if no part may.

        With None one may look further on, unless `snapshot` says that everything is refused.
        """
        if now < self._again:
            return None
        at = first
        for suspect in self._from(first):
            if suspect.first > last:
                break
            if at < suspect.first:
                return at, suspect.first - 1
            if now >= suspect.again:
                return max(first, suspect.first), min(last, suspect.last)
            at = suspect.last + 1
        return (at, last) if at <= last else None

    def on_taken(self, now: Instant, first: int, last: int) -> None:  # noqa: ARG002
        """The sink has these. So it takes something, and every suspect may be tried again."""
        self.on_gone(first, last)
        self._in_a_row = 0
        self._again = 0
        for suspect in self._suspects:
            suspect.fresh = True
            suspect.again = 0

    def on_refused(self, now: Instant, first: int, last: int, why: str) -> SetAside | None:
        """The sink has refused these for what they are; the answer is to be set aside."""
        self._in_a_row += 1
        if self._in_a_row >= IN_A_ROW or len(self._suspects) >= SUSPECTS_MAX:
            self._again = now + PAUSE
        if first < last:
            self._halve(first, last)
            return None
        suspect = self._alone(first)
        if suspect.fresh:
            suspect.fresh = False
            suspect.refused += 1
        suspect.again = now + suspect.wait
        suspect.wait = min(2 * suspect.wait, AGAIN_MAX)
        if suspect.refused < REFUSALS:
            return None
        self._suspects.remove(suspect)
        self._set_aside += 1
        return SetAside(first, why)

    def on_gone(self, first: int, last: int) -> None:
        """These no longer wait, for whatever reason: they expired, or were dropped."""
        for suspect in self._overlapping(first, last):
            self._suspects.remove(suspect)
            for part in ((suspect.first, first - 1), (last + 1, suspect.last)):
                if part[0] <= part[1]:
                    self._insert(_Suspect(*part))

    def next_wakeup(self, now: Instant) -> Instant | None:
        """When time alone will let something be sent that may not be sent now; None if nothing."""
        if now < self._again:
            return self._again
        return min((one.again for one in self._suspects if one.again > now), default=None)

    def snapshot(self) -> BisectionSnapshot:
        """What a person would ask of it."""
        return BisectionSnapshot(
            len(self._suspects), self._in_a_row, self._in_a_row >= IN_A_ROW, self._set_aside
        )

    # Private parts.

    def _halve(self, first: int, last: int) -> None:
        self.on_gone(first, last)
        middle = (first + last) // 2
        self._insert(_Suspect(first, middle))
        self._insert(_Suspect(middle + 1, last))

    def _alone(self, number: int) -> _Suspect:
        """The suspect of one record; it may have been a part of a longer one."""
        for suspect in self._overlapping(number, number):
            if suspect.first == suspect.last:
                return suspect
        self.on_gone(number, number)
        suspect = _Suspect(number, number)
        self._insert(suspect)
        return suspect

    def _insert(self, suspect: _Suspect) -> None:
        at = bisect_left(self._suspects, suspect.first, key=lambda other: other.first)
        self._suspects.insert(at, suspect)

    def _from(self, first: int) -> list[_Suspect]:
        """Those that reach `first` or lie beyond it, in order."""
        return self._suspects[bisect_left(self._suspects, first, key=lambda one: one.last) :]

    def _overlapping(self, first: int, last: int) -> list[_Suspect]:
        return [suspect for suspect in self._from(first) if suspect.first <= last]

    def _check(self) -> bool:
        """What holds after each event. For tests."""
        ends = [(suspect.first, suspect.last) for suspect in self._suspects]
        alone = all(s.first == s.last or not s.refused for s in self._suspects)
        ordered = all(a[1] < b[0] for a, b in pairwise(ends))
        return alone and ordered and all(first <= last for first, last in ends)
