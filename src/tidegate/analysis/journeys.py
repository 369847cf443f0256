"""What does each journey depend on, and what would it gain by losing a dependency?

A journey is what people want done; its requests are those of one client, and a client of which the
file names no journey is one itself. A request needs a service when, on its way through calls that
are required and waited for, it comes there. Each request decides by chance which of its calls it
makes (`per_request`), each time anew.
"""

from collections.abc import Iterator, Mapping

from tidegate.analysis.graph import Graph
from tidegate.analysis.rules.view import Edge
from tidegate.findings import Dependency, JourneyDependencies, Removal
from tidegate.settings.system import System
from tidegate.units import format_share

__all__ = ["dependencies"]

Shares = Mapping[str, Mapping[str, float]]
"""For each service or call, the share of each client's requests."""


def dependencies(system: System) -> list[JourneyDependencies]:
    """Every journey with its services, most needed first, and each removal that frees a part."""
    graph = Graph(system)
    asks = {service: graph.asks(service) for service in graph.services}
    needs = {service: graph.needs(service) for service in graph.services}
    then = {e.name: graph.needs(e.callee, without=e.name) for e in _removable(graph)}
    return [
        JourneyDependencies(
            journey=journey,
            client=client,
            services=_services(graph, client, asks, needs),
            removals=_removals(graph, journey, client, needs, then),
        )
        for journey, client in _journeys(system)
    ]


def _journeys(system: System) -> Iterator[tuple[str, str]]:
    named = {name: journey.client for name, journey in system.journeys.items()}
    yield from named.items()
    yield from ((client, client) for client in system.clients if client not in named.values())


def _services(graph: Graph, client: str, asks: Shares, needs: Shares) -> list[Dependency]:
    calls = graph.visits(client)
    reached = [
        Dependency(
            service=service,
            calls=calls[service],
            asks=asks[service][client],
            needs=needs[service][client],
        )
        for service in graph.services
        if calls[service] > 0
    ]
    return sorted(reached, key=lambda found: (-found.needs, -found.asks))


def _removals(
    graph: Graph, journey: str, client: str, needs: Shares, then: Shares
) -> list[Removal]:
    found = []
    for edge in _removable(graph):
        now, left = needs[edge.callee][client], then[edge.name][client]
        if left < now:
            says = f"without {edge.name}, {format_share(now - left)} of {journey} no longer need"
            found.append(
                Removal(
                    call=edge.name,
                    where=".".join(edge.path),
                    service=edge.callee,
                    needs=now,
                    needs_then=left,
                    says=f"{says} {edge.callee}",
                )
            )
    return sorted(found, key=lambda removal: removal.needs_then - removal.needs)


def _removable(graph: Graph) -> list[Edge]:
    """The required calls. The only call of a client is the journey itself, not a dependency."""
    return [
        edge
        for edge in graph.view.edges
        if edge.call.wait
        and not edge.call.optional
        and (edge.section == "services" or len(graph.view.out_of[edge.caller]) > 1)
    ]
