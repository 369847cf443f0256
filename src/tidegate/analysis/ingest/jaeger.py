"""How do Jaeger's spans come in as JSON?

As its query API and the download button of its pages write them: `data` holds traces, each with
`spans` and the `processes` that sent them, which come after. Times are microseconds.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from tidegate.analysis.ingest.conventions import WANTED, instance_of
from tidegate.analysis.ingest.fields import read_integer
from tidegate.analysis.ingest.sink import Sink
from tidegate.analysis.ingest.span import Resource
from tidegate.analysis.ingest.stream import WHOLE, Cursor
from tidegate.units import MICROSECOND

__all__ = ["TRACE_KEYS", "read_trace"]

TRACE_KEYS: Final = ("traceID", "spans", "processes", "warnings")
_Tags = dict[str, str | int | float | bool]


class _Tag(msgspec.Struct, gc=False):
    key: str = ""
    value: Any = None  # anything may be here; only scalars are looked at


class _Reference(msgspec.Struct, gc=False):
    refType: str | None = None  # noqa: N815 - the names of the wire
    traceID: str | None = None  # noqa: N815
    spanID: str | None = None  # noqa: N815


class _Process(msgspec.Struct):
    serviceName: str | None = None  # noqa: N815
    tags: list[_Tag] | None = None


class _Log(msgspec.Struct):
    fields: list[_Tag] | None = None


class _Span(msgspec.Struct):
    traceID: str | None = None  # noqa: N815
    spanID: str | None = None  # noqa: N815
    parentSpanID: str | None = None  # noqa: N815 - gone since 1.0, still in old files
    operationName: str | None = None  # noqa: N815
    references: list[_Reference] | None = None
    startTime: str | int | float | None = None  # noqa: N815
    duration: str | int | float | None = None
    tags: list[_Tag] | None = None
    logs: msgspec.Raw = msgspec.Raw(b"null")  # looked into only when the span failed
    processID: str | None = None  # noqa: N815
    process: _Process | None = None


class _Trace(msgspec.Struct):
    spans: list[_Span] | None = None
    processes: dict[str, _Process] | None = None


_trace: Final = msgspec.json.Decoder(_Trace)
_span: Final = msgspec.json.Decoder(_Span)
_processes: Final = msgspec.json.Decoder(dict[str, _Process] | None)
_logs: Final = msgspec.json.Decoder(list[_Log] | None)


def read_trace(cursor: Cursor, sink: Sink) -> None:
    """One trace, whole if it is small, else span by span with its senders named at its end."""
    trace = cursor.decoded(_trace, limit=WHOLE)
    if trace is None:
        _walk_trace(cursor, sink)
        return
    known = {key: _named(process, sink) for key, process in (trace.processes or {}).items()}
    for span in trace.spans or ():
        _take(span, known.get, sink)


def _walk_trace(cursor: Cursor, sink: Sink) -> None:
    senders: dict[str, Resource] = {}
    for key in cursor.members():
        if key == "spans":
            for _ in cursor.elements():
                span = cursor.decoded(_span)
                assert span is not None
                _take(span, lambda key: senders.setdefault(key, Resource()), sink)
        elif key == "processes":
            for name, process in (cursor.decoded(_processes) or {}).items():
                sender = senders.setdefault(name, Resource())
                sender.service = process.serviceName or ""
                sender.instance = instance_of(_tags(process.tags))
        else:
            cursor.skip()


def _named(process: _Process, sink: Sink) -> Resource:
    return sink.resource(process.serviceName or "", instance_of(_tags(process.tags)))


def _take(span: _Span, sender: Callable[[str], Resource | None], sink: Sink) -> None:
    tags = _tags(span.tags)
    failed = (
        str(tags.get("error", "false")).lower() not in ("false", "0", "")
        or str(tags.get("otel.status_code", "")).upper() == "ERROR"
    )
    if failed:
        tags = _tags(_fields(span.logs)) | tags
    resource = _named(span.process, sink) if span.process else sender(span.processID or "")
    start = read_integer(span.startTime)
    duration = read_integer(span.duration)
    sink.take(
        trace=span.traceID,
        span=span.spanID,
        parent=_parent(span),
        resource=resource or sink.resource("", ""),
        name=span.operationName or "",
        kind=tags.get("span.kind"),
        start=start * MICROSECOND if start is not None else None,
        duration=duration * MICROSECOND if duration is not None else None,
        tags=tags,
        failed=failed,
    )


def _parent(span: _Span) -> str | None:
    """The span that this one is a child of; one that it only follows from is second best."""
    here = [r for r in span.references or () if r.traceID in (None, "", span.traceID)]
    for reference in here:
        if reference.refType == "CHILD_OF":
            return reference.spanID
    return here[0].spanID if here else span.parentSpanID


def _tags(tags: Iterable[_Tag] | None) -> _Tags:
    return {
        tag.key: tag.value
        for tag in tags or ()
        if tag.key in WANTED and isinstance(tag.value, str | int | float | bool)
    }


def _fields(logs: msgspec.Raw) -> Iterable[_Tag]:
    """The fields of all log lines: where an exception's type is told."""
    try:
        found = _logs.decode(logs)
    except msgspec.MsgspecError:  # lines of another shape say nothing, and cost nothing
        return ()
    return [tag for log in found or () for tag in log.fields or ()]
