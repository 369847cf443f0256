"""What travels through a simulated system?

An `Attempt` is one try of one call: the callee's queue holds it, the caller's timer watches it. A
`Frame` is one request being handled by its owner: how far it is through its calls. An attempt whose
`frame` is None is one that nobody waits for any more.

What is made by the million is a msgspec record: a third of the price of an `__init__`.
"""

from typing import Any, Final, Protocol, final

import msgspec

from tidegate.units import Instant

__all__ = ["NEVER", "OVER", "Attempt", "Frame", "Owner", "Request"]

NEVER: Final = 1 << 62  # an instant after every other: 146 years


@final
class _Over:
    """The callee's part in an attempt is over, or will never begin."""

    def __repr__(self) -> str:
        return "OVER"


OVER: Final = _Over()


class Owner(Protocol):
    """Who handles a frame: a client or a replica of a service."""

    def call_done(self, now: Instant, frame: Any, optional: bool, ok: bool) -> None:
        """One of the frame's calls is over, retries included."""
        ...


@final
class Attempt(msgspec.Struct, eq=False):
    """One try of one call. Kept small: a storm holds millions of them in its queues.

    Waiting in a queue and given up, it is 176 bytes with its two instants and its place.

    `sent` is when it left, and once it has arrived, when it did. `ticket` is what is to be settled
    at its end: the permit of a first attempt, the execution of a later one, or the leg of a hedged
    call. `depth` is how many retries it is away from a request that is nobody's retry. `replica`
    and `work` are the callee's side of it, which only a callee that cancels what is abandoned
    keeps: the frame while it makes calls, OVER when there is nothing left to cancel. `effect`: it,
    or a call above it, must not be done twice.
    """

    site: Any
    frame: Any
    sent: Instant
    leaves_at: Instant
    depth: int
    ticket: Any
    replica: Any = None
    work: Any = None
    effect: bool = False


@final
class Request(msgspec.Struct, eq=False):
    """A client's request that consists of one call: a `Frame` without the book-keeping.

    All but the first two are the same for each; a field is read in half the time of a constant of
    the class.
    """

    owner: Owner
    born: Instant
    depth: int = 0
    deadline: Instant = NEVER
    children: None = None
    called_off: bool = False
    effect: bool = False


@final
class Frame:
    """A request in the hands of a client or a replica, between its calls.

    `children` are its attempts that are out, kept in their order, and only where they may have to
    be called back. `pending` is how many calls it waits for.
    """

    __slots__ = (
        "attempt",
        "born",
        "children",
        "deadline",
        "degraded",
        "depth",
        "done",
        "effect",
        "index",
        "owner",
        "pending",
        "repeat",
    )

    def __init__(
        self,
        owner: Owner,
        attempt: Attempt | None,
        born: Instant,
        depth: int = 0,
        deadline: Instant = NEVER,
    ) -> None:
        self.owner = owner
        self.attempt = attempt
        self.born = born
        self.depth = depth
        self.deadline = deadline
        self.index = 0
        self.repeat = -1  # how often the present call is still to be made; -1: not yet drawn
        self.pending = 0
        self.done = False
        self.effect = attempt is not None and attempt.effect
        self.degraded = False
        self.children: dict[Attempt, None] | None = None

    @property
    def called_off(self) -> bool:
        """Over, and its calls are to end with it."""
        return self.done and self.children is not None
