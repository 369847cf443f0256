"""How high does a fleet's replay rise, whom does it hurt, and when is it done?

A run begins when the sink is back and the fleet has a backlog; it goes on until the backlog is
gone, and for an hour at least, since what harms live records is asked of that hour. Whoever sends
too much can keep the sink down for as long as one looks: then it is `never`, after `most_s`.

The measure of every drain is the limit: the first moment at which a sink that is never overloaded
has taken all that was left over beside live records, T: integral of (C(t) - L) dt = B.
"""

from random import Random
from typing import Final, NamedTuple, Protocol

from tidegate.sim.fleet.sink import STEP, STEP_S, Case, Sink
from tidegate.sim.rng import Streams
from tidegate.units import Instant

__all__ = ["HOUR_S", "Fleet", "Ran", "Sent", "limit_s", "run"]

HOUR_S: Final = 3600.0
_SETTLED: Final = round(10 / STEP_S)  # steps: what a sink could take so long ago, all may know
_POINTS: Final = 240
_NOTHING: Final = 0.01  # of the live rate: at that it takes a hundred times as long as the outage


class Sent(NamedTuple):
    """Bytes that a fleet sends in one step; `fresh` of the live ones for the first time."""

    live: float
    replay: float
    fresh: float


class Fleet(Protocol):
    """Many collectors and how they go about it."""

    left: float
    """Bytes that wait."""
    lost: float
    """Bytes of live records that were given up so far."""

    def send(self, now: Instant, sink: Sink) -> Sent:
        """What goes in the step that begins now; the sink may be looked at, not changed."""
        ...

    def on_sent(self, now: Instant, sent: Sent, sink: Sink) -> None:
        """The sink has what it was sent: `failed` says what became of it."""
        ...


class Ran(NamedTuple):
    """What came of it. Rates are multiples of live, times in seconds, shares parts of one.

    `peak` is the most that was sent in a second; `peak_of_capacity` the same divided by what the
    sink could take within the ten seconds before, as nobody can know of a loss at once. `lost` and
    `late` (not taken at the first try) are of the live records of the first hour. `p99_s` is of
    live records over the whole run. `overload_s`: more was sent than 1.05 x capacity. `resent` is
    what was replayed in vain, as a share of the backlog. `drained_s` is None if it never was.
    `cruise` is how fast the backlog went from its half to its last tenth; of one that was not gone,
    in the second half of the run, and None if that was next to nothing. `left_s` is what was left.
    The curve has the most that was sent and the least that could be taken from each second on.
    """

    peak: float
    peak_of_capacity: float
    lost: float
    late: float
    drained_s: float | None
    limit_s: float | None
    p99_s: float
    overload_s: float
    resent: float
    cruise: float | None = None
    left_s: float = 0.0
    seconds: tuple[float, ...] = ()
    sent: tuple[float, ...] = ()
    capacity: tuple[float, ...] = ()

    @property
    def of_limit(self) -> float | None:
        """How many times the least possible time the drain took."""
        if self.drained_s is None or not self.limit_s:
            return None
        return self.drained_s / self.limit_s


def limit_s(case: Case, most_s: float) -> float | None:
    """When the backlog could be gone at the earliest; None if not within `most_s`."""
    sink = Sink(case, Random(0))
    left, step = case.backlog, 0
    while left > 0:
        if step * STEP_S >= most_s:
            return None
        sink.step(min(case.live, 0.9 * sink.capacity) * STEP_S)  # whoever could, would let it heal
        left -= max(0.0, sink.capacity - case.live) * STEP_S
        step += 1
    return step * STEP_S


def run(case: Case, fleet: Fleet, *, seed: int, most_s: float, watched_s: float = HOUR_S) -> Ran:
    """Let the fleet of a case run until its backlog is gone, or for `most_s`.

    `watched_s` stands for the hour of which the live records are counted.
    """
    sink = Sink(case, Streams(seed).stream("sink"))
    hour = round(watched_s / STEP_S)
    tally = _Tally(case, hour)
    step, drained = 0, None
    steps = round(most_s / STEP_S)
    while step < steps and (drained is None or step < hour):
        now = step * STEP
        sent = fleet.send(now, sink)
        sink.step(sent.live + sent.replay)
        fleet.on_sent(now, sent, sink)
        tally.add(sent, sink, fleet.left)
        step += 1
        if step <= hour:
            tally.lost = fleet.lost
        if drained is None and fleet.left < case.record:
            drained = step * STEP_S
    return tally.ran(drained, limit_s(case, most_s))


class _Tally:
    """What is counted while it runs."""

    def __init__(self, case: Case, hour: int) -> None:
        self.case: Final = case
        self._hour: Final = hour  # in steps
        self.lost = 0.0  # within the first hour
        self._steps = self._over = 0
        self._half = self._tenth = 0  # the last steps with more than that left
        self._late = self._fresh = 0.0
        self._vain = 0.0
        self._peak = self._peak_of_capacity = 0.0
        self._left: list[float] = []
        self._sent: list[float] = []
        self._capacity: list[float] = []
        self._latency: list[float] = []

    def add(self, sent: Sent, sink: Sink, left: float) -> None:
        self._left.append(left)
        if left > self.case.backlog / 2:
            self._half = self._steps
        if left > self.case.backlog / 10:
            self._tenth = self._steps
        offered = (sent.live + sent.replay) / STEP_S
        self._sent.append(offered)
        self._capacity.append(sink.capacity)
        self._latency.append(sink.latency_s)
        self._over += offered > 1.05 * sink.capacity
        self._vain += sent.replay * sink.failed
        if self._steps < self._hour:
            self._fresh += self.case.live * STEP_S
            # What was kept back (a breaker was open) is late too.
            self._late += self.case.live * STEP_S - sent.fresh * (1 - sink.failed)
        self._steps += 1

    def ran(self, drained: float | None, limit: float | None) -> Ran:
        live = self.case.live
        second = round(1 / STEP_S)
        sums = [sum(self._sent[i : i + second]) / second for i in range(0, self._steps, second)]
        lowest = [
            max(self._capacity[max(0, i - _SETTLED) : i + second])
            for i in range(0, self._steps, second)
        ]
        every = max(1, len(sums) // _POINTS)
        latency = sorted(self._latency)
        return Ran(
            peak=max(sums) / live,
            peak_of_capacity=max(s / c for s, c in zip(sums, lowest, strict=True)),
            lost=self.lost / self._fresh,
            late=max(0.0, self._late / self._fresh),
            drained_s=drained,
            limit_s=limit,
            p99_s=latency[int(0.99 * (len(latency) - 1))],
            overload_s=self._over * STEP_S,
            resent=self._vain / self.case.backlog if self.case.backlog else 0.0,
            cruise=self._cruise(drained),
            left_s=self._left[-1] / live,
            seconds=tuple(float(i) for i in range(0, len(sums), every)),
            sent=tuple(max(sums[i : i + every]) / live for i in range(0, len(sums), every)),
            capacity=tuple(
                min(self._capacity[i * second : (i + every) * second]) / live
                for i in range(0, len(sums), every)
            ),
        )

    def _cruise(self, drained: float | None) -> float | None:
        """In multiples of the live rate."""
        first, last, gone = self._half, self._tenth, 0.4 * self.case.backlog
        if drained is None:
            first, last = self._steps // 2, self._steps - 1
            gone = self._left[first] - self._left[last]
        if last <= first:
            return None
        rate = gone / self.case.live / ((last - first) * STEP_S)
        return rate if rate >= _NOTHING else None
