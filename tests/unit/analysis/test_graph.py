"""What the call graph says before anything runs: attempts, capacity, workers, who needs whom."""

import math
from typing import Any

import msgspec
import pytest

from tidegate.analysis.graph import Graph
from tidegate.settings.system import System
from tidegate.units import MILLISECOND, SECOND


def system(**parts: Any) -> System:
    return msgspec.convert(parts, System)


def chain(layers: int, attempts: int, **call: Any) -> System:
    """users -> s0 -> s1 -> ...: `layers` calls, each tried `attempts` times."""

    def to(index: int) -> dict[str, Any]:
        timeout = SECOND * 10**index
        return {f"c{index}": {"to": f"s{index}", "attempts": attempts, "timeout": timeout, **call}}

    services: dict[str, Any] = {
        f"s{n}": {"calls": to(n + 1) if n + 1 < layers else {}} for n in range(layers)
    }
    return system(clients={"users": {"rate": 10.0, "calls": to(0)}}, services=services)


def pages(**check: Any) -> Graph:
    """500 pages/s of 200 ms on 1,000 workers; 30 % ask another service, which takes 50 ms."""
    call = {"to": "licences", "per_request": 0.3, **check}
    return Graph(
        system(
            clients={"users": {"rate": 500.0, "calls": {"page": {"to": "tracker"}}}},
            services={
                "tracker": {
                    "workers": 1000,
                    "time": {"mean": 200 * MILLISECOND},
                    "calls": {"check": call},
                },
                "licences": {"workers": 100, "time": {"mean": 50 * MILLISECOND}},
            },
        )
    )


def test_attempts_multiply_over_layers() -> None:
    """SRE book ch. 22: 4 attempts at each of 3 layers are 64 at the database."""
    assert Graph(chain(3, 4)).attempts("users")["s2"] == 64
    assert Graph(chain(5, 3)).attempts("users")["s4"] == 243


def test_a_budget_caps_the_product() -> None:
    assert Graph(chain(3, 4, budget={"ratio": 0.1})).attempts("users")["s2"] == pytest.approx(
        1.1**3
    )


def test_nothing_is_repeated_without_a_reason_to() -> None:
    assert Graph(chain(3, 4, retry_on=[])).attempts("users")["s2"] == 1


def test_workers_held_while_a_check_hangs() -> None:
    """Little's law: healthy 107.5; 10 s twice 3,100; 1 s once 250; breaker open 100.15."""
    healthy = pages(timeout=10 * SECOND, attempts=2)
    assert healthy.occupancy("tracker") == pytest.approx(107.5)
    assert healthy.occupancy("tracker", healthy.hanging("licences")) == pytest.approx(3100)
    short = pages(timeout=SECOND)
    assert short.occupancy("tracker", short.hanging("licences")) == pytest.approx(250)
    assert short.occupancy("tracker", {"check": 0.001}) == pytest.approx(100.15)


def test_capacity_falls_when_a_callee_hangs() -> None:
    graph = pages(timeout=10 * SECOND, attempts=2)
    assert graph.capacity("tracker") == pytest.approx(1000 / 0.215)
    assert graph.capacity("tracker", graph.hanging("licences")) == pytest.approx(1000 / 6.2)
    assert graph.capacity("licences") == pytest.approx(2000)


def test_a_callee_that_heals_gives_its_caller_back() -> None:
    tracker, licences = pages(timeout=10 * SECOND, attempts=2).facts()
    assert (tracker.load, tracker.state) == (500, "stable")
    assert tracker.utilisation == pytest.approx(0.1075)
    assert tracker.hidden == tracker.advertised == pytest.approx(1000 / 0.215)
    assert tracker.amplification == 1
    assert (licences.load, licences.amplification, licences.state) == (150, 2, "stable")
    assert licences.hidden == pytest.approx(1000)


def test_a_callee_that_can_stay_down_keeps_its_caller_down() -> None:
    """20 attempts at 150/s are more than the 2,000/s that the licences can serve."""
    graph = pages(timeout=10 * SECOND, attempts=20)
    assert graph.can_stay_down("licences")
    assert graph.can_stay_down("tracker")
    tracker, licences = graph.facts()
    assert (tracker.state, licences.state) == ("vulnerable", "vulnerable")
    assert tracker.hidden == pytest.approx(1000 / (0.2 + 0.3 * 200))


def test_a_call_that_never_gives_up_hides_all_capacity() -> None:
    tracker = pages(attempts=20).facts()[0]
    assert (tracker.hidden, tracker.state) == (0, "vulnerable")


def service(**settings: Any) -> Graph:
    return Graph(
        system(
            clients={"users": {"rate": 90.0, "calls": {"db": {"timeout": SECOND, "attempts": 3}}}},
            services={"db": {"time": {"mean": 10 * MILLISECOND}, **settings}},
        )
    )


