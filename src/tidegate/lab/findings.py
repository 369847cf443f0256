"""What can be said of a storm that was raised, and of one that was predicted, in the same words?

These records are the `--json` document of `tidegate lab storm`, version 1. As everywhere, times are
seconds, rates are per second, shares are parts of one.
"""

from typing import Literal

import msgspec

from tidegate.findings import Measure, Timeline

__all__ = ["How", "StormAgreement", "StormReport", "StormRun", "Which"]

Which = Literal["unguarded", "guarded"]
How = Literal["simulated", "measured"]


class StormRun(msgspec.Struct, frozen=True, kw_only=True):
    """One storm, predicted or raised: goodput is in requests answered in time per second.

    `kept` is the goodput while the trigger lasts over what the service could still do, `back_after`
    counts seconds from the trigger's end until 95 % of what is offered is answered in time again
    (None: not before the end of the run). `eventual` counts late answers, too, `attempts` are per
    second while it lasts. `doubt` says why a live run measured the machine and not the storm.
    """

    client: Which
    how: How
    before: Measure
    during: Measure
    kept: Measure
    eventual: Measure
    after: Measure
    attempts: Measure
    back_after: Measure | None
    timeline: Timeline
    doubt: str = ""


class StormAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """What the simulator said of a whole run beside what was measured: totals of the same run."""

    client: Which
    what: Literal["goodput", "attempts"]
    simulated: Measure
    measured: Measure
    difference: float


class StormReport(msgspec.Struct, frozen=True, kw_only=True):
    """The whole answer of `tidegate lab storm`.

    `left` is what the service can do per second while the trigger lasts, of `offered`.
    """

    format: Literal["tidegate.storm/1"] = "tidegate.storm/1"
    version: str
    source: str
    says: str
    trigger: str
    offered: float
    left: float
    guard: str
    runs: list[StormRun]
    agreement: list[StormAgreement]
    seeds: list[int]
    repeat: str
    took_s: float
    exit_code: int
