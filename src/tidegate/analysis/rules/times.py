"""Which timeouts are missing, contradict each other, or cut off what is healthy?"""

import math
from collections.abc import Iterator
from typing import Final

from tidegate.analysis.rules.retries import unbounded
from tidegate.analysis.rules.view import (
    Edge,
    Hit,
    Rule,
    View,
    average,
    change,
    longest,
    outlasting,
    p99,
    patience,
    rounded_up,
)
from tidegate.units import SECOND, format_duration, format_share

__all__ = ["RULES"]

UNKNOWN_TIMEOUT: Final = 10 * SECOND  # what `protect: default` sets


def no_timeout(view: View) -> Iterator[Hit]:
    """Calls that wait for ever, with no bound that comes down from above."""
    for edge in view.edges:
        if not edge.call.wait or math.isfinite(patience(edge.call)) or edge.caller in view.hurried:
            continue
        holds = view.holds_workers(edge.caller)
        what = f"holds one of {edge.caller}'s workers" if holds else "waits"
        yield Hit(
            edge.path,
            f"{edge.name} has no timeout: each request that meets a stalled {edge.callee} {what}"
            " for ever",
            f"give up somewhat above the p99 of {edge.callee}",
            change(((*edge.path, "timeout"), rounded_up(_enough(view, edge.callee)))),
            "error" if holds else None,
        )


def timeout_inversion(view: View) -> Iterator[Hit]:
    """A callee that waits longer for others than its own caller waits for it."""
    for edge in view.edges:
        wait = patience(edge.call)
        leaving = _leaving_before(view, edge, wait)
        if leaving:
            yield Hit(
                edge.path,
                f"{edge.name} waits up to {format_duration(wait)}, but {_gives_up(leaving[0])}:"
                " what comes later is for nobody",
                f"send the remaining time along with {_named(leaving)}, or give up before"
                f" {leaving[0].name} does",
                change(*(((*upper.path, "propagate"), "true") for upper in leaving)),
            )


def attempts_outlive_caller(view: View) -> Iterator[Hit]:
    """Attempts of which the last ones run after the caller's own timeout."""
    for edge in view.edges:
        whole, one = longest(edge.call), patience(edge.call)
        leaving = _leaving_before(view, edge, whole)
        if leaving and not _leaving_before(view, edge, one):
            yield Hit(
                edge.path,
                f"{edge.name} can take {format_duration(whole)} ({edge.call.tries} attempts of"
                f" {format_duration(one)} with their waits), but {_gives_up(leaving[0])}: the last"
                " attempts are for nobody",
                f"send the remaining time along with {_named(leaving)}, or end all attempts in"
                " time",
                change(*(((*upper.path, "propagate"), "true") for upper in leaving)),
            )


def calls_outlive_caller(view: View) -> Iterator[Hit]:
    """Calls that each end in time, and together do not."""
    for edge in view.edges:
        inner = view.waited_by(edge.callee)
        if not (edge.call.wait and _leaves_work(view, edge)) or len(inner) < 2:
            continue
        whole = _may_take(view, edge.callee)
        if _over(whole, edge) and not any(_over(longest(call.call), edge) for call in inner):
            yield Hit(
                edge.path,
                f"{edge.callee} may take {format_duration(whole)} for its calls, one after another,"
                f" but {_gives_up(edge)}: what comes later is for nobody",
                f"send the remaining time along with {edge.name}, or make the calls together",
                change(((*edge.path, "propagate"), "true")),
            )


def timeout_below_p99(view: View) -> Iterator[Hit]:
    """Timeouts that cut off work which nothing is wrong with."""
    for edge in view.edges:
        time, limit = view.services[edge.callee].time, patience(edge.call)
        usual = p99(time)
        if not edge.call.wait or limit >= usual:
            continue
        yield Hit(
            edge.path,
            f"{edge.name} gives up after {format_duration(limit)}, and {edge.callee}'s own work"
            f" takes longer in {format_share(outlasting(time, limit))} of healthy requests (mean"
            f" {format_duration(average(time))}, p99 {format_duration(usual)})",
            "wait longer than the p99, or make the work shorter",
            change(*_raised(edge, 2 * usual)),
            "error" if limit < average(time) else None,
        )


