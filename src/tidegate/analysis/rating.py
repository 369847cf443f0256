"""What would the fluid say, in a fraction of a second, before anything is simulated?

Many questions are asked only to find the few that are worth a simulation: which of a dozen cures,
which draws of the open numbers. They are all put to the fluid.
"""

from typing import NamedTuple

from tidegate.analysis.fluid import Course, simulate_graph
from tidegate.analysis.outcome import SEVERITY
from tidegate.findings import Measure, Outcome
from tidegate.settings.system import System
from tidegate.units import SECOND, Duration

__all__ = ["Case", "Rating", "ends_well", "is_bad", "rate"]


class Case(NamedTuple):
    """A system and the name of one of its triggers."""

    system: System
    trigger: str


class Rating(NamedTuple):
    """The outcome, each client's goodput during the trigger, and how long it lasts after it."""

    outcome: Outcome
    clients: dict[str, float]
    recovered_after: float | None

    @property
    def during(self) -> float:
        """The goodput of the client that fares worst."""
        return min(self.clients.values())

    def during_measure(self) -> Measure:
        """The goodput as a figure of the fluid: no runs, no spread."""
        share = self.during
        return Measure(value=share, low=share, high=share, unit="share", how="fluid")

    def recovery_measure(self) -> Measure | None:
        """The recovery likewise; None if there was none."""
        after = self.recovered_after
        if after is None:
            return None
        return Measure(value=after, low=after, high=after, unit="s", how="fluid")


def rate(case: Case) -> Rating:
    """Ask the fluid."""
    course: Course = simulate_graph(case.system, case.system.triggers[case.trigger])
    after = list(course.recovered_after.values())
    known = [seconds for seconds in after if seconds is not None]
    return Rating(
        outcome=course.outcome,
        clients={
            client: course.goodput(client, course.start, course.end)
            for client in case.system.clients
        },
        recovered_after=max(known, default=0.0) if len(known) == len(after) else None,
    )


def is_bad(outcome: Outcome) -> bool:
    """Whether an outcome is worse than a recovery."""
    return SEVERITY[outcome] >= SEVERITY["slow to drain"]


def ends_well(rating: Rating, within: Duration) -> bool:
    """Whether it recovers, and as soon as the objective asks."""
    return not is_bad(rating.outcome) and (rating.recovered_after or 0.0) <= within / SECOND
