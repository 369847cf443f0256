"""What do closed forms say of one service whose callers time out and try again?

For `check`, before anything is simulated: at which load a service tips over by itself, below which
load it comes back by itself, how long an outage it takes to push it over, and how long a backlog
takes to drain. The service is an M/M/c queue, first come first served (Poisson arrivals,
exponential service, c servers); a caller leaves after `timeout` and at once tries again, and what
it left behind is still served. Retries are taken as Poisson too: the mean-field step, which knows
no luck. A service that these forms call healthy can still fall by chance; only simulation tells how
soon.

Times are seconds, rates are per second, shares are parts of one, as in `findings`. Symbols:
lambda the load (first attempts), mu = 1/service, C = c mu the capacity, T the timeout, A the
attempts in all, rho the utilisation by all attempts, q the share of attempts that time out.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Final, Literal, NamedTuple

import msgspec

from tidegate.findings import Hysteresis

__all__ = [
    "Folds",
    "Refusals",
    "Station",
    "SteadyState",
    "admitted_share",
    "amplification",
    "capacity_to_escape",
    "drain_time",
    "erlang_b",
    "erlang_c",
    "folds",
    "has_two_states",
    "hysteresis",
    "load_carried",
    "mean_sojourn",
    "refusal_cliff",
    "refusals",
    "smallest_outage",
    "sojourn_tail",
    "steady_states",
    "timeout_probability",
    "workers_busy",
]

_GOLDEN: Final = (math.sqrt(5) - 1) / 2
_STEPS: Final = 100  # false position needs ten; this is its bound
_NEVER_LOST: Final = 1e300  # 1/B beyond this: no request in the age of the universe finds all busy


class Station(msgspec.Struct, frozen=True, kw_only=True):
    """One service with the retry policy of its callers.

    `service` is the mean time of one server for one request, `timeout` of one attempt (infinite:
    callers wait for ever), `attempts` the tries in all (infinite is allowed), `budget` the retries
    per first attempt, or None without a budget.
    """

    servers: int = 1
    service: float
    timeout: float = math.inf
    attempts: float = 1
    budget: float | None = None

    def __post_init__(self) -> None:
        if self.servers < 1 or not 0 < self.service < math.inf:
            raise ValueError("a station needs at least one server and a service time above zero")
        if self.timeout <= 0 or self.attempts < 1 or (self.budget or 0) < 0:
            raise ValueError(
                "a station needs a timeout above zero, one attempt, no debt of retries"
            )

    @property
    def capacity(self) -> float:
        """C = c mu: attempts per second with every server busy."""
        return self.servers / self.service

    @property
    def amplification(self) -> float:
        """Attempts per request while all of them fail: A, or 1 + b under a budget of b.

        Callers who wait for ever make one.
        """
        if self.timeout == math.inf:
            return 1.0
        return self.attempts if self.budget is None else min(self.attempts, 1 + self.budget)


# The queue.


def erlang_b(servers: int, load: float) -> float:
    """The share of arrivals that find all servers busy where nobody waits (Erlang 1917).

    `load` is in erlangs: arrivals per second times mean service time.
    """
    return 1 / _inverse_b(servers, load) if load > 0 else 0.0


def erlang_c(servers: int, load: float) -> float:
    """The share of arrivals that have to wait where everybody waits; 1 from `load` = servers on."""
    if load >= servers:
        return 1.0
    if load <= 0:
        return 0.0
    rho = load / servers
    return 1 / (rho + (1 - rho) * _inverse_b(servers, load))


def _inverse_b(servers: int, load: float) -> float:
    """1/B = sum over k <= c of c!/((c-k)! a^k): positive terms only, so no cancellation.

    The terms first grow and then fall for good. The sum stops when they no longer count (near
    saturation after some sqrt(c) of them) or when it is beyond reckoning, so that a million servers
    cost milliseconds.
    """
    term = total = 1.0
    for k in range(servers):
        ratio = (servers - k) / load
        term *= ratio
        total += term
        if total > _NEVER_LOST or (ratio < 1 and term < total * 1e-17):
            break
    return total


def sojourn_tail(station: Station, rate: float, time: float) -> float:
    """P(S > time): the share of attempts that take longer, waiting and service, at `rate` arrivals.

    M/M/c, first come first served; 1 where the arrivals exceed the capacity.
    """
    return 1 - _in_time(station, rate / station.capacity, time)


def mean_sojourn(station: Station, rate: float) -> float:
    """Mean time of an attempt, waiting and service; infinite from capacity on."""
    spare = station.capacity - rate
    if spare <= 0:
        return math.inf
    return erlang_c(station.servers, rate * station.service) / spare + station.service


def timeout_probability(station: Station, utilisation: float) -> float:
    """q(rho): the share of attempts that time out when all attempts together load it to rho."""
    return 1 - _in_time(station, utilisation, station.timeout)


def _in_time(station: Station, rho: float, time: float) -> float:
    """P(S <= time), exact also where it is tiny, which decides what happens near rho = 1.

    The textbook form is P(S > t) = e^(-mu t) + E mu/(mu - d) (e^(-d t) - e^(-mu t)), with the
    Erlang-C share E and d = C - lambda. Here it is split into those who wait and those who do not,
    and written so that nothing large is subtracted from its like.
    """
    if time == math.inf:
        return 1.0
    if rho >= 1:
        return 0.0
    mu, servers = 1 / station.service, station.servers
    served = -math.expm1(-mu * time)
    if rho <= 0:
        return served
    inverse = _inverse_b(servers, rho * servers)
    wait = 1 / (rho + (1 - rho) * inverse)
    no_wait = (1 - rho) * (inverse - 1) * wait
    d = servers * mu * (1 - rho)
    if abs(mu - d) < 1e-7 * mu:
        waited = served - mu * time * math.exp(-mu * time)
    else:
        waited = (d * math.expm1(-mu * time) - mu * math.expm1(-d * time)) / (mu - d)
    return min(1.0, no_wait * served + wait * waited)


# Retries.


def amplification(failing: float, attempts: float, budget: float | None = None) -> float:
    """Attempts per request when each fails with probability `failing`: 1 + p + ... + p^(A-1).

    With a budget at most 1 + b (SRE book ch. 21: 3 attempts come to 3x, a 10 % budget to 1.1x).
    """
    return _amplification(1 - failing, attempts, budget)


def _amplification(succeeding: float, attempts: float, budget: float | None) -> float:
    if succeeding <= 0:
        made = attempts
    elif succeeding >= 1:
        made = 1.0
    else:
        made = -math.expm1(attempts * math.log1p(-succeeding)) / succeeding
    return made if budget is None else min(made, 1 + budget)


def load_carried(station: Station, utilisation: float) -> float:
    """g(rho): the load, as a share of capacity, whose attempts together come to rho.

    g = rho (1 - q)/(1 - q^A). Every steady state lies on lambda = C g(rho).
    """
    ok = _in_time(station, utilisation, station.timeout)
    return utilisation / _amplification(ok, station.attempts, station.budget)


class Folds(NamedTuple):
    """The two loads between which a service has two stable states. Equal if it never has.

    Above `ceiling` there is no healthy state: it collapses without any trigger. Below `recovery`
    there is no collapsed one: it heals by itself, however deep it was. `utilisation` is rho at the
    ceiling, by all attempts together.
    """

    ceiling: float
    recovery: float
    utilisation: float


def folds(station: Station) -> Folds:
    """Ceiling lambda_c = C max g and recovery threshold lambda_r = C/A.

    A budget b puts lambda_r near C/(1 + b), exactly where it begins to cap the retries: a little
    below C/(1 + b) a state is left in which part of the requests times out.
    """
    peak, capped = _peak(station), _capped_from(station)
    ceiling = station.capacity * load_carried(station, peak)
    recovery = station.capacity * load_carried(station, capped)
    if ceiling <= recovery * (1 + 1e-9):
        full = station.capacity / station.amplification
        return Folds(full, full, 1.0)
    return Folds(ceiling, recovery, peak)


def _peak(station: Station) -> float:
    """Where g is highest below the point at which a budget caps the retries: golden section.

    g turns at most once there.
    """
    low, high = 0.0, _capped_from(station)
    while high - low > 1e-12:
        width = (high - low) * _GOLDEN
        left, right = high - width, low + width
        if load_carried(station, left) < load_carried(station, right):
            low = left
        else:
            high = right
    return (low + high) / 2


def _capped_from(station: Station) -> float:
    """The utilisation from which on the budget, and no longer the outcome, sets the retries."""
    if station.budget is None or 1 + station.budget >= station.attempts:
        return 1.0

    def over(rho: float) -> float:
        ok = _in_time(station, rho, station.timeout)
        return _amplification(ok, station.attempts, None) - station.amplification

    return _root(over, 0.0, 1.0) if over(0.0) < 0 else 0.0


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function changes sign, by the Illinois form of false position."""
    at_low, at_high = function(low), function(high)
    kept = 0
    for _ in range(_STEPS):
        middle = (low * at_high - high * at_low) / (at_high - at_low)
        value = function(middle)
        if value == 0 or high - low < 1e-13:
            break
        if (value < 0) == (at_low < 0):
            low, at_low = middle, value
            at_high = at_high / 2 if kept == 1 else at_high
            kept = 1
        else:
            high, at_high = middle, value
            at_low = at_low / 2 if kept == -1 else at_low
            kept = -1
    return middle


