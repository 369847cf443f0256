"""Which queues, pools and limits turn away, or keep waiting, what they need not?"""

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

from tidegate.analysis.rules.retries import unbounded
from tidegate.analysis.rules.view import (
    Edge,
    Hit,
    Rule,
    View,
    average,
    change,
    longest,
    number,
    patience,
)
from tidegate.settings.policies import Queue
from tidegate.settings.system import Call, Service
from tidegate.units import SECOND, format_duration, format_rate, format_share

__all__ = ["RULES", "Stall", "stall"]

FEW: Final = 0.1  # of the calls may stall on any day: one bad host, shard or key
HEADROOM: Final = 1.5  # of a limit over the demand it meets in health


class Stall(NamedTuple):
    """What a stalled callee does to the workers of a blocking caller, by Little's law (1961).

    `wanted` workers when every call takes `time` nanoseconds, of `workers`; `busy` in health;
    `share` of the calls is enough to take the last worker.
    """

    wanted: float
    workers: int
    busy: float
    share: float
    time: float


def stall(view: View, edge: Edge) -> Stall | None:
    """The pool of this call's caller if the callee answers nothing; None where no pool waits."""
    call, caller = edge.call, edge.caller
    bounded_elsewhere = call.limit is not None and call.limit.max is None
    if not (call.wait and view.holds_workers(caller)) or bounded_elsewhere:
        return None
    # A breaker ends it once the first attempts have timed out, and stops the others.
    time = longest(call) if call.breaker is None else patience(call)
    if math.isinf(time):
        return None
    load, workers = view.load[caller] / SECOND, view.workers(caller)
    waiting = load * _needing(call.per_request, optional=call.optional) * time
    if call.limit is not None and call.limit.max is not None:
        waiting = min(waiting, call.limit.max * view.services[caller].replicas)
    busy = load * view.held(caller)
    healthy = load * call.per_request * (view.answers[edge.callee] + average(call.network))
    share = (workers - busy) / waiting if waiting else math.inf
    return Stall(max(busy - healthy, 0) + waiting, workers, busy, share, time)


def queue_outlives_callers(view: View) -> Iterator[Hit]:
    """Queues in which those at the end are served after their caller has left."""
    for name, service in view.services.items():
        limit, first = service.queue.limit, _first_to_leave(view, name)
        if limit is None or first is None or _bounds_delay(service.queue):
            continue
        in_time = _served_in_time(view, name, first)
        if limit > in_time:
            wait = patience(first.call) * limit / in_time if in_time else math.inf
            yield Hit(
                ("services", name, "queue"),
                f"{number(limit)} waiting places are {format_duration(wait)} of work, and"
                f" {first.name} leaves after {format_duration(patience(first.call))}: behind place"
                f" {number(math.floor(in_time))} everybody is served for nobody",
                "let wait only what is served in half the shortest timeout, and refuse the rest",
                change((("services", name, "queue", "limit"), _places(in_time))),
                None if service.abandoned == "finish" else "warning",
            )


def queue_unbounded(view: View) -> Iterator[Hit]:
    """Queues without an end."""
    for name, service in view.services.items():
        bounded = service.queue.limit is not None or service.limit is not None
        bounded |= service.admission is not None
        callers = view.waiting_at(name)
        if service.workers is None or bounded or not callers or _bounds_delay(service.queue):
            continue
        returning = " and ".join(edge.name for edge in callers if unbounded(edge))
        first = _first_to_leave(view, name)
        in_time = math.inf if first is None else _served_in_time(view, name, first)
        places = _places(in_time if math.isfinite(in_time) else 2.0 * service.workers)
        yield Hit(
            ("services", name),
            f"the queue of {name} has no end: in an overload everybody waits longer than they are"
            " willing to" + (f", and {returning} will ask again meanwhile" if returning else ""),
            "let wait only what is served in half the shortest timeout, and refuse the rest",
            change((("services", name, "queue", "limit"), places)),
            "warning" if returning else None,
        )


