"""The audit answers for every valid system, and speaks of no retry where there is none.

Systems are drawn whole: any number of services, calls downwards that are waited for, calls anywhere
that are not, every policy present or absent.
"""

import itertools
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.analysis.audit import RULES, audit
from tidegate.analysis.journeys import dependencies
from tidegate.analysis.rules.view import View, amplification, repeats_failures
from tidegate.settings.policies import (
    Adaptive,
    Backoff,
    Breaker,
    Budget,
    CoDel,
    Limit,
    Queue,
    RateLimit,
)
from tidegate.settings.system import Call, Client, Journey, Service, System, Time
from tidegate.units import SECOND

RETRY_RULES = {
    "retry-layers",
    "effects-repeated",
    "overloaded-at-once",
    "attempts-multiply",
    "retry-no-budget",
    "retry-at-once",
    "retry-no-jitter",
    "refusals-repeated",
    "attempts-outlive-caller",
    "abandoned-finished",
}
SEVERITIES = ["error", "warning", "note"]

durations = st.integers(1, 20) | st.integers(1_000_000, 20 * SECOND)
shares = st.sampled_from([0.0, 1e-9, 0.1, 0.5, 1.0])
times = (
    st.builds(Time, mean=st.just(0) | durations)
    | st.builds(Time, constant=st.just(0) | durations)
    | st.tuples(durations, durations).map(lambda t: Time(median=min(t), p99=max(t)))
)
limits = st.builds(Limit, max=st.integers(1, 500)) | st.just(Limit(adaptive=Adaptive()))
rate_limits = st.builds(RateLimit, rate=st.floats(1e-3, 1e4))
queues = st.builds(
    Queue,
    limit=st.none() | st.integers(0, 10_000),
    order=st.sampled_from(["fifo", "lifo", "adaptive_lifo"]),
    full=st.sampled_from(["refuse", "silence"]),
    codel=st.none() | st.just(CoDel()),
    late=st.booleans(),
)
backoffs = st.builds(
    Backoff,
    base=st.just(0) | st.integers(1, SECOND),
    factor=st.sampled_from([1.0, 2.0, 100.0]),
    max=st.just(SECOND),
    jitter=st.sampled_from(["full", "equal", "none"]),
)
reasons = st.lists(st.sampled_from(["timeout", "failure", "overloaded"]), unique=True).map(tuple)


def calls_to(targets: list[str], *, wait: bool, whole: bool) -> st.SearchStrategy[Call]:
    """A call to one of these; with `whole` it has all that a call can have."""
    shape: dict[str, st.SearchStrategy[Any]] = {
        "to": st.sampled_from(targets),
        "per_request": st.sampled_from([0.0, 0.3, 1.0, 2.5, 7.0]),
        "optional": st.booleans() if wait else st.just(True),
        "wait": st.just(wait),
        "attempts": st.sampled_from([1, 1, 2, 3, 100]),
        "retry_on": reasons,
        "budget": st.none() | st.builds(Budget, ratio=st.sampled_from([0.0, 0.1, 1.0, 10.0])),
    }
    if whole:
        shape |= {
            "timeout": st.none() | durations,
            "deadline": st.none() | durations,
            "propagate": st.booleans(),
            "backoff": st.none() | backoffs,
            "breaker": st.none() | st.just(Breaker()),
            "limit": st.none() | limits,
            "rate_limit": st.none() | rate_limits,
            "network": st.none() | times,
            "idempotent": st.booleans(),
            "protect": st.sampled_from(["none", "default"]),
        }
    return st.builds(Call, **shape)


def services(calls: dict[str, Call]) -> st.SearchStrategy[Service]:
    return st.builds(
        Service,
        workers=st.none() | st.integers(1, 1000),
        blocking=st.booleans(),
        time=st.none() | times,
        replicas=st.integers(1, 5),
        balance=st.sampled_from(["round_robin", "random", "least_loaded", "shared_queue"]),
        queue=queues,
        rate_limit=st.none() | rate_limits,
        limit=st.none() | limits,
        refusal_cost=shares,
        abandoned=st.sampled_from(["finish", "skip", "cancel"]),
        parallel=st.booleans(),
        calls=st.just(calls),
    )


def clients(calls: dict[str, Call]) -> st.SearchStrategy[Client]:
    open_ = st.builds(Client, rate=st.floats(1e-3, 1e5), calls=st.just(calls))
    closed = st.builds(Client, users=st.integers(1, 1000), think=times, calls=st.just(calls))
    return open_ | closed