def has_two_states(station: Station) -> bool:
    """Whether at some load both a healthy and a collapsed state are stable.

    Without a budget: (A - 1)(c mu T - (c - kappa)(1 - e^(-mu T))) > 2 with kappa = 1/B(c, c) - 1,
    from the expansion of g at rho = 1; for one server it is (A - 1) mu T > 2. With a budget there
    is no such rule, and the folds are compared.
    """
    if station.budget is not None and 1 + station.budget < station.attempts:
        found = folds(station)
        return found.ceiling > found.recovery
    if station.attempts == 1 or station.timeout == math.inf:
        return False
    c, x = station.servers, station.timeout / station.service
    kappa = _inverse_b(c, c) - 1
    return (station.attempts - 1) * (c * x + (c - kappa) * math.expm1(-x)) > 2


class SteadyState(NamedTuple):
    """A load at which attempts made and attempts offered agree.

    `utilisation` is by all attempts (above 1 in collapse), `timeouts` the share of attempts that
    time out, `goodput` the share of requests answered in time. An unstable state is the edge of
    the basin: pushed above it, the service goes down for good; below, it heals.
    """

    kind: Literal["healthy", "unstable", "collapsed"]
    utilisation: float
    timeouts: float
    goodput: float


def steady_states(station: Station, load: float) -> list[SteadyState]:
    """Every steady state at `load` first attempts per second, from the best to the worst."""
    return _states(station, load, folds(station), _landmarks(station))