def abandoned_finished(view: View) -> Iterator[Hit]:
    """Work that is finished for callers who have left and already ask again."""
    for name, service in view.services.items():
        if service.abandoned != "finish" or service.workers is None or service.queue.late:
            continue
        callers = [e for e in view.into[name] if _leaves_and_returns(e)]
        if callers:
            worst = max(callers, key=lambda edge: edge.call.tries)
            yield Hit(
                ("services", name),
                f"{worst.name} leaves after {format_duration(patience(worst.call))} and asks again,"
                f" while {name} finishes what it asked before: up to {worst.call.tries}"
                " requests' work for one answer",
                "send the remaining time along, and drop at its turn what nobody waits for",
                change(
                    (("services", name, "abandoned"), "skip"),
                    *(((*edge.path, "propagate"), "true") for edge in callers),
                ),
            )


def late_untold(view: View) -> Iterator[Hit]:
    """A service that would drop what is late, and callers who do not say how long they wait."""
    for name, service in view.services.items():
        silent = [
            e for e in view.into[name] if not e.call.propagate and math.isfinite(patience(e.call))
        ]
        if service.queue.late and service.workers is not None and silent:
            names = " and ".join(f"the call {edge.name}" for edge in silent)
            yield Hit(
                ("services", name),
                f"{name} drops what can no longer finish in time, but {names} does not say how long"
                " it waits: nothing of it is ever dropped",
                "send the remaining time along",
                change(*(((*edge.path, "propagate"), "true") for edge in silent)),
            )


def _leaves_and_returns(edge: Edge) -> bool:
    leaves = math.isfinite(patience(edge.call)) and "timeout" in edge.call.retry_on
    return leaves and unbounded(edge)


def _leaves_work(view: View, edge: Edge) -> bool:
    """Whether the callee goes on working when this caller has given up."""
    stops = edge.call.propagate or view.services[edge.callee].abandoned == "cancel"
    return math.isfinite(patience(edge.call)) and not stops


def _leaving_before(view: View, edge: Edge, time: float) -> list[Edge]:
    """The calls into this one's caller that give up before it has used all of a bounded time, and
    leave it working; the first to give up comes first.
    """
    into = view.waiting_at(edge.caller) if edge.call.wait and edge.section == "services" else []
    leaving = [upper for upper in into if _leaves_work(view, upper) and _over(time, upper)]
    return sorted(leaving, key=lambda upper: patience(upper.call))


def _over(nanoseconds: float, edge: Edge) -> bool:
    """Whether a bounded time ends after this caller has given up."""
    return patience(edge.call) < nanoseconds < math.inf


def _gives_up(edge: Edge) -> str:
    return f"{edge.name} gives up on {edge.callee} after {format_duration(patience(edge.call))}"


def _named(edges: list[Edge]) -> str:
    return " and ".join(edge.name for edge in edges)


def _may_take(view: View, service: str) -> float:
    """The longest that the calls of a service can keep it: the first required failure ends it, so
    of the required calls only one can use all of its time.
    """
    record = view.services[service]
    waited = [(longest(edge.call), edge.call) for edge in view.waited_by(service)]
    if record.parallel:
        return max(time for time, _ in waited)
    required = max((time for time, call in waited if not call.optional), default=0.0)
    return required + sum(time * call.per_request for time, call in waited if call.optional)


def _enough(view: View, service: str) -> float:
    """Twice what a healthy answer takes at its p99, or a usual value when the file gives none."""
    record = view.services[service]
    usual = p99(record.time) + view.answers[service] - average(record.time)
    return 2 * usual if usual > 0 else UNKNOWN_TIMEOUT


def _raised(edge: Edge, needed: float) -> Iterator[tuple[tuple[str, ...], str]]:
    for key in ("timeout", "deadline"):
        value = getattr(edge.call, key)
        if value is not None and value < needed:
            yield (*edge.path, key), rounded_up(needed)


RULES: Final = (
    Rule("no-timeout", "warning", no_timeout),
    Rule("timeout-inversion", "warning", timeout_inversion),
    Rule("attempts-outlive-caller", "warning", attempts_outlive_caller),
    Rule("calls-outlive-caller", "warning", calls_outlive_caller),
    Rule("timeout-below-p99", "warning", timeout_below_p99),
    Rule("abandoned-finished", "warning", abandoned_finished),
    Rule("late-untold", "warning", late_untold),
)
