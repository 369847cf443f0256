"""Whose turn is it to replay, when there is nobody to tell?

A fleet has K leases and no scheduler. Each collector knows from the reports how many have more
waiting than itself, and the more there are, the more rarely it asks: so the fullest find a free
lease first, and one that has died keeps nobody waiting. After its `slice` (or `amount`) a
collector gives its lease to those who wait, and asks as rarely as the last of them until each
could have had a turn.

A lease is counted from before it was asked for, on one's own clock, so its holder has stopped
before anybody else can begin, however slowly an answer travels. What has been missed costs time
and never a second holder.

Lease 0 carries the pacing of the fleet. Who holds another moves there when nobody paces, and to a
lower lease when its own has no share in the budget.
"""

from collections.abc import Sequence
from random import Random
from typing import Final, NamedTuple, final
from zlib import crc32

from tidegate.core.errands import Release, Renew, Report, Take, fullest
from tidegate.settings import spool as settings
from tidegate.units import MILLISECOND, SECOND, Duration, Instant

__all__ = ["GUARD", "TimeSlots", "Turn", "TurnSnapshot"]

GUARD: Final = SECOND
"""Clocks within a second: nobody sends in the first and the last second of a slot of time."""

_ASK: Final = 500 * MILLISECOND  # how often the first in line asks; the second half as often
_SPREAD: Final = 0.2  # of the time between two questions, by chance: nobody asks in step
_RENEWALS: Final = 3  # in a lease: two may be lost


class TurnSnapshot(NamedTuple):
    """The lease that is held, how much longer its turn lasts, the place in line (0: next)."""

    slot: int | None
    fence: int
    left: Duration
    place: int


@final
class Turn:
    """One collector's part in the taking of turns."""

    __slots__ = (
        "_ahead",
        "_asks_at",
        "_ends",
        "_giving",
        "_known",
        "_name",
        "_random",
        "_renews_at",
        "_rests_until",
        "_seats",
        "_sent",
        "_settings",
        "_since",
        "_sweep",
        "_waiting",
        "fence",
        "slot",
    )

    def __init__(self, settings: settings.Turns, rng: Random, collector: str) -> None:
        self._settings: Final = settings
        self._random: Final = rng.random
        self._name: Final = collector
        self.slot: int | None = None
        """The lease that was last ours; whether it still is, `holds` says."""
        self.fence = 0
        self._ends: Instant = 0  # of the lease, at the earliest
        self._renews_at: Instant = 0
        self._since: Instant = 0  # the slice has begun
        self._sent = 0  # in it
        self._giving: Final[list[tuple[int, int]]] = []  # leases to give back
        self._asks_at: Instant = 0
        self._sweep = 0  # the next slot to ask for in this round
        self._rests_until: Instant = 0
        self._known = False  # whether the fleet has said anything yet
        self._waiting = 1  # who has a backlog, this one included
        self._seats = 1  # leases that these can fill
        self._ahead = 0  # how many of them have more

    # What happens.

    def on_reports(self, reports: Sequence[Report], backlog: int) -> None:
        """What the fleet has said of itself; `backlog` is what waits here."""
        mine = Report(self._name, backlog, 0, 0.0)
        others = [report for report in reports if report.collector != self._name]
        line = fullest([*others, mine])
        self._known = True
        self._waiting = max(1, len(line))
        self._seats = min(self._settings.leases, self._waiting)
        place = line.index(mine) if backlog > 0 else len(line)
        # Those who hold the other leases are ahead as well, and ask for none.
        self._ahead = max(0, place - (self._settings.leases - 1))

    def on_taken(self, now: Instant, take: Take, fence: int | None) -> None:
        """An answer: the lease is ours under this fence, or it is not free."""
        if fence is None:
            return
        if self.holds(now) and self.slot is not None:
            self._giving.append((self.slot, self.fence))
        else:
            self._since, self._sent = now, 0
        self.slot, self.fence = take.slot, fence
        self._keep(take.asked)
        self._sweep = 0
        self._ask_later(now)

    def on_renewed(self, renew: Renew, *, ours: bool) -> None:
        """An answer: the lease goes on, or it has been lost."""
        if renew.slot != self.slot or renew.fence != self.fence:
            return
        if ours:
            self._keep(renew.asked)
        else:
            self.slot = None

    def on_lost(self, now: Instant) -> None:
        """The coordinator has not answered: ask again after a while."""
        self._sweep = 0
        self._ask_later(now)
        self._renews_at = max(self._renews_at, now + _ASK)

    def on_sent(self, size: int) -> None:
        """So many bytes of the turn are used."""
        self._sent += size

    # What follows.

    def holds(self, now: Instant) -> bool:
        """Whether a lease is surely ours: false from the instant at which it may have ended."""
        return self.slot is not None and now < self._ends

    @property
    def seats(self) -> int:
        """Among how many a budget is to be divided."""
        return self._seats

    def errand(self, now: Instant, *, wants: bool, paced: bool) -> Take | Renew | Release | None:
        """What to ask the coordinator now; None if nothing.

        `wants`: there is something to replay, and it may be. `paced`: a budget is in force.
        """
        if self.slot is not None and not self.holds(now):
            self.slot = None
        if self.slot is not None and (not wants or self._is_over(now)):
            self._give_up(now, wants=wants)
        if self._giving:
            slot, fence = self._giving.pop()
            return Release(now, slot, fence)
        if self.slot is not None and now >= self._renews_at:
            self._renews_at = now + self._settings.ttl // _RENEWALS
            return Renew(now, self.slot, self.fence, self._settings.ttl)
        if wants and self._known and now >= self._asks_at:
            return self._take(now, paced=paced)
        return None

    def next_wakeup(self, now: Instant, *, wants: bool) -> Instant | None:
        """When there will be something to ask, or a lease ends; None: not before news."""
        if self._giving:
            return now
        if self.slot is None:
            return self._asks_at if wants and self._known else None
        moves = self._asks_at if self.slot else self._ends
        return min(self._ends, self._renews_at, moves, self._over_at())

    def snapshot(self, now: Instant) -> TurnSnapshot:
        """What a person would ask of it."""
        slot = self.slot if self.holds(now) else None
        left = 0 if slot is None else max(0, self._since + self._settings.slice - now)
        return TurnSnapshot(slot, self.fence, left, self._ahead)

    # Private parts.

    def _keep(self, asked: Instant) -> None:
        self._ends = asked + self._settings.ttl
        self._renews_at = asked + self._settings.ttl // _RENEWALS

    def _over_at(self) -> Instant:
        return self._since + self._settings.slice

    def _is_over(self, now: Instant) -> bool:
        """Whether the turn is over: its slice is used, and somebody waits for it."""
        if now < self._over_at() and self._sent < self._settings.amount:
            return False
        if self._waiting > self._settings.leases:
            return True
        self._since, self._sent = now, 0
        return False

    def _give_up(self, now: Instant, *, wants: bool) -> None:
        assert self.slot is not None
        self._giving.append((self.slot, self.fence))
        self.slot = None
        if wants:  # the turn is over: the others first, one slice each
            over = max(0, self._waiting - self._settings.leases)
            self._rests_until = now + self._settings.slice * over // self._settings.leases
        self._ask_later(now)

    def _take(self, now: Instant, *, paced: bool) -> Take | None:
        """The next slot of this round of questions, if one is worth asking for."""
        seats = self._seats
        if self.slot is not None:
            # Content with a lease that has a share, as long as somebody paces.
            seats = 0 if self.slot == 0 or (paced and self.slot < seats) else min(seats, self.slot)
        if self._sweep >= seats:
            self._sweep = 0
            self._ask_later(now)
            return None
        slot = self._sweep
        self._sweep += 1
        if self._sweep == seats:
            self._sweep = 0
            self._ask_later(now)
        return Take(now, slot, self._settings.ttl)

    def _ask_later(self, now: Instant) -> None:
        longest = self._settings.ttl // 2
        wait = longest if now < self._rests_until else min(longest, _ASK * (self._ahead + 1))
        self._asks_at = now + int(wait * (1 + _SPREAD * (2 * self._random() - 1)))


