"""Which numbers does the file leave open, over which range, and which values shall be tried?

A number may be a range (`1s..10s`), or be left blank or `unknown` where a rule below says what that
means. Ranges live only here, at the edge of the file: the records hold plain numbers, so the
simulator never meets one. Two things, how many workers there are and how many requests come,
are not drawn blindly when left blank: what is drawn is how busy the system is today, and the number
follows from it, so that a blank never makes a system that is overloaded before anything goes wrong.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

from tidegate.settings.graph import client_rates, holding_times, visits
from tidegate.settings.numbers import people
from tidegate.settings.policies import Queue, Settings
from tidegate.settings.shapes import Field, Unit
from tidegate.settings.system import Call, Client, Service, System
from tidegate.units import MILLISECOND, SECOND, format_share

__all__ = [
    "BLANKS",
    "Blank",
    "Path",
    "Unknown",
    "Values",
    "blank_for",
    "derive",
    "middles",
    "sample",
    "spread",
]

Path: TypeAlias = tuple[str, ...]
"""The keys that lead to a number, as they stand in the file."""

Values: TypeAlias = Mapping[Path, float]
"""One number for each open path: nanoseconds, per second, parts of one, or a count."""

Kind: TypeAlias = Unit | Literal["utilisation"]


class Blank(NamedTuple):
    """The range that a blank key stands for."""

    kind: Kind
    low: float
    high: float


# Below a tenth nobody would ask, above 95 % today's queue would have been noticed.
_BUSY: Final = Blank("utilisation", 0.10, 0.95)
# For a rate where no service in reach has a known number of workers to be busy.
_ANY_RATE: Final = Blank("rate", 1.0, 1000.0)

BLANKS: Final[dict[tuple[type[Settings], str], Blank]] = {
    (Client, "rate"): _BUSY,
    (Service, "workers"): _BUSY,
    (Service, "time"): Blank("duration", MILLISECOND, SECOND),
    (Queue, "limit"): Blank("count", 0, 1000),
    (Service, "refusal_cost"): Blank("share", 0.01, 1.0),
    (Call, "timeout"): Blank("duration", 100 * MILLISECOND, 60 * SECOND),
}
"""What may be left blank, by record and key. Everything else needs a range, or its key left out."""


def blank_for(kind: type[Settings], field: Field, outer: Blank | None) -> Blank | None:
    """What a blank stands for here; a main key may get its meaning from the block's own key, as
    `time: {mean: }` does from `time`.
    """
    return BLANKS.get((kind, field.key), outer if field.name == kind.shorthand else None)


class Unknown(msgspec.Struct, frozen=True, kw_only=True):
    """One number that the file leaves open.

    `low` and `high` are in the unit of `kind`: nanoseconds, per second, parts of one, a count. With
    `utilisation` they say how busy the workers are today, as a part of one. `assumed`: the range is
    ours, since the file left the key blank. `where` is `file:line:column`.
    """

    path: Path
    kind: Kind
    low: float
    high: float
    where: str
    assumed: bool = False

    @property
    def log(self) -> bool:
        """Whether it is drawn evenly over its logarithm: every positive range is."""
        return self.low > 0

    @property
    def middle(self) -> float:
        """The geometric mean of a positive range, else the arithmetic mean."""
        return self.at(0.5)

    def at(self, share: float) -> float:
        """The value at a share of the way from low to high."""
        if self.log:
            value = self.low * math.pow(self.high / self.low, share)
        else:
            value = self.low + (self.high - self.low) * share
        value = min(max(value, self.low), self.high)
        return round(value) if self.kind in ("duration", "count") else value

    def text(self, value: float) -> str:
        """A value of this unknown as a report shows it: `250ms`, `600/s`, `31% busy`."""
        if self.kind == "utilisation":
            return f"{format_share(round(value, 3))} busy"
        return people(self.kind, value)


def middles(unknowns: Iterable[Unknown]) -> dict[Path, float]:
    """Every unknown at its middle."""
    return {unknown.path: unknown.middle for unknown in unknowns}


def sample(unknowns: Sequence[Unknown], n: int, seed: int) -> list[dict[Path, float]]:
    """`n` sets of values that cover each range evenly: a Latin hypercube.

    Each range is cut into n parts of equal (logarithmic) width, each part is drawn from once, and
    the parts of different unknowns are paired at random (McKay, Beckman, Conover 1979, section 2).
    The same seed gives the same sets in every process, and an unknown more or less does not change
    the numbers of the others.
    """
    sets: list[dict[Path, float]] = [{} for _ in range(n)]
    for unknown in unknowns:
        random = Random(f"{seed}/{'/'.join(unknown.path)}")
        parts = random.sample(range(n), n)
        for values, part in zip(sets, parts, strict=True):
            values[unknown.path] = unknown.at((part + random.random()) / n)
    return sets


def derive(system: System, unknowns: Iterable[Unknown], values: Values) -> dict[Path, float]:
    """The rates and numbers of workers at which the system is as busy as `values` say.

    `system` stands for the file with any rate and no limit of workers where these are open.
    """
    busy = {u.path: values[u.path] for u in unknowns if u.kind == "utilisation"}
    clients = {path[1]: share for path, share in busy.items() if path[0] == "clients"}
    services = {path[1]: share for path, share in busy.items() if path[0] == "services"}
    rates, load = _rates(system, clients)
    found: dict[Path, float] = {("clients", name, "rate"): rate for name, rate in rates.items()}
    holding = holding_times(system)
    for name, share in services.items():
        needed = load[name] * holding[name] / SECOND / system.services[name].replicas
        workers = math.ceil(min(needed / share, 1_000_000))
        found["services", name, "workers"] = max(1, workers)
    return found


def _rates(system: System, busy: Mapping[str, float]) -> tuple[dict[str, float], dict[str, float]]:
    """The open clients' rates, and each service's load with them.

    A client's rate is the highest at which no service in reach is busier than asked; what other
    clients already use is taken off, and open clients of the same service share the rest evenly.
    Where the others use it all, a hundredth of the service is left.
    """
    rates = client_rates(system)
    asks = {name: visits(system, client) for name, client in system.clients.items()}
    load = dict.fromkeys(system.services, 0.0)
    for name in system.clients.keys() - busy.keys():
        for service, count in asks[name].items():
            load[service] += rates[name] * count
    limits = _capacities(system)
    sharing = Counter(service for name in busy for service in asks[name])
    found = {}
    for name, share in busy.items():
        rate = min(
            max(share * limits[service] - load[service], limits[service] / 100)
            / sharing[service]
            / count
            for service, count in asks[name].items()
            if service in limits
        )
        found[name] = min(max(rate, 1e-6), 1e9)
    for name, rate in found.items():
        for service, count in asks[name].items():
            load[service] += rate * count
    return found, load


def _capacities(system: System) -> dict[str, float]:
    """Requests per second that keep all workers busy, of every service with a known number."""
    return {
        name: service.workers * service.replicas * SECOND / holding
        for name, holding in holding_times(system).items()
        if (service := system.services[name]).workers is not None and holding > 0
    }


def spread(system: System, unknowns: Iterable[Unknown]) -> tuple[Unknown, ...]:
    """The unknowns as they can be drawn in this system.

    Where no service that an open client reaches has a known number of workers, nothing is busy yet,
    and the rate itself is drawn: 1/s to 1000/s.
    """
    limits = _capacities(system)
    found = []
    for unknown in unknowns:
        rate = unknown.kind == "utilisation" and unknown.path[0] == "clients"
        if rate and limits.keys().isdisjoint(visits(system, system.clients[unknown.path[1]])):
            kind, low, high = _ANY_RATE
            unknown = msgspec.structs.replace(unknown, kind=kind, low=low, high=high)
        found.append(unknown)
    return tuple(found)