@st.composite
def systems(draw: st.DrawFn, *, whole: bool = True, events: bool = True) -> System:
    """A system; with `whole` it has all that one can have, else only what makes a graph."""
    names = [f"s{index}" for index in range(draw(st.integers(1, 4)))]
    numbers = itertools.count()

    def calls(below: list[str]) -> dict[str, Call]:
        waited = calls_to(below, wait=True, whole=whole) if below else st.nothing()
        event = calls_to(names, wait=False, whole=whole) if events else st.nothing()
        made = draw(st.lists(waited | event, max_size=2 if below or events else 0))
        return {f"c{next(numbers)}": call for call in made}

    made = {}
    for index, name in enumerate(names):
        inner = calls(names[index + 1 :])
        made[name] = draw(services(inner)) if whole else Service(calls=inner)
    people = {}
    for name in ("people", "robots")[: draw(st.integers(1, 2))]:
        first = {f"c{next(numbers)}": draw(calls_to(names, wait=True, whole=whole))}
        outer = first | calls(names)
        people[name] = draw(clients(outer)) if whole else Client(rate=1.0, calls=outer)
    journeys = {"visit": Journey(client="people")} if draw(st.booleans()) else {}
    return System(clients=people, services=made, journeys=journeys)


@pytest.mark.slow  # whole systems are drawn
@settings(max_examples=50)
@given(systems())
def test_every_valid_system_gets_an_answer_that_a_person_can_use(system: System) -> None:
    found = audit(system)
    assert found == audit(system)
    known = msgspec.to_builtins(system)
    for finding in found:
        section, owner, *_ = finding.where.split(".")
        assert owner in known[section]
        assert finding.rule in {rule.name for rule in RULES}
        assert finding.says
        assert "nan" not in finding.says
        assert "inf" not in finding.says.replace("infinite", "")
        assert finding.fix.endswith(".")
        assert isinstance(yaml.safe_load(finding.yaml), dict)
    ranks = [SEVERITIES.index(finding.severity) for finding in found]
    assert ranks == sorted(ranks)


def once(call: Call) -> Call:
    return msgspec.structs.replace(call, attempts=1, protect="none")


@pytest.mark.slow  # as above
@settings(max_examples=30)
@given(systems())
def test_where_nothing_is_repeated_no_rule_speaks_of_retries(system: System) -> None:
    calm = msgspec.structs.replace(
        system,
        clients={
            name: msgspec.structs.replace(c, calls={k: once(v) for k, v in c.calls.items()})
            for name, c in system.clients.items()
        },
        services={
            name: msgspec.structs.replace(s, calls={k: once(v) for k, v in s.calls.items()})
            for name, s in system.services.items()
        },
    )
    assert not RETRY_RULES & {finding.rule for finding in audit(calm)}


def most_attempts(view: View, caller: str, depth: int) -> float:
    """The worst product below a caller by walking every path: the naive reference."""
    most = 1.0
    for edge in view.out_of[caller]:
        alone = amplification(edge.call)
        below = most_attempts(view, edge.callee, depth - 1) if depth else 1.0
        passed = below * (alone if repeats_failures(edge.call) else 1.0)
        most = max(most, alone, passed if below > 1 else alone)
    return most


@pytest.mark.slow  # as above
@given(systems(whole=False, events=False))
def test_the_worst_path_is_the_worst_of_all_paths(system: System) -> None:
    view = View(system)
    for client in view.system.clients:
        assert view.worst[client].attempts == most_attempts(view, client, len(view.services))


@pytest.mark.slow  # as above
@given(systems(whole=False))
def test_what_a_journey_needs_it_asks_and_a_removal_never_adds_a_need(system: System) -> None:
    found = dependencies(system)
    assert {journey.client for journey in found} == set(system.clients)
    for journey in found:
        for one in journey.services:
            assert 0 <= one.needs <= one.asks + 1e-9
            assert one.asks <= min(1.0, one.calls) + 1e-9  # one in three asks: at least 1/3 calls
        for removal in journey.removals:
            assert 0 <= removal.needs_then < removal.needs <= 1


def layered(depth: int, width: int) -> System:
    """`depth` layers of `width` services, each calling all of the next: width^depth ways."""
    call = Call(per_request=0.2, timeout=SECOND, attempts=2)
    made = {
        f"s{row}_{column}": Service(
            workers=10,
            time=Time(mean=1_000_000),
            calls={
                f"c{row}_{column}_{other}": msgspec.structs.replace(call, to=f"s{row + 1}_{other}")
                for other in range(width)
                if row + 1 < depth
            },
        )
        for row in range(depth)
        for column in range(width)
    }
    entry = msgspec.structs.replace(call, to="s0_0")
    return System(clients={"people": Client(rate=1.0, calls={"open": entry})}, services=made)


def test_the_work_grows_with_the_calls_and_not_with_the_paths() -> None:
    # 4^12 paths, about 17 million: walking them would not end while anybody waits for this test.
    system = layered(depth=13, width=4)
    assert len([f for f in audit(system) if f.rule == "retry-layers"]) == 1 + 11 * 16
    assert dependencies(system)[0].services[0].service == "s0_0"
