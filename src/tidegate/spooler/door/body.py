"""Which records are in the body of a request, if each of them is one?

    application/json           one JSON value is one record, an array too; line feeds are taken out
    application/x-ndjson       one record a line (also application/jsonl); empty lines are none
    application/octet-stream   the body is one record, whatever it is
    application/x-tidegate-batch   as spools hand them to each other, with a key for each

A record is kept as it came, byte for byte, but for the space around it and the line feeds of a
JSON value: what is sent on as lines must be one. JSON is read once from end to end to see that it
is JSON, and built into nothing. The first thing that is wrong refuses the whole body, in a sentence
that names the line and tells nothing of what is in it.

A body comes from anybody: what it costs is bounded by its size and by `RECORDS_MAX`, also packed.
"""

import zlib
from collections.abc import Iterator
from typing import Final

import msgspec

from tidegate.spooler.door.answer import No
from tidegate.spooler.record import Record
from tidegate.spooler.sinks.http import BATCH_TYPE, read_batch
from tidegate.units import format_bytes

__all__ = ["KEY_MAX", "RECORDS_MAX", "TYPES", "inflated", "kind_of", "records_of"]

RECORDS_MAX: Final = 100_000
"""In one request. Eight million of a byte each would fit into 16 MB, and take 640 MB here."""

KEY_MAX: Final = 1024
"""Bytes of a key: it is kept with each record."""

JSON: Final = "application/json"
LINES: Final = "application/x-ndjson"
RAW: Final = "application/octet-stream"
_ALSO_LINES: Final = ("application/jsonl", "application/ndjson", "application/x-jsonlines")
TYPES: Final = (JSON, LINES, *_ALSO_LINES, RAW, BATCH_TYPE)
_KNOWN: Final = f"{JSON}, {LINES}, {RAW} or {BATCH_TYPE}"

_PIECE: Final = 64 * 1024  # inflated at once
_SPACE: Final = b" \t\r"
_CHARSETS: Final = ("utf-8", "utf8", "us-ascii", "ascii")

_value = msgspec.json.Decoder(msgspec.Raw).decode  # reads to the end and keeps nothing


def kind_of(content_type: str) -> str:
    """Which of the four kinds; No 415 for another."""
    kind, _, parameters = content_type.partition(";")
    kind = kind.strip().lower()
    if kind not in TYPES:
        found = repr(kind[:80]) if kind else "none"
        raise No(415, f"expected the content-type {_KNOWN}, found {found}")
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if kind in (RAW, BATCH_TYPE) or name.strip().lower() != "charset":
            continue
        if value.strip(" \"'").lower() not in _CHARSETS:
            raise No(415, "expected UTF-8: JSON has no other charset (RFC 8259)")
    return LINES if kind in _ALSO_LINES else kind


def inflated(body: bytes, most: int) -> bytes:
    """What was packed with gzip; No if it is more than `most` bytes, or is not whole.

    It is unpacked piece by piece, so that one that grows without end is seen at its bound.
    """
    unpacker = zlib.decompressobj(wbits=31)
    pieces, size, left = [], 0, body
    try:
        while not unpacker.eof:
            piece = unpacker.decompress(left, _PIECE)
            left = unpacker.unconsumed_tail
            size += len(piece)
            if size > most:
                raise No(413, f"unpacked, the body is larger than {format_bytes(most)}")
            if not piece and not left and not unpacker.eof:
                raise No(400, "the body ends before its gzip does")
            pieces.append(piece)
    except zlib.error:
        raise No(400, "the body is not gzip, as its content-encoding says") from None
    if unpacker.unused_data:
        raise No(400, "expected one gzip member, found bytes behind it")
    return b"".join(pieces)


def records_of(kind: str, body: bytes, *, key: bytes = b"", largest: int) -> list[Record]:
    """The records of a body of this kind, each with `key`, none above `largest` bytes.

    Raises No for a body that is wrong anywhere, and for one with no record.
    """
    if kind == BATCH_TYPE:
        if key:
            raise No(400, "a batch has a key for each record, and no Tidegate-Key for all")
        pairs = _batch(body)
    else:
        pairs = [(key, value) for value in _values(kind, body, largest - len(key))]
    for number, (own, value) in enumerate(pairs, 1):
        if len(own) > KEY_MAX:
            raise No(400, f"record {number}: its key is longer than {KEY_MAX} bytes")
        if len(own) + len(value) > largest:
            raise _too_large(f"record {number}", largest)
    if not pairs:
        raise No(400, "the body has no record")
    return [Record(value, own) for own, value in pairs]


def _values(kind: str, body: bytes, largest: int) -> Iterator[bytes]:
    if kind == RAW:
        if body:
            yield body
    elif kind == LINES:
        yield from _lines(body, largest)
    elif value := body.strip(b" \t\r\n"):
        if len(value) > largest and b"\n" not in value:
            raise _too_large("the record", largest)
        _check(value, "")
        yield msgspec.json.format(value, indent=-1) if b"\n" in value else value


def _lines(body: bytes, largest: int) -> Iterator[bytes]:
    at = number = found = 0
    while at < len(body):
        number += 1
        end = body.find(b"\n", at)
        end = len(body) if end < 0 else end
        if line := body[at:end].strip(_SPACE):
            found += 1
            if found > RECORDS_MAX:
                raise _too_many()
            if len(line) > largest:
                raise _too_large(f"line {number}", largest)
            _check(line, f"line {number}: ")
            yield line
        at = end + 1


def _check(value: bytes, where: str) -> None:
    """Raise unless it is one JSON value in UTF-8."""
    try:
        _value(value)
        if not value.isascii():
            value.decode("utf-8")
    except msgspec.MsgspecError as error:
        said = str(error).removeprefix("JSON is malformed: ").removeprefix("Input data was ")
        raise No(400, f"{where}expected JSON: {said}") from None
    except UnicodeDecodeError as error:
        raise No(400, f"{where}expected UTF-8 (byte {error.start})") from None
    except RecursionError:
        raise No(400, f"{where}expected JSON that is not so deep") from None


def _batch(body: bytes) -> list[tuple[bytes, bytes]]:
    # The number of records stands in front; a list for them would be made before they are read.
    if body[:1] == b"\xdc":
        count = int.from_bytes(body[1:3])
    elif body[:1] == b"\xdd":
        count = int.from_bytes(body[1:5])
    else:
        count = 0
    if count > RECORDS_MAX:
        raise _too_many()
    try:
        return read_batch(body)
    except (ValueError, RecursionError):
        raise No(400, "expected a batch, a MessagePack array of [key, value]") from None


def _too_large(where: str, largest: int) -> No:
    return No(413, f"{where} is larger than {format_bytes(largest)}")


def _too_many() -> No:
    return No(413, f"the body has more than {RECORDS_MAX:,} records")
