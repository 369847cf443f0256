"""What part has this collector in what its fleet may replay, and what must it ask for that?

    alone    no coordinator: all of it, at a pace of its own
    turns    a share of the budget, while it holds a lease and the budget is young
    slots    no coordinator but the clock: a pace of its own, in its own slots of time

One of a fleet paces for all: who holds lease 0. It says a new budget every second and the others
look as often, so a word that does not change is one that nobody stands for any more. A budget is as
old as the last look that did not show it yet: no clock of another is believed, and what a server
has kept since the last outage starts nobody.
"""

from collections.abc import Sequence
from random import Random
from typing import Final, final

from tidegate.core.errands import (
    Budget,
    Errand,
    Look,
    Publish,
    Release,
    Renew,
    Report,
    Say,
    Take,
)
from tidegate.core.leases import Answer
from tidegate.core.pacer import Pacer
from tidegate.core.turns import TimeSlots, Turn
from tidegate.settings import spool as settings
from tidegate.units import MILLISECOND, SECOND, Duration, Instant

__all__ = ["YOUNG", "Member"]

YOUNG: Final = 3 * SECOND
"""A budget that is older is nobody's: two words of the one who paces may be lost."""

_WORD: Final = SECOND  # between two words of a budget, and two looks of who goes by it
_WAITING: Final = 5 * SECOND  # between two looks, or two reports, of who has a backlog
_IDLE: Final = 20 * SECOND  # and of who has none: a third of the time that a report stands
_HEIR: Final = 15 * SECOND  # a budget no older is gone on from by who takes over the pacing
_RECENT: Final = 30 * SECOND  # a budget no older says that somebody replays
_QUIET: Final = 500 * MILLISECOND  # after a coordinator has not answered
_SLOW: Final = 0.1  # of the last budget, for `lost: slow`


