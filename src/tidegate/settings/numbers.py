"""How is a number of the system file read, and written back so that it reads the same?

`units` converts for people and rounds to three digits when it prints. A file must come back
exactly, so what is written here is the shortest text that reads as the very same number.
"""

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Final

from tidegate import units
from tidegate.settings.shapes import Unit

__all__ = ["parse_number", "parse_range", "pattern", "people", "write_number"]

_PARSERS: Final[dict[Unit, Callable[[str], float]]] = {
    "duration": units.parse_duration,
    "bytes": units.parse_bytes,
    "rate": units.parse_rate,
    "share": units.parse_share,
    "factor": units.parse_factor,
    "count": units.parse_count,
    "per_request": units.parse_per_request,
}
_SUFFIXES: Final[dict[Unit, str]] = {
    "duration": " ?(ns|us|ms|s|min|h|d)",
    "bytes": " ?([kMGT]B|[KMGT]iB|B)",
    "rate": " ?/ ?(s|min|h)",
    "share": " ?%",
    "factor": " ?x",
    "count": "",
    "per_request": " ?%",
}
_BARE: Final = re.compile(r"[0-9]+(\.[0-9]+)?")
_WITH_UNIT: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?( ?[A-Za-z%/].*)")
_HINTS: Final[dict[Unit, Callable[[str], str]]] = {
    "duration": "; write {0}s or {0}ms".format,
    "bytes": "; write {0}B or {0}MB".format,
    "rate": "; write {0}/s or {0}/min".format,
}


def parse_number(unit: Unit, text: str) -> float:
    """The number inside; ValueError with one sentence, and with the hint where a unit is missing.

    Durations (nanoseconds), sizes (bytes) and counts are ints, everything else is a float.
    """
    try:
        return _PARSERS[unit](text)
    except ValueError as error:
        hint = _HINTS.get(unit)
        if hint is not None and len(text) < 20 and _BARE.fullmatch(text):
            raise ValueError(f"{error}{hint(text)}") from None
        raise


def parse_range(unit: Unit, text: str) -> tuple[float, float] | None:
    """Both ends of `1s..10s`; None when the text is no range. `10..40%` means 10% to 40%.

    The unit may stand at the end alone, never at the start alone: `10%..40` would be a guess.
    """
    low_text, dots, high_text = (part.strip() for part in text.partition(".."))
    if not dots:
        return None
    low_unit, high_unit = _WITH_UNIT.fullmatch(low_text), _WITH_UNIT.fullmatch(high_text)
    if low_unit is not None and high_unit is None:
        raise ValueError(f"expected a unit at the end of the range as well, found {text[:40]!r}")
    if high_unit is not None and low_unit is None and _BARE.fullmatch(low_text):
        low_text += high_unit[1]
    low, high = parse_number(unit, low_text), parse_number(unit, high_text)
    if low > high:
        raise ValueError(f"expected a range from low to high, found {text[:40]!r}")
    return low, high


def write_number(unit: Unit, value: float) -> str:
    """The shortest text that `parse_number` reads as the same number: `90s`, `600/s`, `30%`."""
    if unit == "duration":
        return _duration(int(value))
    if unit == "bytes":
        return _bytes(int(value))
    if unit == "rate":
        return f"{_plain(value)}/s"
    if unit == "share" or (unit == "per_request" and value < 1):
        return _percent(value)
    return f"{_plain(value)}x" if unit == "factor" else _plain(value)


def people(unit: Unit, value: float) -> str:
    """The number as a report shows it: three digits, its unit beside it."""
    if unit == "duration":
        return units.format_duration(value)
    if unit == "bytes":
        return units.format_bytes(value)
    if unit == "rate":
        return units.format_rate(value)
    if unit == "share":
        return units.format_share(value)
    return write_number(unit, float(f"{value:.3g}") if unit != "count" else value)


def _duration(nanoseconds: int) -> str:
    sizes = (("h", units.HOUR), ("min", units.MINUTE), ("s", units.SECOND))
    smaller = (("ms", units.MILLISECOND), ("us", units.MICROSECOND))
    for name, size in (*sizes, *smaller):
        if nanoseconds >= size and nanoseconds % size == 0:
            return f"{nanoseconds // size}{name}"
    return f"{nanoseconds}ns" if nanoseconds else "0s"


def _bytes(size: int) -> str:
    sizes = (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("MiB", 2**20), ("kB", 10**3))
    for name, unit in sizes:
        if size >= unit and size % unit == 0:
            return f"{size // unit}{name}"
    return f"{size}B"


def _plain(value: float) -> str:
    """All digits that count and no exponent: `repr` is the shortest text that reads the same."""
    text = format(Decimal(repr(value)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _percent(share: float) -> str:
    text = format(Decimal(repr(share)) * 100, "f")
    percent = text.rstrip("0").rstrip(".") if "." in text else text
    # Dividing by 100 rounds once more; a share for which that shows is written as it is.
    return f"{percent}%" if float(percent) / 100 == share else _plain(share)


def pattern(unit: Unit) -> str:
    """The regular expression of a number of this unit, or of a range, as it stands in a string."""
    number, suffix = r"[0-9]+(\.[0-9]+)?", _SUFFIXES[unit]
    if unit == "count":
        return r"[0-9]{1,18}( *\.\. *[0-9]{1,18})?"
    ranged = rf"{number}({suffix})? *\.\. *{number}{suffix}"
    single = f"{number}{suffix}|{ranged}"
    if unit in ("duration", "bytes", "rate"):
        return single
    return rf"{single}|{number}( *\.\. *{number})?"
