"""May this lane send what is new, and how much of what it has kept may go now?

    direct   nothing waits but what has just come in
    spill    the sink is sick: records stay on disk, canaries try it
    wait     live records flow; the backlog waits for the gate, its turn, or a budget
    ramp     the backlog leaves, faster and faster
    cruise   the backlog leaves at what the sink was found to bear
    hold     nothing leaves, until a person frees it

Live records go by a circuit breaker alone, one batch at a time and more slowly after each that
failed; while it is half-open they are its canaries. The backlog goes when the circuit is closed
AND the gate is open AND it is this collector's turn AND the budget is young AND no more than a
batch of live records waits. Any of these that ends, ends it in that instant, and what was saved up
is gone with it.

With `order: kept` live records wait behind the backlog. Then all of it goes as backlog: at the rate
at which records come in, which is what the sink has in peace, and a share of the budget on top.
"""

from random import Random
from typing import Final, final

from tidegate.core.allowance import UNBOUNDED, Allowance
from tidegate.core.errands import Errand
from tidegate.core.flow import Flow
from tidegate.core.gate import Gate
from tidegate.core.health import Health
from tidegate.core.lane import (
    CRUISE,
    DIRECT,
    HOLD,
    RAMP,
    SPILL,
    TRANSITIONS,
    WAIT,
    LaneState,
    ReplaySnapshot,
)
from tidegate.core.latency import Latency
from tidegate.core.leases import Answer
from tidegate.core.live import Live
from tidegate.core.member import Member
from tidegate.core.outcome import (
    IGNORED,
    REJECTIONS,
    SUCCESS,
    Outcome,
    Permit,
    Reason,
    Rejection,
    Transition,
)
from tidegate.core.pacer import WINDOW
from tidegate.settings import spool as settings
from tidegate.units import SECOND, Duration, Instant

__all__ = ["LaneState", "Replay"]

_REPLAY: Final = -1  # the generation of a replay's permits: no era of the breaker's
_BEYOND: Final = 4.0  # times the pace's threshold: there its cuts have not helped
_USED: Final = 0.5  # of its share: who sends less has told nothing of the sink
_PEACE: Final = 10 * SECOND  # after the last replay from here
_TRANSITIONS_MAX: Final = 64  # as the breaker's