def _landmarks(station: Station) -> list[float]:
    """Utilisations between which g only rises or only falls."""
    return sorted({0.0, _peak(station), _capped_from(station), 1.0})


def _states(
    station: Station, load: float, found: Folds, landmarks: list[float]
) -> list[SteadyState]:
    share = load / station.capacity
    states: list[SteadyState] = []
    for rho, rising in _crossings(station, share, landmarks):
        ok = _in_time(station, rho, station.timeout)
        kind: Literal["healthy", "unstable", "collapsed"] = "unstable"
        if rising:
            kind = "healthy" if rho <= found.utilisation else "collapsed"
        states.append(SteadyState(kind, rho, 1 - ok, min(1.0, ok * rho / share)))
    offered = share * station.amplification
    if offered >= 1:
        states.append(SteadyState("collapsed", offered, 1.0, 0.0))
    return states


def _crossings(
    station: Station, share: float, landmarks: list[float]
) -> Iterator[tuple[float, bool]]:
    """Each rho with g(rho) = share below saturation, and whether g rises there."""

    def over(rho: float) -> float:
        return load_carried(station, rho) - share

    for low, high in itertools.pairwise(landmarks):
        at_low, at_high = over(low), over(high)
        if at_low * at_high < 0:
            yield _root(over, low, high), at_low < 0


