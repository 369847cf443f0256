"""What travels through a simulated system?

An `Attempt` is one try of one call: the callee's queue holds it, the caller's timer watches it. A
`Frame` is one request being handled by its owner: how far it is through its calls. An attempt whose
`frame` is None is one that nobody waits for any more.
"""

from typing import Any, Final, Protocol, final

from tidegate.core.execution import Execution
from tidegate.core.outcome import Permit
from tidegate.units import Instant

__all__ = ["NEVER", "Attempt", "Frame", "Owner", "Request"]

NEVER: Final = 1 << 62  # an instant after every other: 146 years


class Owner(Protocol):
    """Who handles a frame: a client or a replica of a service."""

    def call_done(self, now: Instant, frame: Any, optional: bool, ok: bool) -> None:
        """One of the frame's calls is over, retries included."""
        ...


@final
class Attempt:
    """One try of one call. Kept small: a storm holds millions of them in its queues.

    `replica` and `work` are the callee's side of it; only a callee that cancels what is abandoned
    sets them.
    """

    __slots__ = (
        "depth",
        "execution",
        "frame",
        "leaves_at",
        "permit",
        "replica",
        "sent",
        "site",
        "work",
    )

    def __init__(
        self,
        site: Any,
        frame: Any,
        sent: Instant,
        leaves_at: Instant,
        depth: int,
        permit: Permit | None,
        execution: Execution | None,
    ) -> None:
        self.replica: Any
        self.work: Any
        self.site = site
        self.frame = frame
        self.sent = sent
        self.leaves_at = leaves_at
        self.depth = depth
        self.permit = permit
        self.execution = execution

    def forget(self) -> None:
        """Nobody waits for it any more: keep only what its queue needs (144 bytes with its int)."""
        self.frame = None
        self.permit = None
        self.execution = None
        self.leaves_at = 0


@final
class Request:
    """A client's request that consists of one call: a `Frame` without the book-keeping.

    Most requests of most models are such; the general frame costs 0.3 us more.
    """

    __slots__ = ("born", "owner")

    depth = 0
    deadline = NEVER
    children = None
    done = False

    def __init__(self, owner: Owner, born: Instant) -> None:
        self.owner = owner
        self.born = born


@final
class Frame:
    """A request in the hands of a client or a replica, between its calls."""

    __slots__ = (
        "attempt",
        "born",
        "children",
        "deadline",
        "degraded",
        "depth",
        "done",
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
        self.degraded = False
        self.children: set[Attempt] | None = None
