"""How does a caller make one of its calls in the fluid: send, wait, time out, try again, give up?

A `Site` is one call of one caller with its policies. It sends masses as the simulator's call sites
send attempts, and the answers come back to the batch that they belong to.
"""

import math
from collections import defaultdict
from typing import Final, final

from tidegate.analysis.fluid.flow import (
    LEAST,
    NEVER,
    Batch,
    Join,
    Packet,
    Parts,
    Receiver,
    Slot,
    Target,
)
from tidegate.analysis.fluid.policies import Bucket, Budget, Circuit, Gate, Throttle, waits
from tidegate.core.outcome import FAILURE, OVERLOADED, SUCCESS, TIMEOUT, Outcome
from tidegate.settings.system import Call
from tidegate.units import SECOND

__all__ = ["Site"]

_QUICK: Final = 1e-3  # of the attempts of a step: so few may be left open
_BLURRED_MAX: Final = 4  # attempts: with more, two waits for each would be too many packets
_NONE: Final[dict[tuple[Batch, int], float]] = {}
_REASONS: Final = {"timeout": TIMEOUT, "failure": FAILURE, "overloaded": OVERLOADED}


@final
class Site:
    """One call of one caller, with its policies; `hosts` callers have them side by side."""

    __slots__ = (
        "_attempts",
        "_budget",
        "_circuit",
        "_deadline",
        "_dt",
        "_due",
        "_gaps",
        "_gate",
        "_mass",
        "_reasons",
        "_sent",
        "_throttle",
        "_timeout",
        "_timers",
        "_trouble",
        "_wire",
        "bucket",
        "call",
        "clear",
        "made",
        "name",
        "orbit",
        "quick",
        "target",
        "way",
    )

    def __init__(
        self,
        name: str,
        call: Call,
        target: Target,
        *,
        hosts: int,
        dt: float,
        answer: float,
    ) -> None:
        self.name: Final = name
        self.call: Final = call
        self.target: Final = target
        self.clear = False  # whether calls made now are as good as answered
        self.quick = True  # whether those of the step before were answered within it
        self._mass = 0.0  # attempts of this step,
        self._trouble = 0.0  # and those that failed or are still open
        self.made = 0.0  # attempts so far
        self.orbit = 0.0  # retries that wait
        self.bucket = Bucket(call.rate_limit, dt) if call.rate_limit else None
        self._budget: Final = Budget(call.paid_from, hosts, dt) if call.paid_from else None
        self._throttle: Final = Throttle(call.throttle, hosts, dt) if call.throttle else None
        self._circuit: Final = Circuit(call.breaker, hosts, dt) if call.breaker else None
        self._gate: Final = Gate(call.limit, hosts, dt) if call.limit else None
        if self._gate is not None:
            self._gate.turns = max(1.0, dt / answer) if answer > 0 else math.inf
        self._dt: Final = dt
        self._attempts: Final = call.tries
        self._reasons: Final = frozenset(_REASONS[reason] for reason in call.retry_on)
        self._timeout: Final = NEVER if call.timeout is None else _steps(call.timeout, dt)
        self._deadline: Final = NEVER if call.deadline is None else _steps(call.deadline, dt)
        blur = call.tries <= _BLURRED_MAX
        self._gaps: Final = [
            list(waits(call.backoff, k, dt, blur=blur)) for k in range(1, call.tries)
        ]
        self._due: Final[dict[int, dict[tuple[Batch, int], float]]] = {}
        self._wire: Final[defaultdict[int, list[tuple[Receiver, Packet]]]] = defaultdict(list)
        self._timers: Final[defaultdict[int, list[tuple[Receiver, Packet]]]] = defaultdict(list)
        self._sent: Final[list[tuple[Receiver, Packet]]] = []
        self.way = 0  # steps on the network, there and back
        self.set_latency(0)

    def set_latency(self, extra: float) -> None:
        """So many nanoseconds are added to the way there and back."""
        network = self.call.network.average if self.call.network else 0
        self.way = _steps(2 * network + extra, self._dt, least=0)

    def look(self) -> None:
        """See whether the way is clear: nothing waits, refuses or is slow, here or below."""
        self.clear = (
            not self.way
            and self.bucket is None
            and self._gate is None
            and (self._throttle is None or self._throttle.share == 0)
            and (self._circuit is None or self._circuit.state == "closed")
            and self.target.is_clear()
        )

    def pass_by(self, parts: Parts, times: float) -> None:
        """Requests that make `times` calls each on a clear way."""
        mass = fresh = 0.0
        for packet, part in parts:
            mass += part
            fresh += part * packet.fresh
        self.absorb(mass * times, fresh * times)

    def absorb(self, mass: float, fresh: float) -> None:
        """So many calls are answered within the step, `fresh` of them nobody's retry."""
        self.made += mass
        self.target.absorb(mass)
        if self._budget is not None:
            self._budget.deposit(fresh)
        if self._throttle is not None:
            self._throttle.release(mass, accepted=True)
        if self._circuit is not None:
            self._circuit.succeed(mass)

    def begin(
        self, now: int, slot: Slot, parts: Parts, after: int, join: Join | None = None
    ) -> None:
        """Make the calls that the requests in `parts` need; `after` comes next."""
        deadline = now + self._deadline
        if slot.caller.told:  # as long as anybody in the mixture waits
            deadline = min(deadline, max(packet.deadline for packet, _ in parts))
        mass = fresh = 0.0
        for packet, part in parts:
            mass += part
            fresh += part * packet.fresh
        if self._budget is not None:
            self._budget.deposit(fresh * slot.times)
        batch = Batch(
            slot,
            parts,
            born=now,
            mass=mass,
            fresh=fresh / mass if mass else 0.0,
            deadline=deadline,
            after=after,
            join=join,
        )
        self._send(now, batch, 1, mass * slot.times)

    def tick(self, now: int) -> None:
        """The timers of this step, the retries that are due, and what has come over the network."""
        if self._budget is not None:
            self._budget.step()
        if self._throttle is not None:
            self._throttle.step()
        if self._circuit is not None:
            self._circuit.step(now)
        if self.bucket is not None:
            self.bucket.step()
        for pool, packet in self._timers.pop(now, ()):
            if packet.open > LEAST:
                self.settle(now, packet, packet.open, TIMEOUT)
            packet.open = 0.0
            pool.abandon(now, packet)
        for (batch, number), mass in self._due.pop(now, _NONE).items():
            self.orbit -= mass
            self._send(now, batch, number, mass)
        for pool, packet in self._wire.pop(now, ()):
            pool.arrive(now, packet)

    def end_step(self) -> None:
        """Arm a timer for what was not answered within the step, and see how much that is."""
        if not self._sent:
            return
        for pool, packet in self._sent:
            self._trouble += packet.open
            if packet.open > LEAST and packet.leaves < NEVER:
                self._timers[packet.leaves].append((pool, packet))
        self._sent.clear()
        self.quick = self._trouble <= _QUICK * self._mass
        self._trouble = self._mass = 0.0

    def settle(self, now: int, packet: Packet, mass: float, outcome: Outcome) -> None:
        """So much of a packet has ended; what is too late finds nobody who waits."""
        mass = min(mass, packet.open)
        if mass <= 0:
            return
        packet.open -= mass
        ok = outcome is SUCCESS
        if not ok:
            self._trouble += mass
        if self._throttle is not None:
            self._throttle.release(mass, accepted=ok or outcome is FAILURE)
        if self._gate is not None:
            trouble = outcome is TIMEOUT or outcome is OVERLOADED
            self._gate.release(now, packet.sent, mass, trouble=trouble)
        if self._circuit is not None:
            self._circuit.release(now, packet.sent, mass, ok=ok)
        batch = packet.batch
        assert batch is not None
        if ok:
            batch.bring(now, mass / batch.slot.times, 0.0)
        elif packet.number < self._attempts and outcome in self._reasons:
            self._repeat(now, batch, packet.number, mass, outcome)
        else:
            batch.bring(now, 0.0, mass / batch.slot.times)

    def _repeat(self, now: int, batch: Batch, number: int, mass: float, outcome: Outcome) -> None:
        allowed = mass if self._budget is None else self._budget.withdraw(mass)
        lost = mass - allowed
        for gap, share in self._gaps[number - 1]:
            if gap == 0 and outcome is not TIMEOUT:
                gap = 1  # what was refused at once would be refused at once for ever
            if now + gap >= batch.deadline:
                lost += allowed * share
            elif gap == 0:
                self._send(now, batch, number + 1, allowed * share)
            else:
                self.orbit += allowed * share
                due = self._due.setdefault(now + gap, {})
                key = batch, number + 1
                due[key] = due.get(key, 0.0) + allowed * share
        if lost > 0:
            batch.bring(now, 0.0, lost / batch.slot.times)

    def _send(self, now: int, batch: Batch, number: int, mass: float) -> None:
        passed = self._admit(now, mass)
        self._mass += mass
        if passed < mass:
            self._trouble += mass - passed
            batch.bring(now, 0.0, (mass - passed) / batch.slot.times)
        if passed < LEAST:
            return
        self.made += passed
        leaves = min(now + self._timeout, batch.deadline)
        fresh = batch.fresh if number == 1 else 0.0
        for pool, share in self.target.spread():
            packet = Packet(batch, number, passed * share, now, leaves, fresh)
            if self.call.propagate:
                packet.deadline = leaves
            self._sent.append((pool, packet))
            if self.way:
                self._wire[now + self.way].append((pool, packet))
            else:
                pool.arrive(now, packet)

    def _admit(self, now: int, mass: float) -> float:
        """In the order of `core.pipeline`: throttle, rate, breaker, limit."""
        if self._throttle is not None:
            mass = self._throttle.take(mass)
        if self.bucket is not None:
            mass = self.bucket.take(mass)
        if self._circuit is not None:
            mass = self._circuit.take(now, mass)
        if self._gate is not None:
            mass = self._gate.take(mass)
        return mass


def _steps(nanoseconds: float, dt: float, *, least: int = 1) -> int:
    return max(least, round(nanoseconds / SECOND / dt))