def hysteresis(service: str, station: Station, *, today: float, points: int = 60) -> Hysteresis:
    """The goodput of both branches by load, up to a fifth beyond today's load and the ceiling."""
    found = folds(station)
    top = 1.2 * max(today, found.ceiling)
    marks = {found.recovery, found.ceiling, today} - {0.0}
    load = sorted(marks | {top * (i + 1) / points for i in range(points)})
    landmarks = _landmarks(station)
    healthy: list[float | None] = []
    collapsed: list[float | None] = []
    for rate in load:
        by_kind = {state.kind: state.goodput for state in _states(station, rate, found, landmarks)}
        healthy.append(by_kind.get("healthy"))
        collapsed.append(by_kind.get("collapsed"))
    return Hysteresis(
        service=service,
        load=load,
        healthy=healthy,
        collapsed=collapsed,
        today=today,
        hidden=found.recovery,
        tips_at=found.ceiling if found.ceiling > found.recovery else None,
    )


# Outages and backlogs, without chance: the queue as a fluid.


def smallest_outage(load: float, capacity: float, timeout: float) -> float:
    """The shortest full outage, in seconds, from which two attempts never come back.

    D* = T (1 + (1 - rho)^2 rho/(3 rho^2 - 3 rho + 1)), rho = lambda/C, for retries at the instant
    of the timeout and 1/2 < rho < 1. Infinite up to one half: 2 lambda < C drains any backlog.
    """
    rho = load / capacity
    if rho <= 0.5:
        return math.inf
    if rho >= 1:
        return 0.0
    return timeout * (1 + (1 - rho) ** 2 * rho / (3 * rho * rho - 3 * rho + 1))


def drain_time(
    backlog: float, load: float, capacity: float, timeout: float, attempts: float = 1
) -> float:
    """Seconds until a collapsed queue answers in time again: (B - C T)/(C - lambda A).

    `backlog` is in requests. Infinite while lambda A >= C: the retries refill it as fast.
    """
    late = backlog - capacity * timeout
    if late <= 0:
        return 0.0
    spare = capacity - load * attempts
    return late / spare if spare > 0 else math.inf


def capacity_to_escape(
    backlog: float, load: float, timeout: float, attempts: float = 1, *, within: float = math.inf
) -> float:
    """The capacity that brings a collapsed queue back `within` so many seconds: the drain law.

    (B + lambda A t)/(t + T); at t = infinity it is lambda A, which is still not enough.
    """
    if within == math.inf:
        return load * attempts
    return (backlog + load * attempts * within) / (within + timeout)


# Refusals and pools.


class Refusals(NamedTuple):
    """A limit below the demand, met by retries: what each attempt and each request meets."""

    refused: float
    attempts: float
    failing: float


def refusals(demand: float, limit: float, attempts: int) -> Refusals:
    """The fixed point of callers that repeat what a limit of so many per second refused.

    The limit is used in full, so demand (1 - p^A) = limit; `refused` is p, `attempts` all attempts
    per second and `failing` the share of requests that run out of them (SRE book ch. 22).
    """
    if demand <= limit:
        return Refusals(0.0, demand, 0.0)
    failing = 1 - limit / demand
    refused = failing ** (1 / attempts)
    return Refusals(refused, demand * amplification(refused, attempts), failing)


def refusal_cliff(demand: float, limit: float, attempts: int, capacity: float) -> float:
    """The cost of a refusal, as a share of a served call, from which on a limit brings all down.

    r* = (C - limit)/(refusals per second): beyond it refusing leaves too little to serve the limit.
    """
    refused = refusals(demand, limit, attempts).attempts - min(limit, demand)
    return (capacity - limit) / refused if refused > 0 else math.inf


def workers_busy(rate: float, holding: float) -> float:
    """Workers held by `rate` requests per second that each hold one for `holding` (Little 1961)."""
    return rate * holding


def admitted_share(workers: float, wanted: float) -> float:
    """The share of requests that get one of `workers` when `wanted` are asked for; none queues."""
    return 1.0 if wanted <= workers else workers / wanted
