"""What does a fleet do that is led by this project's own controller?

Each collector here has the very `Replay` that a running spool has, with its breaker, gate, pacer
and turn, and they agree in a ledger as they would on a server; nothing of the decision is modelled.
What is modelled is the shell around it: on its beat, each second or so, a collector sends what has
come in, looks at the sink as often as its gate says and runs its errands; and it sends of its
backlog what it is allowed, each quarter of a second. A batch is taken as a whole or not at all, by
luck, and its answer comes when it comes: a refusal at once, a late one as a timeout. A live batch
weighs on the sink evenly until the next beat.

Live records that are not taken, or may not be sent, join the backlog: none is ever given up.
"""

from heapq import heappop, heappush
from typing import Final, NamedTuple, final

from tidegate.core.leases import Leases
from tidegate.core.outcome import Outcome, Permit
from tidegate.core.replay import Replay
from tidegate.settings.spool import Lane
from tidegate.sim.fleet.run import Sent
from tidegate.sim.fleet.sink import PATIENCE_S, STEP_S, Case, Sink
from tidegate.sim.rng import Streams
from tidegate.units import SECOND, Duration, Instant

__all__ = ["Guided"]

_SECOND: Final = round(1 / STEP_S)  # in steps: the beat of a collector, in a fleet up to `_MANY`
_MANY: Final = 50  # so many beats a second tell enough of the sink
_NOISE: Final = 0.1
_WALL: Final = 1_700_000_000 * SECOND  # any: `slots` want a wall clock, and all have the same


class _Batch(NamedTuple):
    collector: "_Collector"
    permit: Permit
    size: int


@final
class _Collector:
    """One of the fleet: what it decides with, and what it has."""

    __slots__ = ("closed_at", "flow", "left", "live", "looks_at", "name", "replay")

    def __init__(self, name: str, replay: Replay, live: float, left: int) -> None:
        self.name: Final = name
        self.replay: Final = replay
        self.live: Final = live  # bytes a second
        self.left = left  # bytes that wait
        self.flow = live * STEP_S  # bytes of live records that it sends in a step
        self.looks_at: Instant = 0
        self.closed_at: Instant | None = None  # when its gate last closed


@final
class Guided:
    """A fleet whose collectors each decide as `lane` says."""

    def __init__(self, case: Case, lane: Lane, seed: int) -> None:
        streams = Streams(seed)
        self._case: Final = case
        self._lane: Final = lane
        self._ledger: Final = Leases()
        self._luck: Final = streams.stream("answers")
        weights = [streams.stream("shares").uniform(0.5, 1.5) for _ in range(case.collectors)]
        self._fleet: Final = [
            _Collector(
                f"c{i}",
                Replay(lane, streams.stream(f"collector {i}"), f"c{i}"),
                case.live / case.collectors,
                round(case.backlog * weight / sum(weights)),
            )
            for i, weight in enumerate(weights)
        ]
        self._beat: Final = _SECOND * max(1, case.collectors // _MANY)
        self._flow = case.live * STEP_S
        self._step = 0
        self._out: Final[list[_Batch]] = []  # sent in this step
        self._answers: Final[list[tuple[Instant, int, _Batch, Outcome]]] = []
        self._numbers = 0
        self._senders: Final[dict[_Collector, None]] = {}  # in order: a set has another each time
        self.left = float(sum(one.left for one in self._fleet))
        self.lost = 0.0
        self.closest: Duration | None = None
        """How soon after its gate had closed any collector replayed; None if none did."""

    def send(self, now: Instant, sink: Sink) -> Sent:
        """Answers that have come are told; then who has its beat acts, and who may replays."""
        self._tell(now)
        for one in self._fleet[self._step % self._beat :: self._beat]:
            self._act(now, one, sink)
        # A lease and a budget live for seconds: who has a backlog does not wait for its beat.
        for one in self._fleet[self._step % _SECOND :: _SECOND]:
            if one.left:
                self._agree(now, one)
        self._step += 1
        replay = sum(self._replay(now, one) for one in self._senders)
        return Sent(self._flow, float(replay), self._flow)

    def on_sent(self, now: Instant, sent: Sent, sink: Sink) -> None:  # noqa: ARG002
        """Each batch of this step has its fate; its collector learns it when the answer comes."""
        for batch in self._out:
            self._numbers += 1
            took = sink.latency_s * max(0.1, self._luck.gauss(1.0, _NOISE))
            outcome = Outcome.SUCCESS
            if self._luck.random() < sink.refused:
                outcome = Outcome.OVERLOADED
            elif self._luck.random() < sink.late:
                outcome, took = Outcome.TIMEOUT, PATIENCE_S
            if outcome is not Outcome.SUCCESS:
                batch.collector.left += batch.size
                self.left += batch.size
            at = now + round(took * SECOND)
            heappush(self._answers, (at, self._numbers, batch, outcome))
        self._out.clear()

    # Private parts.

    def _tell(self, now: Instant) -> None:
        while self._answers and self._answers[0][0] <= now:
            at, _, batch, outcome = heappop(self._answers)
            batch.collector.replay.on_answer(at, batch.permit, outcome)

    def _act(self, now: Instant, one: _Collector, sink: Sink) -> None:
        """A beat of one collector's life."""
        replay = one.replay
        size = round(one.live * self._beat * STEP_S)
        replay.on_live(now, size)
        if now >= one.looks_at:
            one.looks_at = now + self._lane.gate.look
            replay.on_wall(now, now + _WALL)
            replay.on_health(now, sink.replicas)
        replay.on_backlog(now, one.left)
        if not one.left:
            self._agree(now, one)
        permit = replay.try_live(now)
        sends = isinstance(permit, Permit)
        flow = one.live * STEP_S if sends else 0.0
        self._flow += flow - one.flow
        one.flow = flow
        if isinstance(permit, Permit):
            self._out.append(_Batch(one, permit, size))
        else:
            one.left += size
            self.left += size

    def _agree(self, now: Instant, one: _Collector) -> None:
        while (errand := one.replay.errand(now)) is not None:
            one.replay.on_errand(now, errand, self._ledger.run(now, errand, one.name))
        for change in one.replay.drain_transitions():
            if change.policy == "gate" and change.after == "closed":
                one.closed_at = change.at
        # Who has no share is asked again at its next beat.
        if one.left and one.replay.member.share(now):
            self._senders[one] = None
        else:
            self._senders.pop(one, None)

    def _replay(self, now: Instant, one: _Collector) -> int:
        most = int(self._case.one * STEP_S)
        size = min(one.replay.allowance(now), one.left, most)
        if size <= 0:
            return 0
        if one.closed_at is not None:
            since = now - one.closed_at
            self.closest = since if self.closest is None else min(self.closest, since)
        self._out.append(_Batch(one, one.replay.on_sent(now, size), size))
        one.left -= size
        self.left -= size
        one.replay.on_backlog(now, one.left)
        return size
