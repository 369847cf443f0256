"""Who calls whom, by name, and what is done where services call each other in a circle?

A call whose server left no span is matched with those that left one: the same caller's to the same
peer, then anybody's to that peer, then a service of that name. What remains is a leaf: a database,
a queue, somebody else's API.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tidegate.analysis.infer.deduce import is_unwaited
from tidegate.analysis.infer.tally import CallTally, Key
from tidegate.analysis.infer.trace import NOBODY

__all__ = ["Edge", "edges_of", "open_circles"]


class Edge(NamedTuple):
    """Whose calls to whom: raw service names; `serving` as in `Key`."""

    caller: str
    serving: bool
    callee: str


def edges_of(tallies: Mapping[Key, CallTally], services: list[str]) -> dict[Edge, CallTally]:
    """All calls by caller and callee, with every callee named."""
    heard = _heard(tallies)
    by_word = {_first_label(name): name for name in reversed(services)}
    edges: dict[Edge, CallTally] = {}
    for key, tally in tallies.items():
        callee = services[key.callee] if key.callee != NOBODY else ""
        if not callee:
            known = heard.get((key.caller, key.peer)) or heard.get((NOBODY, key.peer))
            callee = (
                services[known.most_common(1)[0][0]] if known else _leaf(key, services, by_word)
            )
        edge = Edge(services[key.caller], key.serving, callee)
        edges.setdefault(edge, CallTally()).merge(tally)
    return edges


def _heard(tallies: Mapping[Key, CallTally]) -> dict[tuple[int, str], Counter[int]]:
    """Which services answered under each peer's name: to one caller, and to anybody (NOBODY).

    A span's name, which stands for a peer that is not named, means something to one caller only.
    """
    heard: dict[tuple[int, str], Counter[int]] = defaultdict(Counter)
    for key, tally in tallies.items():
        if key.callee != NOBODY:
            heard[key.caller, key.peer][key.callee] += tally.calls
            if not key.peer.startswith(" "):
                heard[NOBODY, key.peer][key.callee] += tally.calls
    return dict(heard)


def _first_label(name: str) -> str:
    return name.split(".", maxsplit=1)[0].lower()


def _leaf(key: Key, services: list[str], by_word: Mapping[str, str]) -> str:
    """A service of the peer's name or of its first label; else the peer itself."""
    if key.peer.startswith(" "):
        return f"{services[key.caller]} unnamed"
    if key.peer in services:
        return key.peer
    return by_word.get(_first_label(key.peer), key.peer)


def open_circles(edges: Mapping[Edge, CallTally]) -> set[Edge]:
    """The edges to take out so that no service waits for itself: the rarest of each circle.

    Edges between services in circles are put back one by one, the most used first; one that would
    close a circle stays out.
    """
    waits = {
        edge: tally.calls
        for edge, tally in edges.items()
        if edge.serving and not is_unwaited(tally)
    }
    core = _core(waits)
    below: dict[str, set[str]] = defaultdict(set)
    out = set()
    for edge in sorted(waits, key=lambda edge: (-waits[edge], edge)):
        if edge.caller not in core or edge.callee not in core:
            continue
        if edge.caller == edge.callee or _reaches(below, edge.callee, edge.caller):
            out.add(edge)
        else:
            below[edge.caller].add(edge.callee)
    return out


def _core(edges: Iterable[Edge]) -> set[str]:
    """Services in or between circles: what is left when those without callees go, then again."""
    callees: dict[str, set[str]] = defaultdict(set)
    callers: dict[str, set[str]] = defaultdict(set)
    for edge in edges:
        callees[edge.caller].add(edge.callee)
        callers[edge.callee].add(edge.caller)
    core = set(callees)
    ready = [name for name in callers if name not in core]
    while ready:
        name = ready.pop()
        for caller in callers[name]:
            callees[caller].discard(name)
            if not callees[caller] and caller in core:
                core.discard(caller)
                ready.append(caller)
    return core


def _reaches(below: Mapping[str, set[str]], start: str, goal: str) -> bool:
    seen = {start}
    pending = [start]
    while pending:
        name = pending.pop()
        if name == goal:
            return True
        fresh = below.get(name, set()) - seen
        seen |= fresh
        pending.extend(fresh)
    return False
