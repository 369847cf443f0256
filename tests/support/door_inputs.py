"""Bodies that a door may be sent, most of them spoilt, and what must come of each.

The judge is slow and simple: lines are split, and each is given to Python's own JSON. A body is
kept as a whole, exactly as the judge reads it, or refused as a whole with a sentence.
"""

import gzip
import json
import re
import zlib
from random import Random

from tidegate.spooler.door.answer import No
from tidegate.spooler.door.body import RECORDS_MAX, inflated, records_of
from tidegate.spooler.record import Record
from tidegate.spooler.sinks.http import BATCH_TYPE, batch_bytes

JSON, LINES, RAW = "application/json", "application/x-ndjson", "application/octet-stream"
KINDS = (JSON, LINES, RAW, BATCH_TYPE)
LARGEST, BODY_MAX = 200, 2000

_SURROGATE = re.compile(r"\\u[dD][89abAB]|\\u[dD][c-fC-F]")
_DEEP = 200  # deeper than this the two may differ
_SEEDS = (
    b'{"a": 1, "b": [true, null, "x\\n\\u00e9"]}',
    b"[]",
    b'"\xc3\xa9"',
    b"-1.5e+3",
    b"{}",
    b"null",
    b'{"a":{"b":{"c":[[[1]]]}}}',
    b"12345678901234567890123456789",
)
_SPICES = (b"\n", b"\r\n", b" ", b"\x00", b"\xff", b'"', b"{", b"}", b"[", b"]", b",", b":", b"\\")


def made(luck: Random) -> tuple[str, bytes, bool]:
    """A body, what it says it is, and whether it says that it is packed."""
    kind = luck.choice(KINDS)
    pieces = [luck.choice(_SEEDS) for _ in range(luck.randrange(6))]
    if kind == BATCH_TYPE:
        body = batch_bytes([Record(piece, piece[: luck.randrange(4)]) for piece in pieces])
    elif kind == LINES:
        body = luck.choice((b"\n", b"\r\n", b"\n\n")).join(pieces)
    else:
        body = pieces[0] if pieces else luck.randbytes(luck.randrange(20))
    for _ in range(luck.choice((0, 0, 1, 1, 2, 5))):
        body = _spoilt(body, luck)
    packed = luck.random() < 0.2
    if packed:
        body = gzip.compress(body, 1)
        if luck.random() < 0.5:
            body = _spoilt(body, luck)
    return kind, body, packed


def _spoilt(body: bytes, luck: Random) -> bytes:
    at = luck.randrange(len(body) + 1)
    match luck.randrange(6):
        case 0:
            return body[:at]
        case 1:
            return body[:at] + luck.choice(_SPICES) + body[at:]
        case 2:
            return body[:at] + luck.randbytes(luck.randrange(1, 4)) + body[at + 1 :]
        case 3:
            return body[:at] + body[at + luck.randrange(1, 4) :]
        case 4:
            return body[:at] + body[luck.randrange(len(body) + 1) :] + body[at:]
        case _:
            return (body * luck.randrange(1, 9))[: 3 * BODY_MAX]


def taken(kind: str, body: bytes, packed: bool) -> list[Record] | int:
    """The records that the door finds, or the status with which it refuses."""
    try:
        if packed:
            body = inflated(body, BODY_MAX)
        return records_of(kind, body, largest=LARGEST)
    except No as no:
        refused = no
    assert refused.status in {400, 413}
    assert 0 < len(str(refused)) < 200
    assert str(refused).isprintable()
    return refused.status


def judged(kind: str, body: bytes, packed: bool) -> list[bytes] | None:
    """The values of the records as the judge reads them; None if there are none to keep."""
    if packed:
        try:
            body = gzip.decompress(body)
        except (OSError, EOFError, zlib.error):
            return None
        if len(body) > BODY_MAX:
            return None
    if kind == RAW:
        values = [body] if body else []
    elif kind == JSON:
        value = body.strip(b" \t\r\n")
        values = [value] if value else []
    else:
        values = [line.strip(b" \t\r") for line in body.split(b"\n")]
        values = [line for line in values if line]
    if not 0 < len(values) <= RECORDS_MAX:
        return None
    if kind != RAW and not all(map(_is_json, values)):
        return None
    return values


def check(kind: str, body: bytes, packed: bool) -> bool:
    """Whether it was kept; AssertionError if that was wrong, or what was kept is."""
    found = taken(kind, body, packed)
    if kind == BATCH_TYPE:
        return _check_batch(body, packed, found)
    right = judged(kind, body, packed)
    if isinstance(found, int):
        # What the judge would keep is refused for its size alone, or where Python is milder.
        assert (
            right is None
            or packed
            or any(
                len(value) > LARGEST or _SURROGATE.search(value.decode("latin-1")) or _deep(value)
                for value in right
            )
        )
        return False
    assert right is not None
    for record, value in zip(found, right, strict=True):
        assert len(record.value) <= LARGEST
        assert record.key == b""
        if kind == JSON and b"\n" in value:
            assert b"\n" not in record.value
            assert _parsed(record.value) == _parsed(value)
        else:
            assert record.value == value
    return True


def _check_batch(body: bytes, packed: bool, found: list[Record] | int) -> bool:
    """A batch has one encoding for a list of pairs, but for longer heads than are needed."""
    if isinstance(found, int):
        return False
    assert found
    if packed:
        body = gzip.decompress(body)
    assert all(record.value in body and record.key in body for record in found)
    assert sum(len(record.value) + len(record.key) for record in found) < len(body)
    return True


def _is_json(value: bytes) -> bool:
    try:
        _parsed(value)
    except (ValueError, RecursionError):
        return False
    return True


def _parsed(value: bytes) -> object:
    """As text, so that no number is too long and none is changed."""
    return json.loads(
        value.decode("utf-8"), parse_int=str, parse_float=str, parse_constant=_no_constant
    )


def _no_constant(name: str) -> object:
    raise ValueError(name)


def _deep(value: bytes) -> bool:
    return value.count(b"[") + value.count(b"{") > _DEEP
