"""How do collectors give a backlog back that are not led by this project's controller?

Each of these is what somebody runs today, or would write first: all at once, after a random wait,
at a fixed rate, a few at a time, each feeling its own way. Any of them may look at the replicas
before it begins (`gate`). They are here to be compared with, in the same sink and with its luck.

Live records go straight to the sink: what fails is tried up to three times more, a second apart,
and then lost; or, with `spill`, a tenth of the fresh load is tried again and the rest joins the
backlog.
"""

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol, final

from tidegate.core.health import flaw
from tidegate.sim.fleet.run import Sent
from tidegate.sim.fleet.sink import BASE_S, STEP_S, Case, Sink
from tidegate.sim.rng import Streams
from tidegate.units import SECOND, Instant

__all__ = ["AllAtOnce", "Crowd", "EachAimd", "Law", "Some", "Static", "WhenWhole"]

_TRIES: Final = 4  # the first and three more
_AGAIN: Final = round(1 / STEP_S)  # steps until the next
_BUDGET: Final = 0.1
_FEW: Final = 0.002  # of the answers: fewer failures are no sign


class Law(Protocol):
    """How fast the fleet as a whole replays now, in bytes a second, while enough is left."""

    def rate(self, now: Instant, sink: Sink, left: float) -> float:
        """Asked once a step."""
        ...


@final
class AllAtOnce:
    """Every collector as fast as it can, after a wait of its own of up to `jitter_s`."""

    def __init__(self, case: Case, seed: int, jitter_s: float = 0.0) -> None:
        rng = Streams(seed).stream("start")
        self._each: Final = case.speed * case.live / case.collectors
        self._starts: Final = sorted(rng.uniform(0, jitter_s) for _ in range(case.collectors))

    def rate(self, now: Instant, sink: Sink, left: float) -> float:  # noqa: ARG002
        """All who have begun."""
        return self._each * sum(start * SECOND <= now for start in self._starts)


class Static(NamedTuple):
    """One fixed rate for the whole fleet."""

    bytes_a_second: float

    def rate(self, now: Instant, sink: Sink, left: float) -> float:  # noqa: ARG002
        """Always the same."""
        return self.bytes_a_second


class Some(NamedTuple):
    """So many collectors at a time, each as fast as it can, the next when one has finished."""

    case: Case
    turns: int = 1

    def rate(self, now: Instant, sink: Sink, left: float) -> float:  # noqa: ARG002
        """Those who have their turn."""
        case = self.case
        waiting = -(-left * case.collectors // case.backlog) if case.backlog else 0
        return min(self.turns, waiting) * case.one


@final
class EachAimd:
    """Each collector by itself: a little more each second, half after an answer that was slow.

    Additive increase and multiplicative decrease (Chiu and Jain 1989) with no word between them:
    each sees the common latency with an error of its own. Slow is above six times what is usual.
    """

    _MORE: Final = 0.005  # of its own live rate, a second
    _SLOW: Final = 6.0
    _PAUSE: Final = 5.0

    def __init__(self, case: Case, seed: int) -> None:
        self._rng: Final = Streams(seed).stream("each")
        self._live: Final = case.live / case.collectors
        self._most: Final = case.speed * case.live / case.collectors
        used = min(0.95, case.live / case.capacity)
        self._slow_s: Final = self._SLOW * BASE_S / (1 - used)
        self._rates: Final = [0.01 * self._live] * case.collectors
        self._cut: Final = [-self._PAUSE] * case.collectors
        self._next: Instant = 0

    def reset(self) -> None:
        """Begin anew: what was right before a pause need not be after it."""
        self._rates[:] = [0.01 * self._live] * len(self._rates)

    def rate(self, now: Instant, sink: Sink, left: float) -> float:  # noqa: ARG002
        """Once a second each of them thinks again."""
        if now >= self._next:
            self._next = now + SECOND
            self._think(now / SECOND, sink.seen.latency_s, sink.seen.failed)
        return sum(self._rates)

    def _think(self, now_s: float, latency_s: float, failed: float) -> None:
        for place, rate in enumerate(self._rates):
            slow = latency_s * self._rng.gauss(1.0, 0.1) > self._slow_s
            if not slow and failed <= _FEW:
                self._rates[place] = min(rate + self._MORE * self._live, self._most)
            elif now_s - self._cut[place] >= self._PAUSE:
                self._cut[place] = now_s
                self._rates[place] = max(0.01 * self._live, rate * 0.5)


@final
class WhenWhole:
    """A law that is obeyed only once all replicas have been in step for `hold_s`, until they are
    not or an answer fails: then `on_close` is called.

    A law that is not told goes on learning while nobody obeys it, from a sink that it does not
    press.
    """

    def __init__(
        self,
        law: Law,
        case: Case,
        *,
        hold_s: float = 60.0,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        self._law: Final = law
        self._brokers: Final = case.brokers
        self._hold: Final = round(hold_s * SECOND)
        self._on_close: Final = on_close
        self._since: Instant | None = None  # when all was well again

    def rate(self, now: Instant, sink: Sink, left: float) -> float:
        """Nothing, or what the law says."""
        rate = self._law.rate(now, sink, left)
        if sink.seen.failed > _FEW or flaw(sink.replicas, self._brokers) is not None:
            self._on_close()
            self._since = None
            return 0.0
        if self._since is None:
            self._since = now
        return rate if now - self._since >= self._hold else 0.0


@final
class Crowd:
    """Collectors under one law, with live records that go straight to the sink."""

    def __init__(self, case: Case, law: Law, *, spill: bool = False) -> None:
        self.left = case.backlog
        self.lost = 0.0
        self._case: Final = case
        self._law: Final = law
        self._spill: Final = spill
        # What is due again, by the step in which: bytes by how often they were tried.
        none = [0.0] * _TRIES
        self._again: Final[deque[list[float]]] = deque([none[:] for _ in range(_AGAIN)])

    def send(self, now: Instant, sink: Sink) -> Sent:
        """Live records, fresh and tried again, and what the law lets go of the backlog."""
        fresh = self._case.live * STEP_S
        due = self._again[0]
        due[0] = fresh
        replay = min(self.left, self._law.rate(now, sink, self.left) * STEP_S)
        return Sent(sum(due), replay, fresh)

    def on_sent(self, now: Instant, sent: Sent, sink: Sink) -> None:  # noqa: ARG002
        """What failed of the backlog stays there; of live records it is tried again, or not."""
        failed = sink.failed
        self.left -= sent.replay * (1 - failed)
        tried = self._again.popleft()
        due = [0.0] + [amount * failed for amount in tried[:-1]]
        gone = tried[-1] * failed
        if self._spill:
            allowed = min(1.0, _BUDGET * sent.fresh / sum(due)) if sum(due) else 1.0
            self.left += gone + sum(due) * (1 - allowed)
            due = [amount * allowed for amount in due]
        else:
            self.lost += gone
        self._again.append(due)
