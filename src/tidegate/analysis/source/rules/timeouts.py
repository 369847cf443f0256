"""Which calls wait for ever, and which timeouts do more harm than the waiting?"""

import ast
from collections.abc import Iterator
from typing import Final, NamedTuple

from tidegate.analysis.source.clients import SDKS, owner, remote
from tidegate.analysis.source.literals import argument, is_none, opaque, value
from tidegate.analysis.source.names import dotted, follow
from tidegate.analysis.source.rules.rule import Hit, Rule
from tidegate.analysis.source.seen import Call, Source
from tidegate.findings import Severity

__all__ = ["RULES", "find"]

NO_TIMEOUT: Final = Rule(
    "no-timeout",
    "warning",
    "A call to a far side that waits for ever.",
    "One stalled far side takes every thread that calls it, one by one, and gives none back.",
    "Give it a timeout, somewhat above the 99th percentile of the answers that you see.",
)
HTTPX_CANCELLED: Final = Rule(
    "httpx-cancelled",
    "warning",
    "A timeout that cancels a request of a shared httpx client.",
    "httpx 0.28 loses a connection slot when a request is cancelled while it waits for the pool:"
    " with 20 workers on 10 connections and deadlines of 10 to 100 ms, every later call failed,"
    " also when the load had gone.",
    "Give the request a `timeout=` of its own, or move to httpx2, which gives the slot back.",
)
SDK_DEFAULTS: Final = Rule(
    "sdk-defaults",
    "note",
    "A client of an SDK that keeps its default patience.",
    "The defaults of openai and anthropic are 600 s for an attempt and two more attempts: one call"
    " can hold its caller for half an hour.",
    "Set `timeout=` and `max_retries=` to what a caller of yours waits for.",
)

RULES: Final = (NO_TIMEOUT, HTTPX_CANCELLED, SDK_DEFAULTS)


class _Waits(NamedTuple):
    """A callable that waits for ever unless told not to, and where its timeout may stand."""

    at: int | None = None
    socket: bool = True  # governed by socket.setdefaulttimeout too
    severity: Severity | None = None


_VERBS: Final = ("get", "post", "put", "patch", "delete", "head", "options", "request")
_WAITING: Final[dict[str, _Waits]] = {
    **{f"requests.{verb}": _Waits(socket=False) for verb in _VERBS},
    **{f"requests.Session().{verb}": _Waits(socket=False) for verb in _VERBS},
    "urllib3.request": _Waits(),
    "urllib3.PoolManager().request": _Waits(),
    "urllib.request.urlopen": _Waits(2),
    "http.client.HTTPConnection": _Waits(2),
    "http.client.HTTPSConnection": _Waits(2),
    "socket.create_connection": _Waits(1),
    "smtplib.SMTP": _Waits(3),
    "smtplib.SMTP_SSL": _Waits(3),
    "ftplib.FTP": _Waits(4),
    "imaplib.IMAP4": _Waits(2),
    "imaplib.IMAP4_SSL": _Waits(),
    "poplib.POP3": _Waits(2),
    "telnetlib.Telnet": _Waits(2),
}
_HTTPX: Final = ("httpx.Client", "httpx.AsyncClient", "httpx2.Client", "httpx2.AsyncClient")
# Where a None stands for no limit, though the default is one.
_NONE_MEANS_EVER: Final = {
    **dict.fromkeys(_HTTPX, ("timeout",)),
    **{f"{name}().{verb}": ("timeout",) for name in _HTTPX for verb in (*_VERBS, "stream")},
    **{f"httpx.{verb}": ("timeout",) for verb in (*_VERBS, "stream")},
    **{f"httpx2.{verb}": ("timeout",) for verb in (*_VERBS, "stream")},
    "redis.Redis": ("socket_timeout",),
    "redis.StrictRedis": ("socket_timeout",),
    "redis.asyncio.Redis": ("socket_timeout",),
    "sqlalchemy.create_engine": ("pool_timeout",),
    "sqlalchemy.ext.asyncio.create_async_engine": ("pool_timeout",),
}
_DATABASES: Final = ("psycopg.connect", "psycopg2.connect", "psycopg.AsyncConnection.connect")


def find(source: Source) -> Iterator[Hit]:
    """Every breach in one module."""
    strange = _strange_sessions(source.calls)
    for call in source.calls:
        if call.target is None or isinstance(follow(call.node.func, call.scope)[0], ast.Call):
            continue  # of a `partial` the other arguments stand elsewhere
        if not (source.patched and call.target.startswith("requests.Session()")):
            yield from _waiting(call, strange)
        yield from _unlimited(call)
        yield from _stub(call)
        yield from _cancelled(call)
        yield from _defaults(call)


def _hit(rule: Rule, call: Call, says: str, severity: Severity | None = None) -> Hit:
    node = call.node
    return Hit(
        rule, node.lineno, node.col_offset, node.end_lineno or node.lineno, says, "", severity
    )


def _strange_sessions(calls: list[Call]) -> set[ast.Call]:
    """Sessions with an adapter that is not requests' own: it may bring a timeout along."""
    found: set[ast.Call] = set()
    for call in calls:
        if isinstance(call.node.func, ast.Attribute) and call.node.func.attr == "mount":
            session = owner(call.node.func, call.scope)
            if session is not None and len(call.node.args) == 2:
                adapter, where = follow(call.node.args[1], call.scope)
                if dotted(adapter, where) != "requests.HTTPAdapter()":
                    found.add(session[0])
    return found


