"""A whole system as a fluid: what it makes of each trigger, policy and shape of graph."""

from typing import Any

import msgspec
import pytest

from tidegate.analysis.fluid import smallest
from tidegate.analysis.fluid.course import Course
from tidegate.analysis.fluid.network import Network, simulate_graph
from tidegate.analysis.graph import Graph
from tidegate.settings.system import System, Trigger
from tidegate.units import MILLISECOND, SECOND


def system(**parts: Any) -> System:
    return msgspec.convert(parts, System)


def one(rate: float = 600.0, *, call: Any = None, **service: Any) -> System:
    """Ten workers of 10 ms: 1,000/s. Callers wait 100 ms and try four times."""
    asked = {"timeout": 100 * MILLISECOND, "attempts": 4, **(call or {})}
    said = {"workers": 10, "time": {"mean": 10 * MILLISECOND}, **service}
    return system(clients={"users": {"rate": rate, "calls": {"db": asked}}}, services={"db": said})


def frozen(seconds: float, service: str = "db") -> Trigger:
    return Trigger(service=service, freeze=True, for_=round(seconds * SECOND))


def late(course: Course, client: str = "users") -> float:
    """Goodput of the last ten seconds whose fate is known."""
    end = len(course.backlog) - course.lag
    return course.goodput(client, end - 10, end)


# One service: the figures that the line gives, within a step or two.


def database(load: float) -> System:
    """300 queries a second, a second's patience, one retry (HotOS'21, section 2.1)."""
    call = {"timeout": SECOND, "attempts": 2}
    return one(load, call=call, workers=3)


def test_a_database_sticks_above_half_its_capacity() -> None:
    course = simulate_graph(database(151), frozen(10))
    assert course.outcome == "sticks"
    assert course.recovered_after == {"users": None}
    assert late(course) == 0
    assert course.amplification("db") == pytest.approx(2, rel=0.1)


def test_just_below_half_it_is_slow_to_drain_and_says_how_slow() -> None:
    """The drain law: (2,831 - 300)/2 = 1,266 s. It must not be called stuck."""
    course = simulate_graph(database(149), frozen(10))
    assert course.outcome == "slow to drain"
    assert course.finishes_after == pytest.approx(1266, rel=0.02)


def test_well_below_half_it_recovers() -> None:
    course = simulate_graph(database(100), frozen(10))
    assert course.outcome == "recovers"
    assert course.recovered_after["users"] == pytest.approx((100 * 19 - 300) / 100, abs=3)


@pytest.mark.parametrize(
    ("load", "cut", "seconds", "bad"),
    [(6200, 0.78, 10, False), (6200, 0.8, 10, True), (6200, 0.8, 9, False), (4200, 0.8, 10, False)],
)
def test_four_cuts_of_a_store(load: float, cut: float, seconds: int, bad: bool) -> None:
    """OSDI'22, figure 5: 3 s, five attempts, 17,000/s."""
    call = {"timeout": 3 * SECOND, "attempts": 5}
    store = one(load, call=call, workers=340, time={"mean": 20 * MILLISECOND})
    trigger = Trigger(service="db", capacity=1 - cut, for_=seconds * SECOND)
    assert (simulate_graph(store, trigger).outcome == "sticks") == bad


@pytest.mark.slow  # a search of seven runs
def test_the_smallest_freeze_is_within_a_service_time_of_the_simulated_one() -> None:
    """At 600/s half of the simulated runs stick at 0.12 s; without service times it is 0.131."""

    def sticks(seconds: float) -> bool:
        return simulate_graph(one(600), frozen(seconds), effort=20_000).outcome == "sticks"

    assert smallest(sticks, 0.08, 0.2, tolerance=0.002) == pytest.approx(0.12, abs=0.012)


STICK = {
    "nothing": ({}, {}),
    "backoff": ({"backoff": {"base": 50 * MILLISECOND}}, {}),
    "a long queue": ({}, {"queue": {"limit": 200}}),
    "skipping": ({}, {"abandoned": "skip"}),
    "cancelling constant work": (
        {},
        {"abandoned": "cancel", "time": {"constant": 10 * MILLISECOND}},
    ),
    "a loose limit": ({"limit": {"max": 200}}, {}),
    "a deadline of two attempts": ({"deadline": 200 * MILLISECOND}, {}),
}
HEAL = {
    "a short queue": ({}, {"queue": {"limit": 90}}),
    "a short silent queue": ({}, {"queue": {"limit": 50, "full": "silence"}}),
    "newest first": ({}, {"queue": {"order": "lifo"}}),
    "newest first when long": ({}, {"queue": {"order": "adaptive_lifo"}}),
    "dropping late work": ({}, {"queue": {"late": True}}),
    "a standing queue": ({}, {"queue": {"codel": {}}}),
    "cancelling": ({}, {"abandoned": "cancel"}),
    "a budget": ({"budget": {"ratio": 0.1}}, {}),
    "a breaker": ({"breaker": {}}, {}),
    "a tight limit": ({"limit": {"max": 50}}, {}),
    "an adaptive limit": ({"limit": {"adaptive": {}}}, {}),
    "a limit at the service": ({}, {"limit": {"max": 60}}),
    "a rate limit": ({}, {"rate_limit": {"rate": 900.0}}),
    "one attempt": ({"attempts": 1}, {}),
}


