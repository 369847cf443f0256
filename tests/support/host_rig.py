"""A host of several processes in one: each has its pipeline, its row and its lane.

Their owners differ by namespace, so that none is taken for another, and the clock is a number.
"""

from collections.abc import Iterator
from pathlib import Path
from random import Random

from tidegate.core.outcome import Outcome, Permit
from tidegate.core.pipeline import Pipeline
from tidegate.runtime.shared.lane import Lane
from tidegate.runtime.shared.owner import Owner, this_process
from tidegate.runtime.shared.table import Table
from tidegate.settings.system import Call

NAME = "licences"


class Process:
    """One process of the host, with a guard of one dependency."""

    def __init__(
        self,
        directory: Path,
        settings: Call,
        now: int,
        number: int,
        owner: Owner | None = None,
    ) -> None:
        self.rng = Random(number)
        self.pipeline = Pipeline(settings, self.rng)
        owner = owner or this_process()._replace(namespace=number)
        self.table = Table.open(directory, NAME)
        self.lane = Lane(self.table, self.pipelines, now, who=lambda: owner)

    def pipelines(self) -> Iterator[Pipeline]:
        yield self.pipeline

    def request(self, now: int, outcome: Outcome, times: int = 1) -> int:
        """So many first attempts, one after another; how many were let in."""
        return sum(self.one(now, outcome) for _ in range(times))

    def one(self, now: int, outcome: Outcome) -> bool:
        if now >= self.lane.look_at:
            self.lane.look(now)
        permit = self.pipeline.admit(now, 0)
        if not isinstance(permit, Permit):
            return False
        self.pipeline.settle(now, permit, outcome)
        if self.pipeline.drain_transitions():
            self.lane.look(now)
        return True

    def retries(self, now: int, times: int = 1) -> int:
        """So many retries asked for; how many were granted."""
        budget = self.pipeline.budget
        assert budget is not None
        return sum(budget.try_retry(now) for _ in range(times))

    def owner(self) -> Owner | None:
        return self.table.owner(self.lane._row.index)


def host(directory: Path, settings: Call, size: int, now: int = 0) -> list[Process]:
    """So many processes of one host."""
    return [Process(directory, settings, now, number + 1) for number in range(size)]
