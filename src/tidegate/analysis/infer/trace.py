"""What happened in one trace: which service served which request, and whom did it call meanwhile?

A request begins where work enters a service: at a root, at a server span, or at any span of
another service than its parent's. Every client span below it, within the same service, is an
attempt; the server span under that says who was called. Clocks of different hosts are never
compared: an attempt is timed by its caller, a request by its server.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from tidegate.analysis.ingest.span import NO_RESEND, Ending, Kind, Oddities
from tidegate.analysis.ingest.store import Packed
from tidegate.units import MICROSECOND

__all__ = ["NOBODY", "ROUNDING", "Attempt", "Request", "requests_of"]

NOBODY: Final = -1
ROUNDING: Final = 2 * MICROSECOND  # Jaeger's start and duration are each cut to a microsecond
_ENDINGS: Final = tuple(Ending)  # by code; calling the enum would cost five times as much
_CALLING: Final = (Kind.CLIENT, Kind.PRODUCER)
_SERVING: Final = (Kind.SERVER, Kind.CONSUMER)
_SELF_STARTED: Final = (Kind.CLIENT, Kind.PRODUCER, Kind.INTERNAL)


class Attempt:
    """One try of a call, timed by its caller. `callee` is a service, or NOBODY if none answered."""

    __slots__ = (
        *("start", "end", "ending", "parent", "name", "peer", "target", "resend"),
        *("waits", "callee", "served"),
    )

    def __init__(self, span: Packed, *, waits: bool) -> None:
        self.start = span.start
        self.end = span.start + span.duration
        self.ending = _ENDINGS[span.ending]
        self.parent = span.parent
        self.name = span.name
        self.peer = span.peer
        self.target = span.target
        self.resend = span.resend
        self.waits = waits
        self.callee = NOBODY
        self.served: int | None = None  # how long the server says that it took


class Request:
    """One request in one service, with every attempt made for it.

    `root`: nobody in the trace sent it. `complete` is false when what sent it is missing from the
    trace. `own` is false for work that a service starts by itself: it only calls.
    """

    __slots__ = ("attempts", "complete", "end", "ending", "own", "root", "service", "start")

    def __init__(self, span: Packed, service: int, *, root: bool, complete: bool) -> None:
        self.service = service
        self.start = span.start
        self.end = span.start + span.duration
        kind = span.kind
        self.ending = _ENDINGS[span.ending]
        self.root = root
        self.complete = complete
        self.own = not root or kind not in _SELF_STARTED
        self.attempts: list[Attempt] = []


class _Node:
    __slots__ = ("attempt", "children", "request", "service", "span")

    def __init__(self, span: Packed, service: int) -> None:
        self.span = span
        self.service = service
        self.children: list[_Node] = []
        self.request: Request | None = None
        self.attempt: Attempt | None = None


def requests_of(
    spans: Iterable[Packed], service_of: Callable[[int], int], oddities: Oddities
) -> list[Request]:
    """All requests of one trace, callers before those they call. `service_of` maps resources."""
    nodes = _distinct(spans, service_of, oddities)
    roots = _link(nodes, oddities)
    found: list[Request] = []
    for parent, node in _downwards(roots):
        _enter(parent, node, found, oddities)
    reached = sum(1 for node in nodes if node.request is not None)
    if reached < len(nodes):
        oddities["span in a circle of parents, left out"] += len(nodes) - reached
    return found


def _distinct(
    spans: Iterable[Packed], service_of: Callable[[int], int], oddities: Oddities
) -> list[_Node]:
    """One node a span. A server span may share its client's id (Zipkin's way): both are kept."""
    nodes: dict[tuple[int, bool], _Node] = {}
    for span in spans:
        key = span.id, span.kind in _SERVING
        if key in nodes:
            oddities["span that came twice"] += 1
        else:
            nodes[key] = _Node(span, service_of(span.resource))
    return list(nodes.values())


def _link(nodes: Sequence[_Node], oddities: Oddities) -> list[_Node]:
    """Puts each node under its parent and gives those that have none."""
    callers = {node.span.id: node for node in nodes if node.span.kind not in _SERVING}
    servers = {node.span.id: node for node in nodes if node.span.kind in _SERVING}
    roots = []
    for node in nodes:
        span = node.span
        shared = callers.get(span.id) if span.kind in _SERVING else None
        # Below a shared id, work belongs to the server's side if that is the same service.
        above = [n for n in (servers.get(span.parent), callers.get(span.parent)) if n]
        above.sort(key=lambda n: n.service != node.service)
        parent = shared or (above[0] if span.parent and above else None)
        if parent is None or parent is node:
            roots.append(node)
            if span.parent:
                oddities["span whose parent is missing"] += 1
        else:
            parent.children.append(node)
    return roots


def _downwards(roots: Iterable[_Node]) -> Iterator[tuple[_Node | None, _Node]]:
    """Every node with its parent, parents first; without recursion, since traces can be deep."""
    pending: list[tuple[_Node | None, _Node]] = [(None, root) for root in roots]
    while pending:
        parent, node = pending.pop()
        yield parent, node
        pending.extend((node, child) for child in reversed(node.children))


def _enter(parent: _Node | None, node: _Node, found: list[Request], oddities: Oddities) -> None:
    """Says to which request this node belongs, opening one where work enters a service."""
    span = node.span
    if parent is None:
        node.request = Request(span, node.service, root=True, complete=not span.parent)
        found.append(node.request)
    elif node.service != parent.service or (span.kind in _SERVING and parent.span.kind in _CALLING):
        node.request = Request(span, node.service, root=False, complete=True)
        found.append(node.request)
        _answer(parent, node, oddities)
        return
    else:
        node.request = parent.request
    if span.kind in _CALLING and not _wraps(node):
        _attempt(node, oddities)


def _wraps(node: _Node) -> bool:
    """Whether this client span holds client spans of its own service: those are its attempts."""
    return any(
        child.span.kind in _CALLING and child.service == node.service for child in node.children
    )


def _attempt(node: _Node, oddities: Oddities) -> None:
    request = node.request
    assert request is not None
    served = [child for child in node.children if _is_answer(node, child)]
    if len(served) > 1 and len({child.service for child in served}) == 1:
        oddities["client span with several server spans, taken as attempts of a proxy"] += 1
        request.attempts.extend(_hidden(node, served))
        return
    attempt = Attempt(node.span, waits=node.span.kind != Kind.PRODUCER)
    _within(request, attempt, oddities)
    request.attempts.append(attempt)
    node.attempt = attempt


def _is_answer(node: _Node, child: _Node) -> bool:
    return child.service != node.service or child.span.kind in _SERVING


def _within(request: Request, attempt: Attempt, oddities: Oddities) -> None:
    """Counts an attempt that outlives its request: nobody waited for it, or a clock is wrong."""
    if attempt.start < request.start - ROUNDING:
        oddities["child that starts before its parent"] += 1
    elif attempt.end > request.end + ROUNDING and attempt.waits:
        oddities["child that ends after its parent"] += 1


def _hidden(node: _Node, served: list[_Node]) -> Iterator[Attempt]:
    """Attempts that a proxy made under one client span, told by the server spans they reached.

    One that was still served when the next began was given up. The last one ends as the client
    says. Starts are the servers', laid out from the client's own start.
    """
    served.sort(key=lambda child: child.span.start)
    shift = node.span.start - served[0].span.start
    end = node.span.start + node.span.duration
    for nth, (child, following) in enumerate(zip(served, [*served[1:], None], strict=True)):
        attempt = Attempt(node.span, waits=True)
        attempt.start = child.span.start + shift
        attempt.end = end
        attempt.resend = nth or node.span.resend
        attempt.callee = child.service
        attempt.served = child.span.duration
        if following is not None:
            begins = following.span.start + shift
            given_up = attempt.start + child.span.duration > begins
            attempt.end = begins if given_up else attempt.start + child.span.duration
            attempt.ending = Ending.TIMEOUT if given_up else _ENDINGS[child.span.ending]
        attempt.end = max(attempt.end, attempt.start)
        yield attempt


def _answer(parent: _Node, node: _Node, oddities: Oddities) -> None:
    """Tells the attempt above a request who served it, inventing it where the caller has none."""
    attempt = parent.attempt
    if attempt is not None:
        attempt.callee = node.service
        attempt.served = node.span.duration
        if node.span.start < attempt.start or node.span.start > attempt.end:
            oddities["server span outside its client's, clocks differ"] += 1
        elif node.span.duration > attempt.end - attempt.start + ROUNDING:
            oddities["server span longer than its client's"] += 1
        return
    if parent.span.kind in _CALLING:
        return  # a proxy's attempts were made from these spans already
    assert parent.request is not None
    oddities["server span without its client span, timed by the server"] += 1
    invented = Attempt(node.span, waits=node.span.kind != Kind.CONSUMER)
    invented.callee = node.service
    invented.served = node.span.duration
    invented.resend = NO_RESEND
    parent.request.attempts.append(invented)
