"""Both formats, in every shape of file, give the same spans; what is no trace file is refused."""

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.analysis.ingest import Ending, Kind, Resource, Span, jaeger, otlp, read_spans
from tidegate.analysis.ingest.sink import Sink
from tidegate.analysis.ingest.write import spans_to_jaeger, spans_to_otlp
from tidegate.errors import InputError
from tidegate.units import MILLISECOND, SECOND

DATA = Path(__file__).parent / "data"

calling = st.sampled_from([Kind.CLIENT, Kind.PRODUCER])
serving = st.sampled_from([Kind.UNKNOWN, Kind.INTERNAL, Kind.SERVER, Kind.CONSUMER])
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
common: dict[str, Any] = {
    "trace": st.integers(1, 2**128 - 1),
    "id": st.integers(1, 2**64 - 1),
    "parent": st.integers(0, 2**64 - 1),
    "resource": st.builds(Resource, names, st.just("") | names),
    "name": names,
    "start": st.integers(1, 2**50).map(lambda n: n * 1000),
    "duration": st.integers(1, 2**36).map(lambda n: n * 1000),
}
answered = [Ending.OK, Ending.FAILED, Ending.TIMEOUT, Ending.OVERLOADED, Ending.CANCELLED]
spans = st.builds(Span, kind=serving, ending=st.sampled_from(answered), **common) | st.builds(
    Span,
    kind=calling,
    ending=st.sampled_from(Ending),
    peer=st.just("") | names,
    target=st.just("") | names,
    resend=st.integers(-1, 5),
    **common,
)


def read(*paths: Path, progress: Any = None) -> tuple[list[Span], Sink]:
    found: list[Span] = []
    sink = read_spans(paths, found.append, progress=progress)
    return found, sink


def plain(spans: Iterable[Span]) -> list[tuple[Any, ...]]:
    """Spans as values: resources are objects of their own."""
    return sorted(
        (
            *(s.trace, s.id, s.parent, s.resource.service, s.resource.instance, s.name, s.kind),
            *(s.start, s.duration, s.ending, s.peer, s.target, s.resend),
        )
        for s in spans
    )


def lines(document: dict[str, Any], key: str) -> str:
    return "\n".join(json.dumps({key: [element]}) for element in document[key])


@pytest.mark.slow  # five files for each example
@settings(max_examples=25)
@given(st.lists(spans, min_size=1, max_size=6), st.sampled_from([None, 2]), st.booleans())
def test_what_is_written_is_read_again_in_every_shape(
    tmp_path_factory: pytest.TempPathFactory, written: list[Span], indent: int | None, pack: bool
) -> None:
    folder = tmp_path_factory.mktemp("traces")
    first, second = spans_to_otlp(written), spans_to_jaeger(written)
    shapes = [
        json.dumps(first, indent=indent),
        lines(first, "resourceSpans"),
        json.dumps([first]),
        json.dumps({"batches": first["resourceSpans"]}),
        json.dumps({"trace": first}),
        json.dumps(second, indent=indent),
        lines(second, "data"),
        "\n".join(json.dumps(trace) for trace in second["data"]),
        json.dumps(second["data"]),
    ]
    path = folder / "traces.json"
    for shape in shapes:
        path.write_bytes(gzip.compress(shape.encode()) if pack else shape.encode())
        found, sink = read(path)
        assert plain(found) == plain(written)
        assert sink.seen == len(written)
        assert not sink.oddities


@pytest.mark.slow  # as above
@settings(max_examples=25)
@given(st.lists(spans, min_size=1, max_size=8), st.randoms())
def test_an_element_too_large_to_hold_is_read_piece_by_piece(
    tmp_path_factory: pytest.TempPathFactory, written: list[Span], random: Any
) -> None:
    path = tmp_path_factory.mktemp("traces") / "traces.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(otlp, "WHOLE", 300)
        patch.setattr(jaeger, "WHOLE", 300)
        for document in (spans_to_otlp(written), spans_to_jaeger(written)):
            path.write_text(json.dumps(shuffled(document, random)))
            assert plain(read(path)[0]) == plain(written)


def shuffled(value: Any, random: Any) -> Any:
    """The same document with the members of each object in another order."""
    if isinstance(value, list):
        return [shuffled(element, random) for element in value]
    if not isinstance(value, dict):
        return value
    members = list(value.items())
    random.shuffle(members)
    return {key: shuffled(element, random) for key, element in members}


def test_odd_otlp_is_read_and_counted() -> None:
    found, sink = read(DATA / "otlp-odd.json")
    page, check, backwards, instant, years = found
    assert page.trace == check.trace == 0x5B8EFFF798038103D269B633813FC60C
    assert check.parent == page.id == 0xEEE19B7EC3C1B174
    assert (page.name, page.kind, page.duration) == ("GET /pages/{id}", Kind.SERVER, SECOND)
    assert (page.resource.service, page.resource.instance) == ("tracker", "t1")
    assert (check.name, check.kind) == ("Licences/Check", Kind.CLIENT)
    assert check.peer == "licences.prod.example"
    assert check.target == "http://licences/1"
    assert check.resend == 2
    assert check.ending is Ending.TIMEOUT
    assert (backwards.kind, backwards.duration) == (Kind.UNKNOWN, 0)
    assert (instant.start, instant.duration) == (2 * SECOND, 0)
    assert years.duration == 24 * 3600 * SECOND
    assert sink.seen == 8
    assert sink.oddities == {
        "sender without a service name": 1,
        "span without an id or a trace id, left out": 1,
        "span without a possible start or end, left out": 2,
        "span that ends before it starts, taken as instant": 1,
        "span of no length": 1,
        "span longer than a day, taken as a day": 1,
    }


