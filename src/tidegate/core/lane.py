"""Where can a lane of a spool stand?

The words of `core/replay.py`, for whoever has to know the states and not how they change.
"""

from enum import StrEnum
from typing import Final, NamedTuple

from tidegate.units import Duration, Instant

__all__ = [
    "CRUISE",
    "DIRECT",
    "HOLD",
    "RAMP",
    "SPILL",
    "TRANSITIONS",
    "WAIT",
    "LaneState",
    "ReplaySnapshot",
]


class LaneState(StrEnum):
    """Where a lane stands."""

    DIRECT = "direct"  # nothing waits but what has just come in
    SPILL = "spill"  # the sink is sick: records stay on disk, and a few try it now and then
    WAIT = "wait"  # live records flow, a backlog waits for the gate, its turn or a budget
    RAMP = "ramp"  # the backlog leaves, faster and faster
    CRUISE = "cruise"  # the backlog leaves at what the sink was found to bear
    HOLD = "hold"  # nothing leaves, until a person frees it


DIRECT: Final = LaneState.DIRECT
SPILL: Final = LaneState.SPILL
WAIT: Final = LaneState.WAIT
RAMP: Final = LaneState.RAMP
CRUISE: Final = LaneState.CRUISE
HOLD: Final = LaneState.HOLD

TRANSITIONS: Final = {
    DIRECT: {SPILL, WAIT, HOLD},
    SPILL: {DIRECT, WAIT, HOLD},
    WAIT: {DIRECT, SPILL, RAMP, HOLD},
    RAMP: {DIRECT, SPILL, WAIT, CRUISE, HOLD},
    CRUISE: {DIRECT, SPILL, WAIT, RAMP, HOLD},
    HOLD: {SPILL},  # freed, it must prove itself as after any pause
}
"""Every change of state that a lane makes, as the diagram in the docs has them."""


class ReplaySnapshot(NamedTuple):
    """Where a lane stands since when, and why; its gate, budget, share, lease and latencies.

    Rates are bytes a second; `budget` is the fleet's and None when none is in force. `live` is
    what comes in. `turns` says in words what is held or waited for.
    """

    state: LaneState
    why: str
    since: Instant
    gate: str
    budget: float | None
    share: float
    lease: int | None
    turns: str
    live: float
    latency: Duration | None
    baseline: Duration | None
    backlog: int