@pytest.mark.slow  # seven runs of 0.3 s
def test_what_does_not_heal_a_storm() -> None:
    for name, (call, service) in STICK.items():
        course = simulate_graph(one(600, call=call, **service), frozen(2), effort=15_000)
        assert course.outcome == "sticks", name


@pytest.mark.slow  # fourteen runs of 0.1 s
def test_what_heals_a_storm() -> None:
    for name, (call, service) in HEAL.items():
        course = simulate_graph(one(600, call=call, **service), frozen(2), effort=15_000)
        assert course.outcome == "recovers", name


# Laws.


def test_a_budget_of_nothing_has_no_basin() -> None:
    for ratio in (0.0, 0.01):
        healed = one(950, call={"budget": {"ratio": ratio}})
        assert simulate_graph(healed, frozen(1)).outcome in {"recovers", "slow to drain"}


def slower(factor: int) -> System:
    call = {
        "timeout": 100 * MILLISECOND * factor,
        "attempts": 4,
        "deadline": 350 * MILLISECOND * factor,
    }
    return one(600 / factor, call=call, time={"mean": 10 * MILLISECOND * factor})


@pytest.mark.slow  # two runs
def test_no_clock_is_special() -> None:
    """Everything ten times slower: the same shares, and the same steps of one timeout."""
    fast, slow = (Network(Graph(slower(k)), frozen(2 * k), coarser=1) for k in (1, 10))
    assert fast.dt * 10 == pytest.approx(slow.dt, rel=0.05)
    fast.run()
    slow.run()
    ours, theirs = fast.course(), slow.course()
    assert ours.outcome == theirs.outcome
    assert late(ours) == pytest.approx(late(theirs), abs=0.02)
    assert ours.amplification("db") == pytest.approx(theirs.amplification("db"), rel=0.1)


def with_idler(base: System) -> System:
    idle = msgspec.convert({"workers": 5, "time": {"mean": SECOND}}, type(base.services["db"]))
    return msgspec.structs.replace(base, services={**base.services, "idle": idle})


def test_an_idle_service_changes_nothing() -> None:
    plain = simulate_graph(database(151), frozen(10))
    beside = simulate_graph(with_idler(database(151)), frozen(10))
    assert plain.good == beside.good


def test_the_same_run_twice_is_the_same() -> None:
    assert simulate_graph(database(200), frozen(3)) == simulate_graph(database(200), frozen(3))


def test_nobody_is_served_twice_and_attempts_are_bounded() -> None:
    course = simulate_graph(one(700, call={"attempts": 3}), frozen(3))
    for good, offered in zip(course.good["users"], course.offered["users"], strict=True):
        assert good <= offered * (1 + 1e-9)
    assert sum(course.attempts["db"]) <= 3 * sum(course.offered["users"]) * (1 + 1e-9)
    assert sum(course.arrived["db"]) == pytest.approx(sum(course.attempts["db"]))


# Graphs.


def shop(**licences: Any) -> System:
    """Pages ask for licences 30 % of the time, and hold one of 1,000 workers while they wait."""
    call = {"to": "market", "per_request": 0.3, "timeout": 10 * SECOND, "attempts": 2, **licences}
    return system(
        clients={
            "readers": {
                "rate": 500.0,
                "calls": {"page": {"to": "tracker", "timeout": 30 * SECOND}},
            },
            "buyers": {"rate": 600.0, "calls": {"buy": {"to": "market", "timeout": 5 * SECOND}}},
        },
        services={
            "tracker": {
                "workers": 1000,
                "time": {"mean": 200 * MILLISECOND},
                "queue": {"limit": 100},
                "calls": {"licences": call},
            },
            "market": {"replicas": 4, "workers": 25, "time": {"mean": 50 * MILLISECOND}},
        },
    )


def test_workers_held_by_a_callee_take_their_caller_down() -> None:
    """Little's law: 3,100 workers are wanted, so about a third of the pages gets one."""
    course = simulate_graph(shop(), frozen(120, "market"))
    assert course.goodput("readers", course.start + 60, course.end) < 0.35
    assert course.goodput("buyers", course.start + 10, course.end - 10) == 0


