"""Where can a circuit stand, and what does a breaker tell of itself?

The words of `core/circuit_breaker.py`, for whoever has to know the states and not how they change.
"""

from enum import StrEnum
from typing import Final, NamedTuple

from tidegate.units import Instant

__all__ = [
    "CLOSED",
    "HALF_OPEN",
    "HELD",
    "OPEN",
    "RAMPING",
    "TRANSITIONS",
    "CircuitBreakerSnapshot",
    "CircuitBreakerTotals",
    "State",
]


class State(StrEnum):
    """Where the breaker stands."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"
    RAMPING = "ramping"
    HELD = "held"


CLOSED: Final = State.CLOSED
OPEN: Final = State.OPEN
HALF_OPEN: Final = State.HALF_OPEN
RAMPING: Final = State.RAMPING
HELD: Final = State.HELD

TRANSITIONS: Final = {
    CLOSED: {OPEN, HELD},
    OPEN: {HALF_OPEN, HELD},
    HALF_OPEN: {OPEN, RAMPING, CLOSED, HELD},  # straight to closed if there is no ramp
    RAMPING: {CLOSED, OPEN, HELD},
    HELD: {HALF_OPEN},  # freed, it must prove itself as after any pause
}
"""Every change of state that a breaker makes by itself, as the diagram in the docs has them; a
copy that has missed some of them goes at once to where the others are."""


class CircuitBreakerSnapshot(NamedTuple):
    """`failed` of `calls` in the window; the last transition's reason; probes out and succeeded.

    `until` is when time alone will change the state (None: it will not). `transitions_lost` counts
    those that nobody drained in time.
    """

    state: State
    reason: str
    generation: int
    calls: int
    failed: int
    probes_out: int
    probes_ok: int
    until: Instant | None
    transitions_lost: int


class CircuitBreakerTotals(NamedTuple):
    """What a breaker tells its copies in other processes, all of one generation.

    `due` is when time alone changes the state (0: it will not), `lease` when the first of
    `probes_out` is lost (0: none is out). `calls` and `failed` are of the window.
    """

    generation: int
    state: State
    due: Instant
    calls: int
    failed: int
    probes_out: int
    probes_ok: int
    lease: Instant
