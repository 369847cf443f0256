"""What can be said of each service, and of the loop that would keep it down, without a simulation?

`advertised` capacity is what a service serves in health; `hidden` the load below which it comes
back by itself, however deep it was: capacity over the worst amplification, with every worker held
for as long as its calls can take at worst (Bronson et al., HotOS'21 section 3; Huang et al.,
OSDI'22 theorem 2).
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from tidegate.findings import Hop, Loop, ServiceFacts, ServiceState
from tidegate.settings.graph import (
    answer_times,
    callees_first,
    client_rates,
    holding_times,
    offered,
)
from tidegate.settings.system import Call, System
from tidegate.units import SECOND

__all__ = [
    "Facts",
    "attempts_at_worst",
    "binding_service",
    "facts",
    "needed_share",
    "sustaining_loop",
]

_PATHS_MAX: Final = 10_000  # a graph may have more paths than atoms in a cup; the worst is near
_FOREVER: Final = float("inf")


class Facts(NamedTuple):
    """`pressure` is the load at worst over the capacity in health; above one it can stay down."""

    services: dict[str, ServiceFacts]
    pressure: dict[str, float]


def facts(system: System) -> Facts:
    """The facts of every service."""
    load, holding, worst = offered(system), holding_times(system), attempts_at_worst(system)
    longest = _holding_at_worst(system)
    services: dict[str, ServiceFacts] = {}
    pressure: dict[str, float] = {}
    for name, service in system.services.items():
        amplification = worst[name] / load[name] if load[name] else 1.0
        if service.workers is None or not holding[name]:
            services[name] = ServiceFacts(
                service=name,
                load=load[name],
                utilisation=None,
                advertised=None,
                hidden=None,
                amplification=amplification,
                state="no limit",
            )
            continue
        workers = service.workers * service.replicas
        advertised = workers * SECOND / holding[name]
        hidden = 0.0 if longest[name] == _FOREVER else workers * SECOND / longest[name]
        hidden = min(hidden, advertised) / amplification
        pressure[name] = worst[name] / advertised
        services[name] = ServiceFacts(
            service=name,
            load=load[name],
            utilisation=load[name] / advertised,
            advertised=advertised,
            hidden=hidden,
            amplification=amplification,
            state=_state(load[name], hidden, advertised),
        )
    return Facts(services, pressure)


def _state(load: float, hidden: float, advertised: float) -> ServiceState:
    if load >= advertised:
        return "overloaded"
    return "vulnerable" if load >= hidden else "stable"


def attempts_of(call: Call) -> float:
    """The most attempts that one call makes on average: all of them, or what its budget grants."""
    if call.timeout is None and call.retry_on == ("timeout",):
        return 1.0
    if call.budget is None:
        return float(call.attempts)
    return min(float(call.attempts), 1 + call.budget.ratio)


def attempts_at_worst(system: System) -> dict[str, float]:
    """Requests per second at each service when every attempt fails and every retry is made."""
    total = dict.fromkeys(system.services, 0.0)
    for name, rate in client_rates(system).items():
        _spread(system, system.clients[name].calls, rate, total)
    for name in reversed(callees_first(system)):
        _spread(system, system.services[name].calls, total[name], total)
    return total


def _spread(system: System, calls: dict[str, Call], rate: float, total: dict[str, float]) -> None:
    for name, call in calls.items():
        if call.wait:  # one that nobody waits for may go in a circle, and no client repeats for it
            total[system.target_of(name, call)] += rate * call.per_request * attempts_of(call)


def _holding_at_worst(system: System) -> dict[str, float]:
    """Nanoseconds that a worker is held when all the calls of its request time out."""
    answer = answer_times(system)
    result: dict[str, float] = {}
    for name, service in system.services.items():
        own = service.time.average if service.time else 0.0
        waits = [
            call.per_request * _wait_at_worst(call)
            for call in service.calls.values()
            if call.wait and service.blocking
        ]
        together = max(waits, default=0.0) if service.parallel else sum(waits)
        result[name] = max(own + together, answer[name] if service.blocking else own)
    return result


def _wait_at_worst(call: Call) -> float:
    if call.timeout is None:
        return _FOREVER if call.deadline is None else float(call.deadline)
    tries = attempts_of(call)
    waited = tries * call.timeout
    if call.backoff is not None:
        waited += (tries - 1) * call.backoff.base
    return min(waited, float(call.deadline)) if call.deadline is not None else waited


def binding_service(found: Facts) -> str | None:
    """The service that the worst load exceeds most; None when every one could carry it."""
    over = {name: pressure for name, pressure in found.pressure.items() if pressure > 1}
    return max(over, key=over.__getitem__, default=None)


def sustaining_loop(system: System, service: str) -> Loop | None:
    """The path to `service` on which one user action makes the most attempts."""
    best: list[Hop] = []
    for hops in _paths(system, service):
        if not best or hops[-1].cumulative > best[-1].cumulative:
            best = hops
    if not best or best[-1].cumulative <= 1:
        return None
    product = " x ".join(str(hop.attempts) for hop in best if hop.attempts > 1)
    total = best[-1].cumulative
    path = " -> ".join([best[0].caller, *(hop.callee for hop in best)])
    return Loop(
        client=best[0].caller,
        hops=best,
        attempts_per_action=total,
        says=f"{path}: {product} = {total:g} attempts at {service} for one request of"
        f" {best[0].caller} when it is slow, and each attempt makes it slower",
    )


def _paths(system: System, service: str) -> Iterator[list[Hop]]:
    found = 0
    stack: list[tuple[str, dict[str, Call], list[Hop]]] = [
        (name, client.calls, []) for name, client in system.clients.items()
    ]
    while stack and found < _PATHS_MAX:
        caller, calls, hops = stack.pop()
        found += 1
        for name, call in calls.items():
            if not call.wait:
                continue
            target = system.target_of(name, call)
            before = hops[-1].cumulative if hops else 1.0
            hop = Hop(
                caller=caller,
                call=name,
                callee=target,
                attempts=call.attempts,
                cumulative=before * attempts_of(call) * max(1, int(call.per_request)),
            )
            if target == service:
                yield [*hops, hop]
            else:
                stack.append((target, system.services[target].calls, [*hops, hop]))


def needed_share(system: System, client: str, service: str) -> float:
    """The share of a client's requests that fails without `service`: required calls only."""
    need = {name: 1.0 if name == service else 0.0 for name in system.services}
    for name in callees_first(system):
        if name != service:
            need[name] = _any_fails(system, system.services[name].calls, need)
    return _any_fails(system, system.clients[client].calls, need)


def _any_fails(system: System, calls: dict[str, Call], need: dict[str, float]) -> float:
    spared = 1.0
    for name, call in calls.items():
        if not call.optional:
            fails = need[system.target_of(name, call)]
            whole = int(call.per_request)
            spared *= (1 - fails) ** whole * (1 - fails * (call.per_request - whole))
    return 1 - spared
