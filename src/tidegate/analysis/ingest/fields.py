"""What number is meant, when each exporter writes ids and 64-bit integers in its own way?

JSON has no 64-bit integers, so the same field comes as a number or as text; ids come as hex of
either case, with or without leading zeros, or as base64 from plain protobuf exporters.
"""

import base64
import binascii
from typing import Final

__all__ = ["ID_MAX", "read_id", "read_integer"]

ID_MAX: Final = 2**64 - 1
_INT64_MAX: Final = 2**63 - 1


def read_id(text: object) -> int:
    """The id as an integer, 0 for none: hex, base64 of 8 or 16 bytes, else the text's own bytes.

    An id that is neither still tells spans apart, so it is not refused.
    """
    if isinstance(text, int) and not isinstance(text, bool):
        return abs(text)
    if not isinstance(text, str) or not text:
        return 0
    if len(text) <= 32 and text.isalnum():  # int() alone would take "0x1f", "1_0" and " 1"
        try:
            return int(text, 16)
        except ValueError:
            pass
    try:  # 8 or 16 bytes end in "=", so that none is taken for hex above
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if len(raw) not in (8, 16):
        raw = b"\1" + text.encode("utf-8", "replace")[:64]
    return int.from_bytes(raw, "big")


def read_integer(value: object) -> int | None:
    """A whole number that came as a number or as text; None if it is none or beyond 64 bits."""
    if value is None or isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    try:
        number = int(value)
    except (ValueError, OverflowError):
        return None
    return number if -_INT64_MAX <= number <= _INT64_MAX else None
