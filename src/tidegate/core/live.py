"""May the next live batch be sent, and is the sink sick?

A circuit breaker decides, and two things beside it that a lane needs and a caller does not. A lane
sends one batch at a time, and what failed is sent again: so after each failure it pauses, twice as
long as after the one before, since a client that sends its queue again with every refusal is how a
starved topic becomes a dead cluster. And it sends few: three failures in a row are an outage, long
before they are half of the last ten seconds. A sink that asks to be left alone is left alone.
"""

from random import Random
from typing import Final, final

from tidegate.core.circuit import CLOSED, HALF_OPEN, HELD, OPEN, RAMPING
from tidegate.core.circuit_breaker import CircuitBreaker
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
from tidegate.settings import policies as settings
from tidegate.units import MILLISECOND, MINUTE, SECOND, Duration, Instant, format_duration

__all__ = ["SICK", "Live"]

SICK: Final = 3
"""So many failures in a row are an outage."""

_PAUSE: Final = 100 * MILLISECOND  # after a failed batch; doubled with each that follows
_PAUSE_MAX: Final = 5 * SECOND
_PATIENCE: Final = 5 * MINUTE  # no longer than that, whatever the sink asks for


@final
class Live:
    """The way of live records to a sink."""

    __slots__ = ("_breaker", "_failures", "_paused_until", "_paused_why", "_random")

    def __init__(self, settings: settings.Breaker, rng: Random) -> None:
        # The breaker has luck of its own: a pause must not change what it draws.
        self._breaker: Final = CircuitBreaker(settings, Random(rng.getrandbits(64)))
        self._random: Final = rng.random
        self._failures = 0  # running
        self._paused_until: Instant = 0
        self._paused_why = ""

    # What happens.

    def try_send(self, now: Instant) -> Permit | Rejection:
        """Leave to send one batch; or why not."""
        if now < self._paused_until:
            return REJECTIONS[Reason.RETRY_AFTER]
        return self._breaker.try_acquire(now)

    def on_answer(self, now: Instant, permit: Permit, outcome: Outcome) -> None:
        """The batch of this permit has ended."""
        self._breaker.release(now, permit, outcome)
        self.on_outcome(now, outcome)

    def on_outcome(self, now: Instant, outcome: Outcome) -> None:
        """A batch with live records in it has ended that needed no permit from here."""
        if outcome is SUCCESS:
            self._failures = 0
        elif outcome is not IGNORED:
            self._failures += 1
            pause = min(_PAUSE_MAX, _PAUSE << min(self._failures - 1, 10))
            self._pause(now + int(pause * (0.5 + self._random() / 2)), "the last batch failed")

    def on_retry_after(self, now: Instant, duration: Duration) -> None:
        """The sink asks to be left alone for so long."""
        self._pause(now + min(duration, _PATIENCE), "the sink asks for a pause")

    def hold(self, now: Instant, why: str) -> None:
        """Send nothing until `free`."""
        self._breaker.hold(now, why)

    def free(self, now: Instant) -> None:
        """Undo `hold`: it comes back by canaries."""
        self._breaker.free(now)

    # What follows.

    def is_held(self, now: Instant) -> bool:
        """Whether a person holds it."""
        return self._breaker.state(now) is HELD

    def is_sick(self, now: Instant) -> bool:
        """Whether records stay at home, but for canaries."""
        state = self._breaker.state(now)
        return self._failures >= SICK or state is OPEN or state is HALF_OPEN

    def is_shut(self, now: Instant) -> bool:
        """Whether nothing may go now, not even a canary."""
        state = self._breaker.state(now)
        return now < self._paused_until or state is OPEN or state is HELD

    def is_paused(self, now: Instant) -> bool:
        """Whether a failure or the sink has asked for a pause."""
        return now < self._paused_until

    def is_well(self, now: Instant) -> bool:
        """Whether all live records flow, so that others may come on top."""
        return now >= self._paused_until and self._breaker.state(now) is CLOSED

    def flows(self, now: Instant) -> bool:
        """Whether live records flow, if only a growing share of them."""
        state = self._breaker.state(now)
        return now >= self._paused_until and (state is CLOSED or state is RAMPING)

    def why(self, now: Instant) -> str:
        """What keeps it, in words; empty if it flows."""
        state = self._breaker.state(now)
        if state is HELD:
            return f"held: {self._breaker.snapshot(now).reason}"
        if self._failures >= SICK:
            return f"the sink is sick: {self._failures} batches in a row have failed"
        if state is OPEN or state is HALF_OPEN:
            return f"the sink is sick: {self._breaker.snapshot(now).reason}"
        if now < self._paused_until:
            left = -(-(self._paused_until - now) // MILLISECOND) * MILLISECOND
            return f"{self._paused_why}: another {format_duration(left)}"
        return "live records come back first" if state is RAMPING else ""

    def next_wakeup(self, now: Instant) -> Instant | None:
        """When time alone changes something."""
        due = self._breaker.next_wakeup()
        if now < self._paused_until and (due is None or self._paused_until < due):
            return self._paused_until
        return due

    def drain_transitions(self) -> list[Transition]:
        """What changed in the circuit since the last call."""
        return self._breaker.drain_transitions()

    # Private parts.

    def _pause(self, until: Instant, why: str) -> None:
        if until > self._paused_until:
            self._paused_until, self._paused_why = until, why
