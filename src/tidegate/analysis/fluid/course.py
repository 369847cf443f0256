"""Did it come back? What a run of the fluid showed, and the verdict on it.

The words and the lengths are those of `analysis.outcome`, which judges simulated runs; here there
is no luck to allow for.
"""

import math
from typing import Final

import msgspec

from tidegate.analysis.outcome import worst
from tidegate.findings import Outcome

__all__ = ["RUNNING", "Course", "Drain", "drained_after", "judge", "recovered_at"]

RUNNING: Final = 30
"""Seconds in a row at the objective, for a client to count as recovered."""

_WINDOW: Final = 5  # seconds over which a swing is seen
_CROSSINGS: Final = 6  # three times down and up again
_FALLING: Final = 5e-4  # of the backlog, from one third of the last minute to the next
_WHOLE: Final = 1 - 1e-6  # of the objective: sums of a thousand steps are exact to that


class Drain(msgspec.Struct, frozen=True):
    """One service's queue: its length by the second, and the length at which it answers in time."""

    waiting: list[float]
    in_time: float


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """One run, by the second: requests by that of their arrival, attempts by that of sending.

    `start` and `end` are the trigger's; the last `lag` seconds are too young to judge. `dt` is the
    step; `coarse` says that it is longer than a tenth of the shortest timeout. Everything in
    `..._after` counts from the trigger's end.
    """

    outcome: Outcome
    by_client: dict[str, Outcome]
    recovered_after: dict[str, float | None]
    finishes_after: float | None
    start: float
    end: float
    lag: float
    dt: float
    coarse: bool
    offered: dict[str, list[float]]
    good: dict[str, list[float]]
    attempts: dict[str, list[float]]
    arrived: dict[str, list[float]]
    backlog: list[float]

    def goodput(self, client: str, start: float, end: float) -> float:
        """The share of the requests between two instants that was served in time."""
        first, last = int(start), math.ceil(end)
        offered = math.fsum(self.offered[client][first:last])
        return math.fsum(self.good[client][first:last]) / offered if offered else 1.0

    @property
    def harm(self) -> float:
        """Requests that came while the trigger lasted and were not served in time."""
        first, last = int(self.start), math.ceil(self.end)
        return math.fsum(
            math.fsum(self.offered[name][first:last]) - math.fsum(self.good[name][first:last])
            for name in self.offered
        )

    def amplification(self, service: str) -> float:
        """Attempts at `service` per second while the trigger lasts, over those before it."""
        arrived = self.arrived[service]
        first, last = max(1, int(self.start)), math.ceil(self.end)
        before = math.fsum(arrived[first // 2 : first]) / (first - first // 2)
        during = math.fsum(arrived[first:last]) / max(1, len(arrived[first:last]))
        return during / before if before > 0 else 1.0


def judge(
    offered: dict[str, list[float]],
    good: dict[str, list[float]],
    drains: dict[str, Drain],
    *,
    start: float,
    end: float,
    lag: float,
    objective: float,
) -> tuple[dict[str, Outcome], dict[str, float | None], float | None]:
    """The outcome of each client, when it was back, and when the last queue will have drained."""
    first, seconds = math.ceil(end), len(next(iter(drains.values())).waiting)
    known = max(first, seconds - math.ceil(lag))
    by_client: dict[str, Outcome] = {}
    after: dict[str, float | None] = {}
    finish = drained_after(drains)
    for name, made in offered.items():
        well = [
            done >= objective * _WHOLE * asked for done, asked in zip(good[name], made, strict=True)
        ]
        back = recovered_at(well, first)
        after[name] = None if back is None else float(back - first)
        if back is not None:
            during = well[int(start) : first]
            harmed = len(during) - sum(during) > max(1, len(during) // 20)
            by_client[name] = "recovers" if harmed or back > first else "unharmed"
        elif finish is not None:
            by_client[name] = "slow to drain"
        else:
            by_client[name] = "oscillates" if _swings(well, first, known) else "sticks"
    if worst(list(by_client.values())) != "slow to drain":
        return by_client, after, None
    return by_client, after, None if finish is None else seconds - end + finish


def recovered_at(well: list[bool], first: int) -> int | None:
    """The first second of 30 good ones in a row.

    Even the youngest may count: what is good stays so, and what is not yet breaks the row.
    """
    run = 0
    for second in range(first, len(well)):
        run = run + 1 if well[second] else 0
        if run == RUNNING:
            return second - run + 1
    return None


def drained_after(drains: dict[str, Drain]) -> float | None:
    """When the last queue answers in time again, counted from now; None if one does not fall.

    By the drain law: what is too long over the speed at which it gets shorter.
    """
    seconds = len(next(iter(drains.values())).waiting)
    third = max(1, min(20, seconds // 6))
    longest = 0.0
    falls = False
    for drain in drains.values():
        early, middle, late = (
            math.fsum(drain.waiting[seconds - third * n : seconds - third * (n - 1)]) / third
            for n in (3, 2, 1)
        )
        if late <= drain.in_time:
            continue
        if not (late < middle * (1 - _FALLING) and middle < early * (1 - _FALLING)):
            return None
        falls = True
        speed = (early - late) / (2 * third)
        longest = max(longest, (drain.waiting[-1] - drain.in_time) / speed)
    return longest if falls else None


def _swings(well: list[bool], first: int, known: int) -> bool:
    windows = [all(well[s : s + _WINDOW]) for s in range(first, known - _WINDOW + 1, _WINDOW)]
    return sum(a != b for a, b in zip([False, *windows], windows, strict=False)) >= _CROSSINGS
