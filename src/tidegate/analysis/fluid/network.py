"""What becomes of a whole system under one trigger, when requests are taken as a fluid?

One line per service, calls that wait on each other, the policies of every call: in a second or so
and without chance, for rating triggers and cures before any of them is simulated. The step is a
20th of the shortest timeout in play, and coarser where the run would otherwise take too long
(`Course.coarse` says so). Services that carry even the worst load without trouble are taken as
always healthy and cost nothing.

Where it is known to differ from a simulation of requests: it has no chance, so it misses collapses
that come by luck, and the unlucky few that time out in health; requests that are begun together are
mixed; own work takes its mean time, or one of five values; work that was begun is ended even where
it is cancelled; replicas that share a trigger are one pool with one queue, whatever the balancer; a
call that closes a circle of services is left out.
"""

import math
from typing import Final, final

from tidegate.analysis.fluid.client import Client
from tidegate.analysis.fluid.course import (
    RUNNING,
    Course,
    Drain,
    drained_after,
    judge,
    recovered_at,
)
from tidegate.analysis.fluid.door import without_door
from tidegate.analysis.fluid.flow import NEVER, Caller
from tidegate.analysis.fluid.policies import Bucket
from tidegate.analysis.fluid.pool import Group, Pool
from tidegate.analysis.fluid.site import Site
from tidegate.analysis.graph import Graph
from tidegate.analysis.outcome import worst
from tidegate.analysis.rules.view import Edge, average, patience
from tidegate.settings.system import System, Trigger
from tidegate.units import SECOND

__all__ = ["Network", "simulate_graph"]

_PER_TIMEOUT: Final = 20  # steps; the tipping point moves by one or two of them
_PER_TIMEOUT_LEAST: Final = 10  # with fewer the verdict is coarse
_PER_TRIGGER: Final = 20
_EFFORT: Final = 50_000  # calls times steps: about a second
_STEPS_MIN: Final = 3_000  # for the largest graphs, whatever they cost
_SETTLE: Final = 10.0  # seconds before a trigger; the fluid is settled after the first answers
_HOLD: Final = 60.0  # seconds until a trigger without an end is judged, while it lasts
_PATIENCE_MAX: Final = 60.0  # as for simulated runs
_HEALTHY: Final = 0.95  # of the capacity: up to there the worst load is no trouble
_LOOK_EVERY: Final = 5  # seconds
_LONGER: Final = 120.0  # seconds for which a queue that drains is followed beyond the objective
_LONGER_MAX: Final = 3
_COARSER: Final = (1, 2)  # steps so many times longer, should a run turn out too dear
_PARTS_MAX: Final = 2_000_000  # handled: two or three seconds
_ROUNDS_MAX: Final = 64  # of calls one after another within a step; the rest waits for the next


def simulate_graph(
    system: System, trigger: Trigger | None, *, effort: int = _EFFORT, hold: float = _HOLD
) -> Course:
    """Let `trigger` happen to `system` and see whether it comes back.

    A trigger without an end is judged after `hold` seconds, while it lasts; without a trigger, the
    system is left alone for as long. `effort` bounds steps times calls.
    """
    graph = Graph(system)
    for coarser in _COARSER:
        network = Network(graph, trigger, effort=effort, hold=hold, coarser=coarser)
        if network.run(bounded=coarser < _COARSER[-1]):
            break
    return network.course()


