"""What is done with a guarded call that may be asked again while its answer is awaited?

A `HedgedCall` walks one call through a `Race`. It is a `Call` in all but this: several attempts may
be out, and `leg` says which of them has ended. Like a call it knows neither threads nor tasks.
"""

from typing import Final, final

from tidegate.core.execution import ATTEMPT, COMPLETE, LISTEN, Step
from tidegate.core.hedge import Race
from tidegate.core.outcome import IGNORED, SUCCESS, Outcome, Permit
from tidegate.runtime.call import Call
from tidegate.runtime.context import Ambient
from tidegate.runtime.dependency import ALERT
from tidegate.runtime.guard import Guard
from tidegate.units import Duration, Instant

__all__ = ["HedgedCall"]


@final
class HedgedCall(Call):
    """One guarded call whose attempts may have others beside them.

    `leg` is for the shell to set: the number of the attempt of which it is about to tell.
    """

    __slots__ = ("leg", "race")

    def __init__(self, guard: Guard, inherited: Ambient, now: Instant) -> None:
        super().__init__(guard, inherited, now)
        self.race: Final = Race(guard.pipeline, self.execution.deadline, inherited.depth)
        self.machine = self.race
        self.execution = self.race.execution
        self.leg = 0

    def inherits(self) -> Ambient:
        """What the newest attempt hands down: its own end, and how many retries deep it is."""
        race, inherited = self.race, self._inherited
        until = self.execution.deadline
        if race.timeout is not None and race.permit is not None:
            end = race.permit.start + race.timeout
            until = end if until is None else min(until, end)
        depth = inherited.depth + race.sent - 1
        return Ambient(until, inherited.said, depth, inherited.payer or self.guard.payer)

    def hedge(self) -> Step:
        """The time of another attempt has come: may it go out?"""
        dependency, payer = self.dependency, self._inherited.payer
        paid = payer is None or payer is dependency or payer.pay()
        with dependency.lock:
            dependency.take_stock()
            step = self.race.hedge(dependency.now(), paid=paid)
            dependency.retries += step is ATTEMPT
            changes = self.execution.pipeline.drain_transitions()
        if changes:
            dependency.tell(changes)
        return step

    def settle(self, outcome: Outcome, wait: Duration = 0) -> Step:
        """The attempt number `leg` has ended so; `wait` is what the far side asked for."""
        dependency, race = self.dependency, self.race
        others = race.out - 1
        paid = outcome is SUCCESS or others > 0 or self._is_paid(outcome)
        with dependency.lock:
            dependency.take_stock()
            now = dependency.now()
            if outcome is not SUCCESS:
                dependency.outcomes[outcome] += 1
                dependency.alert_until = now + ALERT
            step = race.settle(now, self.leg, outcome, wait, paid=paid)
            if step is not LISTEN:
                dependency.outcomes[IGNORED] += others
            self._count(step)
            changes = self.execution.pipeline.drain_transitions()
        if changes:
            dependency.tell(changes)
        return step

    def stop(self, outcome: Outcome = IGNORED) -> Step:
        """Whoever waited has gone; `outcome` is what that says about each attempt that is out."""
        dependency = self.dependency
        self._no_answer()
        with dependency.lock:
            dependency.take_stock()
            dependency.outcomes[outcome] += self.race.out
            self.race.cancel(dependency.now(), outcome)
            changes = self.execution.pipeline.drain_transitions()
        if changes:
            dependency.tell(changes)
        return COMPLETE

    def leave(self) -> None:
        """Whoever waited has gone, and it is not known yet why: `settle_left` says it later."""
        self._no_answer()
        self.execution.outcome = IGNORED

    def settle_left(self, permit: Permit, outcome: Outcome) -> None:  # noqa: ARG002
        """The attempts of a call that is over already have ended so."""
        self.stop(outcome)

    def _count(self, step: Step) -> None:
        if step is ATTEMPT:
            self.dependency.retries += 1
        elif step is not LISTEN:
            self._count_refused()
