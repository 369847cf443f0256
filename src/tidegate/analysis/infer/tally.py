"""What do all traces say together about each service and each call?

Only counts and sketches are kept, so memory depends on how many services and calls there are, and
not on how many traces.
"""

from array import array
from collections import Counter
from itertools import pairwise
from typing import Final, NamedTuple

from tidegate.analysis.infer.calls import FAILURES, LogicalCall, own_time
from tidegate.analysis.infer.sketch import Sketch
from tidegate.analysis.infer.trace import ROUNDING, Attempt, Request
from tidegate.analysis.ingest.span import Ending

__all__ = ["CallTally", "Key", "ServiceTally", "Tally"]

_SIZE_MAX: Final = 100  # attempts of one call that are told apart; the setting ends there too

_KEYS_MAX: Final = 5_000  # kinds of calls; more means that addresses or ids are in the names


class Key(NamedTuple):
    """Which calls are counted together: who calls, who answered (or NOBODY), whom it was meant for.

    `serving`: the call was made for a request, not in work that the caller began by itself. `peer`
    is the name that the caller gives, or its span's name with a space before it.
    """

    caller: int
    serving: bool
    callee: int
    peer: str


class CallTally:
    """All calls of one `Key`, and after `merge` of several."""

    def __init__(self) -> None:
        self.calls = 0
        self.made = 0  # of them, those whose request is counted in its service
        self.made_in_good = 0  # of these, those whose request ended well
        self.places = 0  # sum of their places among their request's calls: gives the order
        self.counted = 0  # calls whose client counts resends itself
        self.attempts = Counter[Ending]()
        self.durations = Sketch()
        self.good = Sketch()
        self.silent = Sketch()  # failed, and no answer known
        self.network = Sketch()  # what the caller measured beyond the server
        self.sizes = Counter[int]()
        self.used_up = Counter[int]()  # sizes of the calls whose last attempt failed too
        self.retried = Counter[Ending]()
        self.given_up = Counter[tuple[Ending, int]]()  # with how many attempts there had been
        self.gaps: dict[int, Sketch] = {}
        self.after_good = [0, 0]  # successful attempts: followed by a like sibling, all
        self.after_bad = [0, 0]  # the same of failed ones
        self.failed = 0  # calls that failed for good ...
        self.forgiven = 0  # ... though their request ended well
        self.outlives = 0  # calls still going on when their request had ended
        self.abandoned = [0, 0]  # timed-out attempts: the server went on well beyond, all known

    def add(self, call: LogicalCall, request: Request, place: int) -> None:
        """Count one call of this request, the `place`-th that it makes."""
        self.calls += 1
        self.places += place
        if request.own or request.complete:
            self.made += 1
            self.made_in_good += request.ending is Ending.OK
        self.counted += call.counted
        size = min(len(call.attempts), _SIZE_MAX)
        self.sizes[size] += 1
        for attempt in call.attempts:
            self._attempt(attempt)
        for attempt in call.attempts[:-1]:
            self.retried[attempt.ending] += 1
        self._gaps(call)
        last = call.last
        if last.ending in FAILURES:
            self.failed += 1
            self.forgiven += request.ending is Ending.OK
            self.used_up[size] += 1
            self.given_up[last.ending, size] += 1
        self.outlives += not last.waits or last.end > request.end + ROUNDING

    def _attempt(self, attempt: Attempt) -> None:
        length = attempt.end - attempt.start
        self.attempts[attempt.ending] += 1
        self.durations.add(length)
        if attempt.ending is Ending.OK:
            self.good.add(length)
            if attempt.served is not None:
                self.network.add(max(0, length - attempt.served))
        elif attempt.ending in (Ending.BROKEN, Ending.TIMEOUT):
            self.silent.add(length)
            if attempt.served is not None:
                self.abandoned[0] += attempt.served > 1.05 * length
                self.abandoned[1] += 1

    def _gaps(self, call: LogicalCall) -> None:
        for nth, (before, after) in enumerate(pairwise(call.attempts[:3]), start=1):
            self.gaps.setdefault(nth, Sketch()).add(max(0, after.start - before.end))

    def follow(self, calls: list[LogicalCall]) -> None:
        """Count how often an attempt is followed by a like one: calls of one key and request."""
        attempts = [attempt for call in calls for attempt in call.attempts]
        attempts.sort(key=lambda a: a.start)
        for before, after in zip(attempts, [*attempts[1:], None], strict=True):
            pair = self.after_good if before.ending is Ending.OK else self.after_bad
            like = after is not None and not (
                before.target and after.target and before.target != after.target
            )
            pair[0] += like
            pair[1] += 1

    def merge(self, other: "CallTally") -> None:
        """Add all that the other has counted."""
        for name in (
            *("calls", "made", "made_in_good", "places", "counted"),
            *("failed", "forgiven", "outlives"),
        ):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("attempts", "sizes", "used_up", "retried", "given_up"):
            getattr(self, name).update(getattr(other, name))
        for name in ("durations", "good", "silent", "network"):
            getattr(self, name).merge(getattr(other, name))
        for name in ("after_good", "after_bad", "abandoned"):
            pair, more = getattr(self, name), getattr(other, name)
            pair[:] = [pair[0] + more[0], pair[1] + more[1]]
        for nth, sketch in other.gaps.items():
            self.gaps.setdefault(nth, Sketch()).merge(sketch)