@final
class Replay:
    """One lane of one collector, which is `collector` to its fleet."""

    __slots__ = (
        "_allowance",
        "_answers",
        "_backlog",
        "_errors",
        "_flow",
        "_latency",
        "_live",
        "_sent",
        "_sent_at",
        "_settings",
        "_since",
        "_state",
        "_waiting",
        "_was_open",
        "_window_at",
        "changes",
        "gate",
        "member",
    )

    def __init__(self, settings: settings.Lane, rng: Random, collector: str = "here") -> None:
        # Each part has luck of its own: what one does must not change what another draws.
        streams = [Random(rng.getrandbits(64)) for _ in range(3)]
        slow = _BEYOND * settings.pace.THRESHOLDS.get(settings.pace.speed, 20.0)
        self._settings: Final = settings
        self._live: Final = Live(settings.breaker, streams[0])
        self.gate: Final = Gate(settings.gate, streams[1], slow=slow)
        self.member: Final = Member(settings, streams[2], collector)
        self._latency: Final = Latency(WINDOW, 0)
        self._answers = self._errors = 0  # in this window
        self._window_at: Instant = 0  # the window's end
        self._backlog = 0
        self._waiting = 0
        self._flow: Final = Flow()  # of what comes in
        self._allowance: Final = Allowance()
        self._sent = 0  # in this window
        self._sent_at: Instant | None = None
        self._was_open = False
        self._state = DIRECT
        self._since: Instant = 0
        self.changes: Final[list[Transition]] = []

    # What happens.

    def on_live(self, now: Instant, size: int) -> None:
        """So many bytes have come in."""
        self._flow.on_bytes(now, size)

    def on_waiting(self, size: int) -> None:
        """So many bytes of live records have not been sent yet; a replay lets them go first."""
        self._waiting = size

    def on_backlog(self, now: Instant, size: int, oldest: int = 0) -> None:
        """So many bytes wait to be replayed, the oldest since that second of the wall clock."""
        self._backlog = size
        self.member.on_backlog(now, size, oldest)
        self._step(now)

    def on_health(self, now: Instant, health: Health, latency: Duration | None = None) -> None:
        """A look at the sink has ended, after `latency` where that says something of the sink."""
        self.gate.on_health(now, health, latency, peace=self._is_peace(now))
        self._step(now)

    def on_answer(
        self,
        now: Instant,
        permit: Permit,
        outcome: Outcome,
        *,
        starved: bool = False,
        poison: bool = False,
        throttled: Duration = 0,
        retry_after: Duration | None = None,
    ) -> None:
        """The batch of this permit has ended, live or replayed; told once, with what was said."""
        if poison:
            outcome = IGNORED  # it says something of the batch and nothing of the sink
        replayed = permit.generation == _REPLAY
        if not replayed:
            self._live.on_answer(now, permit, outcome)
        elif self._settings.order == "kept":  # live records are among them
            self._live.on_outcome(now, outcome)
        if retry_after:
            self._live.on_retry_after(now, retry_after)
        self.gate.on_answer(
            now,
            outcome,
            now - permit.start,
            starved=starved,
            throttled=throttled,
            replayed=replayed,
            peace=self._is_peace(now),
        )
        self._on_window(now)
        self._answers += outcome is not IGNORED
        if outcome is SUCCESS:
            self._latency.on_answer(now, now - permit.start, replayed=replayed)
        elif outcome is not IGNORED:
            self._errors += 1
        self._step(now)

    def hold(self, now: Instant, why: str) -> None:
        """Let nothing leave until `free`: a person's decision, and `why` is theirs."""
        self._live.hold(now, why)
        self.gate.shut(now, "held by hand")
        self._step(now)

    def free(self, now: Instant) -> None:
        """Undo `hold`: it comes back by canaries, and the backlog through its gate."""
        self._live.free(now)
        self._step(now)

    # The fleet.

    def errand(self, now: Instant) -> Errand | None:
        """What to ask the coordinator now: run it, and tell `on_errand` or `on_lost`, once."""
        self._step(now)
        if now >= self._window_at + WINDOW:  # without answers no window has told it
            self.member.on_live(self._flow.rate(now))
        return self.member.errand(now, wants=self._wants(now))

    def on_errand(self, now: Instant, errand: Errand, answer: Answer) -> None:
        """The coordinator has answered."""
        self.member.on_errand(now, errand, answer)
        self._step(now)

    def on_lost(self, now: Instant) -> None:
        """The coordinator has not answered the errand."""
        self.member.on_lost(now)
        self._step(now)

    def on_wall(self, now: Instant, wall: Instant) -> None:
        """What the wall clock shows; only needed with `through: slots`, now and then."""
        self.member.on_wall(now, wall)

    # What follows.

    def is_live_shut(self, now: Instant) -> bool:
        """Whether `try_live` says no whatever waits, so that nothing need be read for it."""
        return self._live.is_shut(now)

    def try_live(self, now: Instant) -> Permit | Rejection:
        """Leave to send one live batch; or why not."""
        if self._is_kept() and self._live.is_well(now):
            return REJECTIONS[Reason.RATE]  # it waits behind the backlog, and goes with it
        answer = self._live.try_send(now)
        if type(answer) is Permit:
            self._step(now)
        return answer

    def allowance(self, now: Instant) -> int:
        """How many bytes of the backlog may be sent now; zero is the answer of most moments.

        Send no more than that, but at least one record, and tell `on_sent`.
        """
        if not self._backlog:
            return 0
        rate = self._rate(now)
        if rate <= 0:
            self._allowance.end(now)
            return 0
        if self._live_waits():
            return 0
        batch = self._settings.batch
        return self._allowance.ask(now, rate, wanted=self._backlog, batch=batch)

    def on_sent(self, now: Instant, size: int) -> Permit:
        """So many bytes of the backlog are being sent: the permit to tell `on_answer`."""
        self._allowance.spend(size)
        self._sent += size
        self._sent_at = now
        self.member.on_sent(size)
        return Permit(now, _REPLAY)

    def state(self, now: Instant) -> LaneState:
        """Where the lane stands now."""
        self._step(now)
        return self._state

    def why(self, now: Instant) -> str:
        """Why it stands there, in words."""
        return self._words(now, self.state(now))

    def next_wakeup(self, now: Instant) -> Instant | None:
        """When time alone changes something, or there is an errand; None: not before news."""
        due = [
            self._live.next_wakeup(now),
            self.gate.next_wakeup(),
            self.member.next_wakeup(now, wants=self._wants(now)),
            self._allowed_at(now),
        ]
        return min((at for at in due if at is not None), default=None)

    def on_wakeup(self, now: Instant) -> None:
        """Do what is due."""
        self._step(now)

    def drain_transitions(self) -> list[Transition]:
        """What changed in the lane, its gate and its circuit since the last call, in order."""
        drained = self.changes + self.gate.drain_transitions() + self._live.drain_transitions()
        self.changes.clear()
        return sorted(drained, key=lambda change: change.at)

    def snapshot(self, now: Instant) -> ReplaySnapshot:
        """What a person would ask of it."""
        state = self.state(now)
        medians = self.gate.latency.medians(now)
        return ReplaySnapshot(
            state=state,
            why=self._words(now, state),
            since=self._since,
            gate=self.gate.why(now),
            budget=self.member.budget_rate(now),
            share=self.member.share(now) if state in {RAMP, CRUISE} else 0.0,
            lease=self.member.slot(now),
            turns=self.member.why(now),
            live=self.live_rate(now),
            latency=medians.last,
            baseline=medians.baseline,
            backlog=self._backlog,
        )

    def live_rate(self, now: Instant) -> float:
        """How many bytes come in per second, over the last minute or so."""
        return self._flow.rate(now)

    # Private parts: answers.

    def _is_peace(self, now: Instant) -> bool:
        quiet = self._sent_at is None or now - self._sent_at >= _PEACE
        return quiet and not self.member.somebody_replays(now)

    def _on_window(self, now: Instant) -> None:
        """End the pacer's window, if it is over."""
        if now < self._window_at:
            return
        self._latency.roll(now, peace=False)
        kind = self.gate.latency.live if self._latency.is_live(now) else self.gate.latency.replayed
        self.member.on_live(self.live_rate(now))
        wanted = self.member.share(now) * WINDOW / SECOND
        used = self._sent >= _USED * wanted and self._sent > 0
        if self._sees_open(now):
            # As many as the gate bears with are no reason to slow down either.
            many = self._errors > self._settings.gate.errors * self._answers
            errors = self._errors if many else 0
            self.member.on_window(now, self._latency.recent(now), kind.baseline, errors, used=used)
        self._answers = self._errors = self._sent = 0
        self._window_at = now + WINDOW

    # Private parts: what may go.

    def _is_kept(self) -> bool:
        return self._backlog > 0 and self._settings.order == "kept"

    def _live_waits(self) -> bool:
        return self._waiting > self._settings.batch and self._settings.order == "live"

    def _wants(self, now: Instant) -> bool:
        """Whether all is well but the turn and the budget."""
        return (
            self._backlog > 0
            and self._sees_open(now)
            and self._live.is_well(now)
            and self._settings.pace.speed != "at_once"
        )

    def _sees_open(self, now: Instant) -> bool:
        """Whether the gate is open; when it has just closed, nothing of the replay is left."""
        is_open = self.gate.is_open(now)
        if is_open is not self._was_open:
            self._was_open = is_open
            # What came before says nothing of what a replay does to the sink.
            self._answers = self._errors = self._sent = 0
            self._window_at = now + WINDOW
            if not is_open:
                self._allowance.end(now)
                self.member.on_close(now)
        return is_open

    def _share(self, now: Instant) -> float:
        """How many bytes of the budget may go in a second now."""
        return self.member.share(now) if self._wants(now) else 0.0

    def _rate(self, now: Instant) -> float:
        """How many bytes of the backlog may go in a second now."""
        if self._settings.pace.speed == "at_once":
            return UNBOUNDED if self._live.flows(now) else 0.0
        rate = self._share(now)
        if self._is_kept() and self._live.flows(now):
            rate += self.live_rate(now)
        return rate

    def _allowed_at(self, now: Instant) -> Instant | None:
        """When there will be an allowance, at the present rate."""
        rate = self._rate(now) if self._backlog and not self._live_waits() else 0.0
        if rate <= 0:
            return None
        batch = self._settings.batch
        return self._allowance.ready_at(rate, wanted=self._backlog, batch=batch)

    # Private parts: where it stands.

    def _step(self, now: Instant) -> None:
        """Go to where the lane stands now, along the edges that there are."""
        target = self._target(now)
        while self._state is not target:
            state = self._state
            near = target in TRANSITIONS[state]
            self._move(now, target if near else RAMP if state is WAIT else WAIT)

    def _target(self, now: Instant) -> LaneState:
        opens = self._sees_open(now)
        if self._live.is_held(now):
            return HOLD
        if self._live.is_sick(now):
            if opens:
                self.gate.shut(now, "live records fail")
                self._sees_open(now)
            return SPILL
        if not self._backlog:
            return DIRECT
        if self._settings.pace.speed == "at_once":
            return CRUISE
        if self._share(now) <= 0:
            return WAIT
        return CRUISE if self.member.cruises(now) else RAMP

    def _move(self, now: Instant, after: LaneState) -> None:
        before, self._state, self._since = self._state, after, now
        if after in {RAMP, CRUISE} and before not in {RAMP, CRUISE}:
            self._allowance.end(now)  # nothing was saved up while it could not go
        if len(self.changes) == _TRANSITIONS_MAX:
            del self.changes[0]
        why = self._words(now, after)
        self.changes.append(Transition(now, "replay", before.value, after.value, why))

    def _words(self, now: Instant, state: LaneState) -> str:
        if state is HOLD or state is SPILL:
            return self._live.why(now)
        if state is DIRECT:
            return "nothing waits"
        if state is not WAIT:
            return self.member.why(now)
        why = self._live.why(now)
        if why:
            return why
        return f"the gate is {self.gate.why(now)}" if not self._was_open else self.member.why(now)