def _waiting(call: Call, strange: set[ast.Call]) -> Iterator[Hit]:
    target = call.target or ""
    waits = _WAITING.get(target)
    if waits is None:
        return
    if target.startswith("requests.Session()"):
        session = owner(call.node.func, call.scope)
        if session is None or session[0] in strange:
            return
    if target.startswith("urllib3.PoolManager()"):
        pool = owner(call.node.func, call.scope)
        if pool is None or opaque(pool[0]) or argument(pool[0], "timeout") is not None:
            return
    given = argument(call.node, "timeout", at=waits.at)
    if not is_none(given) and (given is not None or opaque(call.node)):
        return
    if target == "urllib.request.urlopen" and _is_local(call):
        return
    name = target.replace("().", ".")
    how = "no timeout" if given is None else "timeout=None"
    hit = _hit(NO_TIMEOUT, call, f"{name}() has {how}: it waits for ever, and so does its caller")
    yield hit._replace(unless="socket.setdefaulttimeout") if waits.socket else hit


def _is_local(call: Call) -> bool:
    """A file or inline data, which nobody waits for."""
    first = argument(call.node, "url", at=0)
    text = value(first, call.scope) if first is not None else None
    return isinstance(text, str) and text.startswith(("file:", "data:"))


def _unlimited(call: Call) -> Iterator[Hit]:
    """A limit that was there and is switched off by name."""
    target = call.target or ""
    for name in _NONE_MEANS_EVER.get(target, ()):
        given = argument(call.node, name)
        if given is None:
            continue
        node, where = follow(given, call.scope)
        if is_none(given) or _is_no_timeout(node, dotted(node, where)):
            said = target.replace("().", ".")
            yield _hit(
                NO_TIMEOUT, call, f"{said}() is told {name}=None: it waits for ever for an answer"
            )
    if target == "aiohttp.ClientTimeout" and not opaque(call.node):
        total = argument(call.node, "total", at=0)
        reads = argument(call.node, "sock_read", at=2)
        if is_none(total) and (reads is None or is_none(reads)):
            yield _hit(
                NO_TIMEOUT,
                call,
                "aiohttp.ClientTimeout() has no total and no sock_read: an answer that never comes"
                " is waited for for ever",
            )
    if target in _DATABASES and not opaque(call.node):
        dsn = argument(call.node, "conninfo", "dsn", at=0)
        text = value(dsn, call.scope) if dsn is not None else ""
        shown = isinstance(text, str) and "connect_timeout" not in text and "service" not in text
        if shown and argument(call.node, "connect_timeout", "service") is None:
            yield _hit(
                NO_TIMEOUT,
                call,
                f"{target}() has no connect_timeout: a host that does not answer holds the caller"
                " until the kernel gives up",
                "note",
            )


def _is_no_timeout(node: ast.expr, name: str | None) -> bool:
    """`httpx.Timeout(None)`."""
    return (
        isinstance(node, ast.Call)
        and name in ("httpx.Timeout()", "httpx2.Timeout()")
        and not node.keywords
        and len(node.args) == 1
        and is_none(node.args[0])
    )


def _stub(call: Call) -> Iterator[Hit]:
    """A call through a gRPC stub: `payments_pb2_grpc.PaymentsStub(channel).Charge(request)`."""
    made, mark, method = (call.target or "").rpartition("().")
    if not mark or "." in method or not made.endswith("Stub") or "_pb2_grpc" not in made:
        return
    if not method[:1].isupper() or opaque(call.node):
        return
    given = argument(call.node, "timeout", at=1)
    if given is None or is_none(given):
        stub = made.rpartition(".")[2]
        yield _hit(NO_TIMEOUT, call, f"{stub}.{method}() has no timeout: it waits for ever")


def _cancelled(call: Call) -> Iterator[Hit]:
    """Only a client that outlives the call can be harmed: one that is kept or was handed in."""
    target = call.target or ""
    if call.cancelled is None or not target.startswith("httpx.AsyncClient()."):
        return
    far = remote(target)
    if far is None or far.verb == "STREAM":
        return
    base = call.node.func
    while isinstance(base, ast.Attribute):
        base = base.value
    if isinstance(base, ast.Name) and call.scope.here(base.id):
        meaning = call.scope.names[base.id]
        if meaning is None or not getattr(meaning, "made", True):
            return  # made in this very function, and gone with it
    yield _hit(
        HTTPX_CANCELLED,
        call,
        f"{call.function.label} cancels a {far.verb} of a shared httpx.AsyncClient when its time is"
        f" up (line {call.cancelled.lineno})",  # type: ignore[attr-defined]
    )


def _defaults(call: Call) -> Iterator[Hit]:
    target = call.target or ""
    if target not in SDKS or opaque(call.node):
        return
    if any(argument(call.node, name) for name in ("timeout", "max_retries", "http_client")):
        return
    yield _hit(
        SDK_DEFAULTS, call, f"{target}() waits up to 600 s for an attempt and makes three of them"
    )
