"""Which share of each client's requests comes to a service, and which share fails without it?

Each request decides by chance which of its calls it makes (`per_request`), each time anew, and the
chances of several calls are independent. Only callers from whom a way leads to the service are
looked at; and to ask what one call less would change, only those above that call are looked at
again, so that a system of thousands of calls is a matter of a second.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias, final

from tidegate.analysis.rules.view import Edge

__all__ = ["Reach"]


class _Way(NamedTuple):
    """A call and how often it is made: `whole` times, and once more with the chance `part`."""

    call: str
    callee: str
    whole: float
    part: float


_Ways: TypeAlias = Mapping[str, Sequence[_Way]]


@final
class Reach:
    """The ways of one system: `out` are the calls of each caller, without any circle.

    `order` is every caller after all that it calls.
    """

    def __init__(self, out: Mapping[str, Sequence[Edge]], order: Sequence[str]) -> None:
        self._all: Final = {name: [_way(edge) for edge in edges] for name, edges in out.items()}
        self._required: Final = {
            name: [_way(edge) for edge in edges if edge.call.wait and not edge.call.optional]
            for name, edges in out.items()
        }
        self._caller: Final = {edge.name: name for name, edges in out.items() for edge in edges}
        self._above: Final[dict[str, set[str]]] = {name: set() for name in out}
        for name, edges in out.items():
            for edge in edges:
                self._above[edge.callee].add(name)
        self._place: Final = {name: place for place, name in enumerate(order)}
        self._needed: Final[dict[str, dict[str, float]]] = {}

    def asks(self, service: str) -> dict[str, float]:
        """The share of each caller's requests that come to `service` at all; none has no entry."""
        return self._shares(service, self._all)

    def needs(self, service: str, *, without: str | None = None) -> dict[str, float]:
        """The share that comes there through calls that are required and waited for.

        As if the call `without` were neither.
        """
        if service not in self._needed:
            self._needed[service] = self._shares(service, self._required)
        share = dict(self._needed[service])
        caller = self._caller.get(without or "")
        if caller in share and caller != service:
            for name in (caller, *self._all_above(caller)):
                share[name] = _share(self._required[name], share, without)
        return share

    def _shares(self, service: str, ways: _Ways) -> dict[str, float]:
        share = {service: 1.0}
        for name in self._all_above(service):
            share[name] = _share(ways[name], share, None)
        return share

    def _all_above(self, service: str) -> list[str]:
        """All from whom calls lead to `service`, each after those that it calls."""
        found: set[str] = set()
        front = [service]
        while front:
            fresh = self._above[front.pop()] - found
            found |= fresh
            front.extend(fresh)
        return sorted(found, key=self._place.__getitem__)


def _way(edge: Edge) -> _Way:
    part, whole = math.modf(edge.call.per_request)
    return _Way(edge.name, edge.callee, whole, part)


def _share(ways: Sequence[_Way], below: Mapping[str, float], without: str | None) -> float:
    """The share of one caller's requests of which some call comes there.

    A call that is made 2.5 times misses it if two do, and the half chance of a third.
    """
    missed = 1.0
    for call, callee, whole, part in ways:
        share = below.get(callee)
        if share and call != without:
            missed *= (1 - share) ** whole * (1 - part * share)
    return round(1 - missed, 12)  # so that 30 % is not 30.000000000000004 %
