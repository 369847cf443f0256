"""What flows through a graph of services when requests are taken as a fluid, and through what?

A `Packet` is a mass of equal attempts: what one step of one call sent with one number. A `Batch` is
the mass of calls that one step began; its attempts come and go, and what they bring is handed to
whoever began it, in proportion. Callers (`Client`, `Pool`) and calls (`Site`) pass masses to each
other as the simulator's parts pass attempts, and say no for the same reasons.

So that the number of packets stays proportional to the calls, what is begun together is mixed: a
batch shares each answer among all that it was begun for. `now` is the number of a step.
"""

import math
from collections import defaultdict
from typing import Final, final

from tidegate.analysis.fluid.policies import Bucket, Budget, Circuit, Gate, waits
from tidegate.core.outcome import FAILURE, OVERLOADED, SUCCESS, TIMEOUT, Outcome
from tidegate.settings import system as settings
from tidegate.units import SECOND

__all__ = [
    "LEAST",
    "NEVER",
    "Caller",
    "Client",
    "Packet",
    "Parts",
    "Receiver",
    "Site",
    "Slot",
    "Target",
    "merged",
]

NEVER: Final = 1 << 60
LEAST: Final = 1e-9  # requests; less is rounding and not worth a packet
_CRUMB: Final = 0.1  # of a batch: less than that waits for more of it,
_CRUMB_WAITS: Final = 4  # but no longer than so many steps
_MERGED_FROM: Final = 6  # parts: fewer are not worth the look
_QUICK: Final = 1e-3  # of the attempts of a step: so few may be left open
_SLOTS_MAX: Final = 16  # calls of one name that are followed one by one
_BLURRED_MAX: Final = 4  # attempts: with more, two waits for each would be too many packets
_NONE: Final[dict[tuple["Batch", int], float]] = {}
_REASONS: Final = {"timeout": TIMEOUT, "failure": FAILURE, "overloaded": OVERLOADED}


@final
class Packet:
    """A mass of attempts. `open` of it is still waited for, `left` still stands in the queue."""

    __slots__ = ("batch", "deadline", "fresh", "leaves", "left", "number", "open", "sent")

    def __init__(
        self, batch: "Batch | None", number: int, mass: float, sent: int, leaves: int, fresh: float
    ) -> None:
        self.batch: Final = batch
        self.number: Final = number
        self.open = mass
        self.left = 0.0
        self.sent: Final = sent
        self.leaves: Final = leaves  # when its caller gives up
        self.fresh: Final = fresh  # the share that is nobody's retry
        self.deadline = NEVER  # what the callee was told of that


Parts = list[tuple[Packet, float]]
"""Requests in the hands of a caller: which, and how much of each."""


@final
class Join:
    """Calls made together: which share of each is back, well or badly."""

    __slots__ = ("bad", "failed", "finished", "next", "ok", "parts")

    def __init__(self, parts: Parts, shares: dict[int, float], after: int) -> None:
        self.parts: Final = parts
        self.next: Final = after  # the call that comes after all of them
        self.ok: Final = {index: 1 - share for index, share in shares.items()}
        self.bad: Final = dict.fromkeys(shares, 0.0)
        self.finished = 0.0
        self.failed = 0.0

    def news(self) -> tuple[float, float]:
        """What has newly finished and failed, as shares of the parts; chances are independent."""
        finished = math.prod(self.ok.values())
        failed = 1 - math.prod(1 - bad for bad in self.bad.values())
        new = finished - self.finished, failed - self.failed
        self.finished, self.failed = finished, failed
        return new


