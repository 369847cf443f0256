"""What is tried where the file names nothing, and how a trigger is told."""

import msgspec
import pytest
from hypothesis import given
from random_systems import systems
from systems import stall, store

from tidegate.analysis.assumed import TRIGGERS_MAX, assumed_triggers, in_words
from tidegate.analysis.graph import Graph
from tidegate.analysis.loop import pressures
from tidegate.settings.policies import RateLimit
from tidegate.settings.system import Call, Client, Service, System, Time, Trigger
from tidegate.units import MILLISECOND, MINUTE, SECOND


def fleet(size: int, clients: int = 1) -> System:
    """Services s1, s2, ... that are pressed the harder the higher their number."""
    time = Time(mean=10 * MILLISECOND)
    return System(
        clients={
            f"c{c}": Client(
                rate=1.0, calls={f"c{c}-{n}": Call(to=f"s{n}") for n in range(1, size + 1)}
            )
            for c in range(clients)
        },
        services={f"s{n}": Service(workers=100 - n, time=time) for n in range(1, size + 1)},
    )


def test_a_store_is_frozen_halved_and_asked_twice_as_much() -> None:
    tried, left = assumed_triggers(Graph(store(triggers={})))
    assert tried == {
        "freeze store": stall(10 * SECOND),
        "half of store": Trigger(service="store", capacity=0.5, for_=MINUTE),
        "twice the shoppers": Trigger(client="shoppers", load=2.0, for_=MINUTE),
    }
    assert left == []


def test_the_hardest_pressed_come_first_and_what_is_left_out_is_named() -> None:
    tried, left = assumed_triggers(Graph(fleet(10)))
    assert len(tried) == TRIGGERS_MAX
    assert list(tried)[:4] == ["freeze s10", "half of s10", "freeze s9", "half of s9"]
    assert "twice the c0" in tried
    assert len(left) == 21 - TRIGGERS_MAX
    assert left[-2:] == ["freeze s1", "half of s1"]


def test_many_clients_leave_room_for_the_services() -> None:
    tried, left = assumed_triggers(Graph(fleet(10, clients=20)))
    assert sum(trigger.client is not None for trigger in tried.values()) == 3
    assert len(left) == 20 + 20 - TRIGGERS_MAX


def test_a_service_without_a_limit_is_left_alone() -> None:
    service = msgspec.structs.replace(store().services["store"], workers=None)
    open_store = msgspec.structs.replace(store(), services={"store": service})
    assert list(assumed_triggers(Graph(open_store))[0]) == ["twice the shoppers"]


@given(systems)
def test_what_is_tried_fits_the_system_and_all_else_is_named(system: System) -> None:
    graph = Graph(system)
    tried, left = assumed_triggers(graph)
    assert 0 < len(tried) <= TRIGGERS_MAX
    assert len(tried) + len(left) == 2 * len(pressures(graph)) + len(system.clients)
    assert not set(tried) & set(left)
    msgspec.structs.replace(system, triggers=tried, actions={})  # its names are checked


@pytest.mark.parametrize(
    ("trigger", "told"),
    [
        (stall(10 * SECOND), "store frozen for 10s"),
        (Trigger(service="db", slowdown=3.0), "db 3x slower until somebody acts"),
        (
            Trigger(service="db", capacity=0.0, replicas=1, for_=MINUTE),
            "db (1 of its replicas) at 0% of its capacity for 1min",
        ),
        (
            Trigger(service="db", errors=0.5, latency=SECOND, for_=SECOND),
            "db failing 50%, 1s further away for 1s",
        ),
        (Trigger(client="users", load=2.0, for_=MINUTE), "users sending 2x as much for 1min"),
        (
            Trigger(call="pay", rate_limit=RateLimit(rate=5.0), for_=SECOND),
            "pay limited to 5/s for 1s",
        ),
        (Trigger(call="pay", per_request=3.0, for_=SECOND), "pay made 3x per request for 1s"),
    ],
)
def test_a_trigger_is_told_in_words(trigger: Trigger, told: str) -> None:
    assert in_words(trigger) == told
