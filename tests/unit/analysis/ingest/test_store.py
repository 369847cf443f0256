"""Spans come out by trace; past the bound, whole traces go, and which ones their ids decide."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.analysis.ingest import store as module
from tidegate.analysis.ingest.span import Oddities, Resource, Span
from tidegate.analysis.ingest.store import BUCKETS, SpanStore

HERE = Resource("here")


def span(trace: int, number: int, **more: object) -> Span:
    fields = {"trace": trace, "id": number, "resource": HERE, "name": "x", "start": 1} | more
    return Span(duration=number, **fields)  # type: ignore[arg-type]


def kept(store: SpanStore) -> set[int]:
    return {trace[0].trace for trace in store.traces(Counter())}


@given(st.lists(st.tuples(st.integers(1, 2**128 - 1), st.integers(1, 9)), max_size=30))
def test_every_span_comes_out_once_with_its_trace(written: list[tuple[int, int]]) -> None:
    store = SpanStore()
    for trace, number in written:
        store.add(span(trace, number))
    traces = [[packed.id for packed in trace] for trace in store.traces(Counter())]
    by_trace: dict[int, list[int]] = {}
    for trace, number in written:
        by_trace.setdefault(trace, []).append(number)
    assert sorted(traces) == sorted(by_trace.values())


def test_fields_come_out_as_they_went_in() -> None:
    store = SpanStore()
    one = span(7, 8, parent=9, name="GET /a", peer="db", target="x", resend=2)
    store.add(one)
    store.add(span(7, 10, target="x", peer="db"))
    ((first, second),) = store.traces(Counter())
    assert (first.trace, first.id, first.parent, first.start, first.duration) == (7, 8, 9, 1, 8)
    assert store.operations.all[first.name] == "GET /a"
    assert store.peers.all[first.peer] == store.peers.all[second.peer] == "db"
    assert store.resources[first.resource] is HERE
    assert first.target == second.target != 0
    assert (first.resend, second.resend) == (2, -1)
    assert store.counting == {(first.resource, first.peer)}


@pytest.mark.parametrize("bound", [50, 333, 1999, 2000])
def test_the_sample_does_not_depend_on_the_order(bound: int) -> None:
    written = [span(Random(n).getrandbits(128), k + 1) for n in range(400) for k in range(5)]
    first = SpanStore(spans_max=bound)
    for one in written:
        first.add(one)
    Random(1).shuffle(written)
    second = SpanStore(spans_max=bound)
    for one in written:
        second.add(one)
    assert first.sampled_share == second.sampled_share
    assert first.spans == second.spans <= bound
    assert kept(first) == kept(second)


@pytest.mark.parametrize("ids", ["random", "counting"])
def test_the_stated_share_is_the_share_that_was_kept(ids: str) -> None:
    """Ids that only count upwards are spread as well as random ones."""
    rng = Random(1)
    store = SpanStore(spans_max=2000)
    traces = 10_000
    for n in range(traces):
        store.add(span(rng.getrandbits(128) if ids == "random" else n + 1, 1))
    assert 0 < store.sampled_share < 0.25
    share = len(kept(store)) / traces
    assert share == pytest.approx(store.sampled_share, rel=0.1)


def test_one_endless_trace_cannot_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TRACE_MAX", 30)
    trace = next(t for t in range(1, 10_000) if (t * module._GOLDEN & module._64) >> 54 == 0)
    store = SpanStore(spans_max=100)
    for number in range(1, 500):
        store.add(span(trace, number))
    assert store.spans <= 101
    assert store.sampled_share == 1 / BUCKETS
    oddities: Oddities = Counter()
    (found,) = store.traces(oddities)
    assert len(found) == 30
    assert oddities.total() == 499 - 30  # every span that was left out is counted


def test_names_have_a_bound_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_NAMES_MAX", 3)
    store = SpanStore()
    for number in range(1, 9):
        store.add(span(1, number, name=f"GET /users/{number}", peer="p" * 1000))
    oddities: Oddities = Counter()
    (found,) = store.traces(oddities)
    assert {store.operations.all[p.name] for p in found} == {
        "GET /users/1",
        "GET /users/2",
        "(other)",
    }
    assert {len(store.peers.all[p.peer]) for p in found} == {200}
    assert sum(oddities.values()) == 1
