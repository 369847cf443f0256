"""What single changes could keep a bad trigger from becoming an outage?

Each candidate is the system with one change, on the sustaining loop only: the calls on its path
and the service that it keeps down. A change is said once, as new values of settings, and both the
changed system and the lines for the file follow from it. What it costs in health is said in words
beside it; whether it helps is for the simulator to say. Jittered backoff alone is always among
them, because it is the first thing that people reach for, and it does not help.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from tidegate.analysis.mended import mended
from tidegate.analysis.rules.view import Edge
from tidegate.findings import Loop
from tidegate.settings.dump import Changes, patch
from tidegate.settings.policies import Adaptive, Backoff, Breaker, Budget, Limit, Settings
from tidegate.settings.system import System
from tidegate.settings.unknowns import Path
from tidegate.units import SECOND, format_duration, format_share

__all__ = ["MAX_CURES", "Candidate", "both", "candidates", "changed", "fences", "with_call"]

MAX_CURES: Final = 12
"""More would not be read; which ones were left out is said."""

_SEEN: Final = 0.0001  # one request in ten thousand; rarer than that a report shows 0 %
_PLACES_MAX: Final = 1_000_000  # a longer queue is as good as none that is bounded


class Candidate(NamedTuple):
    """One change: its name, the new settings by path, its cost in health, the changed system.

    `fences` the callers in: it keeps a failure from spreading rather than from lasting.
    """

    name: str
    changes: Changes
    cost: str
    system: System
    fences: bool = False

    @property
    def where(self) -> str:
        """The paths in the file of what is changed."""
        return ", ".join(".".join(path) for path in self.changes)

    @property
    def yaml(self) -> str:
        """What makes the change, to be merged into the file."""
        return patch(self.changes)


def candidates(system: System, loop: Loop | None, service: str) -> list[Candidate]:
    """The changes worth trying against `loop`, which keeps `service` down; the gentlest first.

    Without a loop nothing is kept down by its retries: then what is left is to take in no more than
    can be served, and to let nobody wait for the rest.
    """
    first = _taking_less(system, service) if loop is None else _on_calls(system, loop)
    made = [*first, *fences(system, service), *_at_service(system, service)]
    return [candidate for candidate in made if candidate.system != system]


def both(first: Candidate, second: Candidate) -> Candidate:
    """`first`, made on top of what `second` has made: one keeps it short, the other keeps it local.

    `second` must have been made from the system of `first`.
    """
    changes = {path: dict(values) for path, values in first.changes.items()}
    for path, values in second.changes.items():
        changes[path] = {**changes.get(path, {}), **values}
    return Candidate(
        f"{second.name}, and {first.name}",
        changes,
        f"{second.cost}; {first.cost}",
        second.system,
        second.fences,
    )


def changed(system: System, changes: Changes) -> System:
    """The system with these changes."""
    return _changed(system, list(changes.items()))


def with_call(system: System, name: str, **values: Any) -> System:
    """The system with some settings of one call changed."""
    return changed(system, {edge.path: values for edge in _edges(system) if edge.name == name})


def fences(system: System, service: str) -> Iterator[Candidate]:
    """Changes that keep the callers of `service` up while it is down.

    To calls of services (not of clients) on any way to it.
    """
    on_the_way = _leading_to(system, service)
    for edge in _edges(system):
        if edge.section == "services" and edge.callee in on_the_way:
            yield from _around(system, edge)
    last = [e for e in _edges(system) if e.callee == service and e.call.breaker is None]
    if last:
        yield _candidate(
            system,
            f"circuit breaker in front of {service}",
            {edge.path: {"breaker": Breaker()} for edge in last},
            "while it is open nobody is served, and nobody waits",
        )


# Private parts.


def _candidate(
    system: System, name: str, changes: Changes, cost: str, *, fences: bool = False
) -> Candidate:
    return Candidate(name, changes, cost, changed(system, changes), fences)


_Record = TypeVar("_Record", bound=Settings)


def _changed(record: _Record, changes: Iterable[tuple[Path, Mapping[str, Any]]]) -> _Record:
    """The record with all of them at once: each replacement checks the record as a whole."""
    said: dict[str, Any] = {}
    below: dict[str, dict[str, list[tuple[Path, Mapping[str, Any]]]]] = {}
    for path, values in changes:
        if path:
            section, name, *rest = path
            below.setdefault(section, {}).setdefault(name, []).append((tuple(rest), values))
        else:
            said |= values
    for section, named in below.items():
        old = getattr(record, section)
        said[section] = {**old, **{n: _changed(old[n], inner) for n, inner in named.items()}}
    return msgspec.structs.replace(record, **said) if said else record


def _edges(system: System) -> list[Edge]:
    return [
        Edge(section, caller, name, call, system.target_of(name, call))
        for section, caller, calls in system.callers()
        for name, call in calls.items()
    ]


def _on_calls(system: System, loop: Loop) -> Iterator[Candidate]:
    """Every call that retries, anywhere: budgets and single layers are cures of a whole system."""
    retrying = [edge for edge in _edges(system) if edge.call.tries > 1]
    if not retrying:
        return
    yield _candidate(
        system,
        "retry budget of 10 %",
        {edge.path: {"budget": Budget()} for edge in retrying},
        "in health nothing: retries stay below a tenth of the requests",
    )
    if len(retrying) > 1:
        outermost = _outermost(loop, retrying)
        yield _candidate(
            system,
            f"retry in one layer only ({outermost})",
            {edge.path: {"attempts": 1} for edge in retrying if edge.name != outermost},
            "a failure below is repeated once more from further out",
        )
    yield _candidate(
        system,
        "no retries",
        {edge.path: {"attempts": 1} for edge in retrying},
        _what_retries_mend(system),
    )
    yield _candidate(
        system,
        "jittered backoff alone",
        {edge.path: {"backoff": Backoff()} for edge in retrying},
        "retries come later, but all of them come",
    )


def _taking_less(system: System, service: str) -> Iterator[Candidate]:
    """What helps without any retry: a limit that finds itself, and callers that wait for less."""
    record = system.services[service]
    if record.limit is None and record.admission is None and record.workers is not None:
        yield _candidate(
            system,
            f"adaptive limit at {service}",
            {("services", service): {"limit": Limit(adaptive=Adaptive())}},
            "what is beyond it is refused at once, in health nothing",
        )
    on_the_way = _leading_to(system, service)
    for edge in _edges(system):
        if edge.section != "services" or edge.callee not in on_the_way or not edge.call.wait:
            continue
        caller = system.services[edge.caller]
        held = caller.blocking and caller.workers is not None
        if held and (edge.call.timeout is None or edge.call.timeout > SECOND):
            yield _candidate(
                system,
                f"timeout of {format_duration(SECOND)} for {edge.name}",
                {edge.path: {"timeout": SECOND}},
                f"what takes longer is given up, and holds no worker of {edge.caller} meanwhile",
            )


def _outermost(loop: Loop, retrying: list[Edge]) -> str:
    names = [edge.name for edge in retrying]
    return next((hop.call for hop in loop.hops if hop.call in names), names[0])


def _what_retries_mend(system: System) -> str:
    """The cost of doing without retries: of each client's requests, those that only they save."""
    shares = mended(system)
    told = [f"{format_share(round(v, 4))} of {k}" for k, v in shares.items() if v >= _SEEN]
    if not told:
        return "single failures would be seen that a second attempt mends; the file has none"
    return f"{', '.join(told)} would fail that a retry mends in health (computed)"


