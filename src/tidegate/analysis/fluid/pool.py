"""How does a service treat a fluid: admit, queue, work, call others, answer?

A `Pool` is the replicas of one service that fare alike, taken together: one queue, all their
workers. Its own work takes its mean time. Where that is shorter than a step, it only bounds how
much can be started in the step; where it is longer, it is waited for as well, and spread over five
parts once it is long against the timeouts. Workers that wait for calls beyond the step are held;
the rest go on.
"""

import math
from collections import defaultdict, deque
from collections.abc import Iterator
from statistics import NormalDist
from typing import Final, final

from tidegate.analysis.fluid.parts import LEAST, NEVER, Packet, Parts, Receiver, Target, merged
from tidegate.analysis.fluid.policies import Bucket, Gate
from tidegate.core.outcome import FAILURE, OVERLOADED, SUCCESS, Outcome
from tidegate.core.queue_order import FINISH_MARGIN, takes_newest
from tidegate.settings import system as settings
from tidegate.settings.policies import RateLimit
from tidegate.units import SECOND

__all__ = ["Group", "Pool"]

_PARTS: Final = 5
_MIDDLES: Final = tuple((part + 0.5) / _PARTS for part in range(_PARTS))
_SPREAD_FROM: Final = 1 / 8  # of the shortest timeout: below it, a spread changes no timeout
_WAVE: Final = 1e-6


def spread(time: settings.Time) -> list[float]:
    """Five equally likely values of a time, in its means."""
    if time.sigma:
        values = [math.exp(time.sigma * NormalDist().inv_cdf(middle)) for middle in _MIDDLES]
    elif time.mean is not None:
        values = [-math.log1p(-middle) for middle in _MIDDLES]
    else:
        return [1.0]
    mean = math.fsum(values) / _PARTS
    return [value / mean for value in values]


