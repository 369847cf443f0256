"""How does a caller make a call that is asked again while its answer is still awaited?

A `HedgedSite` is a call site that drives a `Race` in the place of an `Execution`. Several attempts
of one call may be out, its legs; the first good answer ends the call, and the others are called off
as if the caller itself had been cancelled.
"""

from typing import Any, Final, final

import msgspec

from tidegate.core.execution import ATTEMPT, LISTEN, WAIT
from tidegate.core.hedge import Race
from tidegate.core.outcome import TIMEOUT, Outcome
from tidegate.sim.parts.caller import CallSite
from tidegate.sim.parts.work import NEVER, Attempt
from tidegate.units import Duration, Instant

__all__ = ["HedgedSite"]


@final
class _Run:
    """One call under way: `row` holds its attempts that are out, by the number of their leg."""

    __slots__ = ("race", "row")

    def __init__(self, race: Race) -> None:
        self.race: Final = race
        self.row: Final[dict[int, Attempt]] = {}


@final
class _Leg(msgspec.Struct, eq=False):
    """The ticket of one attempt: which leg of which call it is."""

    run: _Run
    number: int


@final
class HedgedSite(CallSite):
    """One call of one caller, whose attempts may have others beside them."""

    __slots__ = ("_late",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._late: list[tuple[_Run, Any]] = []  # hedges due while its caller is frozen
        super().__init__(*args, **kwargs)
        self.limit_attempts(self.pipeline.attempts)

    def begin(self, now: Instant, frame: Any) -> None:
        """Make the call for `frame`; its owner hears of the end by `call_done`."""
        self._begun.count += 1
        inherited = None if frame.deadline >= NEVER else frame.deadline
        run = _Run(Race(self.pipeline, inherited, frame.depth))
        self._perform(now, run.race.start(now), run, frame)

    def delay(self, latency: Duration) -> None:
        """Add so much to the way there. No answer takes the short way: others may be out."""
        super().delay(latency)
        self._direct = False

    def limit_attempts(self, attempts: int) -> None:
        """Allow so many attempts, from the next decision on, each with others beside it."""
        super().limit_attempts(attempts)
        hedge = self.pipeline.hedge
        assert hedge is not None
        self.attempts_most = max(self.attempts_most, attempts * (1 + hedge.max))

    def unpause(self, now: Instant) -> None:
        """The caller has thawed: it hears of what has failed, and then of what is still slow."""
        super().unpause(now)
        late, self._late = self._late, []
        for waiting in late:
            self._hedge(now, waiting)

    def _perform(self, now: Instant, step: int, run: Any, frame: Any) -> None:
        execution = run.race.execution
        if step is ATTEMPT:
            self._send_leg(now, run, frame)
        elif step is WAIT:
            self._loop.at(execution.until, self._wake, (run, frame))
        elif step is LISTEN:
            return
        elif execution.rejection is not None:
            self._reject(now, frame, execution.rejection)
        else:
            frame.owner.call_done(now, frame, self.optional, False)

    def _send_leg(self, now: Instant, run: _Run, frame: Any) -> None:
        race = run.race
        timeout = NEVER if race.timeout is None else race.timeout
        depth = frame.depth + race.sent - 1
        leg = _Leg(run, race.sent)
        attempt = Attempt(self, frame, now, min(NEVER, now + timeout), depth, leg)
        if self._carries:
            attempt.effect = frame.effect  # of its own it has none, else it would not be hedged
            known = race.out == 1 and race.execution.outcome is not TIMEOUT
            self.tally.repeated += attempt.effect and race.sent > 1 and not known
        run.row[race.sent] = attempt
        if self._lane is not None and timeout == self._timeout:
            self._lane.add(attempt)
        elif timeout != NEVER:
            self._loop.at(attempt.leaves_at, self._timed_out, attempt)
        if race.hedge_at is not None:
            self._loop.at(race.hedge_at, self._hedge, (run, frame))
        self._send(now, attempt)

    def _hedge(self, now: Instant, waiting: tuple[Any, Any]) -> None:
        """It may be time for another leg, unless the call has gone on meanwhile."""
        run, frame = waiting
        race = run.race
        if race.hedge_at is None or now < race.hedge_at:
            return
        if self._paused is not None:
            self._late.append((run, frame))
        else:
            self._perform(now, race.hedge(now), run, frame)

    def _wake(self, now: Instant, waiting: tuple[Any, Any]) -> None:
        run, frame = waiting
        if self._paused is not None:
            self._paused.append((frame, run, None))
        elif frame.called_off:
            run.race.cancel(now)
        else:
            self._perform(now, run.race.wake(now), run, frame)

    def _failed(self, now: Instant, frame: Any, ticket: Any, outcome: Outcome) -> None:
        if self._paused is not None:
            self._paused.append((frame, ticket, outcome))
        elif ticket.number in ticket.run.row:
            self._perform(now, self._end(now, ticket, outcome), ticket.run, frame)

    def _settle(self, now: Instant, ticket: Any, outcome: Outcome) -> None:
        if type(ticket) is _Leg and ticket.number in ticket.run.row:
            self._end(now, ticket, outcome)

    def _end(self, now: Instant, leg: _Leg, outcome: Outcome) -> int:
        """A leg has ended. If that decides the call, the others are called off."""
        run = leg.run
        del run.row[leg.number]
        step = run.race.settle(now, leg.number, outcome)
        if step is not LISTEN:
            others = list(run.row.values())
            run.row.clear()
            for other in others:
                # Without a frame it has ended, for a caller who is frozen and has not heard of it.
                if other.frame is not None:
                    if other.frame.children is not None:
                        other.frame.children.pop(other, None)
                    self.abandon(now, other)
        return step
