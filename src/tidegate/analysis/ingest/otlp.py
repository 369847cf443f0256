"""How do OpenTelemetry's spans come in as JSON?

As the collector's file exporter and OTLP/HTTP write them: `resourceSpans`, each with its
resource, its `scopeSpans` and their `spans` (Tempo writes `batches` for the first). Fields may come
in any order and an element may be larger than memory, so the resource of a span may be named
after it.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from tidegate.analysis.ingest.conventions import WANTED, instance_of
from tidegate.analysis.ingest.fields import read_integer
from tidegate.analysis.ingest.sink import Sink
from tidegate.analysis.ingest.span import Resource
from tidegate.analysis.ingest.stream import WHOLE, Cursor

__all__ = ["BATCHES", "read_batch"]

BATCHES: Final = ("resourceSpans", "batches")
_SCOPES: Final = ("scopeSpans", "instrumentationLibrarySpans")  # the second until OTLP 0.15

_Number = str | int | float | None
_ERROR: Final = (2, "2", "STATUS_CODE_ERROR", "ERROR")


class _Value(msgspec.Struct, gc=False):
    stringValue: str | None = None  # noqa: N815 - the names of the wire
    intValue: _Number = None  # noqa: N815
    boolValue: bool | None = None  # noqa: N815
    doubleValue: _Number = None  # noqa: N815


class _Attribute(msgspec.Struct, gc=False):
    key: str = ""
    value: _Value | None = None


class _Resource(msgspec.Struct):
    attributes: list[_Attribute] | None = None


class _Status(msgspec.Struct, gc=False):
    code: _Number = None
    message: str | None = None


class _Event(msgspec.Struct):
    attributes: list[_Attribute] | None = None


class _Span(msgspec.Struct):
    traceId: str | None = None  # noqa: N815
    spanId: str | None = None  # noqa: N815
    parentSpanId: str | None = None  # noqa: N815
    traceState: str | None = None  # noqa: N815
    name: str | None = None
    kind: _Number = None
    startTimeUnixNano: _Number = None  # noqa: N815
    endTimeUnixNano: _Number = None  # noqa: N815
    attributes: list[_Attribute] | None = None
    status: _Status | None = None
    events: msgspec.Raw = msgspec.Raw(b"null")  # looked into only when the span failed


class _Scope(msgspec.Struct):
    spans: list[_Span] | None = None


class _Batch(msgspec.Struct):
    resource: _Resource | None = None
    scopeSpans: list[_Scope] | None = None  # noqa: N815
    instrumentationLibrarySpans: list[_Scope] | None = None  # noqa: N815


_batch: Final = msgspec.json.Decoder(_Batch)
_scope: Final = msgspec.json.Decoder(_Scope)
_span: Final = msgspec.json.Decoder(_Span)
_resource: Final = msgspec.json.Decoder(_Resource | None)
_events: Final = msgspec.json.Decoder(list[_Event] | None)


def read_batch(cursor: Cursor, sink: Sink) -> None:
    """One element of `resourceSpans`, whole if it is small, else piece by piece."""
    batch = cursor.decoded(_batch, limit=WHOLE)
    if batch is None:
        _walk_batch(cursor, sink)
        return
    tags = _tags(batch.resource.attributes if batch.resource else None)
    resource = sink.resource(str(tags.get("service.name", "")), instance_of(tags))
    for scopes in (batch.scopeSpans, batch.instrumentationLibrarySpans):
        for scope in scopes or ():
            for span in scope.spans or ():
                _take(span, resource, sink)


def _walk_batch(cursor: Cursor, sink: Sink) -> None:
    resource = Resource()
    for key in cursor.members():
        if key == "resource":
            found = cursor.decoded(_resource)
            tags = _tags(found.attributes if found else None)
            resource.service = str(tags.get("service.name", ""))
            resource.instance = instance_of(tags)
        elif key in _SCOPES:
            for _ in cursor.elements():
                _read_scope(cursor, resource, sink)
        else:
            cursor.skip()


def _read_scope(cursor: Cursor, resource: Resource, sink: Sink) -> None:
    scope = cursor.decoded(_scope, limit=WHOLE)
    if scope is not None:
        for span in scope.spans or ():
            _take(span, resource, sink)
        return
    for key in cursor.members():
        if key != "spans":
            cursor.skip()
            continue
        for _ in cursor.elements():
            one = cursor.decoded(_span)
            assert one is not None
            _take(one, resource, sink)


def _take(span: _Span, resource: Resource, sink: Sink) -> None:
    tags = _tags(span.attributes)
    status = span.status
    failed = status is not None and status.code in _ERROR
    says = ""
    if failed:
        says = (status.message if status else None) or ""
        tags = _tags(_exceptions(span.events)) | tags
    start = read_integer(span.startTimeUnixNano)
    end = read_integer(span.endTimeUnixNano)
    sink.take(
        trace=span.traceId,
        span=span.spanId,
        parent=span.parentSpanId,
        resource=resource,
        name=span.name or "",
        kind=span.kind,
        start=start,
        duration=end - start if start and end else None,
        tags=tags,
        failed=failed,
        says=says,
        trace_state=span.traceState or "",
    )


def _tags(attributes: Iterable[_Attribute] | None) -> dict[str, str | int | float | bool]:
    """The attributes that anybody looks at; lists and maps among them say nothing to us."""
    tags: dict[str, str | int | float | bool] = {}
    for attribute in attributes or ():
        value = attribute.value
        if attribute.key not in WANTED or value is None:
            continue
        for found in (value.stringValue, value.intValue, value.boolValue, value.doubleValue):
            if found is not None:
                tags[attribute.key] = found
                break
    return tags


def _exceptions(events: msgspec.Raw) -> Iterable[_Attribute]:
    """The attributes of all events: where an exception's type is told."""
    try:
        found = _events.decode(events)
    except msgspec.MsgspecError:  # events of another shape say nothing, and cost nothing
        return ()
    return [a for event in found or () for a in event.attributes or ()]
