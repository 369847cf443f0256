"""Which system do these traces come from?

Spans are read once, in bounded memory; requests, calls and attempts are told apart trace by trace,
counted, and the counts become a `System` in which each number has its evidence and each thing that
traces cannot show is left open.
"""

from array import array
from collections.abc import Sequence
from pathlib import Path as FilePath

import msgspec

from tidegate.analysis.infer.build import Builder, Path, Seen
from tidegate.analysis.infer.calls import calls_of
from tidegate.analysis.infer.graph import edges_of
from tidegate.analysis.infer.tally import Tally
from tidegate.analysis.infer.thin import Thin, thinness
from tidegate.analysis.infer.trace import Attempt, requests_of
from tidegate.analysis.infer.window import Window, most_at_once, window_of
from tidegate.analysis.ingest.read import Progress, read_spans
from tidegate.analysis.ingest.sink import Sink
from tidegate.analysis.ingest.span import Oddities
from tidegate.analysis.ingest.store import SPANS_MAX, SpanStore
from tidegate.errors import InputError
from tidegate.settings.dump import dump
from tidegate.settings.system import System
from tidegate.units import format_duration

__all__ = ["Inferred", "Path", "Window", "infer"]


class Inferred(msgspec.Struct, frozen=True, kw_only=True):
    """What the traces showed.

    `evidence` is the comment beside each path of the system file, `leave_open` what is written
    there instead of a number that traces cannot show: nothing, or a range. `oddities` counts what
    was odd in the files and could be read all the same. `sampled_share` is the part of all traces
    that was used, `source_share` the part that the sender says it kept; rates are divided by both.
    `thin` says what too little was seen of to judge by.
    """

    system: System
    evidence: dict[Path, str]
    leave_open: dict[Path, str]
    oddities: Oddities
    notes: tuple[str, ...]
    thin: Thin
    window: Window
    spans: int
    traces: int
    sampled_share: float
    source_share: float

    def text(self) -> str:
        """The system file, with the evidence as comments and the unknowns left open."""
        return dump(self.system, comments=self.evidence, leave_open=self.leave_open)


def infer(
    paths: Sequence[FilePath], *, progress: Progress | None = None, spans_max: int = SPANS_MAX
) -> Inferred:
    """The system behind these trace files.

    Memory is bounded by `spans_max` (60 bytes each): with more spans whole traces are left out, by
    their ids alone. Raises InputError for files that cannot be read or that show no service.
    """
    store = SpanStore(spans_max=spans_max)
    sink = read_spans(paths, store.add, progress=progress)
    services = _Services(store)
    tally = _tallied(store, services, sink.oddities)
    source_share, told = _source_share(sink)
    window, entries = window_of(
        [
            starts
            for one in tally.services.values()
            for starts in (one.entries, one.orphans, one.job_starts)
        ],
        store.sampled_share * source_share,
    )
    seen = Seen(
        services={services.names[index]: one for index, one in tally.services.items()},
        edges=edges_of(tally.calls, services.names),
        replicas=services.replicas(),
        window=window,
        entries=entries,
    )
    builder = Builder(seen)
    system = _built(builder, paths)
    thin = thinness(builder.counted, window.length)
    builder.comments[()] = _head(window, tally.traces, sink.seen, store.sampled_share, thin)
    return Inferred(
        system=system,
        evidence=builder.comments,
        leave_open=builder.leave_open,
        oddities=+sink.oddities,
        notes=tuple(told + builder.notes),
        thin=thin,
        window=window,
        spans=sink.seen,
        traces=tally.traces,
        sampled_share=store.sampled_share,
        source_share=source_share,
    )


def _built(builder: Builder, paths: Sequence[FilePath]) -> System:
    system = builder.system()
    if system is None:
        raise InputError(
            f"{paths[0]}: holds spans, but none that a service served for somebody else;"
            " expected server spans, or client spans that name their peer"
        )
    return system


class _Services:
    """Numbers for services' names, and when each instance of them was seen."""

    def __init__(self, store: SpanStore) -> None:
        self.names: list[str] = []
        self._number: dict[str, int] = {}
        self._resources = store.resources
        self._of: list[int] = []
        self._first: dict[int, int] = {}
        self._last: dict[int, int] = {}

    def of(self, resource: int) -> int:
        """The number of the service that a resource belongs to."""
        while len(self._of) <= resource:
            name = self._resources[len(self._of)].service or "unnamed"
            if name not in self._number:
                self._number[name] = len(self.names)
                self.names.append(name)
            self._of.append(self._number[name])
        return self._of[resource]

    def saw(self, resource: int, start: int, end: int) -> None:
        """Remember when a resource was alive."""
        if start < self._first.setdefault(resource, start):
            self._first[resource] = start
        if end > self._last.setdefault(resource, end):
            self._last[resource] = end

    def replicas(self) -> dict[str, int]:
        """How many instances of each service were alive at once; only of those that name them."""
        spans: dict[int, dict[str, list[int]]] = {}
        for resource, first in self._first.items():
            instance = self._resources[resource].instance
            if instance:
                alive = spans.setdefault(self.of(resource), {}).setdefault(instance, [first, first])
                alive[:] = min(alive[0], first), max(alive[1], self._last[resource])
        return {
            self.names[service]: most_at_once(
                array("q", (first for first, _ in alive.values())),
                array("q", (last + 1 for _, last in alive.values())),
            )
            for service, alive in spans.items()
        }


def _tallied(store: SpanStore, services: _Services, oddities: Oddities) -> Tally:
    """All requests and calls of all traces, counted; empties the store."""
    tally = Tally(store.peers.all, store.operations.all)
    counting = {(services.of(resource), peer) for resource, peer in store.counting}
    for spans in store.traces(oddities):
        tally.traces += 1
        for span in spans:
            services.saw(span.resource, span.start, span.start + span.duration)
        for request in requests_of(spans, services.of, oddities):

            def counts(attempt: Attempt, service: int = request.service) -> bool:
                return (service, attempt.peer) in counting

            tally.add(request, calls_of(request, counts))
    return tally


def _source_share(sink: Sink) -> tuple[float, list[str]]:
    """The share of traces that the senders kept, if they all say the same."""
    if not sink.shares:
        return 1.0, []
    share, count = sink.shares.most_common(1)[0]
    if count < 0.99 * sink.shares.total():
        shares = ", ".join(f"{kept:.2%}" for kept in sorted(sink.shares)[:5])
        return 1.0, [f"senders kept different shares of their traces ({shares}); rates are as seen"]
    if share < 1:
        return share, [f"senders kept {share:.2%} of their traces; rates are divided by it"]
    return 1.0, []


def _head(window: Window, traces: int, spans: int, share: float, thin: Thin) -> str:
    sampled = "" if share == 1 else f", a sample of {share:.2%}, chosen by trace id"
    seen = f"Too few to judge by: {'; '.join(thin.says)}.\n" if thin.says else ""
    return (
        f"Inferred from {traces:,} traces, {spans:,} spans in"
        f" {format_duration(window.length)}{sampled}.\n{seen}"
        "Open numbers cannot be seen in traces: fill in what you know, check samples the rest.\n"
        "Limits, budgets and breakers cannot be seen either: add those that exist."
    )
