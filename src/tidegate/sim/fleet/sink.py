"""What does a replicated sink do with what a fleet sends it, second by second?

A stress model in steps of `STEP`, not a copy of any product. It has one line for all:

- The line holds two seconds of capacity; what does not fit is refused. A record that waits longer
  than `PATIENCE_S` is answered to nobody: its work is wasted. Partitions are unlike, so the waits
  of one moment are spread evenly from half to one and a half times their mean.
- An answer takes base / (1 - rho) and the wait: the mean response time of M/M/1, cut at a hundred
  times the base, since no queue gets there in a moment.
- `health` is how far the replicas are in step, from 0 to 1, and capacity goes with it, down to
  `collapsed` of what it is in health. It falls within `FALLS_IN_S` while more is asked than
  1.05 x capacity, and comes back within `HEALS_IN_S`, and only with head-room. A broker that is
  lost takes its share of the capacity with it.

What is seen of it is late: latency and errors a second, with noise; the state of the replicas five
seconds, as brokers notice a laggard late (Kafka's `replica.lag.time.max.ms` is 30 s).
"""

from collections import deque
from random import Random
from typing import Final, NamedTuple, final

from tidegate.core.health import Health, Partition, View
from tidegate.units import MILLISECOND, SECOND, Duration

__all__ = ["BASE_S", "PATIENCE_S", "STEP", "STEP_S", "Case", "Seen", "Sink"]

STEP: Final[Duration] = 250 * MILLISECOND
STEP_S: Final = STEP / SECOND
BASE_S: Final = 0.005
PATIENCE_S: Final = 1.5

_LINE_S: Final = 2.0
_BUSIEST: Final = 0.99
_FALLS_IN_S: Final = 120.0
_HEALS_IN_S: Final = 600.0
_OVER: Final = 1.05
_HEAD_ROOM: Final = 0.95
_NOISE: Final = 0.1
_LATE: Final = round(1 / STEP_S)  # steps until latency and errors are seen
_LATE_REPLICAS: Final = round(5 / STEP_S)
_IN_STEP: Final = 0.99  # healthier than this, every replica counts as in step


class Case(NamedTuple):
    """A fleet, its backlog, its sink, and what goes wrong meanwhile.

    `live` is what all collectors together send in bytes a second, `backlog` the bytes that wait on
    their disks, `record` the size of one record. `capacity` is what the sink takes in health and
    `collapsed` the least it comes down to, both in bytes a second. `health` is that of the
    beginning; `lost` from when to when one broker is away, in seconds. All collectors at once
    replay at most `speed` times as fast as live records come; one alone its part of that, unless
    `each` says how many bytes a second: so a few can stand for many.
    """

    live: float
    backlog: float
    capacity: float
    collapsed: float
    collectors: int = 20
    brokers: int = 3
    record: int = 1000
    speed: float = 12.0
    health: float = 1.0
    lost: tuple[float, float] | None = None
    each: float | None = None

    @property
    def one(self) -> float:
        """How many bytes a second one collector can replay."""
        return self.speed * self.live / self.collectors if self.each is None else self.each


class Seen(NamedTuple):
    """What a collector learns of its answers, a second late: shares and seconds."""

    failed: float
    latency_s: float


@final
class Sink:
    """The sink of a case. `step` is told what came in this step and answers what became of it."""

    __slots__ = (
        "_case",
        "_line",
        "_now_s",
        "_past",
        "_replicas",
        "_rng",
        "capacity",
        "failed",
        "health",
        "late",
        "latency_s",
        "refused",
    )

    def __init__(self, case: Case, rng: Random) -> None:
        self._case: Final = case
        self._rng: Final = rng
        self._now_s = 0.0
        self._line = 0.0  # bytes that wait
        self.health = case.health
        self.capacity = self._capacity()
        # Of what came in the last step: the share that was refused, that of the rest which was
        # answered too late, and both together.
        self.refused = self.late = self.failed = 0.0
        self.latency_s = BASE_S
        first = Seen(0.0, BASE_S / (1 - case.live / case.capacity)) if self._has_room else _BUSY
        self._past: Final[deque[Seen]] = deque([first] * _LATE)
        self._replicas: Final[deque[Health]] = deque([self._look()] * _LATE_REPLICAS)

    def step(self, offered: float) -> None:
        """So many bytes come within this step, evenly."""
        capacity = self.capacity = self._capacity()
        room = capacity * STEP_S
        waited = self._line
        line = max(0.0, waited + offered - room)
        over = max(0.0, line - _LINE_S * capacity)
        self._line = line - over
        wait_s = (waited + self._line) / 2 / capacity
        refused = self.refused = min(1.0, over / offered) if offered else 0.0
        late = self.late = min(1.0, max(0.0, 1.5 - PATIENCE_S / wait_s)) if wait_s > 0 else 0.0
        self.failed = refused + (1 - refused) * late
        self.latency_s = BASE_S / (1 - min(offered / room, _BUSIEST)) + wait_s
        self._heal(offered / room)
        self._now_s += STEP_S
        noise = self._rng.gauss(1.0, _NOISE)
        self._past.append(Seen(self.failed, self.latency_s * max(0.1, noise)))
        self._past.popleft()
        self._replicas.append(self._look())
        self._replicas.popleft()

    @property
    def seen(self) -> Seen:
        """What answers show now: those of a second ago."""
        return self._past[0]

    @property
    def replicas(self) -> Health:
        """What the brokers say of each other now: how it was five seconds ago."""
        return self._replicas[0]

    # Private parts.

    @property
    def _has_room(self) -> bool:
        return self._case.live < _BUSIEST * self._case.capacity

    def _brokers(self) -> int:
        lost = self._case.lost
        return self._case.brokers - (lost is not None and lost[0] <= self._now_s < lost[1])

    def _capacity(self) -> float:
        case = self._case
        whole = case.collapsed + (case.capacity - case.collapsed) * self.health
        # What is left of a sink of one broker that is lost takes nothing, as far as one can see.
        return max(1.0, whole * self._brokers() / case.brokers)

    def _heal(self, used: float) -> None:
        if used > _OVER:
            self.health = max(0.0, self.health - STEP_S / _FALLS_IN_S)
        elif used < _HEAD_ROOM:
            self.health = min(1.0, self.health + STEP_S / _HEALS_IN_S)

    def _look(self) -> Health:
        """One view, by one broker: the model has no split brain. Looks alike are one object."""
        brokers = self._brokers()
        if brokers == 0:
            return Health((), ("the broker",))
        whole = brokers == self._case.brokers and self.health >= _IN_STEP
        return _looked(brokers, self._case.brokers, whole)


_BUSY: Final = Seen(0.0, BASE_S / (1 - _BUSIEST))


def _looked(brokers: int, replicas: int, whole: bool) -> Health:
    part = Partition("events", "1", replicas, replicas if whole else replicas - 1)
    return Health((View("1", brokers=brokers, partitions=(part,)),))
