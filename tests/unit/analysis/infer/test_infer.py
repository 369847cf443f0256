"""A known system makes spans, and the spans give the system back.

Rates, times, attempts, timeouts and fan-out within a tenth; what spans cannot show left open.
"""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from trace_maker import EPOCH, TraceMaker

from tidegate.analysis.infer import Inferred, infer
from tidegate.analysis.ingest.span import Ending, Kind, Resource, Span
from tidegate.analysis.ingest.write import spans_to_jaeger, spans_to_otlp
from tidegate.errors import InputError
from tidegate.settings.load import loads
from tidegate.units import MILLISECOND

MARKET = """
tidegate: 1
clients:
  readers: {rate: 30/s, calls: {pages: {to: tracker}}}
  shoppers: {rate: 40/s, calls: {shop: {to: edge}}}
services:
  tracker:
    time: {median: 20ms, p99: 100ms}
    replicas: 3
    calls:
      session: {to: cache, timeout: 1s}
      licences: {to: edge, per_request: 40%, timeout: 2s, attempts: 2, optional: true}
      rows: {to: orders, per_request: 3, timeout: 300ms}
  edge:
    time: 2ms
    calls:
      market: {to: marketplace, timeout: 700ms, attempts: 3, retry_on: [timeout], backoff: 50ms}
  marketplace: {time: 30ms, replicas: 4}
  orders: {time: {constant: 3ms}, errors: 0%}
  cache: {time: {constant: 500us}}
"""


def files(folder: Path, spans: Iterable[Span], *, jaeger: bool = False) -> list[Path]:
    path = folder / "traces.json"
    path.write_text(json.dumps((spans_to_jaeger if jaeger else spans_to_otlp)(spans)))
    return [path]


@pytest.fixture(scope="module")
def spans() -> list[Span]:
    maker = TraceMaker(
        loads(MARKET).system(),
        leaves=("orders", "cache"),
        slow={"marketplace": 0.15},
        broken={"orders": 0.01},
    )
    return maker.run(60)