@final
class Pool(Receiver):
    """Some replicas of one service. What a trigger can change stands in the public fields."""

    __slots__ = (
        "_bucket",
        "_called",
        "_calling",
        "_cancels",
        "_clock",
        "_codel",
        "_delays",
        "_down_until",
        "_dt",
        "_frozen",
        "_gate",
        "_hasty",
        "_held_before",
        "_locked",
        "_places",
        "_service",
        "_skips",
        "_spread",
        "_standing",
        "_started",
        "_sticks",
        "_turn",
        "_turns",
        "_varies",
        "_worked",
        "_workers",
        "_working",
        "arrived",
        "below",
        "capacity",
        "dirty",
        "errors",
        "held",
        "in_system",
        "latency",
        "name",
        "own",
        "queue",
        "replicas",
        "slowdown",
        "waiting",
    )

    def __init__(
        self, name: str, service: settings.Service, *, replicas: int, dt: float, hasty: float
    ) -> None:
        super().__init__(parallel=service.parallel)
        self.name: Final = name
        self.replicas: Final = replicas
        self.capacity = 1.0
        self.slowdown = 1.0
        self.errors = service.errors
        self.latency = 0
        self._frozen = False  # by a trigger
        self._locked = False  # by a restart that went wrong
        self.below = 0.0  # seconds of the calls' answers that pass within a step
        self.own = service.time.average / SECOND if service.time else 0.0
        self.queue: Final[deque[Packet]] = deque()
        self.waiting = 0.0
        self.held = 0.0
        self.in_system = 0.0
        self.arrived = 0.0
        self.dirty = False
        self._service: Final = service
        self._dt: Final = dt
        self._hasty: Final = hasty  # the shortest timeout of those who call, in seconds
        self._workers: Final = math.inf if service.workers is None else service.workers * replicas
        places = service.queue.limit
        self._places: Final = math.inf if places is None else places * replicas
        self._skips: Final = service.abandoned != "finish"
        self._cancels: Final = service.abandoned == "cancel" and service.time is not None
        self._codel: Final = service.queue.codel
        self._standing = NEVER
        self._bucket: Bucket | None = None
        self._gate: Final = Gate(service.limit, replicas) if service.limit else None
        self._worked = 0.0  # own work that has ended in this step,
        self._called = 0.0  # how much of it went on to its calls,
        self._calling = 1.0  # and the share of that in the step before
        self._varies: Final = bool(service.blocking or service.thrash or service.contention)
        self._spread: Final = spread(service.time) if service.time else [1.0]
        self._delays: list[tuple[int, float]] = []
        self._working: Final[defaultdict[int, Parts]] = defaultdict(list)
        self._clock = 0  # steps that were not frozen
        self._down_until = -1
        self._turn = math.inf  # works that a worker ends in a step when it never waits
        self._turns = math.inf  # what is left of that in this step
        self._started = 0.0
        self._held_before = 0.0
        self._sticks = 0.0  # the share of what starts that is still held at the end of the step

    # What time and triggers do.

    def set_rate(self, limit: RateLimit | None, share: float) -> None:
        """Change the limit at the service's door; this pool has its `share` of it."""
        self._bucket = None if limit is None else Bucket(limit, self._dt, share)

    def freeze(self, *, frozen: bool) -> None:
        """Stop all progress, or let it go on."""
        self._frozen = frozen

    @property
    def frozen(self) -> bool:
        """Whether nothing moves."""
        return self._frozen or self._locked

    def set_latency(self, nanoseconds: float) -> None:
        """Answers are so much longer on their way."""
        self.latency = round(nanoseconds / SECOND / self._dt)

    def retime(self) -> None:
        """Reckon anew how long work takes, from what is slow and how much is about."""
        service = self._service
        own = (service.time.average / SECOND if service.time else 0.0) * self.slowdown
        if service.thrash:
            own *= 1 + service.thrash * self.waiting / self.replicas
        if service.contention:
            own += service.contention / SECOND * self.in_system / self.replicas
        if own != self.own or not self._delays:
            self.own = own
            self._delays = list(self._delays_of(own))
        holding = own + (self.below * self._calling if service.blocking else 0.0)
        self._turn = self._dt / holding if holding > 0 else math.inf
        if self._gate is not None:
            answer = own + self.below
            self._gate.turns = max(1.0, self._dt / answer) if answer > 0 else math.inf

    def _delays_of(self, own: float) -> Iterator[tuple[int, float]]:
        if own < self._dt or (self._cancels and own < _SPREAD_FROM * self._hasty):
            yield 0, 1.0
        elif own < _SPREAD_FROM * self._hasty:
            yield int(own / self._dt), 1.0
        else:
            for part in self._spread:
                yield int(own * part / self._dt), 1 / len(self._spread)

    def within_step(self) -> float:
        """Seconds of an answer that pass within a step: nobody is seen to wait for them."""
        return self.below + (self.own if self.own < self._dt else 0.0)

    def answered_in_time(self) -> float:
        """How many may wait so that the last of them is still answered before its caller leaves."""
        if self._workers == math.inf or self._turn == math.inf or self._hasty == math.inf:
            return 0.0
        return self._workers * self.capacity * self._turn / self._dt * self._hasty

    def begin_step(self) -> None:
        """Room for new work."""
        if self._bucket is not None:
            self._bucket.step()
        if self._worked > LEAST:
            self._calling = self._called / self._worked
        self._worked = self._called = 0.0
        if self._varies:
            self.retime()
        debt = min(0.0, self._turns)
        self._turns = 0.0 if self.frozen else self._turn + debt
        self._started = 0.0
        self._held_before = self.held
        if not self.frozen:
            self._clock += 1
        self.dirty = bool(self.queue) or self._clock in self._working

    def end_step(self, now: int) -> None:
        """Learn how much of what was started is held up."""
        if self._started > LEAST:
            self._sticks = self._stuck()
        if self.waiting <= LEAST:
            self._standing = NEVER
        elif self._standing == NEVER:
            self._standing = now

    def goes_on(self) -> bool:
        """Whether more can be started in this step, now that it is known what came back."""
        if self.frozen or not self.queue or self._started <= LEAST:
            return False
        self._sticks = self._stuck()
        self.dirty = self._startable() > max(LEAST, _WAVE * self._workers)
        return self.dirty

    def _stuck(self) -> float:
        return min(1.0, max(0.0, (self.held - self._held_before) / self._started))

    # What callers do.

    def arrive(self, now: int, packet: Packet) -> None:
        """A packet reaches the door."""
        keep = packet.open
        self.arrived += keep
        if now < self._down_until:
            self._reply(now, packet, keep, FAILURE)
            return
        restart = self._service.restart
        if (
            restart is not None
            and not self._locked
            and self.waiting >= restart.backlog * self.replicas
        ):
            self._crash(now, restart)
            self._reply(now, packet, keep, FAILURE)
            return
        if self._bucket is not None:
            keep = self._bucket.take(keep)
        if self._gate is not None:
            keep = self._gate.take(keep)
        if keep < packet.open:
            self._refuse(now, packet, packet.open - keep)
        over = keep - max(0.0, self._places - self.waiting + self._startable(first=False))
        if over > 0:
            keep -= over
            self._leave(now, packet, over)
            self.in_system += over
            if self._service.queue.full == "refuse":
                self._refuse(now, packet, over)
        if keep > LEAST:
            packet.left = keep
            self.queue.append(packet)
            self.waiting += keep
            self.in_system += keep
            self.dirty = True

    def abandon(self, packet: Packet) -> None:
        """Its caller has left; a service that cancels forgets what it has not begun."""
        if self._service.abandoned == "cancel" and packet.left > 0:
            self._lose(packet)

    def _lose(self, packet: Packet) -> None:
        self.waiting -= packet.left
        self._leave(0, packet, packet.left)
        packet.left = 0.0

    def _leave(self, now: int, packet: Packet, mass: float) -> None:
        self.in_system -= mass
        if self._gate is not None:
            self._gate.release(now, packet.sent, mass, trouble=True)

    def _refuse(self, now: int, packet: Packet, mass: float) -> None:
        cost = self._service.refusal_cost
        if cost and self._workers < math.inf and self._turn < math.inf:
            share = self.own * self._turn / self._dt  # of a request's time that is own work
            self._turns -= cost * share * mass / max(LEAST, self._workers * self.capacity)
        self._reply(now, packet, mass, OVERLOADED)

    def _crash(self, now: int, restart: settings.Restart) -> None:
        self._down_until = now + max(1, round(restart.down / SECOND / self._dt))
        self._locked = restart.stuck
        held = [(packet, packet.left) for packet in self.queue]
        held += [part for parts in self._working.values() for part in parts]
        self.queue.clear()
        self._working.clear()
        self.waiting = 0.0
        for packet, mass in held:
            packet.left = 0.0
            self._leave(now, packet, mass)
            self._reply(now, packet, mass, FAILURE)

    # What workers do.

    def visit(self, now: int) -> None:
        """End the work that is due, and start what there is room for."""
        self.dirty = False
        if self.frozen:
            return
        due = self._working.pop(self._clock, None)
        if due:
            self._work_done(now, merged(due))
        if self.queue and now >= self._down_until:
            self._serve(now)
        self.flush(now)

    def _startable(self, *, first: bool = True) -> float:
        """How much can be started in what is left of the step.

        While a worker that starts work is held with probability s, n free workers start
        n (1 - e^(-s t))/s in t turns. As long as s is not known, each starts one: `first`.
        """
        turns = self._turns
        if self._workers == math.inf:
            return math.inf if turns > 0 else 0.0
        free = self._workers * self.capacity - self.held
        if free <= 0 or turns <= 0:
            return 0.0
        stuck = self._sticks
        if stuck > _WAVE:
            return free * -math.expm1(-stuck * turns) / stuck
        if first and self._started <= LEAST and self.slots and self._service.blocking:
            return free * min(1.0, turns)
        return free * turns

    def _serve(self, now: int) -> None:
        room = most = self._startable()
        queue, parts, order = self.queue, [], self._service.queue.order
        servers = int(self._workers * self.capacity) if self._workers < math.inf else NEVER
        while queue and room > LEAST:
            newest = order != "fifo" and takes_newest(order, math.ceil(self.waiting), servers)
            packet = queue[-1] if newest else queue[0]
            if self._worth_doing(now, packet):
                done, cost = self._before_leaving(now, packet) if self._cancels else (1.0, 1.0)
                taken = packet.left if packet.left * cost <= room else room / cost
                packet.left -= taken
                room -= taken * cost
                self.waiting -= taken
                if done < 1:
                    self._leave(now, packet, taken * (1 - done))
                parts.append((packet, taken * done))
            if packet.left <= LEAST:
                if newest:
                    queue.pop()
                else:
                    queue.popleft()
        if parts:
            self._use(most - room)
            self._start(now, parts)

    def _use(self, started: float) -> None:
        """Time goes by on the workers that started so much: the inverse of `_startable`."""
        self._started += started
        free = self._workers * self.capacity - self.held
        if self._workers == math.inf or free <= 0:
            return
        share, stuck = started / free, self._sticks
        if stuck > _WAVE:
            left = max(1e-12, 1 - stuck * share)
            self._turns = max(0.0, self._turns + math.log(left) / stuck)
        else:
            self._turns = max(0.0, self._turns - share)

    def _worth_doing(self, now: int, packet: Packet) -> bool:
        service = self._service
        if packet.left <= 0:
            return False
        gone = packet.leaves <= now
        if self._skips and gone:
            self._lose(packet)
            return False
        late = False
        if service.queue.late:
            margin = min(FINISH_MARGIN * self.own / self._dt, (packet.leaves - packet.sent) / 2)
            late = now + margin > packet.leaves
        if self._codel is not None and self.waiting > packet.left + LEAST:
            old = (now - packet.sent) * self._dt > self._codel.target / SECOND
            stands = (now - self._standing) * self._dt >= self._codel.interval / SECOND
            late |= old and stands
        if late:
            dropped = packet.left
            self._lose(packet)
            self._reply(now, packet, dropped, OVERLOADED)
        return not late

    def _before_leaving(self, now: int, packet: Packet) -> tuple[float, float]:
        """The share of its work that ends before its caller leaves, and what all of it costs.

        The rest is cancelled on the way. Of exponential work both are 1 - e^(-left/mean): none of
        it is in vain, which is why cancelling heals where skipping does not.
        """
        left = (packet.leaves - now) * self._dt
        if len(self._spread) > 1:
            share = -math.expm1(-left / self.own)
            return share, share
        return float(left >= self.own), min(1.0, left / self.own)

    def _start(self, now: int, parts: Parts) -> None:
        for delay, share in self._delays:
            some = parts if share == 1 else [(packet, mass * share) for packet, mass in parts]
            if delay == 0:
                self._work_done(now, some)
            else:
                self._working[self._clock + delay] += some

    def _work_done(self, now: int, parts: Parts) -> None:
        self._worked += sum(mass for _, mass in parts)
        if self.errors > 0:
            self._end(now, [(packet, mass * self.errors) for packet, mass in parts], FAILURE)
            parts = [(packet, mass * (1 - self.errors)) for packet, mass in parts]
        if self.told:
            gone = [part for part in parts if part[0].deadline <= now]
            if gone:
                self._end(now, gone, FAILURE)
                parts = [part for part in parts if part[0].deadline > now]
        calling = sum(mass for _, mass in parts)
        self._called += calling
        if not self.slots:
            self._end(now, parts, SUCCESS)
            return
        if self._service.blocking:
            self.held += calling
        self.begin(now, parts)

    def finish(self, now: int, parts: Parts, *, ok: bool) -> None:
        """Answer, and free the workers."""
        if self._service.blocking:
            self.held = max(0.0, self.held - sum(mass for _, mass in parts))
        self._end(now, parts, SUCCESS if ok else FAILURE)

    def _end(self, now: int, parts: Parts, outcome: Outcome) -> None:
        gate = self._gate
        for packet, mass in parts:
            self.in_system -= mass
            if gate is not None:
                gate.release(now, packet.sent, mass, trouble=False)
            self._reply(now, packet, mass, outcome)

    def _reply(self, now: int, packet: Packet, mass: float, outcome: Outcome) -> None:
        batch = packet.batch
        assert batch is not None
        if packet.open > 0 and (not self.latency or now + self.latency < packet.leaves):
            batch.slot.site.settle(now, packet, mass, outcome)


@final
class Group(Target):
    """The pools of one service behind its balancer."""

    __slots__ = ("_even", "_least", "pools", "shares")

    def __init__(self, pools: list[Pool], *, least_loaded: bool) -> None:
        self.pools: Final = pools
        self._least: Final = least_loaded and len(pools) > 1
        total = sum(pool.replicas for pool in pools)
        self.shares: Final = [(pool, pool.replicas / total) for pool in pools]
        self._even: Final[list[tuple[Receiver, float]]] = list(self.shares)

    def spread(self) -> list[tuple[Receiver, float]]:
        """By the number of replicas, or to where least is about."""
        if not self._least:
            return self._even
        return [(min(self.pools, key=lambda pool: pool.in_system / pool.replicas), 1.0)]