@pytest.mark.parametrize(
    "licences",
    [{"optional": True, "timeout": SECOND, "attempts": 1}, {"optional": True, "breaker": {}}],
)
def test_a_short_wait_for_an_optional_callee_keeps_the_caller_up(licences: dict[str, Any]) -> None:
    course = simulate_graph(shop(**licences), frozen(120, "market"))
    assert course.goodput("readers", course.start + 60, course.end) > 0.95
    assert course.by_client["buyers"] != "unharmed"


def test_what_nobody_waits_for_holds_nobody_up() -> None:
    course = simulate_graph(shop(optional=True, wait=False), frozen(120, "market"))
    assert course.by_client["readers"] == "unharmed"


def test_a_service_that_holds_nothing_passes_the_timeout_on() -> None:
    edge = shop()
    tracker = msgspec.structs.replace(edge.services["tracker"], blocking=False)
    free = msgspec.structs.replace(edge, services={**edge.services, "tracker": tracker})
    course = simulate_graph(free, frozen(60, "market"))
    assert course.goodput("readers", course.start + 20, course.end) == pytest.approx(0.7, abs=0.03)


def layers(**call: Any) -> System:
    asked = {"timeout": SECOND, "attempts": 3, **call}
    return system(
        clients={"users": {"rate": 100.0, "calls": {"a": {**asked, "timeout": 9 * SECOND}}}},
        services={
            "a": {"blocking": False, "calls": {"b": {**asked, "timeout": 3 * SECOND}}},
            "b": {"blocking": False, "calls": {"c": asked}},
            "c": {"workers": 10, "time": {"mean": 50 * MILLISECOND}},
        },
    )


def test_attempts_multiply_over_layers_and_a_budget_adds_them() -> None:
    storm = simulate_graph(layers(), frozen(60, "c"))
    assert storm.amplification("c") > 6  # on its way to 27
    held = simulate_graph(layers(budget={"ratio": 0.1}), frozen(60, "c"))
    assert held.amplification("c") < 1.4


def test_a_deadline_that_is_passed_on_ends_the_work_below() -> None:
    """Users leave after a second; what they left goes on below for three, unless told."""

    def system_of(propagate: bool) -> System:
        call = {"timeout": SECOND, "attempts": 1, "propagate": propagate}
        return system(
            clients={"users": {"rate": 100.0, "calls": {"a": call}}},
            services={
                "a": {"blocking": False, "calls": {"b": {"timeout": SECOND, "attempts": 3}}},
                "b": {"workers": 10, "time": {"mean": 50 * MILLISECOND}},
            },
        )

    told, untold = (simulate_graph(system_of(said), frozen(20, "b")) for said in (True, False))
    assert told.amplification("b") == pytest.approx(1, abs=0.05)
    assert untold.amplification("b") > 2.5


def test_calls_together_wait_for_the_slowest() -> None:
    def web(parallel: bool) -> System:
        call = {"timeout": 500 * MILLISECOND}
        return system(
            clients={"users": {"rate": 10.0, "calls": {"web": call}}},
            services={
                "web": {"parallel": parallel, "calls": {"left": {}, "right": {}}},
                "left": {"time": {"constant": 300 * MILLISECOND}},
                "right": {"time": {"constant": 300 * MILLISECOND}},
            },
        )

    nothing = Trigger(client="users", load=1.0, for_=SECOND)
    assert simulate_graph(web(parallel=True), nothing).outcome == "unharmed"
    assert simulate_graph(web(parallel=False), nothing).outcome == "sticks"


def test_many_calls_must_all_succeed() -> None:
    """Each of 15 calls is served by 6/7: a tenth of the requests is (0.857^15)."""
    everything = system(
        clients={"users": {"rate": 40.0, "calls": {"web": {"timeout": 9 * SECOND}}}},
        services={
            "web": {"blocking": False, "calls": {"core": {"per_request": 15.0}}},
            "core": {"errors": 1 / 7},
        },
    )
    course = simulate_graph(everything, None, hold=10)
    assert course.goodput("users", 5, 15) == pytest.approx((6 / 7) ** 15, rel=0.01)


def test_a_circle_of_calls_that_nobody_waits_for() -> None:
    circle = system(
        clients={"users": {"rate": 50.0, "calls": {"a": {"timeout": SECOND, "attempts": 3}}}},
        services={
            "a": {"workers": 5, "time": {"mean": 50 * MILLISECOND}, "calls": {"b": {}}},
            "b": {"calls": {"back": {"to": "a", "optional": True, "wait": False}}},
        },
    )
    assert simulate_graph(circle, frozen(5, "a")).outcome == "sticks"


# Triggers.


