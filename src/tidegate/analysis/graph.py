"""What does the call graph alone say: how often is each service asked at worst, by whom, and how?

Arithmetic for `check` that needs no queue and no simulation: attempts per user action along every
path, capacity in a service's own requests, workers held while a dependency hangs, and the share of
requests that truly need a service. The sums run over the services in the order of their calls and
look at every call once, however many paths there are. Only paths that somebody wants to read are
spelled out, the worst first.

Times are seconds, rates per second. A call that nobody waits for may close a circle of services;
the one that does is left out of the sums.
"""

import heapq
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Literal, NamedTuple, final

from tidegate.analysis.reach import Reach
from tidegate.analysis.rules.view import (
    Edge,
    View,
    amplification,
    average,
    longest,
    patience,
    tries,
)
from tidegate.analysis.theory import capacity_to_escape
from tidegate.findings import Hop, ServiceFacts
from tidegate.settings.system import Call, Service, System
from tidegate.units import SECOND

__all__ = ["Graph", "Paths"]

State = Literal["stable", "vulnerable", "overloaded", "no limit"]


class Paths(NamedTuple):
    """The worst paths, and how many there are in all: `total` - len(`shown`) are not shown."""

    shown: list[list[Hop]]
    total: int


@final
class Graph:
    """One system with its sums. Build it once and ask."""

    def __init__(self, system: System) -> None:
        self.view: Final = View(system)
        self.system: Final = self.view.system
        self.services: Final = self.view.services
        self._out: Final = _without_circles(self.view)
        self.callees_first: Final = _order(self._out, self.services)
        self.load: Final = self.view.load
        self.worst: Final = dict.fromkeys(self.services, 0.0)
        once = dict.fromkeys(self.services, 0.0)
        for client in system.clients:
            rate = self.view.rates[client]
            for service, count in self.attempts(client).items():
                self.worst[service] += rate * count
            for service, count in self.visits(client).items():
                once[service] += rate * count
        self.amplification: Final = {
            name: self.worst[name] / once[name] if once[name] > 0 else 1.0 for name in once
        }
        """Attempts per request at each service when every attempt fails, over all traffic."""

        self._stuck: Final[dict[str, bool]] = {}
        self._reach: Final = Reach(self._out, (*self.callees_first, *system.clients))

    # How often: sums over all paths.

    def visits(self, client: str) -> dict[str, float]:
        """Requests at each service for one request of `client`, when nothing fails."""
        return self._sum(client, lambda call: call.per_request)

    def attempts(self, client: str) -> dict[str, float]:
        """Attempts at each service for one request of `client`, when every attempt fails.

        The product of calls per request and attempts over a path, summed over the paths; a budget
        of b counts for 1 + b at most. Breakers, deadlines and limits may hold it lower.
        """
        return self._sum(client, lambda call: call.per_request * amplification(call))

    def _sum(self, client: str, weight: Callable[[Call], float]) -> dict[str, float]:
        total = dict.fromkeys(self.services, 0.0)
        for edge in self._out[client]:
            total[edge.callee] += weight(edge.call)
        for service in reversed(self.callees_first):
            if total[service]:
                for edge in self._out[service]:
                    total[edge.callee] += total[service] * weight(edge.call)
        return total

    # How long, and how many at once.

    def holding(self, service: str, waits: Mapping[str, float] | None = None) -> float:
        """Seconds for which one request holds a worker.

        `waits` says how long a call takes, with its retries, where it is not as in health.
        """
        record = self.services[service]
        own = average(record.time) / SECOND
        if not record.blocking:
            return own
        return own + self._waiting(service, record.parallel, waits or {})

    def _waiting(self, caller: str, parallel: bool, waits: Mapping[str, float]) -> float:
        each = [
            edge.call.per_request * waits.get(edge.name, self._healthy(edge))
            for edge in self.view.waited_by(caller)
            if edge.call.per_request > 0
        ]
        return max(each, default=0.0) if parallel else math.fsum(each)

    def _healthy(self, edge: Edge) -> float:
        return (average(edge.call.network) + self.view.answers[edge.callee]) / SECOND

    def occupancy(
        self, service: str, waits: Mapping[str, float] | None = None, *, rate: float | None = None
    ) -> float:
        """Workers that the service wants at `rate` (today's load): Little's law (1961)."""
        return (self.load[service] if rate is None else rate) * self.holding(service, waits)

    def hanging(self, callee: str) -> dict[str, float]:
        """How long each call to `callee` takes when it never answers: for `holding`'s `waits`."""
        return {edge.name: longest(edge.call) / SECOND for edge in self.view.into[callee]}

    def capacity(self, service: str, waits: Mapping[str, float] | None = None) -> float | None:
        """The service's own requests per second with every worker busy and nobody waiting.

        None if nothing limits it. `contention` adds its time for each request in the replica, so
        that even without a bound on workers one replica ends 1/contention requests per second.
        """
        record = self.services[service]
        slope = (record.contention or 0) / SECOND
        rates = [
            slots / time if (time := alone + slope * slots) > 0 else math.inf
            for slots, alone in self._slots(service, waits)
        ]
        if slope:
            rates.append(1 / slope)
        most = record.replicas * min(rates, default=math.inf)
        return most if most < math.inf else None

    def _slots(
        self, service: str, waits: Mapping[str, float] | None
    ) -> Iterator[tuple[float, float]]:
        """Places of one replica, and how long a request keeps one."""
        record = self.services[service]
        if record.workers is not None:
            yield record.workers, self.holding(service, waits)
        if record.limit is not None and record.limit.max is not None:
            own = average(record.time) / SECOND
            yield record.limit.max, own + self._waiting(service, record.parallel, waits or {})

    def facts(self) -> list[ServiceFacts]:
        """Each service under today's load.

        Advertised is its capacity in health, or its rate limit if that is less. Hidden is capacity
        at its most degraded over the worst amplification: below it the service heals by itself
        (Bronson et al., HotOS'21 section 3; Huang et al., OSDI'22 theorem 2). It is a bound: a
        short queue or a breaker may save what this calls vulnerable. To escape from a collapse
        takes more than to serve: capacity for all attempts of today's load while all of them fail.
        """
        return [self._facts(name) for name in self.services]

    def _facts(self, service: str) -> ServiceFacts:
        load, capacity = self.load[service], self.capacity(service)
        advertised, hidden = self._allowed(service, capacity), None
        if advertised is not None and capacity is not None:
            hidden = min(advertised, self.degraded(service) / self.amplification[service])
        return ServiceFacts(
            service=service,
            load=load,
            utilisation=None if advertised is None else load / advertised,
            advertised=advertised,
            hidden=hidden,
            escape=self._escape(service, load) / advertised if advertised else None,
            amplification=self.amplification[service],
            state=_state(load, advertised, hidden),
        )

    def _escape(self, service: str, load: float) -> float:
        return capacity_to_escape(0.0, load, math.inf, self.amplification[service])

    def _allowed(self, service: str, capacity: float | None) -> float | None:
        limit = self.services[service].rate_limit
        if limit is None:
            return capacity
        return limit.rate if capacity is None else min(capacity, limit.rate)

    def degraded(self, service: str) -> float:
        """Capacity at its worst: callees hang, its own queue is full and slows it; zero at worst.

        Only callees that can stay down are taken to hang: what slows for a while and heals by
        itself takes its callers along, and gives them back. A call without timeout holds its worker
        for ever; a queue without bound can slow a thrashing service without end.
        """
        record = self.services[service]
        waits = {
            edge.name: longest(edge.call) / SECOND
            for edge in self.view.waited_by(service)
            if self.can_stay_down(edge.callee)
        }
        most = self.capacity(service, waits)
        places = math.inf if record.queue.limit is None else record.queue.limit
        return math.inf if most is None else most / _slowness(record, places)

    def can_stay_down(self, service: str) -> bool:
        """Whether the worst load is above the healthy capacity of it, or of a service below it."""
        if not self._stuck:
            for name in self.callees_first:
                capacity = self.capacity(name)
                below = (edge.callee for edge in self._out[name] if edge.call.wait)
                over = capacity is not None and self.worst[name] > capacity
                self._stuck[name] = over or any(self._stuck[callee] for callee in below)
        return self._stuck[service]

    # Who needs it.

    def needs(self, service: str, *, without: str | None = None) -> dict[str, float]:
        """The share of each client's requests that cannot succeed without `service`.

        Calls that are required and waited for only, as if the call `without` were neither.
        """
        return self._of_clients(self._reach.needs(service, without=without))

    def asks(self, service: str) -> dict[str, float]:
        """The share of each client's requests that come to `service` at all."""
        return self._of_clients(self._reach.asks(service))

    def _of_clients(self, share: Mapping[str, float]) -> dict[str, float]:
        return {client: share.get(client, 0.0) for client in self.system.clients}

    def time_left(self) -> dict[str, float]:
        """Seconds that the first to leave still waits when each call is sent, with no queueing.

        From the top: what a caller allows, less what has passed until the call. A call whose
        answer takes longer is work for nobody, unless the deadline is passed on and kept. Negative
        when the caller has left before the call is even sent.
        """
        at_door = dict.fromkeys(self.services, math.inf)
        left: dict[str, float] = {}
        for caller in (*self.system.clients, *reversed(self.callees_first)):
            now = at_door.get(caller, math.inf)
            if caller in self.services:
                now -= average(self.services[caller].time) / SECOND
            for edge in self._out[caller]:
                left[edge.name] = now
                wait = patience(edge.call) / SECOND
                arrives = min(now, wait) - average(edge.call.network) / SECOND
                if edge.call.wait:
                    at_door[edge.callee] = min(at_door[edge.callee], arrives)
                    if caller not in self.services or not self.services[caller].parallel:
                        now -= edge.call.per_request * self._healthy(edge)
        return left

    # Paths.

    def worst_path(self, client: str, service: str) -> list[Hop]:
        """The path from `client` to `service` with the most attempts at its end; [] if none."""
        best: dict[str, tuple[float, Edge]] = {}
        for caller in (client, *reversed(self.callees_first)):
            if caller == client or caller in best:
                before = 1.0 if caller == client else best[caller][0]
                for edge in self._out[caller]:
                    here = before * _at_most(edge.call)
                    if edge.callee not in best or here > best[edge.callee][0]:
                        best[edge.callee] = here, edge
        edges: list[Edge] = []
        while service != client and service in best:
            edges.append(best[service][1])
            service = edges[-1].caller
        return _hops(edges[::-1])

    def paths(self, client: str, *, most: int = 20) -> Paths:
        """The `most` paths of `client` with the most attempts, each down to where calls end.

        Best first search with an exact outlook, so that next to nothing is spelled out that is
        not shown; among equals the longer goes on, or a million of them would go on in step.
        """
        ahead, count = self._outlook()
        ties = itertools.count()
        heap: list[tuple[float, int, int, float, tuple[Edge, ...]]] = [
            (-1.0, 0, next(ties), 1.0, ())
        ]
        shown: list[list[Hop]] = []
        while heap and len(shown) < most:
            _, _, _, so_far, edges = heapq.heappop(heap)
            onward = self._out[edges[-1].callee if edges else client]
            if not onward:
                shown.append(_hops(list(edges)))
            for edge in onward:
                here = so_far * _at_most(edge.call)
                best = -here * ahead[edge.callee]
                heapq.heappush(heap, (best, -len(edges), next(ties), here, (*edges, edge)))
        return Paths(shown, count[client])

    def _outlook(self) -> tuple[dict[str, float], dict[str, int]]:
        """From each caller down: the largest product of attempts, and the number of paths."""
        ahead: dict[str, float] = {}
        count: dict[str, int] = {}
        for name in (*self.callees_first, *self.system.clients):
            edges = self._out[name]
            ahead[name] = max((_at_most(e.call) * ahead[e.callee] for e in edges), default=1.0)
            count[name] = sum(count[e.callee] for e in edges) if edges else 1
        return ahead, count