@final
class Batch:
    """The calls of one slot that one step began."""

    __slots__ = (
        "born",
        "deadline",
        "fresh",
        "gain",
        "join",
        "loss",
        "mass",
        "next",
        "parts",
        "slot",
        "told",
    )

    def __init__(
        self,
        slot: "Slot",
        parts: Parts,
        *,
        born: int,
        mass: float,
        fresh: float,
        deadline: int,
        after: int,
        join: Join | None,
    ) -> None:
        self.slot: Final = slot
        self.next: Final = after  # the call that comes after this one
        self.born: Final = born
        self.parts: Final = parts
        self.mass: Final = mass
        self.fresh: Final = fresh
        self.deadline: Final = deadline
        self.join: Final = join
        self.gain = 0.0  # what has come back since the caller last heard
        self.loss = 0.0
        self.told = NEVER  # since when the caller has news of it to hear

    def is_crumb(self, now: int) -> bool:
        """Whether the news is too little to act on and more may come; not within the first step."""
        little = self.gain + self.loss < _CRUMB * self.mass
        return little and self.born < now < self.told + _CRUMB_WAITS

    def bring(self, now: int, gain: float, loss: float) -> None:
        """Calls have succeeded or failed for good."""
        self.gain += gain
        self.loss += loss
        if self.told == NEVER and self.slot.wait:
            self.told = now
            self.slot.caller.news.append(self)


@final
class Slot:
    """One call in the order of its caller: how often it is made, and whether it matters."""

    __slots__ = ("caller", "inbox", "index", "optional", "share", "site", "times", "wait")

    def __init__(self, site: "Site", caller: "Caller", index: int) -> None:
        self.site: Final = site
        self.caller: Final = caller
        self.index: Final = index
        self.optional: Final = site.call.optional
        self.wait: Final = site.call.wait
        self.share = 1.0
        self.times = 1.0
        self.inbox: Parts = []