@pytest.mark.parametrize(
    ("settings", "advertised", "hidden", "state"),
    [
        ({}, None, None, "no limit"),
        ({"workers": 1}, 100, 100 / 3, "vulnerable"),
        ({"workers": 3}, 300, 100, "stable"),
        ({"workers": 1, "replicas": 4}, 400, 400 / 3, "stable"),
        ({"workers": 4, "rate_limit": {"rate": 80}}, 80, 80, "overloaded"),
        ({"rate_limit": {"rate": 80}}, 80, None, "overloaded"),
        ({"workers": 9, "limit": {"max": 2}}, 200, 200 / 3, "vulnerable"),
        ({"workers": 4, "thrash": 0.1}, 400, 0, "vulnerable"),
        ({"workers": 4, "thrash": 0.1, "queue": {"limit": 30}}, 400, 100 / 3, "vulnerable"),
        ({"contention": 10 * MILLISECOND}, 100, 100 / 3, "vulnerable"),
        ({"workers": 4, "contention": 10 * MILLISECOND}, 80, 0, "overloaded"),
        (
            {"workers": 9, "contention": MILLISECOND, "queue": {"limit": 0}},
            9000 / 19,
            158,
            "stable",
        ),
    ],
)
def test_capacity_advertised_and_hidden(
    settings: dict[str, Any], advertised: float | None, hidden: float | None, state: str
) -> None:
    facts = service(**settings).facts()[0]
    assert facts.advertised == (advertised if advertised is None else pytest.approx(advertised))
    assert facts.hidden == (hidden if hidden is None else pytest.approx(hidden, rel=1e-3))
    assert facts.state == state


def market(**calls: Any) -> Graph:
    return Graph(
        system(
            clients={"users": {"rate": 1.0, "calls": {"page": {"to": "web"}}}},
            services={"web": {"calls": calls}, "auth": {}, "prices": {"calls": {"core": {}}}}
            | {"core": {}},
        )
    )


def test_who_needs_a_service() -> None:
    graph = market(
        login={"to": "auth", "per_request": 0.3},
        offers={"to": "prices", "per_request": 2.5},
        hints={"to": "core", "optional": True},
    )
    assert graph.needs("auth") == {"users": pytest.approx(0.3)}
    assert graph.needs("core") == {"users": 1}
    assert graph.needs("web") == {"users": 1}
    optional = market(
        login={"to": "auth", "optional": True}, offers={"to": "prices", "per_request": 0.5}
    )
    assert optional.needs("auth") == {"users": 0}
    assert optional.needs("core") == {"users": 0.5}


def test_needing_a_service_twice_by_chance() -> None:
    graph = market(one={"to": "core", "per_request": 0.5}, two={"to": "prices", "per_request": 0.5})
    assert graph.needs("core") == {"users": 0.75}


def test_calls_that_go_in_a_circle_are_cut_where_it_closes() -> None:
    graph = Graph(
        system(
            clients={"users": {"rate": 1.0, "calls": {"a": {}}}},
            services={
                "a": {"calls": {"b": {"attempts": 2}}},
                "b": {
                    "calls": {"back": {"to": "a", "attempts": 2, "optional": True, "wait": False}}
                },
            },
        )
    )
    assert graph.attempts("users") == {"a": 1, "b": 2}
    assert graph.paths("users").total == 1


def test_a_circle_is_never_cut_at_a_call_that_is_waited_for() -> None:
    # Written so that a walk in the order of the file comes to the waited call last.
    graph = Graph(
        system(
            clients={"users": {"rate": 1.0, "calls": {"open": {"to": "y"}}}},
            services={
                "x": {"calls": {"event": {"to": "y", "wait": False, "optional": True}}},
                "y": {"calls": {"work": {"to": "x"}}},
            },
        )
    )
    assert graph.visits("users") == {"x": 1, "y": 1}
    assert graph.needs("x") == {"users": 1}


def test_deadlines_that_are_passed_on() -> None:
    """SRE book ch. 22: 30 s at the top, 7 s spent leave 23 s; 4 s more leave 19 s."""
    graph = Graph(
        system(
            clients={"users": {"rate": 1.0, "calls": {"a": {"timeout": 30 * SECOND}}}},
            services={
                "a": {"time": {"constant": 7 * SECOND}, "calls": {"b": {}}},
                "b": {"time": {"constant": 4 * SECOND}, "calls": {"c": {}}},
                "c": {},
            },
        )
    )
    assert graph.time_left() == {"a": math.inf, "b": 23, "c": 19}


def test_work_for_nobody() -> None:
    """A allows 10 s, B starts after 8 s and allows C 20 s: two are left, and C works 15."""
    graph = Graph(
        system(
            clients={"a": {"rate": 1.0, "calls": {"b": {"timeout": 10 * SECOND}}}},
            services={
                "b": {
                    "time": {"constant": 8 * SECOND},
                    "calls": {"c": {"timeout": 20 * SECOND}, "d": {}},
                },
                "c": {"time": {"constant": 15 * SECOND}},
                "d": {},
            },
        )
    )
    left = graph.time_left()
    assert left["c"] == 2
    assert 15 - left["c"] == 13  # seconds that C works for nobody
    assert left["d"] == -13  # the caller has left before it is sent


