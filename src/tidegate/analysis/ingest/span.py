"""What do we keep of a span, whichever format it came in?

A span says who did what, from when to when, on whose behalf, and how it ended. Everything that the
inference does not use is left behind at the reader.
"""

from collections import Counter
from enum import IntEnum
from typing import Final

import msgspec

from tidegate.units import Duration, Instant

__all__ = ["NO_RESEND", "Ending", "Kind", "Oddities", "Resource", "Span"]


class Kind(IntEnum):
    """The span's side of a call; the numbers are OpenTelemetry's `SpanKind`."""

    UNKNOWN = 0
    INTERNAL = 1
    SERVER = 2
    CLIENT = 3
    PRODUCER = 4
    CONSUMER = 5


class Ending(IntEnum):
    """How a span ended.

    An answer that says the request was wrong (4xx but 408, 429) is OK: the far side did its work.
    """

    OK = 0
    FAILED = 1  # an answer that is an error
    BROKEN = 2  # an error and no answer that we know of: perhaps a timeout, durations will tell
    TIMEOUT = 3  # said to be one: deadline exceeded, 408, 504, an error named so
    OVERLOADED = 4  # 429, 503, RESOURCE_EXHAUSTED, UNAVAILABLE
    CANCELLED = 5  # the caller left: says nothing about the far side


class Resource:
    """Who sent spans: a service and, where known, the instance of it.

    A reader may meet spans before the name of their sender, so the name can be put in later.
    """

    __slots__ = ("instance", "service")

    def __init__(self, service: str = "", instance: str = "") -> None:
        self.service = service
        self.instance = instance

    def __repr__(self) -> str:
        return f"Resource({self.service!r}, {self.instance!r})"


NO_RESEND: Final = -1


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of work. Ids are plain integers; `parent` 0 means that it has none.

    `start` is nanoseconds of the sender's wall clock, `peer` whom it called as the caller names
    it, `target` the exact thing asked for (a URL, a statement), `resend` the attempt's ordinal
    where the client counts (`http.request.resend_count`), else `NO_RESEND`.
    """

    trace: int
    id: int
    parent: int = 0
    resource: Resource
    name: str
    kind: Kind = Kind.UNKNOWN
    start: Instant
    duration: Duration
    ending: Ending = Ending.OK
    peer: str = ""
    target: str = ""
    resend: int = NO_RESEND


Oddities = Counter[str]
"""What was odd but could be read, counted by kind; a kind is a phrase that a report can print."""
