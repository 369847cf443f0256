"""Values are handed out whole, in order, whatever the size of a read; breaks are told by offset."""

import gzip
import io
import json
import zlib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.analysis.ingest import stream
from tidegate.analysis.ingest.stream import Cursor, Source
from tidegate.errors import InputError

ANY = msgspec.json.Decoder()

scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text()
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


def cursor(text: bytes, reads: list[int] | None = None) -> Cursor:
    on_read = [].append if reads is None else reads.append
    return Cursor(Source(Path("a.json"), io.BytesIO(text), on_read))


def walk(at: Cursor) -> Any:
    """The value here, taken piece by piece: objects and arrays are stepped into."""
    opening = at.peek()
    if opening == b"{":
        return {key: walk(at) for key in at.members()}
    if opening == b"[":
        return [walk(at) for _ in at.elements()]
    return at.decoded(ANY)


@pytest.mark.slow  # many shapes times many sizes of a read
@given(st.lists(values, max_size=4), st.integers(1, 40), st.sampled_from([None, 1]))
def test_a_walk_gives_what_was_written(written: list[Any], chunk: int, indent: int | None) -> None:
    text = json.dumps(written, indent=indent, ensure_ascii=False).encode("utf-8", "replace")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "CHUNK", chunk)
        at = cursor(text)
        assert walk(at) == json.loads(text)
        assert at.peek() == b""
        assert at.offset == len(text)


@pytest.mark.slow  # as above
@given(values, values, st.integers(1, 40))
def test_a_whole_value_ends_where_it_ends(first: Any, second: Any, chunk: int) -> None:
    text = json.dumps([first, second]).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "CHUNK", chunk)
        at = cursor(text)
        found = [json.loads(at.value() or b"") for _ in at.elements()]
        assert found == [first, second]


@pytest.mark.slow  # as above
@given(values, st.integers(0, 30))
def test_a_value_is_passed_over_whatever_its_size(value: Any, whole: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "WHOLE", whole)
        at = cursor(json.dumps([value, "next"]).encode())
        elements = at.elements()
        next(elements)
        at.skip()
        next(elements)
        assert at.decoded(ANY) == "next"


def test_a_value_longer_than_the_limit_is_not_taken() -> None:
    at = cursor(b'{"a": "0123456789"}')
    assert at.value(10) is None
    assert at.offset == 0
    assert at.value(100) == b'{"a": "0123456789"}'


def test_brackets_and_quotes_in_strings_end_nothing() -> None:
    text = rb'{"a]}\"": "[{\\"}'
    assert cursor(text + b" 1").value() == text


def test_the_first_key_is_told_and_not_taken() -> None:
    at = cursor(b' { "data" : 1}')
    assert at.first_key() == "data"
    assert at.value() == b'{ "data" : 1}'
    assert cursor(b"{}").first_key() is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b'{"a" 1}', "byte 5: expected :, found 1"),
        (b'{"a": 1 "b": 2}', 'byte 8: expected , or }, found "'),
        (b"{a: 1}", 'byte 1: expected ", found a'),
        (b'{"a": }', "byte 6: expected a value, found }"),
        (b'{"a": ', "byte 6: expected a value, found the end of the text"),
        (b'{"a": [1, 2', "byte 6: the file ends in the middle"),
        (b'{"a": 1', "byte 6: the file ends in the middle"),
        (b'{"a": "\xff"}', "byte 6: in the value that begins here, invalid utf-8"),
        (b'{"a": tru }', "byte 6: in the value that begins here, input data was truncated"),
        (b'{"a": [1,]}', "byte 9: JSON is malformed: trailing comma in array"),
        (b'{"\xff": 1}', "byte 1: in the value that begins here, invalid utf-8"),
        (b'{"a": \x00}', "byte 6: JSON is malformed"),
    ],
)
def test_what_is_broken_is_told_with_its_offset(text: bytes, says: str) -> None:
    with pytest.raises(InputError) as raised:
        walk_values(cursor(text))
    assert f"a.json: {says}".lower() in str(raised.value).lower()


def walk_values(at: Cursor) -> None:
    for _ in at.members():
        at.decoded(ANY)


def test_nesting_beyond_any_trace_is_refused() -> None:
    deep = b"[" * 200 + b"]" * 200
    with pytest.raises(InputError, match="nested deeper than 99"):
        cursor(deep).value()
    with pytest.raises(InputError, match="nested deeper than 99"):
        cursor(b"[" * (3 << 20)).skip()


def test_a_file_of_brackets_costs_memory_only_up_to_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream, "LARGEST", 1000)
    monkeypatch.setattr(stream, "CHUNK", 100)
    reads: list[int] = []
    with pytest.raises(InputError, match="does not end within"):
        cursor(b'"' + b"x" * 1_000_000, reads).value(1000)
    assert sum(reads) < 5000


@pytest.mark.slow  # as above
@given(st.lists(st.binary(max_size=300), min_size=1, max_size=4), st.integers(1, 64))
def test_gzip_members_are_read_as_one_text(parts: list[bytes], chunk: int) -> None:
    packed = b"".join(gzip.compress(part) for part in parts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "CHUNK", chunk)
        source = Source(Path("a.gz"), io.BytesIO(packed), lambda size: None)
        if not source.gzipped:  # the first read was too short to tell
            return
        assert b"".join(iter(source.read, b"")) == b"".join(parts)


def test_zeros_after_gzip_are_padding() -> None:
    at = cursor(gzip.compress(b"[1]") + b"\0" * 512)
    assert at.value() == b"[1]"
    assert at.peek() == b""


def test_a_bomb_is_refused_long_before_it_is_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "_BOMB_FREE", 1 << 16)
    packed = gzip.compress(b"[" + b" " * 5_000_000 + b"]")
    with pytest.raises(InputError, match="unpacks to more than 100 times its size"):
        walk_all(packed)


@pytest.mark.parametrize(
    ("packed", "says"),
    [
        (gzip.compress(b"[1]" * 1000, mtime=0)[:-9], "the gzip data ends early, at byte"),
        (gzip.compress(b"[1]", mtime=0) + b"garbage", "the gzip data is broken near byte"),
        (gzip.compress(b"[1]", mtime=0)[:10] + b"\x07" * 20, "the gzip data is broken near byte"),
        (b"\x28\xb5\x2f\xfd....", "is packed with zstd"),
    ],
)
def test_broken_packing_is_one_sentence(packed: bytes, says: str) -> None:
    with pytest.raises(InputError, match=says):
        walk_all(packed)


def walk_all(packed: bytes) -> None:
    at = cursor(packed)
    while at.peek():
        at.value()


def test_offsets_of_a_packed_file_say_that_they_count_the_text() -> None:
    with pytest.raises(InputError, match=r"a\.json: byte 3 of the unpacked text: expected a value"):
        walk(cursor(gzip.compress(b"[1,]")))


def test_every_byte_of_the_file_is_told_to_the_progress() -> None:
    reads: list[int] = []
    packed = gzip.compress(json.dumps(list(range(10_000))).encode())
    walk_value = cursor(packed, reads)
    walk_value.value()
    walk_value.peek()
    assert sum(reads) == len(packed)
    assert zlib.decompress(packed, wbits=31).startswith(b"[0, 1")


def test_a_byte_order_mark_is_passed_over() -> None:
    assert cursor(b"\xef\xbb\xbf[1]").value() == b"[1]"
