"""What does every rule of the audit need to know about a call, and how does it report a breach?

A rule is a small function from a `View` to `Hit`s. The view holds the system with every
`protect: default` written out, its calls as edges in the order of the file, and the arithmetic of
the graph in health.
"""

import json
import math
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, Final, NamedTuple, final

from tidegate.findings import Severity
from tidegate.settings.graph import answer_times, callees_first, client_rates, offered
from tidegate.settings.system import Call, Service, System, Time, protected
from tidegate.units import HOUR, MICROSECOND, MILLISECOND, MINUTE, SECOND

__all__ = [
    "Edge",
    "Hit",
    "Path",
    "Rule",
    "View",
    "amplification",
    "average",
    "change",
    "longest",
    "number",
    "outlasting",
    "p99",
    "patience",
    "repeats_failures",
    "rounded_up",
    "tries",
]

_LN_100: Final = math.log(100)  # the p99 of an exponential, in means
_UNITS: Final = (
    ("h", HOUR),
    ("min", MINUTE),
    ("s", SECOND),
    ("ms", MILLISECOND),
    ("us", MICROSECOND),
    ("ns", 1),
)
_PLAIN_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*( [A-Za-z0-9_-]+)*")
_RESERVED: Final = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}


class Edge(NamedTuple):
    """One call in its place: who makes it, and who answers."""

    section: str
    caller: str
    name: str
    call: Call
    callee: str

    @property
    def path(self) -> tuple[str, ...]:
        """Where it stands in the file."""
        return (self.section, self.caller, "calls", self.name)


class Path(NamedTuple):
    """Calls one below the other, and the attempts at the end of them that one action can make."""

    attempts: float
    edges: tuple[Edge, ...]


_NO_PATH: Final = Path(1.0, ())


class Hit(NamedTuple):
    """One breach of a rule. `severity` when it is another than the rule's own."""

    path: tuple[str, ...]
    says: str
    fix: str
    yaml: str
    severity: Severity | None = None


class Rule(NamedTuple):
    """One rule: its name, how bad a breach usually is, and the function that finds breaches."""

    name: str
    severity: Severity
    find: Callable[["View"], Iterator[Hit]]


@final
class View:
    """One system as the rules see it."""

    def __init__(self, system: System) -> None:
        self.system: Final = protected(system)
        self.services: Final[dict[str, Service]] = self.system.services
        self.edges: Final = tuple(
            Edge(section, caller, name, call, self.system.target_of(name, call))
            for section, caller, calls in self.system.callers()
            for name, call in calls.items()
        )
        self.into: Final[dict[str, list[Edge]]] = {name: [] for name in self.services}
        self.out_of: Final[dict[str, list[Edge]]] = {
            name: [] for name in (*self.system.clients, *self.services)
        }
        for edge in self.edges:
            self.into[edge.callee].append(edge)
            self.out_of[edge.caller].append(edge)

    @cached_property
    def load(self) -> dict[str, float]:
        """Requests per second that reach each service when nothing fails."""
        return offered(self.system)

    @cached_property
    def rates(self) -> dict[str, float]:
        """Requests per second of each client and service when nothing fails."""
        return client_rates(self.system) | self.load

    @cached_property
    def answers(self) -> dict[str, float]:
        """Nanoseconds of a mean request at each service when nothing fails, without queueing."""
        return answer_times(self.system)

    @cached_property
    def worst(self) -> dict[str, Path]:
        """The path below each client and service on which attempts multiply the most.

        One round finds it, callees first; calls that nobody waits for may need more of them.
        """
        callers = (*callees_first(self.system), *self.system.clients)
        worst = dict.fromkeys(callers, _NO_PATH)
        for _ in callers:
            before = dict(worst)
            for name in callers:
                paths = [self._down(edge, worst[edge.callee]) for edge in self.out_of[name]]
                worst[name] = max([worst[name], *paths], key=lambda path: path.attempts)
            if worst == before:
                break
        return worst

    @cached_property
    def reached_by(self) -> dict[str, frozenset[str]]:
        """The clients whose requests come to each service, through calls that are waited for."""
        reached = {name: set[str]() for name in self.services}
        for client in self.system.clients:
            front = [client]
            while front:
                for edge in self.waited_by(front.pop()):
                    if client not in reached[edge.callee]:
                        reached[edge.callee].add(client)
                        front.append(edge.callee)
        return {name: frozenset(clients) for name, clients in reached.items()}

    @cached_property
    def hurried(self) -> set[str]:
        """The services to which a deadline comes down on every way."""
        found: set[str] = set()
        for service in reversed(callees_first(self.system)):
            into = self.into[service]
            bounded = (
                edge.call.propagate and (math.isfinite(patience(edge.call)) or edge.caller in found)
                for edge in into
            )
            if into and all(bounded):
                found.add(service)
        return found

    def waited_by(self, caller: str) -> list[Edge]:
        """The calls that a client or service waits for."""
        return [edge for edge in self.out_of[caller] if edge.call.wait]

    def waiting_at(self, service: str) -> list[Edge]:
        """The calls whose callers wait for an answer of `service`."""
        return [edge for edge in self.into[service] if edge.call.wait]

    def holds_workers(self, caller: str) -> bool:
        """Whether the caller is a service whose workers are held while it waits."""
        service = self.services.get(caller)
        return service is not None and service.blocking and service.workers is not None

    def workers(self, service: str) -> int:
        """The workers of all replicas; only for a service that has a limit."""
        record = self.services[service]
        assert record.workers is not None
        return record.workers * record.replicas

    def held(self, service: str) -> float:
        """Nanoseconds for which a mean request holds a worker in health."""
        record = self.services[service]
        return self.answers[service] if record.blocking else average(record.time)

    def _down(self, edge: Edge, below: Path) -> Path:
        """The worst path that begins with `edge`; it ends where nothing multiplies any more."""
        alone = amplification(edge.call)
        whole = below.attempts * (alone if repeats_failures(edge.call) else 1.0)
        if below.attempts > 1 and whole >= alone and edge not in below.edges:
            return Path(whole, (edge, *below.edges))
        return Path(alone, (edge,))


