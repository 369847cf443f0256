"""How are millions of spans kept in bounded memory until their traces are complete?

A trace is complete only when the last file ends, since its spans may lie anywhere in them. So each
span is packed into 60 bytes and put into one of 1,024 buckets by its trace id. When there are too
many, the last buckets are given up whole: what remains is a sample of whole traces, chosen by
their ids alone, whatever the order of files and spans, and its share is stated. A million traces
tell as much as ten million; temporary files would tell it slower, and fail when the disk is full.
"""

import zlib
from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from tidegate.analysis.ingest.span import Oddities, Resource, Span

__all__ = ["BUCKETS", "SPANS_MAX", "Packed", "SpanStore"]

BUCKETS: Final = 1024
SPANS_MAX: Final = 2_000_000  # 120 MB packed; with the rest of the process below 300 MB
TRACE_MAX: Final = 100_000  # spans of one trace: as objects 50 MB; longer ones are loops or bugs
_TOO_LONG: Final = f"span of a trace beyond its first {TRACE_MAX:,}, left out"
_NAMES_MAX: Final = 50_000  # distinct operations or peers; more means that ids are in the names
_NAME_LENGTH: Final = 200

_RECORD: Final = Struct("<QQQqqIIIIBBh")
_MERSENNE: Final = 2**61 - 1
_GOLDEN: Final = 0x9E3779B97F4A7C15  # 2^64 / golden ratio: spreads ids that only count upwards
_64: Final = 2**64 - 1


class Packed(NamedTuple):
    """A span as it comes out of the store; `resource`, `name`, `peer` index the store's tables.

    `target` is a checksum (0: none): equal targets have equal ones. Names as in `Span`.
    """

    trace: int
    id: int
    parent: int
    start: int
    duration: int
    resource: int
    name: int
    peer: int
    target: int
    kind: int
    ending: int
    resend: int


class _Names:
    """A table of strings, each told once, with a bound on how many."""

    def __init__(self) -> None:
        self.all: list[str] = [""]
        self._index: dict[str, int] = {"": 0}

    def index(self, name: str) -> int:
        found = self._index.get(name)
        if found is None:
            cut = name[:_NAME_LENGTH] if len(self.all) < _NAMES_MAX else "(other)"
            found = self._index.get(cut)
            if found is None:
                found = self._index[cut] = len(self.all)
                self.all.append(cut)
        return found

    @property
    def full(self) -> bool:
        return "(other)" in self._index


class SpanStore:
    """Packed spans by trace, never more than `spans_max` of them."""

    def __init__(self, *, spans_max: int = SPANS_MAX) -> None:
        self._spans_max = spans_max
        self._buckets = [bytearray() for _ in range(BUCKETS)]
        self._live = BUCKETS
        self._senders: dict[int, int] = {}
        self.resources: list[Resource] = []
        self.operations = _Names()
        self.peers = _Names()
        self.counting: set[tuple[int, int]] = set()
        self.spans = 0
        self._beyond = 0

    @property
    def sampled_share(self) -> float:
        """The share of all traces that was kept: 1 unless there were too many."""
        return self._live / BUCKETS

    def add(self, span: Span) -> None:
        """Keep one span, unless its trace is not in the sample."""
        trace = span.trace % _MERSENNE  # two of a million random ids meet once in 4 million runs
        bucket = ((trace * _GOLDEN & _64) >> 54) % BUCKETS
        if bucket >= self._live:
            return
        if self._live == 1 and self.spans >= self._spans_max:
            self._beyond += 1
            return
        resource = self._resource(span.resource)
        peer = self.peers.index(span.peer)
        if span.resend > 0:
            self.counting.add((resource, peer))
        self._buckets[bucket] += _RECORD.pack(
            trace,
            span.id,
            span.parent,
            span.start,
            span.duration,
            resource,
            self.operations.index(span.name),
            peer,
            zlib.crc32(span.target.encode("utf-8", "replace")) if span.target else 0,
            span.kind,
            span.ending,
            span.resend,
        )
        self.spans += 1
        while self.spans > self._spans_max and self._live > 1:
            self._give_up()

    def traces(self, oddities: Oddities) -> Iterator[list[Packed]]:
        """The spans of each trace; every bucket is let go once it has been read."""
        if self.operations.full or self.peers.full:
            oddities[f"distinct names beyond the first {_NAMES_MAX:,}, taken as one"] += 1
        if self._beyond:
            oddities[_TOO_LONG] += self._beyond
        for index in range(self._live):
            bucket, self._buckets[index] = self._buckets[index], bytearray()
            traces: dict[int, list[Packed]] = {}
            for fields in _RECORD.iter_unpack(bucket):
                trace = traces.setdefault(fields[0], [])
                if len(trace) < TRACE_MAX:
                    trace.append(Packed._make(fields))
                else:
                    oddities[_TOO_LONG] += 1
            yield from traces.values()

    def _resource(self, resource: Resource) -> int:
        found = self._senders.get(id(resource))
        if found is None:
            found = self._senders[id(resource)] = len(self.resources)
            self.resources.append(resource)  # kept, so that its id() stays its own
        return found

    def _give_up(self) -> None:
        self._live -= 1
        self.spans -= len(self._buckets[self._live]) // _RECORD.size
        self._buckets[self._live] = bytearray()
