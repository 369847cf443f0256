"""Which services does somebody fall with who need not, and who can take a shared one down alone?"""

import math
from collections.abc import Iterator
from typing import Final

from tidegate.analysis.rules.pools import stall
from tidegate.analysis.rules.retries import unbounded
from tidegate.analysis.rules.view import Edge, Hit, Rule, View, change
from tidegate.units import format_share

__all__ = ["RULES"]


def hard_edge(view: View) -> Iterator[Hit]:
    """Calls that must succeed although most of what the caller does seems not to need them.

    A heuristic, by two signs: fewer than all requests make the call; or a service that holds
    workers waits for one that belongs to another client, who calls it directly.
    """
    for edge in view.edges:
        call = edge.call
        if call.optional or not call.wait or edge.section == "clients":
            continue
        if 0 < call.per_request < 1:
            found = stall(view, edge)
            fills = found is not None and found.wanted > found.workers
            yield Hit(
                edge.path,
                f"only {format_share(call.per_request)} of {edge.caller}'s requests call"
                f" {edge.callee}, and those fail without it"
                + (": when it stalls, the others fall with them" if fills else ""),
                "answer without it when it does not answer (optional: true), if that is of use",
                change(((*edge.path, "optional"), "true")),
                "warning" if fills else None,
            )
        elif call.per_request and view.holds_workers(edge.caller):
            owners = _others_own(view, edge)
            if owners:
                yield Hit(
                    edge.path,
                    f"{edge.caller} holds a worker for {edge.callee}, which {' and '.join(owners)}"
                    " call directly: what is done to it for them is felt here",
                    "answer without it when it does not answer (optional: true), if that is of use",
                    change(((*edge.path, "optional"), "true")),
                )


def shared_without_share(view: View) -> Iterator[Hit]:
    """Services with several callers of which one can use up all workers."""
    for name, service in view.services.items():
        callers = [edge for edge in view.into[name] if edge.call.per_request]
        free = [e for e in callers if e.call.limit is None and e.call.rate_limit is None]
        if service.workers is None or not free or not _strangers(view, callers):
            continue
        multiplying = [edge for edge in free if unbounded(edge)]
        who = (multiplying or free)[0].name
        share = max(1, math.ceil(view.workers(name) / len(callers)))
        yield Hit(
            ("services", name),
            f"{len(callers)} callers for different clients share {name}, and nothing keeps {who}"
            " from taking all of its workers",
            "give each caller a share of its own (bulkheads)",
            change(*(((*e.path, "limit"), str(_per_replica(view, e, share))) for e in free)),
            "warning" if multiplying else None,
        )


def _others_own(view: View, edge: Edge) -> list[str]:
    """The clients that call this call's callee directly and do not come through its caller."""
    direct = [upper.caller for upper in view.into[edge.callee] if upper.section == "clients"]
    return [client for client in direct if client not in view.reached_by[edge.caller]]


def _strangers(view: View, callers: list[Edge]) -> bool:
    """Whether the callers work for different clients."""
    served = {
        frozenset((edge.caller,)) if edge.section == "clients" else view.reached_by[edge.caller]
        for edge in callers
    }
    return len(served - {frozenset[str]()}) > 1


def _per_replica(view: View, edge: Edge, share: int) -> int:
    replicas = 1 if edge.section == "clients" else view.services[edge.caller].replicas
    return max(1, math.ceil(share / replicas))


RULES: Final = (
    Rule("hard-edge", "note", hard_edge),
    Rule("shared-without-share", "note", shared_without_share),
)