@final
class Network:
    """One run: the parts, the clock, and what is counted."""

    def __init__(
        self,
        graph: Graph,
        trigger: Trigger | None,
        *,
        effort: int = _EFFORT,
        hold: float = _HOLD,
        coarser: int = 1,
    ) -> None:
        self.graph: Final = graph
        self.trigger: Final = trigger
        self.lively: Final = _lively(graph, trigger)
        self.timeout: Final = self._shortest_timeout()
        self.hasty: Final = self._shortest_above()
        lasts = hold if trigger is None or trigger.for_ is None else trigger.for_ / SECOND
        begins = None if trigger is None or trigger.at is None else trigger.at / SECOND
        self.start: Final = _SETTLE if begins is None else begins
        self.end: Final = self.start + lasts
        patiences = [self._patience(name) for name in graph.system.clients]
        self.lag: Final = min(max(patiences), _PATIENCE_MAX)
        within = graph.system.objective.within / SECOND
        self.last: Final = self.end + within + RUNNING + self.lag
        self.dt: Final = self._step(lasts, effort, coarser)
        self.coarse: Final = self.dt > self.timeout / _PER_TIMEOUT_LEAST
        self.clients: Final[dict[str, Client]] = {}
        self.groups: Final[dict[str, Group]] = {}
        self.sites: Final[list[Site]] = []
        self.pools: Final[list[Pool]] = []  # callers before their callees
        self._build()
        self._strength = 0.0
        self._over = False
        self._bounded = False
        self._made: Final[dict[str, list[float]]] = {site.name: [] for site in self.sites}
        self._arrived: Final[dict[str, list[float]]] = {name: [] for name in self.groups}
        self._waiting: Final[dict[str, list[float]]] = {name: [] for name in self.groups}
        self._backlog: Final[list[float]] = []

    def run(self, *, bounded: bool = False) -> bool:
        """Until all are well again, or until nothing more can be learned.

        False if it was `bounded` and became too dear on the way.
        """
        self._bounded = bounded
        self._until(math.ceil(self.last))
        for _ in range(_LONGER_MAX):
            more = None if self._over else self._worth_waiting()
            if more is not None:
                self._until(len(self._backlog) + more)
        return not self._too_dear()

    def _until(self, second: int) -> None:
        per_second = max(1, round(1 / self.dt))
        look = math.ceil(self.end) + RUNNING
        while len(self._backlog) < second and not self._over:
            first = len(self._backlog) * per_second
            for now in range(first, first + per_second):
                self._set_trigger(now * self.dt)
                self._one_step(now)
            self._count()
            done = len(self._backlog)
            if self.trigger is not None and done >= look and (done - look) % _LOOK_EVERY == 0:
                self._over = self._all_well()
            self._over |= self._too_dear()

    def _too_dear(self) -> bool:
        callers: list[Caller] = [*self.pools, *self.clients.values()]
        return self._bounded and sum(caller.effort for caller in callers) > _PARTS_MAX

    def _worth_waiting(self) -> int | None:
        """How many seconds more would settle what is nearly over; None if nothing is."""
        if self.trigger is None:
            return None
        young = 2 + math.ceil(self.lag)
        if all(any(self._well(client)[-young:]) for client in self.clients.values()):
            return RUNNING
        drained = drained_after(self._drains())
        if drained is None or drained > _LONGER:
            return None
        return math.ceil(drained + self.lag) + RUNNING

    # One step.

    def _one_step(self, now: int) -> None:
        for pool in reversed(self.pools):
            pool.remember()
            pool.look(now)
            pool.begin_step()
        for client in self.clients.values():
            client.remember()
            for slot in client.slots:
                slot.site.look()
            client.arrive(now)
        for site in self.sites:
            site.tick(now)
        for _ in range(_ROUNDS_MAX):
            if not self._one_round(now) and not self._another_wave():
                break
        for pool in self.pools:
            pool.pass_on()
            pool.end_step(now)
        for site in self.sites:
            site.end_step()

    def _another_wave(self) -> bool:
        """Whether any service can start more, now that it is known what came back. Asks all."""
        return any([pool.goes_on() for pool in self.pools])  # noqa: C419 - each marks itself

    def _one_round(self, now: int) -> bool:
        """Down the calls, then up the answers; false when nothing moved."""
        moved = False
        for pool in self.pools:
            if pool.dirty:
                pool.visit(now)
                moved = True
        for pool in reversed(self.pools):
            if pool.news and not pool.frozen:
                pool.hear(now)
                moved = True
        for client in self.clients.values():
            if client.news:
                client.hear(now)
                moved = True
        return moved

    # What is counted, by the second.

    def _count(self) -> None:
        for name in self._made:
            self._made[name].append(0.0)
        for site in self.sites:
            self._made[site.name][-1] += site.made
            site.made = 0.0
        backlog = sum(site.orbit for site in self.sites)
        for name, group in self.groups.items():
            self._arrived[name].append(sum(pool.arrived for pool in group.pools))
            self._waiting[name].append(sum(pool.waiting for pool in group.pools))
            backlog += sum(pool.in_system for pool in group.pools)
            for pool in group.pools:
                pool.arrived = 0.0
        self._backlog.append(backlog)

    def _by_second(self, masses: list[float]) -> list[float]:
        size = max(1, round(1 / self.dt))
        return [math.fsum(masses[i : i + size]) for i in range(0, len(masses) - size + 1, size)]

    def _all_well(self) -> bool:
        """Whether every client has been served well for 30 s."""
        return all(
            recovered_at(self._well(client), math.ceil(self.end)) is not None
            for client in self.clients.values()
        )

    def _drains(self) -> dict[str, Drain]:
        drains = {
            name: Drain(self._waiting[name], sum(pool.answered_in_time() for pool in group.pools))
            for name, group in self.groups.items()
        }
        return drains or {"": Drain([0.0] * len(self._backlog), 0.0)}

    def _well(self, client: Client) -> list[bool]:
        objective = self.graph.system.objective.goodput * (1 - 1e-6)
        pairs = zip(self._by_second(client.good), self._by_second(client.offered), strict=True)
        return [good >= objective * offered for good, offered in pairs]

    def course(self) -> Course:
        """What the run showed, and the verdict on it."""
        offered = {name: self._by_second(c.offered) for name, c in self.clients.items()}
        good = {name: self._by_second(c.good) for name, c in self.clients.items()}
        by_client, after, finish = judge(
            offered,
            good,
            self._drains(),
            start=self.start,
            end=self.end,
            lag=self.lag,
            objective=self.graph.system.objective.goodput,
        )
        return Course(
            outcome=worst(list(by_client.values())),
            by_client=by_client,
            recovered_after=after,
            finishes_after=finish,
            start=self.start,
            end=self.end,
            lag=self.lag,
            dt=self.dt,
            coarse=self.coarse,
            offered=offered,
            good=good,
            attempts=self._made,
            arrived=self._arrived,
            backlog=self._backlog,
        )

    # Assembling.

    def _shortest_timeout(self) -> float:
        """Of the calls that take part; a second if none of them has one."""
        edges = [edge for edge in self.graph.view.edges if edge.callee in self.lively]
        shortest = min((patience(edge.call) for edge in edges), default=math.inf) / SECOND
        return shortest if shortest < math.inf else 1.0

    def _shortest_above(self) -> dict[str, float]:
        """The shortest timeout of all who wait for each service, near or far above it."""
        shortest = dict.fromkeys(self.graph.services, math.inf)
        for caller in (*self.graph.system.clients, *reversed(self.graph.callees_first)):
            for edge in self.graph.view.waited_by(caller):
                above = shortest.get(caller, math.inf)
                here = min(above, patience(edge.call) / SECOND)
                shortest[edge.callee] = min(shortest[edge.callee], here)
        return shortest

    def _patience(self, client: str) -> float:
        """How long a request may take in all to count as goodput: its calls, once each."""
        calls = self.graph.system.clients[client].calls.values()
        each = (patience(c) * math.ceil(c.per_request) for c in calls if c.per_request > 0)
        return math.fsum(each) / SECOND

    def _step(self, lasts: float, effort: int, coarser: int) -> float:
        """A whole part of a second."""
        calls = 1 + sum(edge.callee in self.lively for edge in self.graph.view.edges)
        wanted = min(self.timeout / _PER_TIMEOUT, lasts / _PER_TRIGGER, self._pause(), 1.0)
        steps = max(_STEPS_MIN, effort / calls)
        wanted = min(1.0, coarser * max(wanted, self.last / steps))
        return 1 / math.ceil(1 / wanted)

    def _pause(self) -> float:
        """The shortest time between two requests of a user: in a step nobody asks twice."""
        graph = self.graph
        users = {name: c.users for name, c in graph.system.clients.items() if c.users}
        return min((count / graph.view.rates[name] for name, count in users.items()), default=1.0)

    def _build(self) -> None:
        graph = self.graph
        for name in graph.callees_first:
            if name in self.lively:
                self.groups[name] = self._group(name)
        self.pools.extend(
            pool for name in reversed(self.groups) for pool in self.groups[name].pools
        )
        for name, client in graph.system.clients.items():
            wait = self._patience(name) / self.dt
            steps = NEVER if wait == math.inf else max(1, round(wait))
            self.clients[name] = Client(name, client, dt=self.dt, patience=steps)
            self._add_calls(self.clients[name], name, hosts=1)
        hurried = {edge.callee for edge in graph.view.edges if edge.call.propagate}
        for pool in self.pools:
            pool.told = pool.name in hurried
        self._retime()

    def _group(self, name: str) -> Group:
        """The pools of one service: two where a trigger hits only some of its replicas."""
        service = without_door(self.graph.services[name])
        trigger = self.trigger
        sizes = [service.replicas]
        if trigger is not None and trigger.service == name and trigger.replicas is not None:
            hit = min(trigger.replicas, service.replicas)
            if service.balance != "shared_queue" and hit < service.replicas:
                sizes = [hit, service.replicas - hit]
        hasty = self.hasty[name]
        pools = [Pool(name, service, replicas=n, dt=self.dt, hasty=hasty) for n in sizes]
        for pool in pools:
            pool.set_rate(service.rate_limit, pool.replicas / service.replicas)
            self._add_calls(pool, name, hosts=pool.replicas)
        return Group(pools, least_loaded=service.balance == "least_loaded")

    def _add_calls(self, caller: Caller, name: str, *, hosts: int) -> None:
        for edge in self.graph.view.out_of[name]:
            if edge.callee in self.groups:
                answer = self.graph.view.answers[edge.callee] / SECOND
                target = self.groups[edge.callee]
                site = Site(edge.name, edge.call, target, hosts=hosts, dt=self.dt, answer=answer)
                self.sites.append(site)
                caller.add(site, max(edge.call.per_request, self._per_request(edge)))

    def _per_request(self, edge: Edge) -> float:
        trigger = self.trigger
        if trigger is None or trigger.call != edge.name or trigger.per_request is None:
            return 0.0
        return trigger.per_request

    def _retime(self) -> None:
        """How long each service takes now, callees first: who waits for a call waits for that."""
        for pool in reversed(self.pools):
            pool.below = self._below(pool.name, parallel=pool.parallel)
            pool.retime()
        for name, client in self.clients.items():
            client.set_below(self._below(name, parallel=False))

    def _below(self, caller: str, *, parallel: bool) -> float:
        """Seconds of a request's calls that pass within a step, where they are not seen."""
        each = []
        for edge in self.graph.view.waited_by(caller):
            group = self.groups.get(edge.callee)
            time = average(edge.call.network) / SECOND
            if group is None:
                time += self.graph.view.answers[edge.callee] / SECOND
            else:
                time += sum(pool.within_step() * share for pool, share in group.shares)
            each.append(edge.call.per_request * time)
        return max(each, default=0.0) if parallel else math.fsum(each)

    # The trigger.

    def _set_trigger(self, time: float) -> None:
        trigger = self.trigger
        if trigger is None:
            return
        strength = self._strength_at(time)
        if strength != self._strength:
            self._strength = strength
            self._apply(trigger, strength)

    def _strength_at(self, time: float) -> float:
        """Up over the ramp from the start, down over the ramp from the end."""
        assert self.trigger is not None
        ramp = (self.trigger.ramp or 0) / SECOND
        at = time + self.dt / 2
        if at < self.start:
            return 0.0
        up = min(1.0, (at - self.start) / ramp) if ramp else 1.0
        down = min(1.0, (at - self.end) / ramp) if ramp else 1.0
        return up if self.trigger.for_ is None or at < self.end else 1.0 - down

    def _apply(self, trigger: Trigger, strength: float) -> None:
        def part(value: float | None) -> float:
            return 1.0 if value is None else 1 + (value - 1) * strength

        if trigger.client is not None:
            self.clients[trigger.client].set_load(part(trigger.load))
        elif trigger.call is not None:
            self._apply_to_call(trigger, strength)
        elif trigger.service in self.groups:
            group, service = self.groups[trigger.service], self.graph.services[trigger.service]
            pool = group.pools[0]  # the one that is hit
            pool.slowdown = part(trigger.slowdown)
            pool.workers.capacity = part(trigger.capacity)
            pool.errors = 1 - (1 - service.errors) * (1 - (trigger.errors or 0.0) * strength)
            pool.set_latency((trigger.latency or 0) * strength)
            pool.freeze(frozen=trigger.freeze and strength > 0)
            if trigger.rate_limit is not None:
                limit = trigger.rate_limit if strength > 0 else service.rate_limit
                for each in group.pools:
                    each.set_rate(limit, each.replicas / service.replicas)
        self._retime()

    def _apply_to_call(self, trigger: Trigger, strength: float) -> None:
        callers: list[Caller] = [*self.clients.values(), *self.pools]
        for site in self.sites:
            if site.name != trigger.call:
                continue
            site.set_latency((trigger.latency or 0) * strength)
            if trigger.rate_limit is not None:
                limit = trigger.rate_limit if strength > 0 else site.call.rate_limit
                site.bucket = None if limit is None else Bucket(limit, self.dt)
            if trigger.per_request is not None:
                made = trigger.per_request if strength > 0 else site.call.per_request
                for caller in callers:
                    caller.set_calls(site, made)