class ServiceTally:
    """All requests of one service."""

    def __init__(self) -> None:
        self.requests = 0  # that it served, whoever sent them
        self.good = 0
        self.jobs = 0  # that it started by itself, and only calls for
        self.good_jobs = 0
        self.own = Sketch()  # own work of those that ended well
        self.whole = Sketch()
        self.answers = Sketch()  # whole times of those that ended well
        self.own_failures = 0  # errors though none of its calls had failed
        self.refused = 0
        self.overlapping = 0  # neighbouring calls of one request that overlap ...
        self.in_order = 0  # ... and that do not
        self.entries = array("q")  # starts of requests that came from outside of all traces
        self.orphans = array("q")  # starts of those whose sender is missing from its trace
        self.job_starts = array("q")
        self.starts = array("q")
        self.ends = array("q")

    def add(self, request: Request, calls: list[LogicalCall]) -> None:
        """Count one request with its calls."""
        good = request.ending is Ending.OK
        if not request.own:
            if request.complete:
                self.jobs += 1
                self.good_jobs += good
                self.job_starts.append(request.start)
            return
        self.requests += 1
        self.good += good
        if request.root:
            (self.entries if request.complete else self.orphans).append(request.start)
        self.starts.append(request.start)
        self.ends.append(request.end)
        self.whole.add(request.end - request.start)
        if good:
            self.own.add(own_time(request, calls))
            self.answers.add(request.end - request.start)
        self.refused += request.ending is Ending.OVERLOADED
        self.own_failures += request.ending in (Ending.FAILED, Ending.BROKEN) and not any(
            call.last.ending in FAILURES for call in calls
        )
        self._order([call for call in calls if call.last.waits])

    def _order(self, calls: list[LogicalCall]) -> None:
        for before, after in pairwise(calls):
            if after.attempts[0].start < before.last.end - ROUNDING:
                self.overlapping += 1
            else:
                self.in_order += 1


class Tally:
    """Every service and every call, by number and `Key`."""

    def __init__(self, peers: list[str], operations: list[str]) -> None:
        self._peers = peers
        self._operations = operations
        self.services: dict[int, ServiceTally] = {}
        self.calls: dict[Key, CallTally] = {}
        self.traces = 0

    def add(self, request: Request, calls: list[LogicalCall]) -> None:
        """Count one request with its calls."""
        service = self.services.get(request.service)
        if service is None:
            service = self.services[request.service] = ServiceTally()
        service.add(request, calls)
        alike: dict[Key, list[LogicalCall]] = {}
        for place, call in enumerate(calls):
            key = self._key(request, call)
            alike.setdefault(key, []).append(call)
            tally = self.calls.get(key)
            if tally is None:
                tally = self.calls[key] = CallTally()
            tally.add(call, request, place)
        for key, group in alike.items():
            self.calls[key].follow(group)

    def _key(self, request: Request, call: LogicalCall) -> Key:
        first = call.attempts[0]
        peer = self._peers[first.peer] or " " + self._operations[first.name]
        key = Key(request.service, request.own, call.callee, peer)
        if key in self.calls or len(self.calls) < _KEYS_MAX:
            return key
        return key._replace(peer=" (other)")