def pool_fills(view: View) -> Iterator[Hit]:
    """Workers that a stalled dependency takes from requests which do not need it."""
    for edge in view.edges:
        found = stall(view, edge)
        if found is None or found.wanted <= found.workers or found.share <= 0:
            continue
        call = edge.call
        spared = call.optional or call.per_request < 1
        if not spared and found.share > FEW:
            continue
        rate = format_rate(view.load[edge.caller])
        calls = format_share(call.per_request) if call.per_request < 1 else number(call.per_request)
        holding = f"{rate} x {calls} x {format_duration(found.time)}"
        place = max(1, math.floor((found.workers - found.busy) / 2))
        each = max(1, place // view.services[edge.caller].replicas)
        yield Hit(
            edge.path,
            f"when {edge.callee} stalls, {edge.caller} wants {number(found.wanted)} workers and has"
            f" {number(found.workers)} ({edge.name} holds {holding}): "
            + (
                "requests that could do without it find none"
                if spared
                else f"{format_share(found.share)} of its calls are enough to take the last"
            ),
            "bound how many may wait for it at once, give up sooner, and stop calling it while it"
            " is down (breaker: 50%)",
            change(((*edge.path, "limit"), str(each))),
            None if spared else "warning",
        )


class _Door(NamedTuple):
    """Where a limit stands, what comes to it in health, and how many of it there are."""

    path: tuple[str, ...]
    owner: Service | Call
    rate: float
    answer: float
    replicas: int


def _doors(view: View) -> Iterator[_Door]:
    for name, service in view.services.items():
        path = ("services", name)
        yield _Door(path, service, view.load[name], view.answers[name], service.replicas)
    for edge in view.edges:
        rate, replicas = view.rates[edge.caller], 1
        if edge.section == "services":
            replicas = view.services[edge.caller].replicas
        answer = view.answers[edge.callee] + average(edge.call.network)
        yield _Door(edge.path, edge.call, rate * edge.call.per_request, answer, replicas)


def limit_below_demand(view: View) -> Iterator[Hit]:
    """Limits that refuse work although nothing is wrong."""
    for door in _doors(view):
        limit, rate_limit = door.owner.limit, door.owner.rate_limit
        what = door.path[-1]
        # A service has one bucket for all its replicas; a caller has one in each of its own.
        buckets = 1 if isinstance(door.owner, Service) else door.replicas
        if rate_limit is not None and rate_limit.rate * buckets < door.rate:
            allowed = rate_limit.rate * buckets
            yield Hit(
                (*door.path, "rate_limit"),
                f"{what} lets {format_rate(allowed)} through and {format_rate(door.rate)} come when"
                f" nothing is wrong: {format_share(1 - allowed / door.rate)} of them are refused",
                "set the limit from the demand, with room above it, and watch it before it refuses",
                change(((*door.path, "rate_limit", "rate"), _rate(HEADROOM * door.rate / buckets))),
            )
        inflight = door.rate * door.answer / SECOND
        if limit is not None and limit.max is not None and limit.max * door.replicas < inflight:
            yield Hit(
                (*door.path, "limit"),
                f"{what} lets {number(limit.max * door.replicas)} in at once, and"
                f" {number(inflight)} are in when nothing is wrong ({format_rate(door.rate)} x"
                f" {format_duration(door.answer)})",
                "set the limit from the demand, with room above it, and watch it before it refuses",
                change(
                    (
                        (*door.path, "limit", "max"),
                        str(math.ceil(HEADROOM * inflight / door.replicas)),
                    )
                ),
            )


def _rate(per_second: float) -> str:
    return f"{math.ceil(per_second)}/s"


def _bounds_delay(queue: Queue) -> bool:
    """Whether the queue serves those who still wait, however long it is."""
    return queue.order != "fifo" or queue.codel is not None or queue.late


def _first_to_leave(view: View, service: str) -> Edge | None:
    """The caller that gives up first, of those that ever do."""
    leaving = [edge for edge in view.waiting_at(service) if math.isfinite(patience(edge.call))]
    return min(leaving, key=lambda edge: patience(edge.call), default=None)


def _served_in_time(view: View, service: str, first: Edge) -> float:
    """Waiting places of one replica that are served before `first` leaves: c T / s."""
    workers, held = view.services[service].workers, view.held(service)
    return math.inf if workers is None or not held else patience(first.call) * workers / held


def _places(in_time: float) -> str:
    """Half of what is served in time, in two digits: nobody would set 11,111."""
    half = max(1, math.floor(in_time / 2))
    digits = max(0, len(str(half)) - 2)
    return str(half // 10**digits * 10**digits)


def _needing(per_request: float, *, optional: bool) -> float:
    """Calls per request while all stall: after the first required one the request has failed."""
    return per_request if optional else min(per_request, 1.0)


RULES: Final = (
    Rule("pool-fills", "error", pool_fills),
    Rule("queue-outlives-callers", "error", queue_outlives_callers),
    Rule("limit-below-demand", "error", limit_below_demand),
    Rule("queue-unbounded", "note", queue_unbounded),
)