@final
class Member:
    """One collector in its fleet."""

    __slots__ = (
        "_backlog",
        "_budget",
        "_busy",
        "_cruises",
        "_heard",
        "_heir",
        "_live",
        "_looked",
        "_looks_at",
        "_lost",
        "_name",
        "_oldest",
        "_others",
        "_others_live",
        "_publishes_at",
        "_quiet_until",
        "_says_at",
        "_seen",
        "_settings",
        "_slots",
        "_slow_rate",
        "_stops",
        "_turn",
        "pacer",
    )

    def __init__(self, lane: settings.Lane, rng: Random, collector: str) -> None:
        through = lane.turns.through
        self._settings: Final = lane.turns
        self._name: Final = collector
        self.pacer: Final = Pacer(lane.pace)
        self._turn: Final = None if through in {None, "slots"} else Turn(lane.turns, rng, collector)
        self._slots: Final = TimeSlots(lane.turns, collector) if through == "slots" else None
        self._backlog = self._oldest = 0
        self._live = 0.0
        self._others: list[Report] = []
        self._others_live = 0.0  # of all of them, bytes a second
        self._budget: Budget | None = None
        self._seen: Instant | None = None  # the budget is no older than this
        self._heard: Instant = 0  # it was asked for then
        self._looked: Instant | None = None  # the last look was asked for
        self._cruises = False
        self._slow_rate = 0.0
        self._heir = False  # lease 0 is ours, and nobody's budget was looked for yet
        self._stops = False  # a budget of nothing is to be said
        self._busy: Errand | None = None
        self._lost = False
        self._quiet_until: Instant = 0
        self._looks_at = self._says_at = self._publishes_at = 0

    # What happens.

    def on_backlog(self, now: Instant, size: int, oldest: int) -> None:
        """So many bytes wait here."""
        if (size > 0) is not (self._backlog > 0):
            self._says_at = self._looks_at = now
            if self._turn is None:
                self.pacer.reset()  # what was free at the last backlog is no news at the next
        self._backlog, self._oldest = size, oldest

    def on_live(self, rate: float) -> None:
        """So many bytes a second come in here."""
        self._live = rate
        if self._slots is not None:
            # As many as have this slot share what all of them may.
            part = max(1.0, (self._settings.members or 1) / self._settings.leases)
            self.pacer.on_live(rate * part)
        else:
            self.pacer.on_live(rate + self._others_live)

    def on_window(
        self,
        now: Instant,
        latency: Duration | None,
        baseline: Duration | None,
        errors: int,
        *,
        used: bool,
    ) -> None:
        """What a second of answers has shown here; it counts for who paces."""
        if self.paces(now) and not self._heir:
            self.pacer.on_window(now, latency, baseline, errors, used=used)

    def on_close(self, now: Instant) -> None:
        """The gate has closed."""
        self._stops = self._turn is not None and self.paces(now)
        self.pacer.reset()
        self._cruises = False
        self._slow_rate = 0.0

    def on_sent(self, size: int) -> None:
        """So many bytes were replayed."""
        if self._turn is not None:
            self._turn.on_sent(size)

    def on_wall(self, now: Instant, wall: Instant) -> None:
        """What the wall clock shows; only `slots` go by it."""
        if self._slots is not None:
            self._slots.on_wall(now, wall)

    def on_budget(self, budget: Budget, asked: Instant) -> None:
        """The budget as a look has found it that was asked for then."""
        last, looked = self._budget, self._looked
        self._looked = asked
        if last is not None and (budget.number, budget.fence) == (last.number, last.fence):
            return
        if last is not None and budget.fence < last.fence and asked < self._heard + _RECENT:
            return  # an old answer; later it is a coordinator that has lost all it knew
        self._budget, self._heard = budget, asked
        self._seen = looked  # not before that: it was not there yet
        before = last.rate if last is not None else 0.0
        self._cruises = budget.rate > 0 and (self._cruises or 0 < budget.rate <= before)
        self._slow_rate = budget.rate

    def on_reports(self, reports: Sequence[Report]) -> None:
        """What the fleet has said of itself."""
        self._others = [report for report in reports if report.collector != self._name]
        self._others_live = sum(report.live for report in self._others)
        if self._turn is not None:
            self._turn.on_reports(self._others, self._backlog)
        self.on_live(self._live)

    # What to ask the coordinator, and what came of it.

    def errand(self, now: Instant, *, wants: bool) -> Errand | None:
        """What to ask next; None if nothing, or if an answer is still out.

        `wants`: there is something to replay, and the sink is well.
        """
        turn = self._turn
        if turn is None or self._busy is not None or now < self._quiet_until:
            return None
        self._busy = self._word(now) or turn.errand(now, wants=wants, paced=self._is_young(now))
        if self._busy is None:
            self._busy = self._talk(now)
        return self._busy

    def on_errand(self, now: Instant, errand: Errand, answer: Answer) -> None:
        """The coordinator has answered."""
        assert self._turn is not None
        self._busy = None
        self._lost = False
        match errand, answer:
            case Take(), int() | None:
                self._turn.on_taken(now, errand, answer)
                if answer is not None:
                    self._looks_at = now
                    self._heir = errand.slot == 0
            case Renew(), bool():
                self._turn.on_renewed(errand, ours=answer)
            case Publish(), bool():
                self._on_published(errand, taken=answer)
            case Look(), tuple():
                self._on_look(now, errand, *answer)
            case _:
                assert isinstance(errand, Say | Release)

    def on_lost(self, now: Instant) -> None:
        """The coordinator has not answered."""
        self._busy = None
        self._lost = True
        self._quiet_until = now + _QUIET
        self._says_at = self._looks_at = now
        if self._turn is not None:
            self._turn.on_lost(now)

    # What follows.

    def share(self, now: Instant) -> float:
        """How many bytes of replay this collector may send in a second now, for all it knows."""
        if self._turn is None:
            holds = self._slots is None or self._slots.holds(now)
            return self.pacer.rate() if holds else 0.0
        budget = self._budget
        if budget is not None and self._is_young(now):
            slot = self._turn.slot
            if slot is not None and slot < budget.shares and self._turn.holds(now):
                return budget.rate / budget.shares
            return 0.0
        if self._lost and self._settings.lost == "slow":
            waiting = 1 + sum(report.backlog > 0 for report in self._others)
            return self._slow_rate * _SLOW / waiting
        return 0.0

    def why(self, now: Instant) -> str:
        """Why the share is nothing, or what it is of, in words."""
        if self._turn is None:
            if self._slots is None or self._slots.holds(now):
                return "alone" if self._slots is None else "in its slot of time"
            return "waits for its slot of time"
        if self._lost:
            return "the coordinator is lost"
        shot = self._turn.snapshot(now)
        if shot.slot is None:
            return f"waits for a lease, {shot.place} before it"
        if not self._is_young(now):
            return f"holds lease {shot.slot}, and waits for a budget"
        return f"holds lease {shot.slot}"

    def paces(self, now: Instant) -> bool:
        """Whether it is this one who finds the budget."""
        return self._turn is None or (self._turn.slot == 0 and self._turn.holds(now))

    def slot(self, now: Instant) -> int | None:
        """The lease that is held."""
        held = self._turn is not None and self._turn.holds(now)
        return self._turn.slot if held and self._turn is not None else None

    @property
    def fence(self) -> int:
        """The fencing number of the lease that was last ours; 0 before the first."""
        return 0 if self._turn is None else self._turn.fence

    def budget_rate(self, now: Instant) -> float | None:
        """The budget of the fleet, if one is in force."""
        if self._turn is None:
            return self.pacer.rate()
        return self._budget.rate if self._budget is not None and self._is_young(now) else None

    def cruises(self, now: Instant) -> bool:
        """Whether the budget has found its bound, so that it no longer only grows."""
        if self.paces(now):
            return self.pacer.has_cut or self.pacer.is_at_cap()
        return self._cruises

    def somebody_replays(self, now: Instant) -> bool:
        """Whether a budget was in force of late."""
        budget, seen = self._budget, self._seen
        return budget is not None and budget.rate > 0 and seen is not None and now < seen + _RECENT

    def next_wakeup(self, now: Instant, *, wants: bool) -> Instant | None:
        """When there is something to ask, or a share ends; None: not before news."""
        if self._slots is not None:
            return self._slots.next_wakeup(now) if wants else None
        if self._turn is None:
            return None
        due: list[Instant] = []
        if self._seen is not None and now < self._seen + YOUNG:
            due.append(self._seen + YOUNG)
        if self._busy is None:
            asks = [self._looks_at, self._says_at]
            if self.paces(now):
                asks.append(self._publishes_at)
            turn = self._turn.next_wakeup(now, wants=wants)
            if turn is not None:
                asks.append(turn)
            due.append(max(now if self._stops else min(asks), self._quiet_until))
        return min(due, default=None)

    # Private parts.

    def _is_young(self, now: Instant) -> bool:
        return self._seen is not None and now - self._seen < YOUNG

    def _word(self, now: Instant) -> Publish | None:
        """The budget, when it is time to say it. That it is nothing goes before all else."""
        if not self.paces(now) or self._turn is None:
            self._stops = False
            return None
        if not self._stops and (self._heir or now < self._publishes_at):
            return None
        number = 1 + (self._budget.number if self._budget is not None else 0)
        rate = 0.0 if self._stops else self.pacer.rate()
        self._stops = False
        self._publishes_at = now + _WORD
        return Publish(now, Budget(number, rate, self._turn.fence, self._turn.seats))

    def _talk(self, now: Instant) -> Say | Look | None:
        if now >= self._says_at:
            self._says_at = now + (_WAITING if self._backlog else _IDLE)
            return Say(now, Report(self._name, self._backlog, self._oldest, self._live))
        if now >= self._looks_at:
            held = self._turn is not None and self._turn.holds(now)
            wait = _WORD if held else _WAITING if self._backlog else _IDLE
            self._looks_at = now + wait
            return Look(now)
        return None

    def _on_published(self, publish: Publish, *, taken: bool) -> None:
        if taken:
            self._budget, self._seen = publish.budget, publish.asked
            self._heard = publish.asked
            self._slow_rate = publish.budget.rate
        else:
            self._looks_at = publish.asked  # another has spoken: what?

    def _on_look(
        self, now: Instant, look: Look, reports: Sequence[Report], budget: Budget | None
    ) -> None:
        if budget is not None:
            self.on_budget(budget, look.asked)
        else:
            self._looked = look.asked
        self.on_reports(reports)
        if self._heir and self.paces(now):
            self._heir = False
            old = self._seen is None or now - self._seen >= _HEIR
            if budget is None or old or budget.rate <= 0:
                self.pacer.reset()
            else:
                self.pacer.adopt(budget.rate)