def _without_circles(view: View) -> dict[str, list[Edge]]:
    """The calls of each caller, without those that nobody waits for and that close a circle."""
    kept = {caller: view.waited_by(caller) for caller in view.out_of}
    cut = set()
    for edge in view.edges:
        if not edge.call.wait:
            if _reaches(kept, edge.callee, edge.caller):
                cut.add(edge.name)
            else:
                kept[edge.caller].append(edge)
    return {
        caller: [e for e in edges if e.name not in cut] for caller, edges in view.out_of.items()
    }


def _reaches(out: Mapping[str, list[Edge]], start: str, goal: str) -> bool:
    """Whether calls lead from one service to another, or they are the same."""
    seen, front = {start}, [start]
    while front and goal not in seen:
        fresh = {edge.callee for edge in out[front.pop()]} - seen
        seen |= fresh
        front.extend(fresh)
    return goal in seen


def _order(out: Mapping[str, list[Edge]], services: Iterable[str]) -> list[str]:
    """Every service after all that it calls."""
    order: list[str] = []
    seen: set[str] = set()
    for start in services:
        trail = [] if start in seen else [(start, iter(out[start]))]
        seen.add(start)
        while trail:
            service, edges = trail[-1]
            edge = next(edges, None)
            if edge is None:
                order.append(service)
                trail.pop()
            elif edge.callee not in seen:
                seen.add(edge.callee)
                trail.append((edge.callee, iter(out[edge.callee])))
    return order


def _at_most(call: Call) -> float:
    """Attempts of one call that one request can make: a chance of a call counts as a call."""
    return amplification(call) * max(1.0, call.per_request)


def _hops(edges: list[Edge]) -> list[Hop]:
    """The path with its running product."""
    hops: list[Hop] = []
    cumulative = 1.0
    for edge in edges:
        cumulative *= _at_most(edge.call)
        hops.append(
            Hop(
                caller=edge.caller,
                call=edge.name,
                callee=edge.callee,
                attempts=tries(edge.call),
                cumulative=cumulative,
            )
        )
    return hops


def _slowness(record: Service, waiting: float) -> float:
    """How many times longer own work takes with `waiting` requests in each replica's queue."""
    slow = 1 + record.thrash * waiting if record.thrash else 1.0
    if not record.contention or record.workers is None:
        return slow
    own = average(record.time) + record.contention * record.workers
    return slow * (1 + record.contention * waiting / own)


def _state(load: float, advertised: float | None, hidden: float | None) -> State:
    if advertised is None:
        return "no limit"
    if load >= advertised:
        return "overloaded"
    return "vulnerable" if hidden is not None and load >= hidden else "stable"
