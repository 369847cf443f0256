"""The sums over the call graph are those over its paths, spelled out one by one."""

import math

from hypothesis import given
from random_systems import systems

from tidegate.analysis.graph import Graph
from tidegate.analysis.rules.view import Edge, amplification
from tidegate.settings.system import System


def every_path(graph: Graph, caller: str, before: tuple[Edge, ...] = ()) -> list[tuple[Edge, ...]]:
    """All paths from `caller`, each with all its beginnings; these systems have no circles."""
    found: list[tuple[Edge, ...]] = []
    for edge in graph.view.out_of[caller]:
        path = (*before, edge)
        found += [path, *every_path(graph, edge.callee, path)]
    return found


@given(systems)
def test_sums_are_over_every_path(system: System) -> None:
    graph = Graph(system)
    for client in system.clients:
        attempts, visits = graph.attempts(client), graph.visits(client)
        paths = every_path(graph, client)
        for service in system.services:
            there = [path for path in paths if path[-1].callee == service]
            made = math.fsum(
                math.prod(e.call.per_request * amplification(e.call) for e in path)
                for path in there
            )
            once = math.fsum(math.prod(e.call.per_request for e in path) for path in there)
            assert math.isclose(attempts[service], made, rel_tol=1e-9, abs_tol=1e-12)
            assert math.isclose(visits[service], once, rel_tol=1e-9, abs_tol=1e-12)


@given(systems)
def test_the_worst_path_is_the_worst_of_all(system: System) -> None:
    graph = Graph(system)
    for client in system.clients:
        paths = every_path(graph, client)
        whole = [path for path in paths if not graph.view.out_of[path[-1].callee]]
        shown = graph.paths(client, most=1000)
        assert shown.total == len(shown.shown) == len(whole)
        factors = [path[-1].cumulative for path in shown.shown]
        assert factors == sorted(factors, reverse=True)
        for service in system.services:
            there = [path for path in paths if path[-1].callee == service]
            worst = graph.worst_path(client, service)
            assert bool(worst) == bool(there)
            if there:
                most = max(
                    math.prod(amplification(e.call) * max(1, e.call.per_request) for e in path)
                    for path in there
                )
                assert math.isclose(worst[-1].cumulative, most, rel_tol=1e-9)


@given(systems)
def test_facts_are_in_order(system: System) -> None:
    graph = Graph(system)
    for facts in graph.facts():
        assert facts.amplification >= 1 - 1e-9
        if facts.advertised is not None and facts.hidden is not None:
            assert 0 <= facts.hidden <= facts.advertised
        assert (facts.state == "no limit") == (facts.advertised is None)
    for service in system.services:
        for share in graph.needs(service).values():
            assert -1e-9 <= share <= 1 + 1e-9
