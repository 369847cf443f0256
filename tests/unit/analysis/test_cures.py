"""Every cure is one change: what is written for it is what was tried, and nothing else."""

from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from random_systems import systems
from systems import store

from tidegate.analysis.cures import (
    MAX_CURES,
    Candidate,
    both,
    candidates,
    changed,
    fences,
    with_call,
)
from tidegate.analysis.graph import Graph
from tidegate.analysis.loop import sustaining_loop
from tidegate.findings import Loop
from tidegate.settings.admission import Admission
from tidegate.settings.dump import dump
from tidegate.settings.load import loads
from tidegate.settings.policies import Backoff, Breaker, Budget, Limit, Queue
from tidegate.settings.system import Call, Client, Service, System, Time
from tidegate.units import MILLISECOND, SECOND

ANY_LOOP = Loop(client="ann", hops=[], attempts_per_action=4.0, says="")
CAN_FAIL = {"to": "licences", "per_request": 0.3, "timeout": 10 * SECOND, "attempts": 2}


def pages(**call: Any) -> System:
    """Three pages in ten check a licence, and hold one of a hundred workers meanwhile."""
    web = Service(
        workers=100, time=Time(mean=SECOND // 10), calls={"check": Call(**(CAN_FAIL | call))}
    )
    return System(
        clients={
            "readers": Client(rate=100.0, calls={"open": Call(to="web", timeout=30 * SECOND)})
        },
        services={"web": web, "licences": Service(workers=10, time=Time(mean=50 * MILLISECOND))},
    )


def made(system: System, service: str) -> dict[str, Candidate]:
    return {c.name: c for c in candidates(system, ANY_LOOP, service)}


def merged(base: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """Sections, names and calls are merged, every other key is replaced: as the report says."""
    out = dict(base)
    for section, named in patch.items():
        if section not in ("clients", "services", "calls"):
            out[section] = named
            continue
        out[section] = dict(out.get(section) or {})
        for name, keys in named.items():
            old = out[section].get(name)
            # `licences: edge` is short for `licences: {to: edge}`
            out[section][name] = merged({"to": old} if isinstance(old, str) else old or {}, keys)
    return out


def written(system: System, candidate: Candidate) -> System:
    """The system of the file with the candidate's lines in it."""
    text = merged(yaml.safe_load(dump(system)), yaml.safe_load(candidate.yaml))
    return loads(yaml.safe_dump(text, sort_keys=False, allow_unicode=True)).system()


@pytest.mark.slow  # each candidate is written and read again: two seconds
@settings(max_examples=40)
@given(systems, st.data())
def test_the_lines_for_the_file_make_the_system_that_was_tried(
    system: System, data: st.DataObject
) -> None:
    service = data.draw(st.sampled_from(sorted(system.services)))
    offered = candidates(system, ANY_LOOP, service)
    for candidate in offered:
        assert candidate.system != system, candidate.name
        assert changed(system, candidate.changes) == candidate.system, candidate.name
        assert written(system, candidate) == candidate.system, candidate.name
        assert candidate.cost
    assert len({c.name for c in offered}) == len(offered)


@pytest.mark.slow  # as above, for pairs
@settings(max_examples=40)
@given(systems, st.data())
def test_two_at_once_are_one_change_of_each(system: System, data: st.DataObject) -> None:
    service = data.draw(st.sampled_from(sorted(system.services)))
    for first in candidates(system, ANY_LOOP, service)[:3]:
        for fence in fences(first.system, service):
            pair = both(first, fence)
            assert pair.system == fence.system == changed(first.system, fence.changes)
            assert written(system, pair) == pair.system
            assert first.name in pair.name
            assert fence.name in pair.name
            assert (pair.fences, pair.cost) == (fence.fences, f"{fence.cost}; {first.cost}")


@given(systems, st.data())
def test_jittered_backoff_alone_is_among_those_that_are_tried(
    system: System, data: st.DataObject
) -> None:
    service = data.draw(st.sampled_from(sorted(system.services)))
    retrying = any(call.tries > 1 for _, _, calls in system.callers() for call in calls.values())
    tried = [c.name for c in candidates(system, ANY_LOOP, service)[:MAX_CURES]]
    waits = {
        call.backoff
        for _, _, calls in system.callers()
        for call in calls.values()
        if call.tries > 1
    }
    assert ("jittered backoff alone" in tried) == (retrying and waits != {Backoff()})


def test_the_cures_of_a_store_the_gentlest_first() -> None:
    assert list(made(store(), "store")) == [
        "retry budget of 10 %",
        "no retries",
        "jittered backoff alone",
        "circuit breaker in front of store",
        "queue of 50 at store",  # 8 workers serve 100 in 500 ms
        "store drops what can no longer finish in time",
        "newest first at store when it is behind",
        "store skips what was abandoned",
    ]


def test_where_nothing_multiplies_less_is_taken_in_and_less_waited_for() -> None:
    plain = [c.name for c in candidates(store(attempts=1), None, "store")]
    assert plain == [
        "adaptive limit at store",
        "circuit breaker in front of store",
        "queue of 50 at store",
        "store drops what can no longer finish in time",
        "newest first at store when it is behind",
        "store skips what was abandoned",
    ]
    found = {c.name: c for c in candidates(pages(), None, "licences")}
    assert found["timeout of 1s for check"].yaml == (
        "services: {web: {calls: {check: {timeout: 1s}}}}"
    )
    assert "holds no worker of web" in found["timeout of 1s for check"].cost
    assert "timeout of 1s for check" not in {
        c.name for c in candidates(pages(timeout=SECOND), None, "licences")
    }
    assert "no retries" not in found


def test_what_is_there_already_is_not_offered() -> None:
    cautious = store(budget=Budget(), breaker=Breaker(), attempts=2, propagate=True)
    careful = msgspec.structs.replace(
        cautious.services["store"],
        queue=Queue(limit=10, late=True, order="adaptive_lifo"),
        abandoned="skip",
    )
    system = msgspec.structs.replace(cautious, services={"store": careful})
    assert list(made(system, "store")) == ["no retries", "jittered backoff alone"]


def test_a_service_with_a_door_is_given_no_limit_beside_it() -> None:
    calm = store(attempts=1)
    record = msgspec.structs.replace(calm.services["store"], admission=Admission())
    behind = msgspec.structs.replace(calm, services={"store": record})
    assert "adaptive limit at store" not in {c.name for c in candidates(behind, None, "store")}


def test_a_shorter_queue_keeps_its_other_settings() -> None:
    service = store().services["store"]
    queue = Queue(limit=1000, order="lifo", full="silence")
    system = msgspec.structs.replace(
        store(), services={"store": msgspec.structs.replace(service, queue=queue)}
    )
    cure = made(system, "store")["queue of 50 at store"]
    assert cure.system.services["store"].queue == Queue(limit=50, order="lifo", full="refuse")


@pytest.mark.parametrize("time", [Time(mean=0), Time(mean=1), None])
def test_no_queue_is_offered_that_would_hold_a_million(time: Time | None) -> None:
    service = msgspec.structs.replace(store().services["store"], time=time)
    system = msgspec.structs.replace(store(), services={"store": service})
    assert not [name for name in made(system, "store") if name.startswith("queue of")]


def test_one_layer_retries_the_outermost_of_the_loop() -> None:
    system = with_call(pages(), "open", attempts=3)
    loop = sustaining_loop(Graph(system), "licences")
    assert loop is not None
    cure = {c.name: c for c in candidates(system, loop, "licences")}[
        "retry in one layer only (open)"
    ]
    assert cure.where == "services.web.calls.check"
    assert cure.yaml == "services: {web: {calls: {check: {attempts: 1}}}}"
    assert cure.system == with_call(system, "check", attempts=1)


def test_a_change_in_two_places_names_both() -> None:
    cure = made(with_call(pages(), "open", attempts=3), "licences")["retry budget of 10 %"]
    assert cure.where == "clients.readers.calls.open, services.web.calls.check"
    assert cure.yaml.splitlines() == [
        "clients: {readers: {calls: {open: {budget: 10%}}}}",
        "services: {web: {calls: {check: {budget: 10%}}}}",
    ]


def test_an_edge_that_part_of_the_work_needs_is_fenced_in_three_ways() -> None:
    fence = {c.name: c for c in fences(pages(), "licences")}
    assert list(fence) == [
        "check optional, 1s, no retry",
        "check optional behind a breaker",
        "bulkhead of 20 for check",
        "circuit breaker in front of licences",
    ]
    assert [c.fences for c in fence.values()] == [True, True, True, False]
    call = fence["bulkhead of 20 for check"].system.services["web"].calls["check"]
    assert (call.limit, call.optional) == (Limit(max=20), True)
    assert "30% of web's requests" in fence["check optional, 1s, no retry"].cost


def test_a_shorter_timeout_is_left_as_it_is() -> None:
    fence = next(fences(pages(timeout=SECOND // 4), "licences"))
    assert fence.name == "check optional, 250ms, no retry"
    assert fence.cost.endswith("250ms late")


@pytest.mark.parametrize("change", [{"per_request": 1.0}, {"per_request": 2.5}])
def test_what_every_request_needs_cannot_be_fenced(change: dict[str, float]) -> None:
    assert not any(c.fences for c in fences(pages(**change), "licences"))


def test_a_caller_that_holds_nothing_needs_no_fence() -> None:
    system = pages()
    web = msgspec.structs.replace(system.services["web"], blocking=False)
    system = msgspec.structs.replace(system, services={**system.services, "web": web})
    assert not any(c.fences for c in fences(system, "licences"))


def test_what_retries_mend_is_the_cost_of_doing_without() -> None:
    flaky = msgspec.structs.replace(store().services["store"], errors=0.1)
    system = msgspec.structs.replace(store(), services={"store": flaky})
    assert made(system, "store")["no retries"].cost == (
        "10% of shoppers would fail that a retry mends in health (computed)"
    )
    assert "the file has none" in made(store(), "store")["no retries"].cost


def test_a_call_by_name_is_changed_wherever_it_is() -> None:
    assert with_call(pages(), "check", attempts=5).services["web"].calls["check"].attempts == 5
    assert with_call(pages(), "open", attempts=5).clients["readers"].calls["open"].attempts == 5
    assert with_call(pages(), "none such", attempts=5) == pages()
