"""Is the sink whole, and has it been for long enough, that a backlog may be put on top?

    closed    nothing is replayed; all must be well for `hold`, and by chance up to `jitter` more
    open      a replay may go on, until the first sign that it should not

What opens it is slow and what closes it is fast. The state of the replicas opens it: it is the only
sign that says that a sink is whole, but it comes late (a broker that has fallen out is told of
after half a minute), so it cannot be what a replay relies on. What answers say closes it at once:
a refusal for want of replicas, a timeout, more than `errors` of them failed, the sink throttling in
two windows running, or its latency far beyond the pace's threshold in two windows running, when the
pace has had its cuts and they did not help. So does not knowing: health that is `stale` is no
health.

While closed, every sign of trouble begins the time anew, and so does every change of who leads and
who is in step: a cluster that still moves is not whole yet.
"""

from random import Random
from typing import Final, NamedTuple, final

from tidegate.core.health import Health, flaw
from tidegate.core.latency import Latency
from tidegate.core.medians import Medians
from tidegate.core.outcome import IGNORED, SUCCESS, TIMEOUT, Outcome, Transition
from tidegate.settings import spool as settings
from tidegate.units import MILLISECOND, SECOND, Duration, Instant, format_duration, format_share

__all__ = ["WINDOW", "Gate", "GateSnapshot"]

WINDOW: Final = 5 * SECOND
"""The pace makes at most one cut in so long: two of them show whether cuts help."""

_FLOOR: Final = 2 * MILLISECOND  # a scheduler's tick is 4 ms: at twice this it says nothing
_PROBE_FLOOR: Final = 10 * MILLISECOND  # a look is one sample, of several brokers in turn
_RUNNING: Final = 2  # windows of throttling, or of slow answers, that close it
_TRANSITIONS_MAX: Final = 64  # as the breaker's: a bound for a shell that never drains

_UNKNOWN: Final = "nothing is known of the sink's health yet"


class GateSnapshot(NamedTuple):
    """Open or not and why in words; the latency of late and in peace; when time will open it."""

    is_open: bool
    why: str
    latency: Duration | None
    baseline: Duration | None
    opens: Instant | None


