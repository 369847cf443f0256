"""One trace is told apart into requests and attempts, whatever is missing or wrong in it.

Times are milliseconds after an arbitrary instant; `spans` writes a trace as rows.
"""

from collections import Counter
from typing import Any

import pytest

from tidegate.analysis.infer.trace import NOBODY, Request, requests_of
from tidegate.analysis.ingest.span import NO_RESEND, Ending, Kind, Oddities, Resource, Span
from tidegate.analysis.ingest.store import SpanStore
from tidegate.units import MILLISECOND

S, C, N, P, Q, U = (
    Kind.SERVER,
    Kind.CLIENT,
    Kind.INTERNAL,
    Kind.PRODUCER,
    Kind.CONSUMER,
    Kind.UNKNOWN,
)
BASE = 1_000_000 * MILLISECOND


def span(
    id_: int, parent: int, service: str, kind: Kind, start: float, end: float, **more: Any
) -> Span:
    fields = {"name": "x", "resend": NO_RESEND} | more
    return Span(
        trace=1,
        id=id_,
        parent=parent,
        resource=Resource(service),
        kind=kind,
        start=BASE + round(start * MILLISECOND),
        duration=round((end - start) * MILLISECOND),
        **fields,
    )


def told(*spans: Span) -> tuple[list[Request], Oddities, list[str]]:
    """The requests of one trace, what was odd, and the services by number."""
    store = SpanStore()
    for one in spans:
        store.add(one)
    services = sorted({one.resource.service for one in spans})
    oddities: Oddities = Counter()
    (trace,) = store.traces(oddities)
    found = requests_of(trace, lambda r: services.index(store.resources[r].service), oddities)
    return found, oddities, services


def rows(
    found: list[Request], services: list[str]
) -> list[tuple[str, list[tuple[float, float, str]]]]:
    """(service, [(start, end, callee)]) of each request, in milliseconds."""
    return sorted(
        (
            services[request.service],
            sorted(
                (
                    (attempt.start - BASE) / MILLISECOND,
                    (attempt.end - BASE) / MILLISECOND,
                    services[attempt.callee] if attempt.callee != NOBODY else "",
                )
                for attempt in request.attempts
            ),
        )
        for request in found
    )


def test_a_server_span_under_a_client_span_is_the_call_s_other_side() -> None:
    found, oddities, services = told(
        span(1, 0, "a", S, 0, 100),
        span(2, 1, "a", C, 10, 60),
        span(3, 2, "b", S, 15, 55),
        span(4, 1, "a", C, 70, 90),
    )
    assert rows(found, services) == [("a", [(10, 60, "b"), (70, 90, "")]), ("b", [])]
    assert [r.root for r in found] == [True, False]
    assert found[0].attempts[0].served == 40 * MILLISECOND
    assert not oddities


def test_spans_of_the_same_service_belong_to_its_request() -> None:
    found, _, services = told(
        span(1, 0, "a", S, 0, 100),
        span(2, 1, "a", N, 5, 95),
        span(3, 2, "a", N, 6, 94),
        span(4, 3, "a", C, 10, 60),
    )
    assert rows(found, services) == [("a", [(10, 60, "")])]


def test_the_order_of_spans_does_not_matter() -> None:
    spans = [
        span(1, 0, "a", S, 0, 100),
        span(2, 1, "a", C, 10, 60),
        span(3, 2, "b", S, 15, 55),
    ]
    first, second = told(*spans), told(*reversed(spans))
    assert rows(first[0], first[2]) == rows(second[0], second[2])


def test_spans_without_kinds_are_told_apart_by_their_services() -> None:
    """As old Jaeger clients write them: no client span, so the server's own times are taken."""
    found, oddities, services = told(span(1, 0, "a", U, 0, 100), span(2, 1, "b", U, 10, 60))
    assert rows(found, services) == [("a", [(10, 60, "b")]), ("b", [])]
    assert oddities == {"server span without its client span, timed by the server": 1}


def test_a_client_span_around_client_spans_is_their_wrapper() -> None:
    """A vendor's library spans the call, the HTTP client below it each attempt."""
    found, _, services = told(
        span(1, 0, "a", S, 0, 100),
        span(2, 1, "a", C, 10, 90),
        span(3, 2, "a", C, 10, 40, ending=Ending.BROKEN),
        span(4, 2, "a", C, 50, 90),
    )
    assert rows(found, services) == [("a", [(10, 40, ""), (50, 90, "")])]


