"""What do a span's attributes say about its call: whom, what, and how did it end?

The names are OpenTelemetry's semantic conventions, stable and former, and those that Jaeger and
OpenTracing clients write. Where several say the same, the newest wins.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from ipaddress import ip_address
from typing import Final

from tidegate.analysis.ingest.span import NO_RESEND, Ending, Kind

__all__ = [
    "WANTED",
    "Tags",
    "ending_of",
    "host_name",
    "instance_of",
    "kind_of",
    "name_of",
    "peer_of",
    "resend_of",
    "sampled_share",
    "target_of",
]

Tags = Mapping[str, str | int | float | bool]

_RESEND: Final = ("http.request.resend_count", "http.resend_count", "http.retry_count")
_HTTP: Final = ("http.response.status_code", "http.status_code")
_GRPC: Final = ("rpc.grpc.status_code", "rpc.response.status_code", "grpc.status_code")
_METHOD: Final = ("http.request.method", "http.method")
_ROUTE: Final = ("http.route", "url.template")
_RPC: Final = ("rpc.service", "rpc.method")
_URL: Final = ("url.full", "http.url", "url.path", "http.target")
_TARGET: Final = (*_URL, "db.query.text", "db.statement")
_SERVICE: Final = ("service.peer.name", "peer.service", "faas.invoked_name")
_HOST: Final = ("server.address", "net.peer.name", "peer.hostname", "http.host", "peer.address")
_DATABASE: Final = ("db.system.name", "db.system", "db.type")
_SPACE: Final = ("db.namespace", "db.name", "db.instance")
_QUEUE: Final = ("messaging.destination.name", "messaging.destination", "messaging.system")
_ERROR: Final = ("error.type", "error", "otel.status_code", "exception.type")
_SAMPLER: Final = ("sampler.type", "sampler.param")
_INSTANCE: Final = ("service.instance.id", "k8s.pod.name", "host.name", "hostname", "ip")

WANTED: Final = frozenset(
    (
        *(*_RESEND, *_HTTP, *_GRPC, *_METHOD, *_ROUTE, *_RPC, *_TARGET, *_SERVICE, *_HOST),
        *(*_DATABASE, *_SPACE, *_QUEUE, *_ERROR, *_SAMPLER, *_INSTANCE),
        *("span.kind", "service.name"),
    )
)
"""The attributes that are looked at; a reader drops all others at once."""

_GRPC_CODES: Final = {
    name: code
    for code, name in enumerate(
        (
            *("OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND"),
            *("ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION"),
            *("ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"),
            "UNAUTHENTICATED",
        )
    )
}
_GRPC_ENDINGS: Final = {
    1: Ending.CANCELLED,
    2: Ending.FAILED,
    4: Ending.TIMEOUT,
    8: Ending.OVERLOADED,
    10: Ending.FAILED,
    13: Ending.FAILED,
    14: Ending.OVERLOADED,
    15: Ending.FAILED,
}
_HTTP_ENDINGS: Final = {
    408: Ending.TIMEOUT,
    429: Ending.OVERLOADED,
    499: Ending.CANCELLED,
    503: Ending.OVERLOADED,
    504: Ending.TIMEOUT,
}
_TIMEOUT_WORDS: Final = re.compile(r"time.?out|timed.?out|deadline", re.IGNORECASE)
_CANCEL_WORDS: Final = re.compile(r"cancel", re.IGNORECASE)

_KINDS: Final = {kind.name: kind for kind in Kind} | {"UNSPECIFIED": Kind.UNKNOWN}


def _first(tags: Tags, names: tuple[str, ...]) -> str | int | float | bool | None:
    for name in names:
        value = tags.get(name)
        if value is not None and value != "":
            return value
    return None


def _word(tags: Tags, names: tuple[str, ...]) -> str:
    found = _first(tags, names)
    return "" if found is None or isinstance(found, bool) else str(found)


def _number(value: object) -> int | None:
    """A whole number that may have come as text; anything else is none."""
    if value is None or isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    try:
        return int(value)
    except (ValueError, OverflowError):
        return None


def kind_of(value: object) -> Kind:
    """The kind from `SPAN_KIND_CLIENT`, `client`, 3 or "3"; unknown when it is none of these."""
    if value is None:
        return Kind.UNKNOWN
    if isinstance(value, str) and not value.isdigit():
        return _KINDS.get(value.upper().removeprefix("SPAN_KIND_"), Kind.UNKNOWN)
    number = _number(value)
    return Kind(number) if number is not None and 0 <= number <= 5 else Kind.UNKNOWN


def name_of(name: str, tags: Tags) -> str:
    """What was asked for, with few distinct values: `GET /users/{id}`, else the span's own name."""
    route = _word(tags, _ROUTE)
    if route:
        return f"{_word(tags, _METHOD)} {route}".strip()
    return name or "/".join(str(tags[key]) for key in _RPC if key in tags)