def test_the_first_to_leave_counts() -> None:
    graph = Graph(
        system(
            clients={
                "hasty": {"rate": 1.0, "calls": {"x": {"to": "web", "timeout": SECOND}}},
                "calm": {"rate": 1.0, "calls": {"y": {"to": "web", "timeout": 9 * SECOND}}},
            },
            services={"web": {"calls": {"db": {"network": {"mean": SECOND // 2}}}}, "db": {}},
        )
    )
    assert graph.time_left()["db"] == 1


def test_the_worst_path_and_all_the_others() -> None:
    graph = Graph(
        system(
            clients={"users": {"rate": 1.0, "calls": {"page": {"to": "web", "attempts": 2}}}},
            services={
                "web": {
                    "calls": {
                        "direct": {"to": "db", "attempts": 2},
                        "via": {"to": "cache", "per_request": 2.5},
                        "log": {"per_request": 0.1},
                    }
                },
                "cache": {"calls": {"miss": {"to": "db", "attempts": 4, "budget": {"ratio": 0.5}}}},
                "db": {},
                "log": {},
            },
        )
    )
    worst = graph.worst_path("users", "db")
    assert [hop.call for hop in worst] == ["page", "via", "miss"]
    assert [hop.cumulative for hop in worst] == [2, 5, 7.5]
    assert [hop.attempts for hop in worst] == [2, 1, 4]
    assert worst[-1].callee == "db"
    every = graph.paths("users")
    assert [[hop.call for hop in path] for path in every.shown] == [
        ["page", "via", "miss"],
        ["page", "direct"],
        ["page", "log"],
    ]
    assert every.total == 3
    assert graph.paths("users", most=1) == (every.shown[:1], 3)
    assert graph.attempts("users")["db"] == 2 * 2 + 2 * 2.5 * 1.5


def test_a_service_that_a_client_never_reaches() -> None:
    graph = market(login={"to": "auth"})
    assert graph.worst_path("users", "core") == []
    assert graph.needs("core") == {"users": 0}
    assert graph.amplification["core"] == 1


def ladder(rungs: int) -> System:
    """Two calls from each service to the next: 2^rungs paths in a file of a screen."""
    services: dict[str, Any] = {
        f"s{n}": {
            "calls": {
                f"{side}{n}": {"to": f"s{n + 1}", "attempts": 2, "timeout": SECOND}
                for side in ("left", "right")
            }
        }
        for n in range(rungs)
    }
    return system(
        clients={"users": {"rate": 1.0, "calls": {"enter": {"to": "s0"}}}},
        services=services | {f"s{rungs}": {}},
    )


def test_more_paths_than_atoms() -> None:
    graph = Graph(ladder(200))
    assert graph.attempts("users")["s200"] == 4.0**200
    found = graph.paths("users", most=5)
    assert found.total == 2**200
    assert len(found.shown) == 5
    assert all(path[-1].cumulative == 2.0**200 for path in found.shown)
    assert len(graph.worst_path("users", "s200")) == 201


def test_closed_clients_send_by_the_law_of_response_times() -> None:
    graph = Graph(
        system(
            clients={
                "people": {
                    "users": 50,
                    "think": {"mean": 9 * SECOND},
                    "calls": {"page": {"to": "web"}},
                }
            },
            services={"web": {"workers": 9, "time": {"mean": SECOND}}},
        )
    )
    assert graph.load["web"] == pytest.approx(5)


def test_parallel_calls_hold_a_worker_for_the_longest() -> None:
    def web(parallel: bool) -> Graph:
        return Graph(
            system(
                clients={"users": {"rate": 1.0, "calls": {"page": {"to": "web"}}}},
                services={
                    "web": {"workers": 1, "parallel": parallel, "calls": {"a": {}, "b": {}}},
                    "a": {"time": {"mean": SECOND}},
                    "b": {"time": {"mean": 3 * SECOND}},
                },
            )
        )

    assert web(parallel=True).holding("web") == 3
    assert web(parallel=False).holding("web") == 4


def test_to_escape_takes_capacity_for_every_attempt_of_todays_load() -> None:
    asks = {"rate": 300.0, "calls": {"shop": {"timeout": SECOND, "attempts": 4}}}
    shop = {"workers": 4, "time": {"constant": 10 * MILLISECOND}}
    (facts,) = Graph(system(clients={"users": asks}, services={"shop": shop})).facts()
    assert facts.advertised == 400
    assert facts.escape == 300 * 4 / 400


def test_what_has_no_limit_has_nothing_to_escape_from() -> None:
    asks = {"rate": 300.0, "calls": {"shop": {}}}
    (facts,) = Graph(system(clients={"users": asks}, services={"shop": {}})).facts()
    assert facts.escape is None
