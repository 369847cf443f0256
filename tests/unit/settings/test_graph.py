"""The load on each service by hand, and by the graph."""

import pytest

from tidegate.settings.graph import (
    answer_times,
    callees_first,
    client_rates,
    holding_times,
    offered,
    visits,
)
from tidegate.settings.system import Call, Client, Service, System, Time
from tidegate.units import MILLISECOND, SECOND


def ms(mean: int) -> Time:
    return Time(mean=mean * MILLISECOND)


SYSTEM = System(
    clients={
        "open": Client(rate=100.0, calls={"a1": Call(to="a"), "c1": Call(to="c", per_request=0.5)}),
        "closed": Client(users=10, think=ms(964), calls={"b1": Call(to="b")}),
    },
    services={
        "a": Service(
            time=ms(10),
            calls={
                "b2": Call(to="b", per_request=2.0, network=ms(1)),
                "c2": Call(to="c", per_request=0.1, optional=True, wait=False),
            },
        ),
        "b": Service(time=ms(20), blocking=False, calls={"c3": Call(to="c", per_request=0.4)}),
        "c": Service(time=Time(constant=40 * MILLISECOND)),
    },
)


def test_callees_come_before_their_callers() -> None:
    assert callees_first(SYSTEM) == ["c", "b", "a"]


def test_visits_multiply_along_paths_and_add_over_them() -> None:
    seen = visits(SYSTEM, SYSTEM.clients["open"])
    # c: half directly, a tenth from a, and 0.4 from each of a's two calls to b.
    assert seen == pytest.approx({"a": 1, "b": 2, "c": 0.5 + 0.1 + 0.8})


def test_an_answer_is_own_work_and_what_is_waited_for() -> None:
    answer = {name: value / MILLISECOND for name, value in answer_times(SYSTEM).items()}
    assert answer == pytest.approx({"c": 40, "b": 36, "a": 10 + 2 * (1 + 36)})


def test_a_worker_that_does_not_block_is_held_for_own_work_alone() -> None:
    held = {name: value / MILLISECOND for name, value in holding_times(SYSTEM).items()}
    assert held == pytest.approx({"a": 84, "b": 20, "c": 40})


def test_calls_together_take_as_long_as_the_longest() -> None:
    calls = {"x": Call(to="fast"), "y": Call(to="slow")}
    both = System(
        clients={"k": Client(rate=1.0, calls={"z": Call(to="front")})},
        services={
            "front": Service(parallel=True, calls=calls),
            "fast": Service(time=ms(5)),
            "slow": Service(time=ms(9)),
        },
    )
    assert answer_times(both)["front"] == 9 * MILLISECOND


def test_closed_clients_obey_littles_law() -> None:
    assert client_rates(SYSTEM) == pytest.approx({"open": 100, "closed": 10 / 1.0})


def test_load_is_rate_times_visits() -> None:
    assert offered(SYSTEM) == pytest.approx({"a": 100, "b": 210, "c": 140 + 4})


def test_a_client_that_never_thinks_and_is_never_kept_waiting_offers_no_finite_load() -> None:
    idle = System(
        clients={"k": Client(users=5, think=Time(mean=0), calls={"s": Call()})},
        services={"s": Service()},
    )
    assert offered(idle) == {"s": 0}


def test_a_circle_that_nobody_waits_for_adds_its_rounds() -> None:
    back = Call(to="a", per_request=0.01, optional=True, wait=False)
    more = {f"idle{n}": Service() for n in range(8)}
    circle = System(
        clients={"k": Client(rate=2.0, calls={"a1": Call(to="a")})},
        services={
            "b": Service(time=ms(7), calls={"back": back}),
            "a": Service(time=ms(3), calls={"b1": Call(to="b")}),
            **more,
        },
    )
    assert answer_times(circle)["a"] == 10 * MILLISECOND
    # Every request comes round again with 1 %: 2 / (1 - 0.01).
    assert offered(circle)["a"] == pytest.approx(2 / 0.99)
    assert offered(circle)["b"] == pytest.approx(2 / 0.99)


def test_a_circle_that_grows_ends_all_the_same() -> None:
    back = Call(to="a", per_request=1000.0, optional=True, wait=False)
    circle = System(
        clients={"k": Client(rate=2.0, calls={"a1": Call(to="a")})},
        services={"a": Service(calls={"b1": Call(to="b")}), "b": Service(calls={"back": back})},
    )
    assert offered(circle) == {"a": 2, "b": 2}


def test_a_long_chain_does_not_exhaust_the_stack() -> None:
    length = 5000
    services = {f"s{n}": Service(calls={f"s{n + 1}": Call()}) for n in range(length)}
    services[f"s{length}"] = Service(time=Time(mean=SECOND))
    chain = System(clients={"k": Client(rate=3.0, calls={"s0": Call()})}, services=services)
    assert offered(chain)[f"s{length}"] == 3
    assert holding_times(chain)["s0"] == SECOND
