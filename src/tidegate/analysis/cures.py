"""What single changes could keep a bad trigger from becoming an outage?

Each candidate is the system with one change, on the sustaining loop only: the calls on its path
and the service that it keeps down. What a change costs in health is said in words beside it;
whether it helps is for the simulator to say. Jittered backoff alone is always among them, because
it is the first thing that people reach for, and it does not help.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from tidegate.findings import Loop
from tidegate.settings.policies import Backoff, Breaker, Budget, Limit, Queue
from tidegate.settings.system import Call, Client, Service, System
from tidegate.units import SECOND, format_duration

__all__ = ["MAX_CURES", "Candidate", "both", "candidates", "fences", "with_call"]

MAX_CURES: Final = 12
"""More would not be read; which ones were left out is said."""


class Candidate(NamedTuple):
    """One change: its name, where it goes, the YAML that makes it, its cost, the changed system.

    `fences` the callers in: it keeps a failure from spreading rather than from lasting.
    """

    name: str
    where: str
    yaml: str
    cost: str
    system: System
    fences: bool = False


def candidates(system: System, loop: Loop, service: str) -> list[Candidate]:
    """The changes worth trying against `loop`, which keeps `service` down; the gentlest first."""
    made = [*_on_calls(system, loop), *fences(system, service), *_at_service(system, service)]
    return [candidate for candidate in made if candidate.system != system]


def both(first: Candidate, second: Candidate) -> Candidate:
    """`first`, made on top of what `second` has made: one keeps it short, the other keeps it local.

    `second` must have been made from the system of `first`.
    """
    return Candidate(
        f"{second.name}, and {first.name}",
        f"{second.where}; {first.where}",
        f"{second.yaml}; {first.yaml}",
        f"{second.cost}; {first.cost}",
        second.system,
        second.fences,
    )


def with_call(system: System, name: str, **changes: object) -> System:
    """The system with some settings of one call changed."""

    def change(calls: dict[str, Call]) -> dict[str, Call]:
        if name not in calls:
            return calls
        return {**calls, name: msgspec.structs.replace(calls[name], **changes)}

    return msgspec.structs.replace(
        system,
        clients={k: _with_calls(v, change(v.calls)) for k, v in system.clients.items()},
        services={k: _with_service_calls(v, change(v.calls)) for k, v in system.services.items()},
    )


def _with_calls(client: Client, calls: dict[str, Call]) -> Client:
    return client if calls is client.calls else msgspec.structs.replace(client, calls=calls)


def _with_service_calls(service: Service, calls: dict[str, Call]) -> Service:
    return service if calls is service.calls else msgspec.structs.replace(service, calls=calls)


def _retrying(system: System) -> list[str]:
    """Every call that retries, anywhere: budgets and single layers are cures of a whole system."""
    return [
        name
        for _, _, calls in system.callers()
        for name, call in calls.items()
        if call.attempts > 1
    ]


def _on_calls(system: System, loop: Loop) -> Iterator[Candidate]:
    retrying = _retrying(system)
    if not retrying:
        return
    listed = ", ".join(retrying)
    changed = system
    for name in retrying:
        changed = with_call(changed, name, budget=Budget())
    yield Candidate(
        "retry budget of 10 %",
        listed,
        "budget: 10%",
        "in health nothing: retries stay below a tenth of the requests",
        changed,
    )
    if len(retrying) > 1:
        outermost = _outermost(loop, retrying)
        changed = system
        for name in retrying:
            if name != outermost:
                changed = with_call(changed, name, attempts=1)
        yield Candidate(
            f"retry in one layer only ({outermost})",
            ", ".join(name for name in retrying if name != outermost),
            "attempts: 1",
            "a failure below is repeated once more from further out",
            changed,
        )
    changed = system
    for name in retrying:
        changed = with_call(changed, name, attempts=1, backoff=None, budget=None)
    yield Candidate(
        "no retries",
        listed,
        "attempts: 1",
        "single failures that a second attempt would have mended are seen",
        changed,
    )
    changed = system
    for name in retrying:
        changed = with_call(changed, name, backoff=Backoff())
    yield Candidate(
        "jittered backoff alone",
        listed,
        "backoff: 100ms",
        "retries come later, but all of them come",
        changed,
    )


def _outermost(loop: Loop, retrying: list[str]) -> str:
    return next((hop.call for hop in loop.hops if hop.call in retrying), retrying[0])


def fences(system: System, service: str) -> Iterator[Candidate]:
    """Changes that keep the callers of `service` up while it is down.

    To calls of services (not of clients) on any way to it.
    """
    on_the_way = _leading_to(system, service)
    inner = [
        (caller, name, call)
        for section, caller, calls in system.callers()
        for name, call in calls.items()
        if section == "services" and system.target_of(name, call) in on_the_way
    ]
    for caller, name, call in inner:
        if not system.services[caller].blocking or call.per_request >= 1:
            continue
        share = f"{call.per_request:.0%} of {caller}'s requests"
        timeout = min(call.timeout or SECOND, SECOND)
        yield Candidate(
            f"{name} optional, 1 s, no retry",
            name,
            f"optional: true, timeout: {format_duration(timeout)}, attempts: 1",
            f"{share} may be answered without it, a second late",
            with_call(system, name, optional=True, timeout=timeout, attempts=1),
            fences=True,
        )
        yield Candidate(
            f"{name} optional behind a breaker",
            name,
            "optional: true, breaker: 50%",
            f"{share} may be answered without it",
            with_call(system, name, optional=True, breaker=Breaker()),
            fences=True,
        )
        workers = system.services[caller].workers
        if workers is not None and call.limit is None:
            share_of = max(1, workers // 5)
            yield Candidate(
                f"bulkhead of {share_of} for {name}",
                name,
                f"limit: {share_of}, optional: true",
                f"at most {share_of} of {workers} workers wait for it; the rest goes without",
                with_call(system, name, limit=Limit(max=share_of), optional=True),
                fences=True,
            )
    last = [
        name
        for _, _, calls in system.callers()
        for name, call in calls.items()
        if system.target_of(name, call) == service and call.breaker is None
    ]
    if last:
        changed = system
        for name in last:
            changed = with_call(changed, name, breaker=Breaker())
        yield Candidate(
            f"circuit breaker in front of {service}",
            ", ".join(last),
            "breaker: 50%",
            "while it is open nobody is served, and nobody waits",
            changed,
        )


def _leading_to(system: System, service: str) -> set[str]:
    leading = {service}
    for _ in system.services:
        for name, record in system.services.items():
            if any(system.target_of(n, c) in leading for n, c in record.calls.items() if c.wait):
                leading.add(name)
    return leading


def _at_service(system: System, service: str) -> Iterator[Candidate]:
    record = system.services[service]
    if record.workers is None or record.time is None:
        return
    waits = [
        call.timeout
        for _, _, calls in system.callers()
        for name, call in calls.items()
        if system.target_of(name, call) == service and call.timeout is not None
    ]
    time = max(record.time.average, 1.0)
    if waits:
        places = max(1, int(record.workers * min(waits) / time / 2))
        if record.queue.limit is None or record.queue.limit > places:
            yield Candidate(
                f"queue of {places} at {service}",
                service,
                f"queue: {places}",
                "bursts of more than half a timeout's work are refused",
                _with_queue(system, service, Queue(limit=places, full="refuse")),
            )
        told = _with_queue(system, service, msgspec.structs.replace(record.queue, late=True))
        for name in _into(system, service):
            told = with_call(told, name, propagate=True)
        yield Candidate(
            f"{service} drops what can no longer finish in time",
            f"{service}, {', '.join(_into(system, service))}",
            "queue: {late: true}; propagate: true",
            "callers must say how long they still wait; in health nothing is late",
            told,
        )
        yield Candidate(
            f"newest first at {service} when it is behind",
            service,
            "queue: {order: adaptive_lifo}",
            "in health the order is the same",
            _with_queue(
                system, service, msgspec.structs.replace(record.queue, order="adaptive_lifo")
            ),
        )
    if record.abandoned == "finish":
        yield Candidate(
            f"{service} skips what was abandoned",
            service,
            "abandoned: skip",
            "work that nobody waits for is not begun",
            _with_service(system, service, abandoned="skip"),
        )


def _into(system: System, service: str) -> list[str]:
    return [
        name
        for _, _, calls in system.callers()
        for name, call in calls.items()
        if system.target_of(name, call) == service
    ]


def _with_queue(system: System, service: str, queue: Queue) -> System:
    return _with_service(system, service, queue=queue)


def _with_service(system: System, name: str, **changes: object) -> System:
    changed = msgspec.structs.replace(system.services[name], **changes)
    return msgspec.structs.replace(system, services={**system.services, name: changed})
