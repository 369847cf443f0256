"""How does a service treat a fluid: admit, queue, work, call others, answer?

A `Pool` is the replicas of one service that fare alike, taken together: one queue, all their
workers. Its own work takes its mean time. Where that is shorter than a step, it only bounds how
much can be started in the step; where it is longer, it is waited for as well, and spread over five
parts once it is long against the timeouts.
"""

import math
from collections import defaultdict, deque
from collections.abc import Iterator
from statistics import NormalDist
from typing import Final, final

from tidegate.analysis.fluid.flow import (
    LEAST,
    NEVER,
    Packet,
    Parts,
    Receiver,
    Target,
    merged,
    scaled,
)
from tidegate.analysis.fluid.policies import Bucket, Gate
from tidegate.analysis.fluid.workers import Workers
from tidegate.core.outcome import FAILURE, OVERLOADED, SUCCESS, Outcome
from tidegate.core.queue_order import FINISH_MARGIN, takes_newest
from tidegate.settings import system as settings
from tidegate.settings.policies import RateLimit
from tidegate.units import SECOND

__all__ = ["Group", "Pool"]

_PARTS: Final = 5
_MIDDLES: Final = tuple((part + 0.5) / _PARTS for part in range(_PARTS))
_SPREAD_FROM: Final = 1 / 8  # of the shortest timeout: below it, a spread changes no timeout
_WAVE_LEAST: Final = 1e-6  # of what waits: less is not worth another wave
_SPARE: Final = 0.9  # of the room of a step: a service that had so much to do is looked at closely


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
        "_cancels",
        "_clock",
        "_codel",
        "_delays",
        "_down_until",
        "_dt",
        "_flow",
        "_frozen",
        "_gate",
        "_hasty",
        "_holds",
        "_locked",
        "_places",
        "_plain",
        "_service",
        "_skips",
        "_spread",
        "_standing",
        "_varies",
        "_working",
        "absorbed",
        "arrived",
        "below",
        "clear",
        "dirty",
        "errors",
        "in_system",
        "latency",
        "name",
        "own",
        "queue",
        "replicas",
        "slowdown",
        "waiting",
        "workers",
    )

    def __init__(
        self, name: str, service: settings.Service, *, replicas: int, dt: float, hasty: float
    ) -> None:
        super().__init__(parallel=service.parallel)
        self.name: Final = name
        self.replicas: Final = replicas
        count = math.inf if service.workers is None else service.workers * replicas
        self.workers: Final = Workers(count, dt)
        self.slowdown = 1.0
        self.errors = service.errors
        self.latency = 0
        self._frozen = False  # by a trigger
        self._locked = False  # by a restart that went wrong
        self.below = 0.0  # seconds of the calls' answers that pass within a step
        self.own = service.time.average / SECOND if service.time else 0.0
        self.queue: Final[deque[Packet]] = deque()
        self.waiting = 0.0
        self.in_system = 0.0
        self.arrived = 0.0
        self.dirty = False
        self.clear = False
        self.absorbed = 0.0  # what came while clear, and has not been counted yet
        self._flow = 0.0  # what came in this step
        self._plain: Final = not (service.limit or service.thrash or service.contention)
        self._service: Final = service
        self._dt: Final = dt
        self._hasty: Final = hasty  # the shortest timeout of those who call, in seconds
        places = service.queue.limit
        self._places: Final = math.inf if places is None else places * replicas
        self._skips: Final = service.abandoned != "finish"
        self._cancels: Final = service.abandoned == "cancel" and service.time is not None
        self._codel: Final = service.queue.codel
        self._standing = NEVER
        self._bucket: Bucket | None = None
        self._gate: Final = Gate(service.limit, replicas, dt) if service.limit else None
        self._holds: Final = service.blocking and bool(service.calls)
        self._varies: Final = bool(service.blocking or service.thrash or service.contention)
        self._spread: Final = spread(service.time) if service.time else [1.0]
        self._delays: list[tuple[int, float]] = []
        self._working: Final[defaultdict[int, Parts]] = defaultdict(list)
        self._clock = 0  # steps that were not frozen
        self._down_until = -1

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
        self.workers.retime(own, self.below if service.blocking else 0.0)
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
        rate = self.workers.per_step / self._dt
        return rate * self._hasty if rate < math.inf and self._hasty < math.inf else 0.0

    def look(self, now: int) -> None:
        """See whether all that comes in this step is as good as answered.

        Nothing waits or is held up here or below, and the step before left room to spare. Should
        more come than there is room for, the next step owes it.
        """
        for slot in self.slots:
            slot.site.look()
        self.clear = (
            self.waiting <= LEAST
            and self.workers.held <= LEAST
            and not self._working
            and not self.frozen
            and now >= self._down_until
            and self._plain
            and self.own < self._dt
            and not self.errors
            and not self.latency
            and self._bucket is None
            and self._flow <= _SPARE * self.workers.per_step
            and all(slot.site.clear for slot in self.slots)
        )

    def pass_on(self) -> None:
        """Hand the calls of what was absorbed in this step to those below, and count it."""
        mass, self.absorbed = self.absorbed, 0.0
        if mass > 0:
            self.arrived += mass
            self._flow += mass
            self.workers.charge(mass)
            for slot in self.slots:
                calls = mass * slot.share * slot.times
                slot.site.absorb(calls, calls)

    def begin_step(self) -> None:
        """Room for new work."""
        if self._bucket is not None:
            self._bucket.step()
        if self._varies:
            self.retime()
        self._flow = 0.0
        self.workers.begin_step(frozen=self.frozen)
        if not self.frozen:
            self._clock += 1
        self.dirty = bool(self.queue) or self._clock in self._working

    def end_step(self, now: int) -> None:
        """Learn how much of what was started is held up, and whether the queue stands."""
        self._learn()
        if self.waiting <= LEAST:
            self._standing = NEVER
        elif self._standing == NEVER:
            self._standing = now

    def goes_on(self) -> bool:
        """Whether more can be started in this step, now that it is known what came back."""
        if self.frozen or not self.queue or not self.workers.has_started():
            return False
        self._learn()
        self.dirty = self._startable() > max(LEAST, _WAVE_LEAST * self.waiting)
        return self.dirty

    def _learn(self) -> None:
        """Nothing is learned where nobody is held, or what is started ends its work later."""
        if self._holds and self._delays[0][0] == 0 and self.workers.has_started():
            self.workers.learn(self.returned)

    def _startable(self) -> float:
        return self.workers.startable(cautious=self._holds)

    # What callers do.

    def arrive(self, now: int, packet: Packet) -> None:
        """A packet reaches the door."""
        keep = packet.open
        if self.clear:
            self.absorbed += keep
            self._reply(now, packet, keep, SUCCESS)
            return
        self.arrived += keep
        self._flow += keep
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
        over = keep - max(0.0, self._places - self.waiting + self.workers.startable(cautious=False))
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

    def abandon(self, now: int, packet: Packet) -> None:
        """Its caller has left; a service that cancels forgets what it has not begun."""
        if self._service.abandoned == "cancel" and packet.left > 0:
            self._lose(now, packet)

    def _lose(self, now: int, packet: Packet) -> None:
        self.waiting -= packet.left
        self._leave(now, packet, packet.left)
        packet.left = 0.0

    def _leave(self, now: int, packet: Packet, mass: float) -> None:
        self.in_system -= mass
        if self._gate is not None:
            self._gate.release(now, packet.sent, mass, trouble=True)

    def _refuse(self, now: int, packet: Packet, mass: float) -> None:
        """Say no, at the cost of a share of the own work that a request would have taken."""
        holding = self.own + (self.below if self._service.blocking else 0.0)
        if self._service.refusal_cost and holding > 0:
            self.workers.charge(self._service.refusal_cost * mass * self.own / holding)
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

    def _serve(self, now: int) -> None:
        room = most = self._startable()
        queue = self.queue
        parts: Parts = []
        while queue and room > LEAST:
            if self._newest_first():
                room -= self._take_newest(now, room, parts)
                continue
            room -= self._take(now, queue[0], room, parts)
            if queue[0].left <= LEAST:
                queue.popleft()
        if parts:
            self.workers.start(most - room)
            self._start(now, parts)

    def _newest_first(self) -> bool:
        order = self._service.queue.order
        if order == "fifo":
            return False
        servers = int(self.workers.present) if self.workers.limited else NEVER
        return takes_newest(order, math.ceil(self.waiting), servers)

    def _take_newest(self, now: int, room: float, parts: Parts) -> float:
        """Take from what came last; of what came in the same step, all alike."""
        sent = self.queue[-1].sent
        alike: list[Packet] = []
        while self.queue and self.queue[-1].sent == sent:
            alike.append(self.queue.pop())
        total = sum(packet.left for packet in alike)
        share = min(1.0, room / total) if total > LEAST else 1.0
        used = sum(self._take(now, packet, packet.left * share, parts) for packet in alike)
        self.queue.extend(packet for packet in reversed(alike) if packet.left > LEAST)
        return used

    def _take(self, now: int, packet: Packet, room: float, parts: Parts) -> float:
        """Take what there is room for, if it is worth doing; returns the room that it needs."""
        if not self._worth_doing(now, packet):
            return 0.0
        done, cost = self._before_leaving(now, packet) if self._skips else (1.0, 1.0)
        taken = packet.left if packet.left * cost <= room else room / cost
        packet.left -= taken
        self.waiting -= taken
        if done < 1:
            self._leave(now, packet, taken * (1 - done))
        parts.append((packet, taken * done))
        return taken * cost

    def _worth_doing(self, now: int, packet: Packet) -> bool:
        service = self._service
        if packet.left <= 0:
            return False
        gone = packet.leaves <= now
        if self._skips and gone:
            self._lose(now, packet)
            return False
        late = False
        if service.queue.late:
            margin = min(FINISH_MARGIN * self.own / self._dt, (packet.leaves - packet.sent) / 2)
            late = now + margin > packet.leaves
        if self._codel is not None and self.waiting > 1:  # the last one is delivered
            old = (now - packet.sent) * self._dt > self._codel.target / SECOND
            stands = (now - self._standing) * self._dt >= self._codel.interval / SECOND
            late |= old and stands
        if late:
            dropped = packet.left
            self._lose(now, packet)
            self._reply(now, packet, dropped, OVERLOADED)
        return not late

    def _before_leaving(self, now: int, packet: Packet) -> tuple[float, float]:
        """The share of its work that ends before its caller leaves, and what all of it costs.

        Where the abandoned is skipped, the line moves so that each is begun when its time is nearly
        up: what is begun in the last step of it ends after it, and has cost all the same. Where it
        is cancelled the rest is stopped on the way. Of exponential work both are then
        1 - e^(-left/mean): none is in vain, which is why cancelling heals and skipping does not.
        """
        if self.own <= 0:
            return 1.0, 1.0
        left = (packet.leaves - now) * self._dt
        if not self._cancels:
            return float(packet.leaves > now + 1), 1.0
        if len(self._spread) > 1:
            share = -math.expm1(-left / self.own)
            return share, share
        return float(left - self._dt >= self.own), min(1.0, left / self.own)

    def _start(self, now: int, parts: Parts) -> None:
        for delay, share in self._delays:
            if delay == 0:
                self._work_done(now, scaled(parts, share))
            else:
                self._working[self._clock + delay] += scaled(parts, share)

    def _work_done(self, now: int, parts: Parts) -> None:
        worked = sum(mass for _, mass in parts)
        if self.errors > 0:
            self._end(now, scaled(parts, self.errors), FAILURE)
            parts = scaled(parts, 1 - self.errors)
        if self.told:
            gone = [part for part in parts if part[0].deadline <= now]
            if gone:
                self._end(now, gone, FAILURE)
                parts = [part for part in parts if part[0].deadline > now]
        calling = sum(mass for _, mass in parts)
        self.workers.work_done(worked, calling)
        if not self.slots:
            self.returned += calling
            self._end(now, parts, SUCCESS)
            return
        if self._service.blocking:
            self.workers.held += calling
        self.begin(parts)

    def finish(self, now: int, parts: Parts, *, ok: bool) -> None:
        """Answer, and free the workers."""
        if self._service.blocking:
            self.workers.held = max(0.0, self.workers.held - sum(mass for _, mass in parts))
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

    def is_clear(self) -> bool:
        """Whether all replicas answer within the step."""
        return all(pool.clear for pool in self.pools)

    def absorb(self, mass: float) -> None:
        """So many calls were answered within the step."""
        for pool, share in self.shares:
            pool.absorbed += mass * share

    def spread(self) -> list[tuple[Receiver, float]]:
        """By the number of replicas, or to where least is about."""
        if not self._least:
            return self._even
        return [(min(self.pools, key=lambda pool: pool.in_system / pool.replicas), 1.0)]
