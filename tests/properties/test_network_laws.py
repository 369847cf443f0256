"""Laws of the fluid of a whole system, whatever it is made of and whatever goes wrong in it."""

import math

import msgspec
from hypothesis import given, settings
from random_systems import systems

from tidegate.analysis.fluid.course import Course
from tidegate.analysis.fluid.network import Network
from tidegate.analysis.graph import Graph
from tidegate.settings.system import Service, System, Time, Trigger
from tidegate.units import SECOND

SHORT = 200  # calls times steps: enough for every part to be at work


def course_of(system: System, trigger: Trigger | None) -> tuple[Network, Course]:
    network = Network(Graph(system), trigger, effort=SHORT, hold=5, coarser=20)
    network.run(bounded=True)
    return network, network.course()


def trigger_of(system: System) -> Trigger | None:
    return next(iter(system.triggers.values()), None)


@settings(max_examples=60)
@given(systems)
def test_masses_add_up(system: System) -> None:
    network, course = course_of(system, trigger_of(system))
    for client, offered in course.offered.items():
        for good, asked in zip(course.good[client], offered, strict=True):
            assert -1e-9 <= good <= asked * (1 + 1e-9) + 1e-9
    assert all(value >= -1e-6 for value in course.backlog)
    assert all(made >= 0 for attempts in course.attempts.values() for made in attempts)
    for pool in network.pools:
        assert pool.waiting >= -1e-6
        assert -1e-6 <= pool.workers.held <= pool.in_system + 1e-6
    for value in (course.harm, *course.backlog):
        assert math.isfinite(value)


@settings(max_examples=40)
@given(systems)
def test_no_call_is_tried_more_often_than_allowed(system: System) -> None:
    network, course = course_of(system, None)
    for site in network.sites:
        if site.name in course.attempts:
            callers = course.arrived.get(caller_of(system, site.name))
            if callers is not None:
                most = site.call.tries * site.call.per_request * math.fsum(callers)
                assert math.fsum(course.attempts[site.name]) <= most * (1 + 1e-6) + 1e-6


def caller_of(system: System, call: str) -> str:
    return next(caller for _, caller, calls in system.callers() if call in calls)


@settings(max_examples=20)
@given(systems)
def test_the_same_run_twice_is_the_same(system: System) -> None:
    trigger = trigger_of(system)
    assert course_of(system, trigger)[1] == course_of(system, trigger)[1]


@settings(max_examples=20)
@given(systems)
def test_a_service_that_nobody_calls_changes_nothing(system: System) -> None:
    trigger = trigger_of(system)
    idle = Service(workers=1, time=Time(mean=SECOND))
    beside = msgspec.structs.replace(system, services={**system.services, "idle": idle})
    assert course_of(system, trigger)[1].good == course_of(beside, trigger)[1].good