def test_each_trigger_does_what_it_says() -> None:
    base = one(600, call={"attempts": 1, "timeout": SECOND})

    def during(**said: Any) -> float:
        course = simulate_graph(base, msgspec.convert({"for": 20 * SECOND, **said}, Trigger))
        return course.goodput("users", course.start + 5, course.end - 2)

    assert during(service="db", slowdown=1.1) == 1
    assert during(service="db", slowdown=4.0) == 0
    assert during(service="db", capacity=0.7) == 1
    assert during(service="db", capacity=0.0) == 0
    assert during(service="db", errors=0.25) == pytest.approx(0.75)
    assert during(service="db", latency=2 * SECOND) == 0
    assert during(service="db", rate_limit={"rate": 150.0}) == pytest.approx(0.25, abs=0.01)
    assert during(client="users", load=3.0) == 0
    assert during(call="db", latency=2 * SECOND) == 0
    assert during(call="db", rate_limit={"rate": 150.0}) == pytest.approx(0.25, abs=0.01)
    assert during(call="db", per_request=3.0) == 0


def test_a_trigger_comes_when_it_is_said_to_and_grows_over_its_ramp() -> None:
    ramp = Trigger(client="users", load=2.0, at=5 * SECOND, for_=20 * SECOND, ramp=10 * SECOND)
    course = simulate_graph(one(100), ramp)
    offered = course.offered["users"]
    assert (course.start, course.end) == (5, 25)
    assert offered[4] == pytest.approx(100)
    assert offered[10] == pytest.approx(155, abs=1)
    assert offered[20] == pytest.approx(200)
    assert offered[30] == pytest.approx(145, abs=1)
    assert offered[36] == pytest.approx(100)


def test_a_trigger_without_an_end_is_judged_while_it_lasts() -> None:
    cut = Trigger(service="db", capacity=0.5)
    assert simulate_graph(one(400), cut).outcome == "unharmed"
    assert simulate_graph(one(600), cut).outcome == "sticks"


def test_one_of_four_replicas() -> None:
    four = one(600, workers=5, replicas=4, call={"timeout": SECOND, "attempts": 1})
    trigger = Trigger(service="db", freeze=True, for_=20 * SECOND, replicas=1)
    course = simulate_graph(four, trigger)
    assert course.goodput("users", course.start + 3, course.end) == pytest.approx(0.75, abs=0.02)
    shared = one(600, workers=5, replicas=4, balance="shared_queue", call={"timeout": SECOND})
    course = simulate_graph(shared, trigger)
    assert course.goodput("users", course.start + 3, course.end - 2) == 0
    idle = one(600, workers=5, replicas=4, balance="least_loaded", call={"timeout": SECOND})
    course = simulate_graph(idle, trigger)
    assert course.goodput("users", course.start + 3, course.end - 2) > 0.9


def test_left_alone_it_stays_well() -> None:
    course = simulate_graph(one(600), None, hold=20)
    assert course.outcome == "unharmed"
    assert course.harm == 0


def test_users_who_wait_send_less() -> None:
    closed = system(
        clients={
            "people": {
                "users": 100,
                "think": {"mean": SECOND},
                "calls": {"db": {"timeout": 30 * SECOND}},
            }
        },
        services={"db": {"workers": 10, "time": {"mean": 50 * MILLISECOND}}},
    )
    course = simulate_graph(closed, Trigger(service="db", slowdown=4.0, for_=60 * SECOND))
    before, during = course.offered["people"][5], course.offered["people"][60]
    assert before == pytest.approx(100 / 1.05, rel=0.02)
    assert during == pytest.approx(50, rel=0.03)  # ten workers of 200 ms
    assert course.outcome == "unharmed"


# What it costs.


def test_services_that_cannot_be_in_trouble_are_not_simulated() -> None:
    healthy = with_idler(one(600))
    assert Network(Graph(healthy), frozen(1)).lively == {"db"}
    assert Network(Graph(one(50)), Trigger(client="users", load=2.0, for_=SECOND)).lively == set()
    assert simulate_graph(one(50), Trigger(client="users", load=2.0, for_=SECOND)).harm == 0


def test_the_step_follows_the_shortest_timeout_and_the_effort() -> None:
    fine = Network(Graph(one(600)), frozen(1))
    assert fine.dt == pytest.approx(0.005, rel=0.01)
    assert not fine.coarse
    rough = Network(Graph(one(600)), frozen(3600), effort=1)
    assert rough.coarse
    short = Network(Graph(database(200)), frozen(0.2))
    assert short.dt == pytest.approx(0.01)


def test_a_run_that_turns_out_too_dear_is_stopped() -> None:
    network = Network(Graph(one(600)), frozen(2))
    network.clients["users"].effort = 10**9
    assert not network.run(bounded=True)
    assert len(network.course().backlog) == 1
