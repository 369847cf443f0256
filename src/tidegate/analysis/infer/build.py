"""How do the counts become a system file, with the evidence beside every number?

What traces show is written, what they cannot show is left open: the loader then samples it, and the
report says which unknown decides. Nothing is made up to fill a gap.
"""

import math
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from tidegate.analysis.infer.deduce import (
    backoff_of,
    duration,
    is_optional,
    is_unwaited,
    network_of,
    retries_of,
    rounded,
    share,
    spread_of,
    time_of,
    timeout_of,
)
from tidegate.analysis.infer.graph import Edge, open_circles
from tidegate.analysis.infer.names import Names
from tidegate.analysis.infer.sketch import Sketch
from tidegate.analysis.infer.tally import CallTally, ServiceTally
from tidegate.analysis.infer.window import Window, most_at_once
from tidegate.analysis.ingest.span import Ending
from tidegate.settings.system import Call, Client, Service, System, Time
from tidegate.units import DAY, MILLISECOND, SECOND, format_duration, format_rate

__all__ = ["Builder", "Path", "Seen"]

Path = tuple[str, ...]
# The loader's own range for a blank timeout: what is seen can only narrow it.
_SHORTEST_TIMEOUT: Final = 100 * MILLISECOND
_LONGEST_TIMEOUT: Final = 60 * SECOND
_FEW: Final = 3  # errors below which a share of errors would be an accident


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """All that the traces showed, by the raw names of services."""

    services: Mapping[str, ServiceTally]
    edges: Mapping[Edge, CallTally]
    replicas: Mapping[str, int]
    window: Window
    entries: int  # requests from outside that lie in the window


