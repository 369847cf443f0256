"""A known system is simulated, its traces are read, and the system is found again."""

import json
from pathlib import Path

import pytest

from tidegate.analysis.infer import infer
from tidegate.analysis.ingest.span import NO_RESEND, Ending, Kind, Resource, Span
from tidegate.analysis.ingest.write import spans_to_jaeger, spans_to_otlp
from tidegate.core.outcome import Outcome
from tidegate.settings.load import loads
from tidegate.settings.system import System
from tidegate.sim.spans import SpanRecord, SpanRecorder
from tidegate.sim.world import World
from tidegate.units import MILLISECOND, SECOND

pytestmark = pytest.mark.slow  # ten thousand requests are simulated, written, and read again

EPOCH = 1_700_000_000 * SECOND
SECONDS = 60

KNOWN = """\
tidegate: 1
clients:
  readers: {rate: 60/s, calls: {pages: {to: front, timeout: 5s}}}
  shoppers: {rate: 40/s, calls: {purchases: {to: shop, timeout: 5s}}}
services:
  front:
    workers: 200
    time: {median: 20ms, p99: 60ms}
    calls:
      licences: {to: shop, per_request: 30%, timeout: 2s, attempts: 2, retry_on: [timeout]}
  shop:
    workers: 200
    time: {median: 10ms, p99: 30ms}
    calls:
      stock: {to: store, timeout: 150ms, attempts: 3, retry_on: [timeout], backoff: 40ms}
  store:
    workers: 200
    time: {median: 40ms, p99: 320ms}
"""

ENDINGS = {
    Outcome.SUCCESS: Ending.OK,
    Outcome.FAILURE: Ending.FAILED,
    Outcome.TIMEOUT: Ending.BROKEN,  # a caller that gives up knows of no answer
    Outcome.OVERLOADED: Ending.OVERLOADED,
    Outcome.IGNORED: Ending.CANCELLED,
}


def as_span(record: SpanRecord) -> Span:
    return Span(
        trace=record.trace,
        id=record.id,
        parent=record.parent,
        resource=Resource(record.service, f"{record.service}-{record.instance}"),
        name=f"GET /{record.peer or record.service}",
        kind=Kind.CLIENT if record.caller else Kind.SERVER,
        start=EPOCH + record.start,
        duration=record.end - record.start,
        ending=ENDINGS[record.outcome],
        peer=record.peer,
        resend=record.number - 1 if record.caller and record.number > 1 else NO_RESEND,
    )


@pytest.fixture(scope="module")
def known() -> System:
    return loads(KNOWN).system()


@pytest.fixture(scope="module")
def spans(known: System) -> list[Span]:
    recorder = SpanRecorder()
    world = World(known, seed=1, horizon=(SECONDS + 10) * SECOND, spans=recorder)
    world.run(SECONDS * SECOND)
    for client in world.clients.values():
        client.set_load(world.now, 0)
    world.run((SECONDS + 10) * SECOND)
    return [as_span(record) for record in recorder.records]


def near(value: float, *, by: float = 0.1) -> object:
    return pytest.approx(value, rel=by)


@pytest.mark.parametrize("form", [spans_to_otlp, spans_to_jaeger])
def test_rates_attempts_timeouts_and_times_come_back(
    form: object, spans: list[Span], tmp_path: Path
) -> None:
    path = tmp_path / "traces.json"
    path.write_text(json.dumps(form(spans)))  # type: ignore[operator]
    found = infer([path]).system

    rates = {
        found.target_of(name, client.calls[name]): client.rate
        for client in found.clients.values()
        for name in client.calls
    }
    assert rates == {"front": near(60), "shop": near(40)}

    calls = {
        (caller, found.target_of(name, call)): call
        for _, caller, made in found.callers()
        for name, call in made.items()
    }
    licences, stock = calls["front", "shop"], calls["shop", "store"]
    assert licences.per_request == near(0.3)
    assert (stock.attempts, stock.timeout) == (3, near(150 * MILLISECOND))
    assert stock.backoff is not None

    times = {
        name: service.time.average
        for name, service in found.services.items()
        if service.time is not None
    }
    own = {
        name: service.time.average
        for name, service in loads(KNOWN).system().services.items()
        if service.time is not None
    }
    assert times["front"] == near(own["front"])
    assert times["shop"] == near(own["shop"])


def test_what_is_recorded_changes_nothing_of_the_run(known: System) -> None:
    worlds = [
        World(known, seed=3, horizon=20 * SECOND),
        World(known, seed=3, horizon=20 * SECOND, spans=SpanRecorder()),
    ]
    for world in worlds:
        world.run(20 * SECOND)
    bare, watched = (
        {name: list(client.tally.good) for name, client in world.clients.items()}
        for world in worlds
    )
    assert bare == watched


def test_every_attempt_and_every_piece_of_work_has_its_span(spans: list[Span]) -> None:
    by_id = {span.id: span for span in spans}
    assert len(by_id) == len(spans)
    for span in spans:
        if span.parent:
            above = by_id[span.parent]
            assert above.trace == span.trace
            assert above.kind is not span.kind
        else:
            assert span.kind is Kind.SERVER
