"""What is a record in a body, and what is said of a body that has none."""

import gzip
import tracemalloc
import zlib

import pytest

from tidegate.spooler.door.answer import No
from tidegate.spooler.door.body import KEY_MAX, RECORDS_MAX, inflated, kind_of, records_of
from tidegate.spooler.record import Record
from tidegate.spooler.sinks.http import BATCH_TYPE, batch_bytes

JSON, LINES, RAW = "application/json", "application/x-ndjson", "application/octet-stream"


def values(kind: str, body: bytes, largest: int = 1000) -> list[bytes]:
    return [record.value for record in records_of(kind, body, largest=largest)]


@pytest.mark.parametrize(
    ("kind", "body", "found"),
    [
        (JSON, b'{"a": 1}', [b'{"a": 1}']),
        (JSON, b' {"a":\n  1}\r\n', [b'{"a":1}']),
        (JSON, b"[1, 2]", [b"[1, 2]"]),  # an array is a value as well
        (JSON, b'"two\\nlines"', [b'"two\\nlines"']),
        (JSON, b"1.10", [b"1.10"]),
        (LINES, b'{"a": 1}\n{"a": 2}\n', [b'{"a": 1}', b'{"a": 2}']),
        (LINES, b'{"a": 1}\r\n\r\n  \t\n 2', [b'{"a": 1}', b"2"]),
        (RAW, b"\x00\xff\n\n", [b"\x00\xff\n\n"]),
        (JSON, '"é"'.encode(), ['"é"'.encode()]),
        (JSON, b'{"n": 123456789012345678901234567890, "n": 1e400}', None),
    ],
)
def test_records_are_kept_as_they_came(kind, body, found):
    assert values(kind, body) == ([body] if found is None else found)


@pytest.mark.parametrize(
    ("kind", "body", "status", "said"),
    [
        (JSON, b"", 400, "the body has no record"),
        (LINES, b"\n \r\n", 400, "the body has no record"),
        (RAW, b"", 400, "the body has no record"),
        (BATCH_TYPE, b"\x90", 400, "the body has no record"),
        (JSON, b"{'a': 1}", 400, "expected JSON: expected '\"' (byte 1)"),
        (JSON, b'{"a": 1} {"a": 2}', 400, "expected JSON: trailing characters (byte 10)"),
        (LINES, b'1\n\n{"a": \n3', 400, "line 3: expected JSON: truncated"),
        (LINES, b'1\n"\xff"', 400, "line 2: expected UTF-8 (byte 1)"),
        (JSON, b"[" * 100_000, 400, "expected JSON that is not so deep"),
        (LINES, b"1\n" + b"8" * 2000, 413, "line 2 is larger than 1kB"),
        (RAW, b"8" * 2000, 413, "record 1 is larger than 1kB"),
        (JSON, b"8" * 2000, 413, "the record is larger than 1kB"),
        (LINES, b"1\n" * (RECORDS_MAX + 1), 413, "the body has more than 100,000 records"),
        (BATCH_TYPE, b"\xdd\xff\xff\xff\xff", 413, "the body has more than 100,000 records"),
        (
            BATCH_TYPE,
            b"\x91\x91\xc4\x00",
            400,
            "expected a batch, a MessagePack array of [key, value]",
        ),
    ],
)
def test_what_is_wrong_anywhere_refuses_all_of_it(kind, body, status, said):
    with pytest.raises(No) as refused:
        records_of(kind, body, largest=100_000_000 if len(body) > 10_000 else 1000)
    assert (refused.value.status, str(refused.value)) == (status, said)


def test_a_batch_of_another_spool_keeps_its_keys():
    records = [Record(b"\x00\n", b"user 7"), Record(b"", b"")]
    assert records_of(BATCH_TYPE, batch_bytes(records), largest=1000) == records


def test_one_key_holds_for_all_lines_and_for_no_batch():
    assert records_of(LINES, b"1\n2", key=b"k", largest=9) == [
        Record(b"1", b"k"),
        Record(b"2", b"k"),
    ]
    with pytest.raises(No, match="a batch has a key for each record"):
        records_of(BATCH_TYPE, b"\x90", key=b"k", largest=9)
    with pytest.raises(No, match="record 1: its key is longer than 1024 bytes"):
        records_of(RAW, b"1", key=b"k" * (KEY_MAX + 1), largest=5000)
    with pytest.raises(No, match="record 1 is larger than 9B"):
        records_of(RAW, b"1234567", key=b"key", largest=9)


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("application/json", JSON),
        ("Application/JSON; charset=UTF-8", JSON),
        ("application/jsonl", LINES),
        ("application/x-jsonlines ; x=1", LINES),
        ("application/octet-stream; charset=latin-1", RAW),
    ],
)
def test_a_content_type_says_the_kind(said, kind):
    assert kind_of(said) == kind


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("application/jsno", "expected the content-type application/json, application/x-ndjson, "),
        ("", "found none"),
        ("application/json; charset=latin-1", "expected UTF-8"),
        ("application/x-www-form-urlencoded", "'application/x-www-form-urlencoded'"),
    ],
)
def test_another_content_type_is_refused_with_those_that_there_are(said, sentence):
    with pytest.raises(No) as refused:
        kind_of(said)
    assert refused.value.status == 415
    assert sentence in str(refused.value)


def test_what_was_packed_is_unpacked():
    body = b'{"a": 1}\n' * 10_000
    assert inflated(gzip.compress(body, mtime=0), len(body)) == body
    assert inflated(gzip.compress(b"", mtime=0), 0) == b""


@pytest.mark.parametrize(
    ("packed", "status", "said"),
    [
        (b"", 400, "the body ends before its gzip does"),
        (gzip.compress(b"x" * 1000, mtime=0)[:-3], 400, "the body ends before its gzip does"),
        (b"plain", 400, "the body is not gzip, as its content-encoding says"),
        (zlib.compress(b"x"), 400, "the body is not gzip, as its content-encoding says"),
        (
            gzip.compress(b"x", mtime=0) + b"y",
            400,
            "expected one gzip member, found bytes behind it",
        ),
        (gzip.compress(b"x" * 1001, mtime=0), 413, "unpacked, the body is larger than 1kB"),
        (
            gzip.compress(b"x" * 100, mtime=0)[:-8] + b"\x00" * 8,
            400,
            "the body is not gzip, as its content-encoding says",
        ),
    ],
)
def test_what_does_not_unpack_is_refused(packed, status, said):
    with pytest.raises(No) as refused:
        inflated(packed, 1000)
    assert (refused.value.status, str(refused.value)) == (status, said)


def test_a_bomb_goes_off_at_its_bound():
    bomb = gzip.compress(bytes(10_000_000), mtime=0)
    tracemalloc.start()
    with pytest.raises(No):
        inflated(bomb, 1_000_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2_000_000
