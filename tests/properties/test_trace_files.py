"""Whatever happened to a trace file, it is read or refused in one sentence; no other error exists.

Files are made from real ones by cutting, swapping, repeating and rewriting pieces, as broken disks,
rotated logs and hand edits do.
"""

import gzip
import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_maker import TraceMaker

from tidegate.analysis.infer import infer
from tidegate.analysis.ingest.write import spans_to_jaeger, spans_to_otlp
from tidegate.errors import InputError
from tidegate.settings.load import loads

SYSTEM = """
tidegate: 1
clients: {users: {rate: 20/s, calls: {a: {}}}}
services:
  a: {time: 1ms, calls: {b: {attempts: 2, timeout: 5ms}, c: {optional: true}}}
  b: {time: 3ms, calls: {d: {}}}
  c: {time: 1ms}
  d: {time: 1ms}
"""
_SPANS = TraceMaker(loads(SYSTEM).system(), leaves=("d",), broken={"c": 0.3}).run(0.5)
DOCUMENTS = [spans_to_otlp(_SPANS), spans_to_jaeger(_SPANS)]
TEXTS = [json.dumps(document).encode() for document in DOCUMENTS]
TEXTS += [
    b"\n".join(json.dumps({"resourceSpans": [b]}).encode() for b in DOCUMENTS[0]["resourceSpans"]),
    gzip.compress(TEXTS[0], mtime=0),
]
# Leaves that a hand or a bug could put anywhere.
LEAVES: list[Any] = [
    *(None, True, False, 0, -1, 1.5, 1e300, 2**63, 2**200, "", "0", "x", "-5", "SPAN_KIND_CLIENT"),
    *("ffffffffffffffff", "é\u0000", [], {}, [[]], [{}], {"stringValue": 5}, {"a": None}),
]


def judged(path: Path) -> None:
    """Either a system whose file can be loaded again, or one sentence that names the file."""
    try:
        found = infer([path])
    except InputError as error:
        sentence = str(error)
    else:
        assert loads(found.text()).system().services
        return
    assert sentence.startswith(str(path))
    assert "\n" not in sentence


@pytest.mark.slow  # many files
@settings(max_examples=150)
@given(st.sampled_from(TEXTS), st.integers(0, 10**6))
def test_a_file_cut_off_anywhere(
    tmp_path_factory: pytest.TempPathFactory, text: bytes, at: int
) -> None:
    path = tmp_path_factory.mktemp("cut") / "traces.json"
    path.write_bytes(text[: at % len(text)])
    judged(path)


@pytest.mark.slow  # many files
@settings(max_examples=200)
@given(st.sampled_from(TEXTS), st.integers(0, 2**32))
def test_a_file_with_broken_bytes(
    tmp_path_factory: pytest.TempPathFactory, text: bytes, seed: int
) -> None:
    rng = Random(seed)
    broken = bytearray(text)
    for _ in range(rng.randrange(1, 6)):
        start = rng.randrange(len(broken))
        piece = broken[start : start + rng.randrange(1, 60)]
        other = rng.randrange(len(broken))
        match rng.randrange(4):
            case 0:
                broken[other : other + len(piece)] = piece
            case 1:
                broken[other:other] = piece
            case 2:
                del broken[start : start + len(piece)]
            case _:
                broken[start] = rng.choice(b'{}[]",:\\\x00\xff0e-')
    path = tmp_path_factory.mktemp("broken") / "traces.json"
    path.write_bytes(broken)
    judged(path)


@pytest.mark.slow  # many files
@settings(max_examples=200)
@given(st.sampled_from([0, 1]), st.integers(0, 2**32))
def test_a_file_with_odd_values(
    tmp_path_factory: pytest.TempPathFactory, which: int, seed: int
) -> None:
    rng = Random(seed)
    document = json.loads(TEXTS[which])
    for _ in range(rng.randrange(1, 8)):
        twist(document, rng)
    path = tmp_path_factory.mktemp("odd") / "traces.json"
    path.write_text(json.dumps(document))
    judged(path)


def twist(document: Any, rng: Random) -> None:
    """Put something else at a random place, leave a member out, or let one come twice."""
    found = list(places(document))
    if not found:
        return
    value, key = rng.choice(found)
    if rng.random() < 0.2:
        del value[key]
    elif isinstance(value, list) and rng.random() < 0.3:
        value.append(deepcopy(value[key]))
    else:
        value[key] = deepcopy(rng.choice(LEAVES))


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every member of every object and array."""
    for key in value if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from places(value[key])


@pytest.mark.slow  # many files
@settings(max_examples=100)
@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_a_file_of_anything(tmp_path_factory: pytest.TempPathFactory, text: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "traces.json"
    path.write_bytes(text)
    judged(path)
