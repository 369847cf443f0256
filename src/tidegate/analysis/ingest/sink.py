"""Which spans are taken in, and what was odd about the rest?

Both formats end here: raw fields go in, a `Span` comes out, or a count of why there is none.
Whatever can be told from an odd span is kept; only one that cannot be placed in time or in a trace
is left out.
"""

from collections import Counter
from collections.abc import Callable
from typing import Final

from tidegate.analysis.ingest.conventions import (
    Tags,
    ending_of,
    kind_of,
    name_of,
    peer_of,
    resend_of,
    sampled_share,
    target_of,
)
from tidegate.analysis.ingest.fields import ID_MAX, read_id
from tidegate.analysis.ingest.span import Kind, Oddities, Resource, Span
from tidegate.units import DAY

__all__ = ["Sink"]

_CALLING: Final = (Kind.CLIENT, Kind.PRODUCER)

_LATEST: Final = 2**62  # February 2116; a day more still fits 64 bits

# More names of senders than any fleet has: past it, a bug puts a fresh name on every span.
_RESOURCES_MAX: Final = 50_000
_SHARES_MAX: Final = 1_000  # distinct sampling shares remembered


class Sink:
    """Takes raw spans of any format, and hands on what can be used."""

    def __init__(self, add: Callable[[Span], None]) -> None:
        self._add = add
        self._resources: dict[tuple[str, str], Resource] = {}
        self.oddities: Oddities = Counter()
        self.shares: Counter[float] = Counter()
        self.seen = 0

    def resource(self, service: str, instance: str) -> Resource:
        """The one resource of that name."""
        if not service:
            self.oddities["sender without a service name"] += 1
        found = self._resources.get((service, instance))
        if found is None:
            if len(self._resources) >= _RESOURCES_MAX:
                self.oddities[f"sender beyond the first {_RESOURCES_MAX:,}"] += 1
                return self._resources.setdefault(("(other)", ""), Resource("(other)"))
            found = self._resources[service, instance] = Resource(service, instance)
        return found

    def take(
        self,
        *,
        trace: object,
        span: object,
        parent: object,
        resource: Resource,
        name: str,
        kind: object,
        start: int | None,
        duration: int | None,
        tags: Tags,
        failed: bool,
        says: str = "",
        trace_state: str = "",
    ) -> None:
        """One span as its format has it; times are nanoseconds, None where they say nothing."""
        self.seen += 1
        identity = read_id(span), read_id(trace)
        if not all(identity):
            self.oddities["span without an id or a trace id, left out"] += 1
            return
        if start is None or not 0 < start < _LATEST or duration is None:
            self.oddities["span without a possible start or end, left out"] += 1
            return
        side = kind_of(kind)
        calling = side in _CALLING
        self._share(tags, trace_state)
        self._add(
            Span(
                trace=identity[1],
                id=identity[0] & ID_MAX,
                parent=read_id(parent) & ID_MAX,
                resource=resource,
                name=name_of(name, tags),
                kind=side,
                start=start,
                duration=self._length(duration),
                ending=ending_of(side, tags, failed=failed, says=says),
                peer=peer_of(tags) if calling else "",
                target=target_of(tags) if calling else "",
                resend=resend_of(tags) if calling else -1,
            )
        )

    def _length(self, duration: int) -> int:
        if duration < 0:
            self.oddities["span that ends before it starts, taken as instant"] += 1
            return 0
        if duration > DAY:
            self.oddities["span longer than a day, taken as a day"] += 1
            return DAY
        if duration == 0:
            self.oddities["span of no length"] += 1
        return duration

    def _share(self, tags: Tags, trace_state: str) -> None:
        if trace_state or "sampler.type" in tags:
            share = sampled_share(tags, trace_state)
            if share is not None and (share in self.shares or len(self.shares) < _SHARES_MAX):
                self.shares[share] += 1