def target_of(tags: Tags) -> str:
    """The exact thing asked for, which a retry asks for again and the next item of a loop not."""
    return _word(tags, _TARGET)


def instance_of(tags: Tags) -> str:
    """Which instance of its service sent this; empty when it does not say."""
    return _word(tags, _INSTANCE)


def resend_of(tags: Tags) -> int:
    """The ordinal of a resend where the client counts them, else `NO_RESEND`."""
    number = _number(_first(tags, _RESEND))
    return NO_RESEND if number is None or number < 0 else min(number, 30_000)


def peer_of(tags: Tags) -> str:
    """Whom a client calls, as it names it; empty when it does not say.

    A service's name, else a host's, else a database's or a queue's, else an address.
    """
    named = _word(tags, _SERVICE)
    if named:
        return named
    host = _word(tags, _HOST)
    name = host_name(host)
    if name:
        return name
    database = _word(tags, _DATABASE)
    if database:
        space = _word(tags, _SPACE)
        return f"{database}-{space}" if space else database
    return _word(tags, _QUEUE) or _word(tags, ("rpc.service",)) or host


@lru_cache(maxsize=4096)
def host_name(host: str) -> str:
    """A host's name without its port; empty for an address or this very machine."""
    name = host.strip().removeprefix("//").rsplit("@", 1)[-1]
    if name.count(":") == 1:
        name = name.split(":", 1)[0]
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return "" if name in ("localhost", "localhost.localdomain") else name.rstrip(".")
    return ""


def ending_of(kind: Kind, tags: Tags, *, failed: bool, says: str = "") -> Ending:
    """How a span ended, from its codes first, then from its status and the words of its error."""
    coded = _coded(tags)
    if coded is not None and (coded is not Ending.OK or not failed or _answered_wrong(tags)):
        return coded
    if not failed:
        return Ending.OK
    words = f"{says} {_word(tags, _ERROR)} {tags.get('exception.type', '')}"
    if _TIMEOUT_WORDS.search(words):
        return Ending.TIMEOUT
    if _CANCEL_WORDS.search(words):
        return Ending.CANCELLED
    answered = coded is not None or kind in (Kind.SERVER, Kind.CONSUMER)
    return Ending.FAILED if answered else Ending.BROKEN


def _coded(tags: Tags) -> Ending | None:
    if not tags:
        return None
    code = _number(_first(tags, _HTTP))
    if code is None:
        code = _number(tags.get("error.type"))  # the convention puts a status code there too
    if code is not None and 100 <= code <= 599:
        return _HTTP_ENDINGS.get(code, Ending.FAILED if code >= 500 else Ending.OK)
    grpc = _first(tags, _GRPC)
    code = _GRPC_CODES.get(grpc.upper()) if isinstance(grpc, str) else None
    if code is None:
        code = _number(grpc)
    return None if code is None else _GRPC_ENDINGS.get(code, Ending.OK)


def _answered_wrong(tags: Tags) -> bool:
    """Whether an OK of ours is marked an error only because the request was wrong (4xx, gRPC)."""
    code = _number(_first(tags, _HTTP))
    if code is not None:
        return 400 <= code < 500
    return _first(tags, _GRPC) not in (None, 0, "0", "OK")


def sampled_share(tags: Tags, trace_state: str = "") -> float | None:
    """The share of traces that the sender kept, where it says so.

    `sampler.type` and `sampler.param` of Jaeger clients; `ot=th:` of W3C trace state, the
    rejection threshold out of 2^56 (OpenTelemetry, "TraceState: Probability Sampling").
    """
    if tags.get("sampler.type") == "probabilistic":
        try:
            share = float(tags.get("sampler.param", 1))
        except ValueError:
            return None
        return share if 0 < share <= 1 else None
    found = re.search(r"(?:^|,)\s*ot=(?:[^,]*;)?th:([0-9a-f]{1,14})(?![0-9a-f])", trace_state)
    return 1 - int(found[1].ljust(14, "0"), 16) / 2**56 if found else None
