"""What does each journey depend on, and what would it gain by losing a dependency?

A journey is what people want done; its requests are those of one client, and a client of which the
file names no journey is one itself. A request needs a service when, on its way through calls that
are required and waited for, it comes there. Each request decides by chance which of its calls it
makes (`per_request`), each time anew.
"""

import math
from collections.abc import Iterator

from tidegate.findings import Dependency, JourneyDependencies, Removal
from tidegate.settings.graph import callees_first, visits
from tidegate.settings.system import Call, System
from tidegate.units import format_share

__all__ = ["dependencies"]


def dependencies(system: System) -> list[JourneyDependencies]:
    """Every journey with its services, most needed first, and each removal that frees a part."""
    order = callees_first(system)
    asks = {service: _shares(system, order, service, required=False) for service in order}
    needs = {service: _shares(system, order, service, required=True) for service in order}
    then = {
        name: _shares(system, order, system.target_of(name, call), required=True, without=name)
        for name, call in _removable(system)
    }
    journeys = {name: journey.client for name, journey in system.journeys.items()}
    journeys |= {c: c for c in system.clients if c not in journeys.values()}
    return [
        JourneyDependencies(
            journey=journey,
            client=client,
            services=_services(system, client, asks, needs),
            removals=_removals(system, journey, client, needs, then),
        )
        for journey, client in journeys.items()
    ]


def _services(
    system: System,
    client: str,
    asks: dict[str, dict[str, float]],
    needs: dict[str, dict[str, float]],
) -> list[Dependency]:
    calls = visits(system, system.clients[client])
    reached = [
        Dependency(
            service=service,
            calls=calls[service],
            asks=asks[service][client],
            needs=needs[service][client],
        )
        for service in system.services
        if asks[service][client] > 0
    ]
    return sorted(reached, key=lambda found: (-found.needs, -found.asks))


def _removals(
    system: System,
    journey: str,
    client: str,
    needs: dict[str, dict[str, float]],
    then: dict[str, dict[str, float]],
) -> list[Removal]:
    found = []
    for section, caller, calls in system.callers():
        for name, call in calls.items():
            service = system.target_of(name, call)
            if name not in then or then[name][client] >= needs[service][client]:
                continue
            freed = needs[service][client] - then[name][client]
            found.append(
                Removal(
                    call=name,
                    where=f"{section}.{caller}.calls.{name}",
                    service=service,
                    needs=needs[service][client],
                    needs_then=then[name][client],
                    says=f"without {name}, {format_share(freed)} of {journey} no longer need"
                    f" {service}",
                )
            )
    return sorted(found, key=lambda removal: removal.needs_then - removal.needs)


def _removable(system: System) -> Iterator[tuple[str, Call]]:
    """The required calls. The only call of a client is the journey itself, not a dependency."""
    for section, _, calls in system.callers():
        for name, call in calls.items():
            if call.wait and not call.optional and (section == "services" or len(calls) > 1):
                yield name, call


def _shares(
    system: System, order: list[str], target: str, *, required: bool, without: str | None = None
) -> dict[str, float]:
    """For each client and service, the share of its requests that come to `target`.

    `required`: only through calls that must succeed; `without`: as if that call were not there.
    """
    share: dict[str, float] = {}
    callers = [(name, system.services[name].calls) for name in order]
    callers += [(name, client.calls) for name, client in system.clients.items()]
    for _ in callers:
        before = dict(share)
        for caller, calls in callers:
            counted = (
                _misses(call, share.get(system.target_of(name, call), 0.0))
                for name, call in calls.items()
                if name != without and (not required or (call.wait and not call.optional))
            )
            # Rounded, so that 30 % is not 30.000000000000004 %.
            share[caller] = 1.0 if caller == target else round(1.0 - math.prod(counted), 12)
        if required or share == before:  # what is waited for goes in no circle: one round is all
            break
    return share


def _misses(call: Call, share: float) -> float:
    """The chance that none of one request's calls comes there: 2.5 calls are 2 and half a third."""
    whole = int(call.per_request)
    return float((1 - share) ** whole * (1 - (call.per_request - whole) * share))
