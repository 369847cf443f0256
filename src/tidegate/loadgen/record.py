"""What happened to each request, counted by the second in which it was meant to start?

Latency counts from the *intended* start: a request that a busy generator sent a second late has
kept its user waiting for that second too (Tene's coordinated omission). And a generator says of
itself whether it kept up. Starts later than a tenth of what a client waits, or not sent at all
because too many are out, are counted; with more than one in fifty of them the run measured the
generator, and `saturated` is true.
"""

from math import ceil
from typing import Final

import msgspec

from tidegate.units import MILLISECOND, SECOND, Duration, format_duration

__all__ = ["Record", "blank", "merged"]

_LATE_PART: Final = 10  # a tenth of the client's patience decides no request
_LATE_MIN: Final = 5 * MILLISECOND  # below it an event loop is late by its own nature
_SATURATED: Final = 0.02  # what so few do moves no figure by more than itself


class Record(msgspec.Struct, kw_only=True):
    """One run of one generator. Times are nanoseconds from the run's beginning.

    By the second of the intended start: `offered`, `good` (answered well within `patience`),
    `eventual` (answered well at all). By the second of the event: `attempts`, `retries`.
    `rejected` were refused on this side and never sent. `latencies` are those of good answers.
    """

    patience: Duration
    offered: list[int]
    good: list[int]
    eventual: list[int]
    attempts: list[int]
    retries: list[int]
    latencies: list[Duration] = []
    outcomes: dict[str, int] = {}
    rejected: int = 0
    unfinished: int = 0
    missed: int = 0
    late: int = 0
    latest: Duration = 0

    @property
    def late_after(self) -> Duration:
        """So long after its intended start a start counts as late."""
        return max(_LATE_MIN, self.patience // _LATE_PART)

    @property
    def requests(self) -> int:
        """All that should have started."""
        return sum(self.offered)

    @property
    def saturated(self) -> bool:
        """Whether the generator fell behind, so that the figures are its own."""
        return self.late + self.missed > _SATURATED * self.requests

    @property
    def says(self) -> str:
        """How well the generator kept to its plan, in a sentence."""
        told = (
            f"{self.late:,} of {self.requests:,} starts were more than"
            f" {format_duration(self.late_after)} late (the latest {format_duration(self.latest)})"
            f" and {self.missed:,} were missed"
        )
        return f"the generator was saturated: {told}" if self.saturated else told

    def on_start(self, at: Duration, now: Duration) -> None:
        """A request that was meant to start at `at` starts now."""
        self.offered[_second(self.offered, at)] += 1
        behind = now - at
        self.late += behind > self.late_after
        self.latest = max(self.latest, behind)

    def on_missed(self, at: Duration) -> None:
        """A request was not sent at all, for want of room; it counts as offered and as failed."""
        self.offered[_second(self.offered, at)] += 1
        self.missed += 1

    def on_attempt(self, now: Duration, *, retry: bool) -> None:
        """One attempt leaves."""
        second = _second(self.attempts, now)
        self.attempts[second] += 1
        self.retries[second] += retry

    def on_outcome(self, name: str) -> None:
        """One attempt has ended, as its caller saw it."""
        self.outcomes[name] = self.outcomes.get(name, 0) + 1

    def on_answer(self, at: Duration, now: Duration) -> None:
        """The request that was meant to start at `at` has been answered well."""
        second = _second(self.eventual, at)
        self.eventual[second] += 1
        if now - at <= self.patience:
            self.good[second] += 1
            self.latencies.append(now - at)

    def latency(self, part: float) -> Duration | None:
        """The latency that `part` of the good answers did not exceed; None without any."""
        if not self.latencies:
            return None
        ranked = sorted(self.latencies)
        return ranked[max(0, ceil(part * len(ranked)) - 1)]


def blank(lasts: Duration, patience: Duration) -> Record:
    """An empty record of a run whose last start is before `lasts`.

    What ends after the last second of the bins counts there.
    """
    seconds = -(-(lasts + patience) // SECOND) + 1
    bins = [[0] * seconds for _ in range(5)]
    return Record(
        patience=patience,
        offered=bins[0],
        good=bins[1],
        eventual=bins[2],
        attempts=bins[3],
        retries=bins[4],
    )


def merged(records: list[Record]) -> Record:
    """What several generators that shared one plan have seen together."""
    whole = blank(len(records[0].offered) * SECOND, 0)
    for name in ("offered", "good", "eventual", "attempts", "retries"):
        rows = [getattr(record, name) for record in records]
        setattr(whole, name, [sum(column) for column in zip(*rows, strict=True)])
    whole.patience = records[0].patience
    for record in records:
        whole.latencies += record.latencies
        for outcome, count in record.outcomes.items():
            whole.outcomes[outcome] = whole.outcomes.get(outcome, 0) + count
        for name in ("rejected", "unfinished", "missed", "late"):
            setattr(whole, name, getattr(whole, name) + getattr(record, name))
    whole.latest = max(record.latest for record in records)
    return whole


def _second(bins: list[int], at: Duration) -> int:
    return min(len(bins) - 1, max(0, at) // SECOND)
