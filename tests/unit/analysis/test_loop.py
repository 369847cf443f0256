"""Which service would stay down, and where the attempts multiply that keep it there."""

import pytest
from hypothesis import given
from random_systems import systems
from systems import store

from tidegate.analysis.graph import Graph
from tidegate.analysis.loop import binding_service, pressures, sustaining_loop
from tidegate.settings.policies import Budget
from tidegate.settings.system import Call, Client, Service, System, Time
from tidegate.units import MILLISECOND


def shop(*, web: int = 2, db: int = 3, browser: int = 1) -> System:
    """A web server that tries a database `db` times, and is itself tried `web` times."""
    return System(
        clients={
            "users": Client(rate=100, calls={"open": Call(to="web", attempts=web)}),
            "robots": Client(rate=1, calls={"scan": Call(to="db", attempts=browser)}),
        },
        services={
            "web": Service(
                workers=100,
                time=Time(mean=MILLISECOND),
                blocking=False,
                calls={"query": Call(to="db", attempts=db)},
            ),
            "db": Service(workers=4, time=Time(mean=10 * MILLISECOND)),
        },
    )


def test_pressure_is_the_load_at_worst_over_the_capacity_in_health() -> None:
    assert pressures(Graph(store())) == {"store": pytest.approx(140 * 4 / 200)}
    found = pressures(Graph(shop()))
    assert found["db"] == pytest.approx((100 * 6 + 1) / 400)
    assert found["web"] == pytest.approx(200 / 100_000)


def test_the_binding_service_is_the_one_pressed_hardest() -> None:
    assert binding_service(Graph(shop())) == "db"


def test_none_binds_where_every_one_carries_the_worst() -> None:
    assert binding_service(Graph(shop(web=1, db=3))) is None
    assert binding_service(Graph(store(attempts=1))) is None
    assert binding_service(Graph(store(budget=Budget()))) is None  # 154/s of 200/s


def test_the_loop_is_the_path_with_the_most_attempts() -> None:
    loop = sustaining_loop(Graph(shop(browser=5)), "db")
    assert loop is not None
    assert [hop.call for hop in loop.hops] == ["open", "query"]
    assert (loop.client, loop.attempts_per_action) == ("users", 6.0)
    assert loop.says.startswith("users -> web -> db: when db is slow, one request of users makes 6")
    direct = sustaining_loop(Graph(shop(browser=7)), "db")
    assert direct is not None
    assert direct.client == "robots"


def test_one_attempt_makes_no_loop() -> None:
    assert sustaining_loop(Graph(store(attempts=1)), "store") is None


@given(systems)
def test_what_binds_is_asked_for_more_than_it_has(system: System) -> None:
    graph = Graph(system)
    service = binding_service(graph)
    if service is None:
        assert all(pressure <= 1 for pressure in pressures(graph).values())
        return
    facts = {facts.service: facts for facts in graph.facts()}[service]
    assert facts.advertised is not None
    assert graph.worst[service] > facts.advertised
    loop = sustaining_loop(graph, service)
    if loop is not None:
        assert loop.hops[-1].callee == service
        assert loop.hops[-1].cumulative == loop.attempts_per_action > 1