@final
class Gate:
    """The gate of one lane. `slow` is how many times the latency in peace is too much."""

    __slots__ = (
        "_answers",
        "_brokers",
        "_errors",
        "_flaw",
        "_layout",
        "_open",
        "_probes",
        "_random",
        "_reason",
        "_seen",
        "_settings",
        "_since",
        "_slow",
        "_slow_windows",
        "_throttled",
        "_throttled_at",
        "_wait",
        "_window_at",
        "changes",
        "latency",
    )

    def __init__(self, settings: settings.Gate, rng: Random, *, slow: float = 12.0) -> None:
        self._settings: Final = settings
        self._random: Final = rng.random
        self._slow: Final = slow
        self._open = False
        self._reason = _UNKNOWN
        self._flaw: str | None = None
        self._layout: object = None
        self._brokers = settings.brokers or 1
        self._seen: Instant | None = None  # when health was last told
        self._since: Instant | None = None  # all has been well since
        self._wait = self._drawn()
        self.latency: Final = Latency(WINDOW, _FLOOR)
        self._probes: Final = Medians(WINDOW, _PROBE_FLOOR)
        self._window_at = 0  # number of the present window of counts
        self._answers = [0, 0]  # before and now
        self._errors = [0, 0]
        self._throttled = 0  # windows of throttling, running
        self._throttled_at = 0  # the last of them
        self._slow_windows = 0  # running
        self.changes: Final[list[Transition]] = []

    # What happens.

    def on_health(
        self,
        now: Instant,
        health: Health,
        latency: Duration | None = None,
        *,
        peace: bool = True,
    ) -> None:
        """A look at the sink has ended, after `latency` where that says something of the sink."""
        self._advance(now)
        self._seen = now
        if self._settings.brokers is None:
            self._brokers = max([self._brokers, *(view.brokers for view in health.views)])
        self._flaw = flaw(health, self._brokers)
        moved = self._has_moved(health)
        if self._flaw is not None:
            self._trouble(now, self._flaw)
        elif moved and not self._open:
            self._trouble(now, "who leads or follows has changed")
        elif self._since is None:
            self._since = now
            if self._reason is _UNKNOWN:
                self._reason = "it has not been watched for longer"
        if latency is not None:
            self._on_probe(now, latency, peace=peace)

    def on_answer(
        self,
        now: Instant,
        outcome: Outcome,
        latency: Duration,
        *,
        starved: bool = False,
        throttled: Duration = 0,
        replayed: bool = False,
        peace: bool = True,
    ) -> None:
        """The sink has answered a batch, live or `replayed`, after `latency`.

        `starved`: it has refused it for want of replicas. `throttled` is how long it made us
        wait. `peace`: nobody is known to replay, so that its latency may be learned from.
        """
        self._advance(now)
        self._roll(now, peace=peace)
        if outcome is IGNORED:
            return
        self._answers[1] += 1
        if throttled:
            self._on_throttled(now)
        if outcome is SUCCESS:
            self.latency.on_answer(now, latency, replayed=replayed)
        else:
            self._on_error(now, outcome, starved=starved)

    def shut(self, now: Instant, why: str) -> None:
        """Close, or begin the time anew, for a reason that the lane has."""
        self._advance(now)
        self._trouble(now, why)

    # What follows.

    def is_open(self, now: Instant) -> bool:
        """Whether a replay may go on now."""
        self._advance(now)
        return self._open

    def why(self, now: Instant) -> str:
        """Where it stands, in words."""
        self._advance(now)
        if self._open:
            return "open"
        opens = self._opens()
        if opens is None:
            return f"closed: {self._reason}"
        left = max(SECOND, -(-(opens - now) // SECOND) * SECOND)
        return f"closed for another {format_duration(left)}: {self._reason}"

    def next_wakeup(self) -> Instant | None:
        """When time alone will open or close it; None if it will not."""
        opens, stale = self._opens(), self._stale()
        if opens is not None and not self._open and (stale is None or opens < stale):
            return opens
        return stale if self._open or self._since is not None else None

    def on_wakeup(self, now: Instant) -> None:
        """Do what is due."""
        self._advance(now)

    def drain_transitions(self) -> list[Transition]:
        """What changed since the last call, oldest first, each at its own instant."""
        drained = self.changes[:]
        self.changes.clear()
        return drained

    def snapshot(self, now: Instant) -> GateSnapshot:
        """What a person would ask of it."""
        why = self.why(now)
        opens = None if self._open else self._opens()
        medians = self.latency.medians(now)
        return GateSnapshot(self._open, why, medians.last, medians.baseline, opens)

    # Private parts: evidence.

    def _has_moved(self, health: Health) -> bool:
        """Whether leaders or replicas in step differ from the last look, by who answered first."""
        layout = health.views[0].partitions if health.views else None
        before, self._layout = self._layout, layout
        return before is not None and layout is not None and before != layout

    def _on_probe(self, now: Instant, latency: Duration, *, peace: bool) -> None:
        probes = self._probes
        if probes.is_over(now):
            probes.close(peace=peace and self._is_well())
            self._must_be_calm(now, probes, "a look at it takes", peace=peace)
        probes.on_answer(now, latency)

    def _on_error(self, now: Instant, outcome: Outcome, *, starved: bool) -> None:
        self._errors[1] += 1
        errors, answers = sum(self._errors), sum(self._answers)
        if starved:
            self._trouble(now, "it has refused a batch for want of replicas")
        elif outcome is TIMEOUT:
            self._trouble(now, "it has not answered a batch in time")
        elif errors / answers > self._settings.errors:
            share = format_share(round(errors / answers, 4))
            self._trouble(now, f"{errors} of its last {answers} answers failed ({share})")

    def _on_throttled(self, now: Instant) -> None:
        window = self._window_at
        if self._throttled and window - self._throttled_at > 1:
            self._throttled = 0
        if not self._throttled or window != self._throttled_at:
            self._throttled += 1
        self._throttled_at = window
        if self._throttled >= _RUNNING or not self._open:
            self._trouble(now, "it throttles who sends")

    def _roll(self, now: Instant, *, peace: bool) -> None:
        """End the windows that are over."""
        window = now // WINDOW
        if window != self._window_at:
            running = window == self._window_at + 1
            self._answers = [self._answers[1] if running else 0, 0]
            self._errors = [self._errors[1] if running else 0, 0]
            self._window_at = window
        if self.latency.roll(now, peace=peace and self._is_well() and not self._errors[0]):
            self._judge(now, peace=peace)

    def _judge(self, now: Instant, *, peace: bool) -> None:
        """The latency of a window is known."""
        medians = self.latency.medians(now)
        latency, baseline = medians.last, medians.baseline
        if latency is None or baseline is None:
            return
        self._slow_windows = self._slow_windows + 1 if latency > self._slow * baseline else 0
        if self._slow_windows >= _RUNNING:
            self._slow_windows = 0
            self._trouble(now, _too_slow("an answer takes", latency, baseline))
        self._must_be_calm(now, medians, "an answer takes", peace=peace)

    def _must_be_calm(self, now: Instant, medians: Medians, what: str, *, peace: bool) -> None:
        """As fast as in peace; while others replay, as fast as their pace may make it."""
        latency, baseline = medians.last, medians.baseline
        if self._open or latency is None or baseline is None:
            return
        if latency > (self._settings.calm if peace else self._slow) * baseline:
            self._trouble(now, _too_slow(what, latency, baseline))

    # Private parts: moving.

    def _is_well(self) -> bool:
        return self._open or self._since is not None

    def _opens(self) -> Instant | None:
        return None if self._since is None else self._since + self._wait

    def _stale(self) -> Instant | None:
        return None if self._seen is None else self._seen + self._settings.stale

    def _advance(self, now: Instant) -> None:
        """Do what is due by `now`, each at its own instant."""
        seen, since = self._seen, self._since
        if seen is None or (since is None and not self._open):
            return
        stale = seen + self._settings.stale
        if not self._open and since is not None:
            opens = since + self._wait
            if opens <= now and opens < stale:
                self._move(opens, "closed", "open", self._calm_words())
        if now >= stale:
            silence = format_duration(self._settings.stale)
            self._trouble(stale, f"nothing was heard of its health for {silence}")
            self._since = None

    def _calm_words(self) -> str:
        return f"all was well for {format_duration(self._wait // SECOND * SECOND or self._wait)}"

    def _trouble(self, now: Instant, why: str) -> None:
        """Something is not well: close, or begin the time anew."""
        if self._open:
            self._move(now, "open", "closed", why)
        self._reason = why
        self._wait = self._drawn()
        # An error is over when it is told; a flaw until somebody sees that it is mended.
        self._since = now if self._seen is not None and self._flaw is None else None

    def _drawn(self) -> Duration:
        """How long all must be well: never the same for all, or a fleet begins in one moment."""
        return self._settings.hold + int(self._settings.jitter * self._random())

    def _move(self, at: Instant, before: str, after: str, reason: str) -> None:
        self._open = after == "open"
        self._slow_windows = self._throttled = 0
        if len(self.changes) == _TRANSITIONS_MAX:
            del self.changes[0]
        self.changes.append(Transition(at, "gate", before, after, reason))


def _too_slow(what: str, latency: Duration, baseline: Duration) -> str:
    return f"{what} {_rounded(latency)}, in peace {_rounded(baseline)}"


def _rounded(duration: Duration) -> str:
    """To three digits: more would be noise."""
    step = 10 ** max(0, len(str(duration)) - 3)
    return format_duration(duration // step * step)
