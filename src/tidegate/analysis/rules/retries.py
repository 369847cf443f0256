"""Which retries multiply, come back all at once, or repeat what must not be done twice?"""

import math
from collections import deque
from collections.abc import Iterator
from typing import Final

from tidegate.analysis.rules.view import (
    Edge,
    Hit,
    Path,
    Rule,
    View,
    amplification,
    change,
    number,
    repeats_failures,
    tries,
)
from tidegate.units import format_duration, format_share

__all__ = ["RULES", "unbounded"]

MANY: Final = 4.0  # attempts; one layer of retries makes 3 by the defaults of most SDKs
LOAD_MAX: Final = 1.5  # a budget of up to 50 % bounds a layer; the usual ones are 10 or 20 %


def unbounded(edge: Edge) -> bool:
    """Whether this call multiplies load while it fails: it repeats, and no budget bounds that."""
    return amplification(edge.call) > LOAD_MAX


def attempts_multiply(view: View) -> Iterator[Hit]:
    """The worst path of each client, with the product of the attempts along it."""
    for client in view.system.clients:
        path = view.worst[client]
        if path.attempts >= MANY:
            yield Hit(
                ("clients", client),
                f"one action of {client} can become {number(path.attempts)} attempts at"
                f" {path.edges[-1].callee}: {_product(path)}",
                "retry in one place of the path, next to what fails, within a budget",
                change(*_one_layer(path)),
            )


def retry_layers(view: View) -> Iterator[Hit]:
    """Each layer of retries above another one: the one to switch off."""
    for edge in view.edges:
        below = _retries_below(view, edge)
        if below is None:
            continue
        lower = [e.name for e in below.edges if unbounded(e)]
        yield Hit(
            edge.path,
            f"{edge.name} tries {edge.call.tries} times what {' and '.join(lower)} below it"
            f" already repeats: {_product(Path(0, (edge, *below.edges)))} attempts at"
            f" {below.edges[-1].callee} for one {edge.name}",
            f"switch the retries of {edge.name} off and leave them to {lower[-1]}, next to what"
            " fails",
            change(((*edge.path, "attempts"), "1")),
        )


def retry_no_budget(view: View) -> Iterator[Hit]:
    """Retries that nothing bounds; a layer that is to be switched off is not named again."""
    for edge in view.edges:
        if unbounded(edge) and _retries_below(view, edge) is None:
            call = edge.call
            but = f"its budget of {format_share(call.budget.ratio)}" if call.budget else "no budget"
            yield Hit(
                edge.path,
                f"{edge.name} tries {call.tries} times with {but}: when {edge.callee} fails, it"
                f" is sent {number(amplification(call))} times the load instead of 1.1 times",
                "let retries be a tenth of the first attempts",
                change(((*edge.path, "budget"), "10%")),
            )


def retry_at_once(view: View) -> Iterator[Hit]:
    """Retries that leave in the instant of the failure."""
    for edge in view.edges:
        if tries(edge.call) > 1 and not _first_wait(edge) and not _told_no(view, edge):
            yield Hit(
                edge.path,
                f"{edge.name} repeats without a wait: all callers that failed together come"
                " back together, at once",
                "wait before the first retry too, with jitter",
                change(((*edge.path, "backoff"), "100ms")),
            )


def overloaded_at_once(view: View) -> Iterator[Hit]:
    """A refusal answered by asking again in the same instant."""
    for edge in view.edges:
        if tries(edge.call) > 1 and not _first_wait(edge) and _told_no(view, edge):
            yield Hit(
                edge.path,
                f"when {edge.callee} refuses because it is overloaded, the call {edge.name} asks"
                f" again in the same instant, up to {edge.call.tries - 1} more"
                f" {'time' if edge.call.tries == 2 else 'times'}",
                "wait before each retry, with jitter, or do not repeat what was refused",
                change(((*edge.path, "backoff"), "100ms")),
            )


def retry_no_jitter(view: View) -> Iterator[Hit]:
    """Waits that are the same for everybody."""
    for edge in view.edges:
        backoff = edge.call.backoff
        if tries(edge.call) > 1 and backoff and _first_wait(edge) and backoff.jitter == "none":
            wait = format_duration(backoff.base)
            yield Hit(
                edge.path,
                f"{edge.name} waits exactly {wait}: all callers that failed together come back"
                " together",
                "draw each wait from zero to its full length",
                change(((*edge.path, "backoff", "jitter"), "full")),
            )