class Caller:
    """Whoever makes calls, in their order or together, and hears of their end."""

    __slots__ = (
        "done",
        "effort",
        "failed",
        "later",
        "news",
        "parallel",
        "returned",
        "slots",
        "told",
    )

    def __init__(self, *, parallel: bool) -> None:
        self.parallel: Final = parallel
        self.slots: Final[list[Slot]] = []
        self.news: list[Batch] = []
        self.later: list[Batch] = []  # news too small to act on within the step
        self.returned = 0.0  # of what began its calls in this step
        self.effort = 0  # parts handled, which is what a run costs
        self.done: Parts = []  # what has made all its calls
        self.failed: Parts = []  # what has lost one that it needs
        self.told = False  # whether a deadline comes down to it

    def add(self, site: "Site", most: float) -> None:
        """Make room for up to `most` calls of `site` per request, and make what the file says."""
        for _ in range(min(_SLOTS_MAX, math.ceil(most)) or 1):
            self.slots.append(Slot(site, self, len(self.slots)))
        self.set_calls(site, site.call.per_request)

    def set_calls(self, site: "Site", per_request: float) -> None:
        """Make `per_request` calls; beyond 16 of them each stands for several."""
        slots = [slot for slot in self.slots if slot.site is site]
        if not slots:
            return  # it is another's call
        times = max(1.0, per_request / len(slots))
        for number, slot in enumerate(slots):
            slot.times = times
            slot.share = min(1.0, max(0.0, per_request / times - number))

    def remember(self) -> None:
        """A new step: what was too small to act on may have grown."""
        self.returned = 0.0
        if self.later:
            self.news += self.later
            self.later = []

    def begin(self, parts: Parts) -> None:
        """The requests in `parts` start on their calls."""
        self._advance(0, parts, new=True)

    def hear(self, now: int) -> None:
        """Go on with what has come back."""
        news, self.news = self.news, []
        for batch in news:
            self.effort += len(batch.parts)
            if batch.is_crumb(now):
                self.later.append(batch)
                continue
            batch.told = NEVER
            gain, loss = batch.gain / batch.mass, batch.loss / batch.mass
            batch.gain = batch.loss = 0.0
            new = batch.born == now
            if batch.slot.optional:
                gain, loss = gain + loss, 0.0
            if batch.join is not None:
                self._joined(batch, batch.join, gain, loss, new=new)
                continue
            if gain > 0:
                self._advance(batch.next, _scaled(batch.parts, gain), new=new)
            if loss > 0:
                self.failed += _scaled(batch.parts, loss)
                self.returned += loss * batch.mass if new else 0.0
        self.flush(now)

    def flush(self, now: int) -> None:
        """Send what has gathered for each call, and end what has made all its calls."""
        for slot in self.slots:
            if slot.inbox:
                parts = self.in_time(now, merged(slot.inbox))
                slot.inbox = []
                if parts:
                    self._call(now, slot, parts)
        if self.done:
            parts, self.done = self.done, []
            self.finish(now, merged(parts), ok=True)
        if self.failed:
            parts, self.failed = self.failed, []
            self.finish(now, merged(parts), ok=False)

    def finish(self, now: int, parts: Parts, *, ok: bool) -> None:
        """The requests in `parts` have made all their calls, or failed one that they need."""
        raise NotImplementedError

    def in_time(self, now: int, parts: Parts) -> Parts:
        """Without those whose deadline has passed: nothing is begun for them any more."""
        if not self.told or all(packet.deadline > now for packet, _ in parts):
            return parts
        self.failed += [part for part in parts if part[0].deadline <= now]
        return [part for part in parts if part[0].deadline > now]

    def _advance(self, index: int, parts: Parts, *, new: bool) -> None:
        """On to call number `index`, past those whose way is clear, or to the end."""
        for slot in self.slots[index:]:
            if not slot.site.clear:
                slot.inbox += parts
                return
            slot.site.pass_by(parts, slot.share * slot.times)
        self.done += parts
        if new:
            self.returned += sum(mass for _, mass in parts)

    def _call(self, now: int, first: Slot, parts: Parts) -> None:
        """Make the call that is next, with those that can be made together with it.

        All of a caller in parallel; else a row of calls that are answered within the step, where
        their order shows in nothing but the work that it makes to follow it.
        """
        row: list[Slot] = []
        index = first.index
        for slot in self.slots[index:]:
            if slot.site.clear:
                slot.site.pass_by(parts, slot.share * slot.times)
            elif slot.share > 0 and not slot.wait:
                slot.site.begin(now, slot, _scaled(parts, slot.share), slot.index)
            elif slot.share > 0:
                together = self.parallel or slot.site.quick
                if row and not together:
                    break
                row.append(slot)
                if not together:
                    index += 1
                    break
            index += 1
        if not row:
            self._advance(index, parts, new=first.index == 0)
            return
        join = None
        if len(row) > 1:
            join = Join(parts, {slot.index: slot.share for slot in row}, index)
        elif row[0].share < 1:
            self._advance(index, _scaled(parts, 1 - row[0].share), new=first.index == 0)
        for slot in row:
            slot.site.begin(now, slot, _scaled(parts, slot.share), index, join)

    def _joined(self, batch: Batch, join: Join, gain: float, loss: float, *, new: bool) -> None:
        join.ok[batch.slot.index] += gain * batch.slot.share
        join.bad[batch.slot.index] += loss * batch.slot.share
        finished, failed = join.news()
        if finished > 0:
            self._advance(join.next, _scaled(join.parts, finished), new=new)
        if failed > 0:
            self.failed += _scaled(join.parts, failed)
            self.returned += failed * sum(mass for _, mass in join.parts) if new else 0.0


def merged(parts: Parts) -> Parts:
    """Each packet once: what comes back in bits and pieces goes on as a whole."""
    if len(parts) < _MERGED_FROM:
        return parts
    whole: dict[Packet, float] = {}
    for packet, mass in parts:
        whole[packet] = whole.get(packet, 0.0) + mass
    return list(whole.items())


def _scaled(parts: Parts, share: float) -> Parts:
    return parts if share == 1 else [(packet, mass * share) for packet, mass in parts]


class Target:
    """Where a call goes: whatever takes packets, and says how they are spread."""

    __slots__ = ()

    def is_clear(self) -> bool:
        """Whether every call is answered well within the step, all the way down."""
        raise NotImplementedError

    def absorb(self, mass: float) -> None:
        """So many calls were answered well within the step."""
        raise NotImplementedError

    def spread(self) -> "list[tuple[Receiver, float]]":
        """Who gets which share of what is sent now."""
        raise NotImplementedError