def _around(system: System, edge: Edge) -> Iterator[Candidate]:
    """What keeps the caller up while one of its calls fails, if part of its work needs it not."""
    caller, call, name = system.services[edge.caller], edge.call, edge.name
    if not caller.blocking or call.per_request >= 1:
        return
    share = f"{call.per_request:.0%} of {edge.caller}'s requests"
    timeout = min(call.timeout or SECOND, SECOND)
    yield _candidate(
        system,
        f"{name} optional, {format_duration(timeout)}, no retry",
        {edge.path: {"optional": True, "attempts": 1, "timeout": timeout}},
        f"{share} may be answered without it, {format_duration(timeout)} late",
        fences=True,
    )
    yield _candidate(
        system,
        f"{name} optional behind a breaker",
        {edge.path: {"optional": True, "breaker": Breaker()}},
        f"{share} may be answered without it",
        fences=True,
    )
    if caller.workers is not None and call.limit is None:
        most = max(1, caller.workers // 5)
        yield _candidate(
            system,
            f"bulkhead of {most} for {name}",
            {edge.path: {"optional": True, "limit": Limit(max=most)}},
            f"at most {most} of {caller.workers} workers wait for it; the rest goes without",
            fences=True,
        )


def _leading_to(system: System, service: str) -> set[str]:
    callers: dict[str, list[str]] = {}
    for edge in _edges(system):
        if edge.call.wait:
            callers.setdefault(edge.callee, []).append(edge.caller)
    leading, front = {service}, [service]
    while front:
        fresh = set(callers.get(front.pop(), ())) - leading
        leading |= fresh
        front.extend(fresh)
    return leading


def _at_service(system: System, service: str) -> Iterator[Candidate]:
    record, at = system.services[service], ("services", service)
    if record.workers is None or record.time is None or not record.time.average:
        return
    into = [edge for edge in _edges(system) if edge.callee == service]
    waits = [edge.call.timeout for edge in into if edge.call.timeout is not None]
    if waits:
        places = max(1, int(record.workers * min(waits) / record.time.average / 2))
        if places < (_PLACES_MAX if record.queue.limit is None else record.queue.limit):
            shorter = msgspec.structs.replace(record.queue, limit=places, full="refuse")
            yield _candidate(
                system,
                f"queue of {places} at {service}",
                {at: {"queue": shorter}},
                "bursts of more than half a timeout's work are refused",
            )
        late = msgspec.structs.replace(record.queue, late=True)
        yield _candidate(
            system,
            f"{service} drops what can no longer finish in time",
            {edge.path: {"propagate": True} for edge in into} | {at: {"queue": late}},
            "callers must say how long they still wait; in health nothing is late",
        )
        newest = msgspec.structs.replace(record.queue, order="adaptive_lifo")
        yield _candidate(
            system,
            f"newest first at {service} when it is behind",
            {at: {"queue": newest}},
            "in health the order is the same",
        )
    if record.abandoned == "finish":
        yield _candidate(
            system,
            f"{service} skips what was abandoned",
            {at: {"abandoned": "skip"}},
            "work that nobody waits for is not begun",
        )
