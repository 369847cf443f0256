"""Shares of requests by hand, and against all combinations of calls that a request can make."""

import math
from collections.abc import Mapping

from hypothesis import given
from random_systems import systems

from tidegate.analysis.graph import Graph
from tidegate.analysis.reach import Reach
from tidegate.analysis.rules.view import Edge
from tidegate.settings.system import Call, System


def edge(caller: str, callee: str, call: Call) -> Edge:
    return Edge("services", caller, f"{caller}-{callee}", call, callee)


OUT = {
    "people": [edge("people", "shop", Call())],
    "shop": [
        edge("shop", "stock", Call(per_request=0.5)),
        edge("shop", "ads", Call(optional=True)),
        edge("shop", "prices", Call(per_request=2.5)),
    ],
    "ads": [edge("ads", "stock", Call())],
    "prices": [edge("prices", "stock", Call(per_request=0.2))],
    "stock": [],
    "alone": [],
}
REACH = Reach(OUT, ("stock", "ads", "prices", "shop", "alone", "people"))


def test_what_is_asked_and_what_is_needed() -> None:
    assert REACH.asks("stock")["people"] == 1.0  # each asks the ads, which ask the stock
    without_prices = 0.8 * 0.8 * 0.9
    assert math.isclose(REACH.needs("stock")["people"], 1 - 0.5 * without_prices)
    assert REACH.needs("ads").get("people", 0.0) == 0.0


def test_one_call_less_frees_its_part_and_leaves_the_rest() -> None:
    whole = REACH.needs("stock")["people"]
    assert math.isclose(REACH.needs("stock", without="prices-stock")["people"], 0.5)
    assert math.isclose(REACH.needs("stock", without="shop-stock")["people"], 1 - 0.8 * 0.8 * 0.9)
    assert REACH.needs("stock", without="shop-ads")["people"] == whole
    assert REACH.needs("stock", without="no such call")["people"] == whole
    assert REACH.needs("stock")["people"] == whole  # asking changes nothing


def test_who_has_no_way_there_has_no_entry() -> None:
    assert "alone" not in REACH.asks("stock")
    assert REACH.asks("alone") == {"alone": 1.0}


def by_the_book(
    graph: Graph, service: str, without: str | None, *, required: bool
) -> Mapping[str, float]:
    """Every caller in order, every call of it, as the definition says."""
    share: dict[str, float] = {}
    for caller in (*graph.callees_first, *graph.system.clients):
        missed = 1.0
        for one in graph.view.out_of[caller]:
            if required and (not one.call.wait or one.call.optional or one.name == without):
                continue
            part, whole = math.modf(one.call.per_request)
            missed *= (1 - share[one.callee]) ** whole * (1 - part * share[one.callee])
        share[caller] = 1.0 if caller == service else 1 - missed
    return {client: share[client] for client in graph.system.clients}


@given(systems)
def test_the_sums_are_those_of_the_definition(system: System) -> None:
    graph = Graph(system)
    calls = [None, *(one.name for one in graph.view.edges)]
    for service in system.services:
        expected = by_the_book(graph, service, None, required=False)
        assert all(
            math.isclose(graph.asks(service)[client], share, abs_tol=1e-9)
            for client, share in expected.items()
        )
        for without in calls:
            expected = by_the_book(graph, service, without, required=True)
            found = graph.needs(service, without=without)
            assert found.keys() == expected.keys()
            assert all(
                math.isclose(found[client], share, abs_tol=1e-9)
                for client, share in expected.items()
            )