class Receiver(Caller):
    """A caller that can itself be called."""

    __slots__ = ()

    def arrive(self, now: int, packet: Packet) -> None:
        """A packet reaches the door."""
        raise NotImplementedError

    def abandon(self, packet: Packet) -> None:
        """Its caller has left."""
        raise NotImplementedError


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
        call: settings.Call,
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
        self._budget: Final = Budget(call.budget, hosts, dt) if call.budget else None
        self._circuit: Final = Circuit(call.breaker, hosts, dt) if call.breaker else None
        self._gate: Final = Gate(call.limit, hosts) if call.limit else None
        if self._gate is not None:
            self._gate.turns = max(1.0, dt / answer) if answer > 0 else math.inf
        self._dt: Final = dt
        self._attempts: Final = call.attempts
        self._reasons: Final = frozenset(_REASONS[reason] for reason in call.retry_on)
        self._timeout: Final = NEVER if call.timeout is None else _steps(call.timeout, dt)
        self._deadline: Final = NEVER if call.deadline is None else _steps(call.deadline, dt)
        blur = call.attempts <= _BLURRED_MAX
        self._gaps: Final = [
            list(waits(call.backoff, k, dt, blur=blur)) for k in range(1, call.attempts)
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
            and (self._circuit is None or self._circuit.state == "closed")
            and self.target.is_clear()
        )

    def pass_by(self, parts: Parts, times: float) -> None:
        """Requests that make `times` calls each on a clear way."""
        mass = times * sum(part for _, part in parts)
        self.made += mass
        self.target.absorb(mass)
        if self._budget is not None:
            self._budget.deposit(times * sum(part * packet.fresh for packet, part in parts))
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
        if self._circuit is not None:
            self._circuit.step(now)
        if self.bucket is not None:
            self.bucket.step()
        for pool, packet in self._timers.pop(now, ()):
            if packet.open > LEAST:
                self.settle(now, packet, packet.open, TIMEOUT)
            packet.open = 0.0
            pool.abandon(packet)
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
        """In the order of `core.pipeline`: rate, breaker, limit."""
        if self.bucket is not None:
            mass = self.bucket.take(mass)
        if self._circuit is not None:
            mass = self._circuit.take(now, mass)
        if self._gate is not None:
            mass = self._gate.take(mass)
        return mass


@final
class Client(Caller):
    """One population: what it sent in each step, and how much of that was served in time."""

    __slots__ = (
        "_patience",
        "_rate",
        "_returns",
        "_thinking",
        "_users",
        "good",
        "load",
        "name",
        "offered",
    )

    def __init__(self, name: str, client: settings.Client, *, dt: float, patience: int) -> None:
        super().__init__(parallel=False)
        self.name: Final = name
        self.load = 1.0
        self.offered: Final[list[float]] = []
        self.good: Final[list[float]] = []
        self._patience: Final = patience
        self._rate: Final = (client.rate or 0.0) * dt
        self._users: Final = float(client.users or 0)
        self._thinking = self._users
        think = client.think.average / SECOND if client.think else 0.0
        self._returns: Final = -math.expm1(-dt / think) if think > 0 else 1.0

    def set_load(self, load: float) -> None:
        """Send `load` times as often, or be `load` times as many."""
        self._thinking += self._users * (load - self.load)
        self.load = load

    def arrive(self, now: int) -> None:
        """The requests of one step."""
        mass = self._rate * self.load
        if self._users:
            mass = max(0.0, self._thinking) * self._returns
            self._thinking -= mass
        self.offered.append(mass)
        self.good.append(0.0)
        if mass > LEAST:
            self.begin([(Packet(None, 1, mass, now, NEVER, 1.0), mass)])
            self.flush(now)

    def finish(self, now: int, parts: Parts, *, ok: bool) -> None:
        """Count what was served in time; a person goes back to thinking in any case."""
        for packet, mass in parts:
            if ok and now - packet.sent < self._patience:
                self.good[packet.sent] += mass
            self._thinking += mass


def _steps(nanoseconds: float, dt: float, *, least: int = 1) -> int:
    return max(least, round(nanoseconds / SECOND / dt))