def test_odd_jaeger_is_read_and_counted() -> None:
    found, sink = read(DATA / "jaeger-odd.json")
    page, check, aside, nobody = found
    assert (page.kind, page.start) == (Kind.SERVER, 1544712660 * SECOND)
    assert (page.resource.service, page.resource.instance) == ("tracker", "t1")
    assert (check.parent, check.kind, check.peer) == (1, Kind.CLIENT, "licences")
    assert (check.duration, check.ending) == (800 * MILLISECOND, Ending.OVERLOADED)
    assert check.resend == 1
    assert (aside.parent, aside.resource.service) == (1, "aside")
    assert (nobody.parent, nobody.resource.service) == (1, "")
    assert nobody.ending is Ending.TIMEOUT
    assert sink.shares == {0.25: 1}
    assert sink.oddities == {
        "sender without a service name": 1,
        "span without a possible start or end, left out": 1,
        "span of no length": 1,
        "span that ends before it starts, taken as instant": 1,
    }


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b" \n ", "is empty"),
        (b"hello", "byte 0: is not JSON"),
        (b"\x0a\x9e\x01\x0a", "byte 1: is not JSON"),
        (b"\x00" * 100, "byte 0: is not JSON"),
        ('{"a": 1}'.encode("utf-16"), "byte 0: is not JSON"),
        (b"{}", "is JSON but holds no traces"),
        (b"[]", "is JSON but holds no traces"),
        (b'{"a": {"resourceSpans": []}}', "is JSON but holds no traces"),
        (b'{"data": {"resultType": "matrix"}}', "is JSON but holds no traces"),
        (b'{"resourceSpans": []}', "well-formed, but without a single span"),
        (b'{"data": null}', "well-formed, but without a single span"),
        (b'{"resourceMetrics": [{}]}', "is JSON but holds no traces"),
        (b'[{"traceId": "1", "id": "2", "localEndpoint": {}}]', "byte 1: looks like Zipkin's"),
        (b"[1]", "byte 1: expected {, found 1"),
        (b'[[{"traceId": "1"}]]', "byte 1: expected {, found ["),
        (b'{"resourceSpans": {}}', "byte 18: expected [, found {"),
        (b'{"resourceSpans": [1]}', "byte 19: in the value that begins here, expected `object`"),
        (b'{"resourceSpans": [{}', "byte 21: expected , or ], found the end of the text"),
        (b'{"resourceSpans": [{"scopeSpans": [{"spa', "byte 19: the file ends in the middle"),
        (b'{"resourceSpans": [{"scopeSpans": 5}]}', "expected `array | null`, got `int` - at `$.s"),
        (b'{"resourceSpans": []} {"resourceSp', "byte 22: the file ends in the middle"),
        (b'{"resourceSpans": []} trailing', "byte 22: expected {, found t"),
        (b'{"data": [{"spans": [{"tags": 1}]}]}', "byte 10: in the value that begins here"),
    ],
)
def test_what_is_no_trace_file_is_one_sentence(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "traces.json"
    path.write_bytes(content)
    with pytest.raises(InputError) as raised:
        read(path)
    assert str(raised.value).startswith(f"{path}: ")
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


def test_files_that_are_not_there_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^cannot read .*gone\.json: there is no such file$"):
        read(tmp_path / "gone.json")
    with pytest.raises(InputError, match=r"cannot read .*: it is a directory"):
        read(tmp_path)
    with pytest.raises(InputError, match="expected at least one file"):
        read()


def test_metrics_among_the_traces_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    one = Span(trace=1, id=1, resource=Resource("a"), name="b", start=1, duration=1)
    path.write_text('{"resourceMetrics": [{"a": [1]}]}\n' + json.dumps(spans_to_otlp([one])))
    found, sink = read(path)
    assert len(found) == 1
    assert sink.oddities == {"metrics or logs among the traces, passed over": 1}


def test_progress_ends_at_the_size_of_all_files(tmp_path: Path) -> None:
    one = Span(trace=1, id=1, resource=Resource("a"), name="b", start=1, duration=1)
    text = json.dumps(spans_to_otlp([one])).encode()
    first, second = tmp_path / "1.json", tmp_path / "2.json.gz"
    first.write_bytes(text)
    second.write_bytes(gzip.compress(text))
    told: list[tuple[int, int]] = []
    found, _ = read(first, second, progress=lambda done, total: told.append((done, total)))
    total = first.stat().st_size + second.stat().st_size
    assert len(found) == 2
    assert told[-1] == (total, total)
    assert told == sorted(told)


def test_senders_beyond_any_fleet_are_taken_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.analysis.ingest.sink._RESOURCES_MAX", 2)
    sink = Sink(lambda span: None)
    names = [sink.resource(f"s{n}", "").service for n in range(4)]
    assert names == ["s0", "s1", "(other)", "(other)"]
    assert sink.oddities == {"sender beyond the first 2": 2}
