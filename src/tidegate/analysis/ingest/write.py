"""How are spans written for others to read?

A simulated system can then be looked at in any trace viewer, and its own traces fed back to
`check`. Written as OpenTelemetry's conventions have it; `read_spans` gives the same spans again.
"""

from collections.abc import Iterable
from typing import Any, Final

from tidegate.analysis.ingest.span import Ending, Kind, Resource, Span
from tidegate.units import MICROSECOND

__all__ = ["spans_to_jaeger", "spans_to_otlp"]

_CALLING: Final = (Kind.CLIENT, Kind.PRODUCER)
_TAGS: Final[dict[Ending, dict[str, str | int]]] = {
    Ending.OK: {},
    Ending.FAILED: {"http.response.status_code": 500},
    Ending.BROKEN: {"error.type": "_OTHER"},  # the convention's word for an error without a class
    Ending.TIMEOUT: {"error.type": "timeout"},
    Ending.OVERLOADED: {"http.response.status_code": 503},
    Ending.CANCELLED: {"error.type": "cancelled"},
}


def spans_to_otlp(spans: Iterable[Span]) -> dict[str, Any]:
    """An OTLP/JSON document: `json.dumps` of it is a trace file."""
    senders: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for span in spans:
        sender = span.resource.service, span.resource.instance
        senders.setdefault(sender, []).append(_otlp(span))
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _attributes(_sender(Resource(*sender)))},
                "scopeSpans": [{"scope": {"name": "tidegate"}, "spans": found}],
            }
            for sender, found in senders.items()
        ]
    }


def spans_to_jaeger(spans: Iterable[Span]) -> dict[str, Any]:
    """A document as Jaeger's query API gives it; times are cut to microseconds."""
    traces: dict[int, list[Span]] = {}
    for span in spans:
        traces.setdefault(span.trace, []).append(span)
    return {"data": [_jaeger_trace(trace, found) for trace, found in traces.items()]}


def _otlp(span: Span) -> dict[str, Any]:
    written: dict[str, Any] = {
        "traceId": f"{span.trace:032x}",
        "spanId": f"{span.id:016x}",
        "name": span.name,
        "kind": int(span.kind),
        "startTimeUnixNano": str(span.start),
        "endTimeUnixNano": str(span.start + span.duration),
        "attributes": _attributes(_tags(span)),
        "status": {} if span.ending is Ending.OK else {"code": 2},
    }
    return written | ({"parentSpanId": f"{span.parent:016x}"} if span.parent else {})


def _attributes(tags: dict[str, str | int]) -> list[dict[str, Any]]:
    return [
        {
            "key": key,
            "value": {"stringValue": value} if isinstance(value, str) else {"intValue": value},
        }
        for key, value in tags.items()
    ]


def _sender(resource: Resource) -> dict[str, str | int]:
    tags: dict[str, str | int] = {"service.name": resource.service}
    return tags | ({"service.instance.id": resource.instance} if resource.instance else {})


def _tags(span: Span) -> dict[str, str | int]:
    tags = dict(_TAGS[span.ending])
    if span.kind in _CALLING:
        if span.peer:
            tags["peer.service"] = span.peer
        if span.target:
            tags["url.full"] = span.target
        if span.resend >= 0:
            tags["http.request.resend_count"] = span.resend
    return tags


def _jaeger_trace(trace: int, spans: list[Span]) -> dict[str, Any]:
    processes: dict[tuple[str, str], str] = {}
    for span in spans:
        sender = span.resource.service, span.resource.instance
        processes.setdefault(sender, f"p{len(processes) + 1}")
    return {
        "traceID": f"{trace:032x}",
        "spans": [
            _jaeger(span, processes[span.resource.service, span.resource.instance])
            for span in spans
        ],
        "processes": {
            name: {
                "serviceName": service,
                "tags": _jaeger_tags({"service.instance.id": instance} if instance else {}),
            }
            for (service, instance), name in processes.items()
        },
    }


def _jaeger(span: Span, process: str) -> dict[str, Any]:
    tags = _tags(span)
    if span.kind is not Kind.UNKNOWN:
        tags["span.kind"] = span.kind.name.lower()
    if span.ending is not Ending.OK:
        tags["otel.status_code"] = "ERROR"
    parent = {
        "refType": "CHILD_OF",
        "traceID": f"{span.trace:032x}",
        "spanID": f"{span.parent:016x}",
    }
    return {
        "traceID": f"{span.trace:032x}",
        "spanID": f"{span.id:016x}",
        "operationName": span.name,
        "references": [parent] if span.parent else [],
        "startTime": span.start // MICROSECOND,
        "duration": span.duration // MICROSECOND,
        "tags": _jaeger_tags(tags),
        "processID": process,
    }


def _jaeger_tags(tags: dict[str, str | int]) -> list[dict[str, Any]]:
    return [
        {"key": key, "type": "string" if isinstance(value, str) else "int64", "value": value}
        for key, value in tags.items()
    ]