@final
class TimeSlots:
    """Turns without a coordinator: each collector has its slots of wall time.

    There are as many slots as turns are needed for all `members` at `leases` at a time, each of one
    `slice`; which is a collector's own follows from its name.
    """

    __slots__ = ("_mine", "_slice", "_slots", "_wall_less_now")

    def __init__(self, settings: settings.Turns, collector: str) -> None:
        members = settings.members or 1
        self._slice: Final = settings.slice
        self._slots: Final = max(1, -(-members // settings.leases))
        self._mine: Final = crc32(collector.encode()) % self._slots
        self._wall_less_now: Duration | None = None

    def on_wall(self, now: Instant, wall: Instant) -> None:
        """The wall clock shows this (nanoseconds since 1970): to be told again now and then."""
        self._wall_less_now = wall - now

    @property
    def slots(self) -> int:
        """How many slots there are before one's own comes again."""
        return self._slots

    def holds(self, now: Instant) -> bool:
        """Whether this is one's own slot of time, with a second to spare on either side."""
        if self._wall_less_now is None:
            return False
        wall = now + self._wall_less_now
        if self._slots == 1:
            return True
        number, within = divmod(wall, self._slice)
        return number % self._slots == self._mine and GUARD <= within < self._slice - GUARD

    def next_wakeup(self, now: Instant) -> Instant | None:
        """When the present slot, or the wait for one's own, is over."""
        if self._wall_less_now is None or self._slots == 1:
            return None
        wall = now + self._wall_less_now
        number, within = divmod(wall, self._slice)
        mine = number % self._slots == self._mine
        if mine and within < GUARD:
            begins = number * self._slice + GUARD
        elif mine and within < self._slice - GUARD:
            begins = (number + 1) * self._slice - GUARD
        else:
            ahead = (self._mine - number - 1) % self._slots + 1
            begins = (number + ahead) * self._slice + GUARD
        return begins - self._wall_less_now