def _lively(graph: Graph, trigger: Trigger | None) -> set[str]:
    """The services that can be in trouble, or lead to one that can.

    All others carry the worst load of all retries, surge included, with room to spare, refuse
    nothing, and answer fast against every timeout.
    """
    surge = 1.0
    hit = set[str]()
    if trigger is not None:
        surge = max(1.0, trigger.load or 1.0)
        for edge in graph.view.edges:
            if edge.name == trigger.call:
                hit.add(edge.callee)
                if trigger.per_request and edge.call.per_request:
                    surge *= max(1.0, trigger.per_request / edge.call.per_request)
        if trigger.service is not None:
            hit.add(trigger.service)
    fast = min((patience(edge.call) for edge in graph.view.edges), default=math.inf) / 10
    lively: set[str] = set()
    for name in graph.callees_first:
        if not graph.worst[name]:
            continue  # nobody comes there
        service, capacity = graph.services[name], graph.capacity(name)
        full = capacity is not None and graph.worst[name] * surge > _HEALTHY * capacity
        refuses = service.rate_limit is not None or service.limit is not None
        refuses |= service.admission is not None
        slow = graph.view.answers[name] > fast
        below = any(edge.callee in lively for edge in graph.view.out_of[name])
        if name in hit or full or refuses or slow or below or service.errors > 0:
            lively.add(name)
    return lively