@pytest.fixture(scope="module", params=["otlp", "jaeger"])
def market(
    spans: list[Span], request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Inferred:
    folder = tmp_path_factory.mktemp("market")
    return infer(files(folder, spans, jaeger=request.param == "jaeger"))


def close(found: float | None, wanted: float) -> bool:
    return found == pytest.approx(wanted, rel=0.1)


@pytest.mark.slow  # makes and reads 20,000 spans in both formats
def test_rates_and_who_calls_whom(market: Inferred, spans: list[Span]) -> None:
    assert market.spans == len(spans)
    assert market.traces == len({span.trace for span in spans})
    clients, services = market.system.clients, market.system.services
    assert {
        name: close(c.rate, rate) for (name, c), rate in zip(clients.items(), (30, 40), strict=True)
    } == {
        "tracker-users": True,
        "edge-users": True,
    }
    assert {
        name: [market.system.target_of(key, call) for key, call in service.calls.items()]
        for name, service in services.items()
    } == {
        "tracker": ["cache", "edge", "orders"],
        "edge": ["marketplace"],
        "marketplace": [],
        "cache": [],
        "orders": [],
    }
    assert [services[name].replicas for name in ("tracker", "edge", "marketplace")] == [3, 1, 4]


@pytest.mark.slow  # as above
def test_own_work(market: Inferred, spans: list[Span]) -> None:
    tracker, edge, orders, cache = (
        market.system.services[name].time for name in ("tracker", "edge", "orders", "cache")
    )
    assert tracker is not None
    assert close(tracker.median, 20 * MILLISECOND)
    assert close(tracker.p99, 100 * MILLISECOND)
    assert edge is not None
    assert close(edge.mean, 2 * MILLISECOND)
    assert orders is not None
    assert orders.constant == 3 * MILLISECOND
    assert cache is not None
    assert close(cache.constant, 0.5 * MILLISECOND)
    asked = [span.ending for span in spans if span.peer == "orders"]
    share = asked.count(Ending.FAILED) / len(asked)
    assert market.system.services["orders"].errors == pytest.approx(share, rel=0.01)


@pytest.mark.slow  # as above
def test_calls_with_their_retries_and_timeouts(market: Inferred) -> None:
    services = market.system.services
    call = services["edge"].calls["marketplace"]
    assert call.attempts == 3
    assert call.timeout == 700 * MILLISECOND
    assert call.backoff is not None
    assert call.backoff.jitter == "full"
    assert close(call.backoff.base, 50 * MILLISECOND)
    assert close(services["tracker"].calls["tracker-edge"].per_request, 0.4)
    assert services["tracker"].calls["orders"].per_request == 3
    path = ("services", "edge", "calls", "marketplace", "timeout")
    assert "attempts without an answer end within 5% of it" in market.evidence[path]


@pytest.mark.slow  # as above
def test_what_traces_cannot_show_is_open_in_the_file(market: Inferred) -> None:
    draft = loads(market.text())
    assert draft.system().services.keys() == market.system.services.keys()
    left = {unknown.path for unknown in draft.unknowns}
    assert left == set(market.leave_open)
    for service in market.system.services:
        assert ("services", service, "workers") in left
        assert ("services", service, "queue") in left
    assert ("clients", "tracker-users", "calls", "tracker", "timeout") in left
    assert ("services", "tracker", "calls", "orders", "attempts") in left
    assert ("services", "edge", "calls", "marketplace", "timeout") not in left


@pytest.mark.slow  # makes and reads 10,000 spans twice
def test_a_sample_of_the_traces_gives_the_same_rates(spans: list[Span], tmp_path: Path) -> None:
    paths = files(tmp_path, spans)
    part = infer(paths, spans_max=len(spans) // 3)
    assert part.sampled_share == pytest.approx(1 / 3, rel=0.1)
    rates = [client.rate for client in part.system.clients.values()]
    assert rates == [pytest.approx(30, rel=0.15), pytest.approx(40, rel=0.15)]
    assert "a sample of" in part.text()


@pytest.mark.slow  # makes and reads 10,000 spans
def test_spans_of_one_trace_may_lie_in_several_files(spans: list[Span], tmp_path: Path) -> None:
    some = spans[:3000]
    whole = infer(files(tmp_path, some))
    parts = []
    for number in range(3):
        path = tmp_path / f"part{number}.json"
        path.write_text(json.dumps(spans_to_otlp(reversed(some[number::3]))))
        parts.append(path)
    assert infer(parts).text() == whole.text()
    assert infer([*parts, parts[0]]).oddities["span that came twice"] == 1000


@pytest.mark.parametrize("counted", [True, False])
def test_retries_are_told_with_and_without_the_client_s_count(
    tmp_path: Path, counted: bool
) -> None:
    text = """
tidegate: 1
clients: {users: {rate: 50/s, calls: {a: {}}}}
services:
  a: {time: 1ms, calls: {b: {attempts: 4, timeout: 1s}}}
  b: {time: 1ms}
"""
    maker = TraceMaker(loads(text).system(), counted=counted, broken={"b": 0.4})
    found = infer(files(tmp_path, maker.run(8)))
    call = found.system.services["a"].calls["b"]
    assert call.attempts == 4
    assert call.per_request == 1
    says = found.evidence["services", "a", "calls", "b", "attempts"]
    assert ("counted by the client" in says) is counted


def test_a_call_whose_failure_does_no_harm_is_optional(tmp_path: Path) -> None:
    text = """
tidegate: 1
clients: {users: {rate: 50/s, calls: {a: {}}}}
services:
  a: {time: 1ms, calls: {b: {optional: true}, c: {}}}
  b: {time: 1ms}
  c: {time: 1ms}
"""
    maker = TraceMaker(loads(text).system(), broken={"b": 0.1, "c": 0.1})
    calls = infer(files(tmp_path, maker.run(10))).system.services["a"].calls
    assert {name: call.optional for name, call in calls.items()} == {"b": True, "c": False}


@pytest.mark.parametrize("parallel", [True, False])
def test_calls_together_or_one_after_another(tmp_path: Path, parallel: bool) -> None:
    text = f"""
tidegate: 1
clients: {{users: {{rate: 50/s, calls: {{a: {{}}}}}}}}
services:
  a: {{time: 1ms, parallel: {str(parallel).lower()}, calls: {{b: {{}}, c: {{}}}}}}
  b: {{time: 5ms}}
  c: {{time: 5ms}}
"""
    maker = TraceMaker(loads(text).system())
    assert infer(files(tmp_path, maker.run(10))).system.services["a"].parallel is parallel


A, B, C = Resource("a"), Resource("b"), Resource("c")


def row(
    trace: int,
    id_: int,
    parent: int,
    resource: Resource,
    kind: Kind,
    start: int,
    length: int,
    **more: object,
) -> Span:
    """A span in milliseconds."""
    return Span(
        trace=trace,
        id=id_,
        parent=parent,
        resource=resource,
        name="x",
        kind=kind,
        start=EPOCH + start * MILLISECOND,
        duration=length * MILLISECOND,
        **more,  # type: ignore[arg-type]
    )


def test_services_that_call_each_other_in_a_circle_are_told_apart(tmp_path: Path) -> None:
    spans = []
    for n in range(50):
        spans += [
            row(n + 1, 1, 0, A, Kind.SERVER, n * 100, 90),
            row(n + 1, 2, 1, A, Kind.CLIENT, n * 100 + 10, 70),
            row(n + 1, 3, 2, B, Kind.SERVER, n * 100 + 10, 70),
        ]
        if n % 2:
            spans += [
                row(n + 1, 4, 3, B, Kind.CLIENT, n * 100 + 20, 40),
                row(n + 1, 5, 4, A, Kind.SERVER, n * 100 + 20, 40),
            ]
    found = infer(files(tmp_path, spans))
    (note,) = found.notes
    assert "the rarest of these calls, b to a (25 seen), goes to a copy named a-again" in note
    services = found.system.services
    assert services.keys() == {"a", "b", "a-again"}
    assert services["b"].calls["a-again"].per_request == 0.5
    assert loads(found.text()).system().services["a-again"].time is not None


def test_a_message_is_not_waited_for(tmp_path: Path) -> None:
    spans = []
    for n in range(20):
        spans += [
            row(n + 1, 1, 0, A, Kind.SERVER, n * 100, 10),
            row(n + 1, 2, 1, A, Kind.PRODUCER, n * 100 + 5, 1, peer="orders"),
            row(n + 1, 3, 2, B, Kind.CONSUMER, n * 100 + 500, 30),
        ]
    call = infer(files(tmp_path, spans)).system.services["a"].calls["b"]
    assert (call.wait, call.optional) == (False, True)


def test_what_a_service_starts_by_itself_is_a_client(tmp_path: Path) -> None:
    spans = []
    for n in range(40):
        spans += [
            row(n + 1, 1, 0, Resource("cron"), Kind.INTERNAL, n * 1000, 50),
            row(n + 1, 2, 1, Resource("cron"), Kind.CLIENT, n * 1000 + 5, 40),
            row(n + 1, 3, 2, A, Kind.SERVER, n * 1000 + 5, 40),
        ]
    found = infer(files(tmp_path, spans))
    assert found.system.clients.keys() == {"cron"}
    assert found.system.clients["cron"].rate == pytest.approx(1, rel=0.05)
    assert found.system.clients["cron"].calls.keys() == {"a"}


def test_requests_whose_sender_is_lost_are_no_new_clients(tmp_path: Path) -> None:
    spans = []
    for n in range(40):
        spans += [
            row(n + 1, 1, 0, A, Kind.SERVER, n * 100, 50),
            row(n + 1, 2, 1, A, Kind.CLIENT, n * 100, 40),
            row(n + 1, 3, 2 if n % 4 else 99, B, Kind.SERVER, n * 100, 40),
        ]
    found = infer(files(tmp_path, spans))
    assert found.system.clients.keys() == {"users"}
    assert found.oddities == {"span whose parent is missing": 10}
    assert any("10 requests of b miss their sender" in note for note in found.notes)


def test_a_browser_that_leaves_no_spans_is_a_client(tmp_path: Path) -> None:
    """Every request carries the id of a span that nobody exported."""
    spans = [row(n + 1, 1, 77, A, Kind.SERVER, n * 100, 50) for n in range(40)]
    found = infer(files(tmp_path, spans))
    assert found.system.clients["users"].rate == pytest.approx(10, rel=0.05)


def test_the_sender_s_own_sampling_is_undone(tmp_path: Path) -> None:
    path = tmp_path / "traces.json"
    document = spans_to_otlp(row(n + 1, 1, 0, A, Kind.SERVER, n * 100, 50) for n in range(40))
    for span in document["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        span["traceState"] = "ot=th:c"
    path.write_text(json.dumps(document))
    found = infer([path])
    assert found.source_share == 0.25
    assert found.system.clients["users"].rate == pytest.approx(40, rel=0.05)
    assert found.notes == ("senders kept 25.00% of their traces; rates are divided by it",)


def test_one_request_tells_no_rate(tmp_path: Path) -> None:
    found = infer(files(tmp_path, [row(1, 1, 0, A, Kind.SERVER, 0, 50)]))
    assert ("clients", "users", "rate") in found.leave_open
    assert loads(found.text()).unknowns


def test_spans_that_nobody_served_are_one_sentence(tmp_path: Path) -> None:
    spans = [row(1, 1, 0, A, Kind.INTERNAL, 0, 50)]
    with pytest.raises(InputError, match="none that a service served for somebody else"):
        infer(files(tmp_path, spans))


def test_names_that_yaml_would_misread_are_made_words(tmp_path: Path) -> None:
    on = Resource("on")
    spans = [
        row(1, 1, 0, on, Kind.SERVER, 0, 50),
        row(1, 2, 1, on, Kind.CLIENT, 0, 40, peer="10.1.2.3:5432"),
        row(2, 1, 0, on, Kind.SERVER, 900, 50, ending=Ending.FAILED),
    ]
    found = infer(files(tmp_path, spans))
    assert loads(found.text()).system().services.keys() == {"service-on", "service-10.1.2.3-5432"}


def test_calls_are_counted_even_where_no_request_ended_well(tmp_path: Path) -> None:
    spans = []
    for n in range(40):
        spans += [
            row(n + 1, 1, 0, A, Kind.SERVER, n * 100, 50, ending=Ending.FAILED),
            row(n + 1, 2, 1, A, Kind.CLIENT, n * 100, 40, ending=Ending.FAILED),
            row(n + 1, 3, 2, B, Kind.SERVER, n * 100, 40, ending=Ending.FAILED),
        ]
    found = infer(files(tmp_path, spans))
    assert found.system.services["a"].calls["b"].per_request == 1
    assert found.system.services["b"].errors == 1
    assert ("services", "a", "time") in found.leave_open
    assert loads(found.text()).system().services["a"].time is not None


def test_a_leaf_gets_the_first_label_of_its_host(tmp_path: Path) -> None:
    hosts = ("db.eu.example", "db.us.example")
    spans = [row(1, 1, 0, A, Kind.SERVER, 0, 50), row(2, 1, 0, A, Kind.SERVER, 900, 50)]
    for n, host in enumerate(hosts):
        spans += [row(1, 2 + n, 1, A, Kind.CLIENT, n * 20, 10, peer=host)]
    found = infer(files(tmp_path, spans))
    assert found.system.services.keys() == {"a", "db", "db.us.example"}
    assert "know it as db.eu.example" in found.evidence["services", "db", "workers"]


def test_a_proxy_s_retries_are_attempts_of_the_caller(tmp_path: Path) -> None:
    """One client span, three server spans: each was given up when the next began."""
    spans = []
    for n in range(40):
        begin = n * 1000
        spans += [
            row(n + 1, 1, 0, A, Kind.SERVER, begin, 400),
            row(n + 1, 2, 1, A, Kind.CLIENT, begin, 300, ending=Ending.TIMEOUT),
            *(row(n + 1, 3 + k, 2, B, Kind.SERVER, begin + 100 * k, 350) for k in range(3)),
        ]
    call = infer(files(tmp_path, spans)).system.services["a"].calls["b"]
    assert (call.attempts, call.timeout) == (3, 100 * MILLISECOND)


def test_an_overloaded_server_has_a_bound_somewhere(tmp_path: Path) -> None:
    spans = [
        row(
            n + 1,
            1,
            0,
            A,
            Kind.SERVER,
            n * 100,
            50,
            ending=Ending.OVERLOADED if n % 2 else Ending.OK,
        )
        for n in range(40)
    ]
    found = infer(files(tmp_path, spans))
    assert "refused 50% (20 of 40)" in found.evidence["services", "a", "queue"]


def test_senders_that_kept_different_shares_are_told_so(tmp_path: Path) -> None:
    document = spans_to_otlp(row(n + 1, 1, 0, A, Kind.SERVER, n * 100, 50) for n in range(40))
    for n, span in enumerate(document["resourceSpans"][0]["scopeSpans"][0]["spans"]):
        span["traceState"] = "ot=th:c" if n % 2 else "ot=th:8"
    path = tmp_path / "traces.json"
    path.write_text(json.dumps(document))
    found = infer([path])
    assert found.source_share == 1
    assert found.notes == (
        "senders kept different shares of their traces (25.00%, 50.00%); rates are as seen",
    )


def test_what_lies_between_caller_and_server_is_the_network(tmp_path: Path) -> None:
    spans = []
    for n in range(40):
        spans += [
            row(n + 1, 1, 0, A, Kind.SERVER, n * 100, 50),
            row(n + 1, 2, 1, A, Kind.CLIENT, n * 100, 40),
            row(n + 1, 3, 2, B, Kind.SERVER, n * 100 + 2, 35),
        ]
    network = infer(files(tmp_path, spans)).system.services["a"].calls["b"].network
    assert network is not None
    assert network.constant == 5 * MILLISECOND


def test_spans_of_no_length_still_make_a_file(tmp_path: Path) -> None:
    spans = [row(n + 1, 1, 0, A, Kind.SERVER, n * 100, 0) for n in range(5)]
    found = infer(files(tmp_path, spans))
    assert found.oddities == {"span of no length": 5}
    assert loads(found.text()).system().services.keys() == {"a"}