def test_a_service_that_calls_itself_serves_another_request() -> None:
    found, _, services = told(
        span(1, 0, "a", S, 0, 100), span(2, 1, "a", C, 10, 60), span(3, 2, "a", S, 15, 55)
    )
    assert rows(found, services) == [("a", []), ("a", [(10, 60, "a")])]


def test_a_server_span_may_share_its_client_s_id() -> None:
    found, _, services = told(
        span(1, 0, "a", S, 0, 100),
        span(2, 1, "a", C, 10, 60),
        span(2, 1, "b", S, 15, 55),
        span(3, 2, "b", C, 20, 50),
    )
    assert rows(found, services) == [("a", [(10, 60, "b")]), ("b", [(20, 50, "")])]


def test_a_proxy_s_attempts_show_as_server_spans_under_one_client_span() -> None:
    """The first was still served when the second began: it was given up then."""
    found, oddities, services = told(
        span(1, 0, "a", S, 0, 100),
        span(2, 1, "a", C, 10, 90),
        span(3, 2, "b", S, 11, 95),
        span(4, 2, "b", S, 41, 61, ending=Ending.FAILED),
        span(5, 2, "b", S, 71, 89),
    )
    attempts = found[0].attempts
    assert rows(found, services)[0] == ("a", [(10, 40, "b"), (40, 60, "b"), (70, 90, "b")])
    assert [a.ending for a in attempts] == [Ending.TIMEOUT, Ending.FAILED, Ending.OK]
    assert len(found) == 4
    assert list(oddities) == ["client span with several server spans, taken as attempts of a proxy"]


def test_nobody_waits_for_a_message() -> None:
    found, _, services = told(
        span(1, 0, "a", S, 0, 10), span(2, 1, "a", P, 5, 6), span(3, 2, "b", Q, 500, 600)
    )
    assert rows(found, services) == [("a", [(5, 6, "b")]), ("b", [])]
    assert not found[0].attempts[0].waits


@pytest.mark.parametrize(
    ("kind", "own"), [(S, True), (U, True), (C, False), (N, False), (P, False)]
)
def test_work_that_a_service_starts_by_itself_is_not_served(kind: Kind, own: bool) -> None:
    found, _, _ = told(span(1, 0, "a", kind, 0, 10))
    assert [request.own for request in found] == [own]


def test_a_missing_parent_makes_a_request_whose_sender_is_unknown() -> None:
    found, oddities, _ = told(span(1, 77, "a", S, 0, 10))
    assert [(r.root, r.complete) for r in found] == [(True, False)]
    assert oddities == {"span whose parent is missing": 1}


def test_a_span_that_came_twice_counts_once() -> None:
    once = span(1, 0, "a", S, 0, 10)
    found, oddities, _ = told(once, once, once)
    assert len(found) == 1
    assert oddities == {"span that came twice": 2}


def test_circles_of_parents_are_left_out_and_counted() -> None:
    found, oddities, services = told(
        span(1, 0, "a", S, 0, 10),
        span(2, 3, "b", S, 0, 10),
        span(3, 2, "b", N, 0, 10),
        span(4, 4, "c", S, 0, 10),
    )
    assert sorted(services[r.service] for r in found) == ["a", "c"]
    assert oddities == {
        "span in a circle of parents, left out": 2,
        "span whose parent is missing": 1,
    }


def test_clocks_that_differ_are_counted_and_change_no_length() -> None:
    found, oddities, services = told(
        span(1, 0, "a", S, 0, 100),
        span(2, 1, "a", C, 10, 60),
        span(3, 2, "b", S, -500, -460),
    )
    assert rows(found, services)[0] == ("a", [(10, 60, "b")])
    assert found[0].attempts[0].served == 40 * MILLISECOND
    assert oddities == {"server span outside its client's, clocks differ": 1}


def test_children_that_do_not_fit_their_parents_are_counted() -> None:
    _, oddities, _ = told(
        span(1, 0, "a", S, 0, 100),
        span(2, 1, "a", C, -5, 60),
        span(3, 1, "a", C, 70, 160),
        span(4, 3, "b", S, 71, 400),
    )
    assert oddities == {
        "child that starts before its parent": 1,
        "child that ends after its parent": 1,
        "server span longer than its client's": 1,
    }


def test_a_chain_deeper_than_any_stack_is_walked() -> None:
    chain = [span(n, n - 1, "a", N if n > 1 else S, 0, 10) for n in range(1, 5000)]
    found, _, _ = told(*chain)
    assert len(found) == 1