def effects_repeated(view: View) -> Iterator[Hit]:
    """An effect that must not happen twice, on a path that repeats it.

    The call itself is not repeated after a timeout or an error; those above it know no better, and
    those below it repeat their part of the work.
    """
    above = _repeating_above(view)
    for edge in view.edges:
        if edge.call.idempotent:
            continue
        upper = above.get(edge.caller)
        culprit = upper or _repeating_below(view, edge.callee)
        if culprit is None:
            continue
        side = "below" if culprit is upper else "above"
        yield Hit(
            edge.path,
            f"{edge.name} is not idempotent and stands {side} {culprit.name}, which is tried"
            f" {culprit.call.tries} times: after a timeout or an error it can be done twice",
            "do not repeat it; or send a key that makes a repeat harmless (idempotent: true)",
            change(((*culprit.path, "attempts"), "1")),
        )


def refusals_repeated(view: View) -> Iterator[Hit]:
    """Refusals that cost work, and callers who ask for them again and again."""
    for name, service in view.services.items():
        if not service.refusal_cost or service.workers is None:
            continue
        callers = [e for e in view.into[name] if unbounded(e) and "overloaded" in e.call.retry_on]
        if not callers:
            continue
        worst = max(callers, key=lambda edge: amplification(edge.call))
        cost = amplification(worst.call) * service.refusal_cost
        yield Hit(
            ("services", name),
            f"a refusal takes {name} {format_share(service.refusal_cost)} of the work of an"
            f" answer, and {worst.name} asks up to {worst.call.tries} times: to refuse one"
            f" request costs up to {number(cost)} times what serving it would",
            "bound the repeats by a budget, and refuse before any work is done",
            change(*(((*edge.path, "budget"), "10%") for edge in callers)),
            "error" if cost >= 1 else None,
        )


def _layers(path: Path) -> list[Edge]:
    """The calls of a path that multiply: what repeats failures, and whatever the last repeats."""
    return [e for e in path.edges if repeats_failures(e.call) or e is path.edges[-1]]


def _product(path: Path) -> str:
    """`licences 2 x market 3 = 6`."""
    factors = [(edge.name, amplification(edge.call)) for edge in _layers(path)]
    total = number(math.prod(factor for _, factor in factors))
    written = " x ".join(f"{name} {number(factor)}" for name, factor in factors)
    return f"{written} = {total}" if len(factors) > 1 else written


def _one_layer(path: Path) -> Iterator[tuple[tuple[str, ...], str]]:
    """The last layer within a budget, all others off."""
    *upper, last = _layers(path)
    for edge in upper:
        yield (*edge.path, "attempts"), "1"
    yield (*last.path, "budget"), "10%"


def _retries_below(view: View, edge: Edge) -> Path | None:
    """The worst path below a call that repeats failures, if it repeats them again."""
    below = view.worst[edge.callee]
    repeats = unbounded(edge) and repeats_failures(edge.call)
    if not repeats or edge in below.edges:  # a circle of calls that nobody waits for
        return None
    return below if any(unbounded(lower) for lower in below.edges) else None


def _repeating_above(view: View) -> dict[str, Edge]:
    """For each service, the nearest call above it that repeats what comes to it."""
    found: dict[str, Edge] = {}
    for edge in view.edges:
        if repeats_failures(edge.call):
            found.setdefault(edge.callee, edge)
    front = deque(found)
    while front:
        caller = front.popleft()
        for edge in view.out_of[caller]:
            if edge.callee not in found:
                found[edge.callee] = found[caller]
                front.append(edge.callee)
    return found


def _repeating_below(view: View, service: str) -> Edge | None:
    """The nearest call that `service` makes, itself or further down, which repeats failures."""
    seen, front = {service}, deque([service])
    while front:
        for edge in view.out_of[front.popleft()]:
            if repeats_failures(edge.call):
                return edge
            if edge.callee not in seen:
                seen.add(edge.callee)
                front.append(edge.callee)
    return None


def _first_wait(edge: Edge) -> int:
    return edge.call.backoff.base if edge.call.backoff else 0


def _told_no(view: View, edge: Edge) -> bool:
    """Whether the call is repeated on a refusal, and its callee can refuse at all."""
    service = view.services[edge.callee]
    refuses = service.queue.limit is not None and service.queue.full == "refuse"
    refuses |= service.limit is not None or service.rate_limit is not None
    refuses |= service.admission is not None
    refuses |= service.queue.codel is not None or service.queue.late
    return refuses and "overloaded" in edge.call.retry_on


RULES: Final = (
    Rule("retry-layers", "error", retry_layers),
    Rule("effects-repeated", "error", effects_repeated),
    Rule("overloaded-at-once", "error", overloaded_at_once),
    Rule("attempts-multiply", "warning", attempts_multiply),
    Rule("retry-no-budget", "warning", retry_no_budget),
    Rule("retry-at-once", "warning", retry_at_once),
    Rule("retry-no-jitter", "warning", retry_no_jitter),
    Rule("refusals-repeated", "warning", refusals_repeated),
)