class Builder:
    """Makes the system, with its comments and what is left open, service by service."""

    def __init__(self, seen: Seen) -> None:
        self._seen = seen
        self._names = Names()
        self._call_names = Names()
        self._cut = open_circles(seen.edges)
        self._called: dict[str, list[CallTally]] = defaultdict(list)
        for edge, tally in seen.edges.items():
            if edge not in self._cut:
                self._called[edge.callee].append(tally)
        self._callers = defaultdict[str, int](int)
        for edge in seen.edges:
            self._callers[edge.callee] += 1
        self.comments: dict[Path, str] = {}
        self.leave_open: dict[Path, str] = {}
        self.notes: list[str] = []
        self.counted: dict[str, int] = {}  # requests seen of each client
        self._word: dict[str, str] = {}
        self._again: dict[str, str] = {}

    def system(self) -> System | None:
        """The whole system; None if nobody serves, or nobody asks."""
        serving = self._serving()
        for name in serving:
            self._word[name] = self._names.take(*self._wishes(name))
        for edge in sorted(self._cut):
            self._twin(edge)
        clients = self._clients(serving)
        services = {self._word[name]: self._service(name) for name in serving}
        services |= {word: self._copy(name, word) for name, word in self._again.items()}
        return System(clients=clients, services=services) if clients and services else None

    def _serving(self) -> list[str]:
        """Everybody who serves, callers before those they call, else by name."""
        names = {name for name, tally in self._seen.services.items() if tally.requests}
        names |= {edge.callee for edge in self._seen.edges}
        below = defaultdict[str, list[str]](list)
        above = dict.fromkeys(sorted(names), 0)
        for edge in sorted(self._seen.edges):
            if edge.serving and edge not in self._cut and edge.caller in names:
                below[edge.caller].append(edge.callee)
                above[edge.callee] += 1
        ordered: list[str] = []
        ready = [name for name, callers in above.items() if not callers]
        while ready:
            name = ready.pop(0)
            ordered.append(name)
            for callee in below[name]:
                above[callee] -= 1
                if not above[callee]:
                    ready.append(callee)
        return ordered + [name for name in above if name not in set(ordered)]

    def _wishes(self, name: str) -> tuple[str, ...]:
        """A service's own name; of a host's, which stands for a leaf, the first label if free."""
        tally = self._seen.services.get(name)
        first = name.split(".", maxsplit=1)[0]
        leaf = (tally is None or not tally.requests) and not first.isdigit()
        return (first, name) if leaf else (name,)

    def _twin(self, edge: Edge) -> None:
        """A copy of the callee for the call that would close a circle."""
        if edge.callee not in self._again:
            self._again[edge.callee] = self._names.take(f"{edge.callee}-again")
        copy = self._again[edge.callee]
        self.notes.append(
            f"{edge.caller} and {edge.callee} call each other in a circle: the rarest of these"
            f" calls, {edge.caller} to {edge.callee} ({self._seen.edges[edge].calls:,} seen), goes"
            f" to a copy named {copy}, which shares no workers with {edge.callee}"
        )

    # Clients: who sends requests, as far as the traces go back.

    def _clients(self, serving: list[str]) -> dict[str, Client]:
        clients: dict[str, Client] = {}
        outside = [name for name in serving if self._from_outside(name)]
        for name in outside:
            word = self._names.take(*(["users"] if len(outside) == 1 else []), f"{name}-users")
            clients[word] = self._users(word, name)
        for name, tally in sorted(self._seen.services.items()):
            calls = self._edges(name, serving=False)
            if not calls or not tally.jobs:
                continue
            own = name not in self._word
            word = self._names.take(name if own else f"{name}-jobs", otherwise="client")
            clients[word] = self._jobs(word, tally, calls)
        return clients

    def _from_outside(self, name: str) -> list[int]:
        """Starts of the requests whose sender is in no trace."""
        tally = self._seen.services.get(name)
        if tally is None:
            return []
        if not tally.orphans:
            return list(tally.entries)
        if self._called[name]:
            self.notes.append(
                f"{len(tally.orphans):,} requests of {name} miss their sender in the traces;"
                " they are not counted as coming from outside, since others are called by services"
            )
            return list(tally.entries)
        return [*tally.entries, *tally.orphans]

    def _users(self, word: str, name: str) -> Client:
        starts = self._from_outside(name)
        path = ("clients", word)
        rate = self._rate(path, starts)
        callee = self._word[name]
        call = self._call_names.take(callee, f"{word}-{callee}")
        usual = self._seen.services[name].answers.quantile(0.99)
        key = (*path, "calls", call, "timeout")
        self.leave_open[key] = self._patience(usual)
        self.comments[key] = (
            "who asks here leaves no spans: how long they wait and whether they retry is not seen;"
            f" 99% of the good answers took at most {format_duration(rounded(usual, 2))}"
        )
        return Client(rate=rate, calls={call: Call(to=None if call == callee else callee)})

    def _jobs(self, word: str, tally: ServiceTally, edges: list[Edge]) -> Client:
        path = ("clients", word)
        rate = self._rate(path, list(tally.job_starts))
        return Client(rate=rate, calls=self._calls(path, edges, tally.jobs, tally.good_jobs))

    def _rate(self, path: Path, starts: list[int]) -> float:
        window, counted = self._seen.window, self._seen.entries
        rate = window.rate(starts, of_all=counted)
        self.counted[path[1]] = len(starts)
        if not rate:
            self.leave_open[(*path, "rate")] = ""
            self.comments[(*path, "rate")] = f"{len(starts):,} seen: too few to tell a rate"
            return 1.0
        self.comments[(*path, "rate")] = (
            f"n={len(starts):,} in {format_duration(window.length)}"
            + self._sampled()
            + f"; busiest second {self._busiest(starts)}"
        )
        return min(max(rounded(rate), 1e-6), 1e9)

    def _sampled(self) -> str:
        kept = self._seen.window.share
        return "" if kept == 1 else f", a sample of {kept:.2%} of all"

    def _busiest(self, starts: list[int]) -> str:
        ordered = sorted(starts)
        most = first = 0
        for last, start in enumerate(ordered):
            while start - ordered[first] >= SECOND:
                first += 1
            most = max(most, last - first + 1)
        return format_rate(most / self._seen.window.share)

    # Services: what they do themselves.

    def _service(self, name: str) -> Service:
        word = self._word[name]
        path = ("services", word)
        tally = self._seen.services.get(name)
        if tally is None or not tally.requests:
            return self._leaf(name, path)
        edges = self._edges(name, serving=True)
        pairs = tally.overlapping + tally.in_order
        parallel = tally.overlapping > tally.in_order
        if parallel:
            self.comments[(*path, "parallel")] = (
                f"{share(tally.overlapping, pairs)} of neighbouring calls overlap"
            )
        self._workers(path, tally, name)
        return Service(
            time=self._time(path, tally.own, "own work: its answer time less its calls"),
            replicas=self._replicas(path, name),
            errors=self._errors(path, tally.own_failures, tally.requests),
            parallel=parallel,
            calls=self._calls(path, edges, tally.requests, tally.good),
        )

    def _leaf(self, name: str, path: Path) -> Service:
        """Somebody who leaves no spans: known from those who call it."""
        good = Sketch()
        failed = attempts = 0
        for tally in self._called[name]:
            good.merge(tally.good)
            failed += tally.attempts[Ending.FAILED]
            attempts += tally.durations.count
        self.leave_open[(*path, "workers")] = ""
        self.leave_open[(*path, "queue")] = ""
        known = "" if name == path[1] else f", who know it as {name}"
        self.comments[(*path, "workers")] = f"leaves no spans: seen from its callers alone{known}"
        return Service(
            time=self._time(path, good, "answer time at its callers, network included"),
            errors=self._errors(path, failed, attempts),
        )

    def _copy(self, name: str, word: str) -> Service:
        path = ("services", word)
        whole = self._seen.services[name].whole  # who is in a circle calls, so it left spans
        self.leave_open[(*path, "workers")] = ""
        self.leave_open[(*path, "queue")] = ""
        self.comments[path] = f"a copy of {self._word[name]} that ends a circle of calls"
        return Service(time=self._time(path, whole, "whole answers, the calls in them included"))

    def _time(self, path: Path, sketch: Sketch, what: str) -> Time | None:
        key = (*path, "time")
        time = time_of(sketch)
        if time is None and sketch.count:
            time = Time(mean=duration(max(1.0, sketch.mean)))
        if time is None:
            self.leave_open[key] = ""
            self.comments[key] = "no request that ended well was seen"
        else:
            self.comments[key] = f"{what}, {spread_of(sketch)}"
        return time

    def _workers(self, path: Path, tally: ServiceTally, name: str) -> None:
        replicas = self._seen.replicas.get(name, 1)
        most = most_at_once(tally.starts, tally.ends)
        window = self._seen.window
        says = f"at least {math.ceil(most / replicas):,} a replica: {most:,} at once at most"
        if window.length:
            mean = tally.whole.total / window.length / window.share
            says += f", {rounded(mean):,} on average"
        self.leave_open[(*path, "workers")] = ""
        self.leave_open[(*path, "queue")] = ""
        self.comments[(*path, "workers")] = says + self._sampled()
        if tally.refused:
            self.comments[(*path, "queue")] = (
                f"refused {share(tally.refused, tally.requests)} as overloaded, so there is a bound"
            )

    def _replicas(self, path: Path, name: str) -> int:
        replicas = min(self._seen.replicas.get(name, 0), 10_000)
        if replicas:
            self.comments[(*path, "replicas")] = "instances seen at the same time"
        return max(1, replicas)

    def _errors(self, path: Path, failed: int, whole: int) -> float:
        if failed < _FEW or failed / whole < 1e-4:
            return 0.0
        self.comments[(*path, "errors")] = (
            f"{failed:,} of {whole:,} failed though none of its calls had"
        )
        return min(1.0, rounded(failed / whole, 2))

    # Calls: who asks whom, how often, and with how much patience.

    def _edges(self, name: str, *, serving: bool) -> list[Edge]:
        """The calls of one caller in the order in which its requests make them."""
        edges = [e for e in self._seen.edges if e.caller == name and e.serving is serving]
        tallies = self._seen.edges
        return sorted(edges, key=lambda e: (tallies[e].places / tallies[e].calls, e))

    def _calls(self, path: Path, edges: list[Edge], requests: int, good: int) -> dict[str, Call]:
        calls = {}
        for edge in edges:
            callee = (self._again if edge in self._cut else self._word)[edge.callee]
            wishes = [f"{path[1]}-{callee}"]
            if self._callers[edge.callee] == 1:
                wishes.insert(0, callee)
            name = self._call_names.take(*wishes)
            tally = self._seen.edges[edge]
            call = self._call((*path, "calls", name), tally, requests, good)
            calls[name] = msgspec.structs.replace(call, to=None if name == callee else callee)
        return calls

    def _call(self, path: Path, tally: CallTally, requests: int, good: int) -> Call:
        said: dict[str, Any] = {}
        timeout = timeout_of(tally)
        self._say(path, "timeout", timeout.says)
        if timeout.value is None:
            self.leave_open[(*path, "timeout")] = self._patience(timeout.at_least)
        said["timeout"] = timeout.value
        said |= self._retries(path, tally, timeout.value, requests, good)
        network, says = network_of(tally)
        if network is not None:
            said["network"] = network
            self._say(path, "network", says)
        if is_unwaited(tally):
            said |= {"optional": True, "wait": False}
            self._say(path, "wait", f"{share(tally.outlives, tally.calls)} outlast their request")
        elif is_optional(tally):
            said["optional"] = True
            says = (
                f"the request ended well in {share(tally.forgiven, tally.failed)} of its failures"
            )
            self._say(path, "optional", says)
        return Call(**said)

    def _patience(self, slowest: int) -> str:
        """A timeout that was never seen is longer than every answer, or there is none."""
        low = min(max(duration(slowest), _SHORTEST_TIMEOUT), DAY // 10)
        high = max(_LONGEST_TIMEOUT, 10 * low)
        return f"{format_duration(low)}..{format_duration(high)}"

    def _retries(
        self, path: Path, tally: CallTally, timeout: int | None, requests: int, good: int
    ) -> dict[str, Any]:
        retries = retries_of(tally, timeout)
        self._say(path, "attempts", retries.says)
        said: dict[str, Any] = {"per_request": self._fan_out(path, tally, requests, good)}
        said["per_request"] = min(1000.0, rounded(said["per_request"] * retries.calls))
        if retries.attempts is None:
            self.leave_open[(*path, "attempts")] = "1..3"
        else:
            said["attempts"] = retries.attempts
        if retries.retry_on and retries.says_on:
            said["retry_on"] = retries.retry_on
            self._say(path, "retry_on", retries.says_on)
        said["backoff"], says = backoff_of(tally)
        if said["backoff"] is not None:
            self._say(path, "backoff", says)
        elif says:
            self._say(path, "attempts", f"{retries.says}; {says}")
        return said

    def _fan_out(self, path: Path, tally: CallTally, requests: int, good: int) -> float:
        """Calls for each request, from those that ended well: one that failed stopped early."""
        enough = good >= _FEW and tally.made_in_good
        made, of = (tally.made_in_good, good) if enough else (tally.made, requests)
        found = made / of if of else 1.0
        if found != 1:
            self._say(path, "per_request", f"{made:,} calls in {of:,} requests")
        return round(found) if abs(found - round(found)) < 0.005 * found else found

    def _say(self, path: Path, key: str, says: str) -> None:
        self.comments[(*path, key)] = says