# One call: how often, how long.


def tries(call: Call) -> int:
    """How often one call can be tried: its attempts, or 1 when nothing is repeated.

    What must not be done twice is repeated only where it was refused, and so not done.
    """
    repeated = call.retry_on if call.idempotent else "overloaded" in call.retry_on
    return call.tries if repeated else 1


def repeats_failures(call: Call) -> bool:
    """Whether what a callee has given up on makes its caller repeat.

    It reaches the caller as a failure or a timeout; overloaded is what the callee itself refuses.
    """
    failing = bool({"timeout", "failure"}.intersection(call.retry_on))
    return call.idempotent and call.tries > 1 and failing


def amplification(call: Call) -> float:
    """Attempts per call while none is answered in time: at most 1 + ratio under a budget."""
    most = float(tries(call))
    if call.hedge is not None and call.idempotent:
        most *= 1 + call.hedge.max
    return min(most, 1 + call.paid_from.ratio) if call.paid_from else most


def patience(call: Call) -> float:
    """Nanoseconds that one attempt can take at the longest; infinite without a bound."""
    bounds = [bound for bound in (call.timeout, call.deadline) if bound is not None]
    return min(bounds, default=math.inf)


def longest(call: Call) -> float:
    """Nanoseconds that the whole call can take: its tries with their waits, cut by a deadline."""
    n = tries(call)
    whole = n * patience(call)
    if call.backoff is not None:
        whole += math.fsum(call.backoff.longest(retry) for retry in range(1, n))
    return whole if call.deadline is None else min(whole, call.deadline)


# One time: its mean, its p99, and how often it is longer than something.


def average(time: Time | None) -> float:
    """Nanoseconds in the mean; zero for no work."""
    return 0.0 if time is None else time.average


def p99(time: Time | None) -> float:
    """Nanoseconds that 99 % of the work stays below; zero for no work."""
    if time is None:
        return 0.0
    if time.p99 is not None:
        return float(time.p99)
    return time.mean * _LN_100 if time.mean is not None else float(time.constant or 0)


def outlasting(time: Time | None, limit: float) -> float:
    """The share of work that takes longer than `limit` nanoseconds, which is above zero."""
    if time is None:
        return 0.0
    if time.mean:
        return math.exp(-limit / time.mean)
    if time.median is None or not time.sigma:
        return float(time.average > limit)
    return math.erfc(math.log(limit / time.median) / (time.sigma * math.sqrt(2))) / 2


# How a figure and a fix are written.


def number(value: float) -> str:
    """Three significant digits, or whole with thousands apart: 1.1, 2.25, 3,100."""
    if value >= 1e9:
        return f"{value:.1e}"
    return f"{value:,.0f}" if value >= 100 or value == round(value) else f"{value:.3g}"


def rounded_up(nanoseconds: float) -> str:
    """A duration as people write it, of two digits, and not below `nanoseconds`."""
    step = 10 ** max(0, math.floor(math.log10(max(nanoseconds, 1))) - 1)
    value = math.ceil(nanoseconds / step) * step
    name, size = next((name, size) for name, size in _UNITS if value % size == 0)
    return f"{value // size}{name}"


def change(*changes: tuple[tuple[str, ...], str]) -> str:
    """The YAML that sets each path to its text, merged where paths share their way."""
    tree: dict[str, Any] = {}
    for path, text in changes:
        node = tree
        for key in path[:-1]:
            node = node.setdefault(key, {})
        node[path[-1]] = text
    return "\n".join(_lines(tree, 0))


def _lines(tree: dict[str, Any], depth: int) -> Iterator[str]:
    for key, value in tree.items():
        plain = _PLAIN_KEY.fullmatch(key) and key.lower() not in _RESERVED
        head = "  " * depth + (key if plain else json.dumps(key, ensure_ascii=False)) + ":"
        if isinstance(value, dict):
            yield head
            yield from _lines(value, depth + 1)
        else:
            yield f"{head} {value}"
