"""The vocabulary that every policy shares: how an attempt ended, and why one was not allowed.

An `Outcome` has five members and no more. `Rejection` values are built once, here, because saying
no is the hot path of a storm; they carry a reason and nothing of the call.
"""

from enum import IntEnum, unique
from typing import Final, NamedTuple, final

import msgspec

from tidegate.units import Duration, Instant

__all__ = [
    "FAILURE",
    "IGNORED",
    "OVERLOADED",
    "SETTLED",
    "SUCCESS",
    "TIMEOUT",
    "Outcome",
    "Permit",
    "Reason",
    "Rejection",
    "Transition",
]


class Outcome(IntEnum):
    """How one attempt ended, as its caller saw it."""

    SUCCESS = 0
    FAILURE = 1  # an error
    TIMEOUT = 2  # nothing in time
    OVERLOADED = 3  # the far side shed it: 429, 503, full queue
    IGNORED = 4  # cancelled by the user: says nothing about the far side


# Bound once: reading a member through its class costs three times as much (CPython 3.11).
SUCCESS: Final = Outcome.SUCCESS
FAILURE: Final = Outcome.FAILURE
TIMEOUT: Final = Outcome.TIMEOUT
OVERLOADED: Final = Outcome.OVERLOADED
IGNORED: Final = Outcome.IGNORED


@unique
class Reason(IntEnum):
    """Why something was not allowed to start."""

    CIRCUIT_OPEN = 0
    CIRCUIT_PROBING = 1  # half-open, and all probes are out
    CIRCUIT_RAMPING = 2  # closed again, but not yet for everybody
    HELD = 3  # held open by a person
    LIMIT = 4  # too many in flight
    RATE = 5  # too many per second
    BUDGET = 6  # no retry token left
    DEADLINE = 7  # too late to start
    ATTEMPTS = 8  # all attempts are used
    NOT_RETRYABLE = 9  # this outcome, or this call, is not to be repeated
    SHED = 10  # the last places are kept for what matters more
    WAITED = 11  # stood too long in a queue that stands
    CLIENT = 12  # this client has its share already
    RETRY_AFTER = 13  # the far side asks for a longer wait than anybody here has patience for
    THROTTLED = 14  # of late the far side has refused too much of what it was sent


@final
class Rejection:
    """A prebuilt no. One object per reason exists; compare it by identity or by its reason."""

    __slots__ = ("reason",)

    def __init__(self, reason: Reason) -> None:
        self.reason: Final = reason

    def __repr__(self) -> str:
        return f"Rejection({self.reason.name})"


REJECTIONS: Final = tuple(Rejection(reason) for reason in Reason)


@final
class Permit(msgspec.Struct, eq=False):
    """Leave to make one attempt, to be settled once with its outcome.

    `generation` is the policy's era in which it was given: a result that comes back in a later
    era says nothing about the present one. `lease` is the instant from which a permit that has
    not been settled counts as lost (0: never). `took` is how long the answer took where that is
    not from start to settlement (0: it is): a stream's consumer sets the pace after its first item.
    `holder` is the shell's own: who waits for it.
    """

    start: Instant
    generation: int = 0
    lease: Instant = 0
    took: Duration = 0
    settled: bool = False
    holder: object = None

    def __repr__(self) -> str:
        return f"Permit(start={self.start}, generation={self.generation}, lease={self.lease})"


SETTLED: Final = Permit(0, settled=True)
"""For a shell whose attempt needs no permit any more, since its end is told."""


class Transition(NamedTuple):
    """A change of state: what the shell tells its listeners, outside its lock, in order."""

    at: Instant
    policy: str
    before: str
    after: str
    reason: str
