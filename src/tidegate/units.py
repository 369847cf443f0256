"""What does "250ms" mean, and how is 250,000,000 shown to a person?

Inside, a time is an int of nanoseconds, a rate is a float per second, a share is a float of one.
People write `250ms`, `600/s`, `30%`, `4x`. This module converts at that edge and nowhere else.
A bare number is refused where a unit is needed: `timeout: 5` has meant seconds to one reader and
milliseconds to another in more than one outage.
"""

import math
import re
from typing import Annotated, Final

from msgspec import Meta

__all__ = [
    "DAY",
    "HOUR",
    "MICROSECOND",
    "MILLISECOND",
    "MINUTE",
    "SECOND",
    "Bytes",
    "Count",
    "Duration",
    "Factor",
    "Instant",
    "PerRequest",
    "Rate",
    "Share",
    "format_bytes",
    "format_duration",
    "format_rate",
    "format_share",
    "parse_bytes",
    "parse_count",
    "parse_duration",
    "parse_factor",
    "parse_per_request",
    "parse_rate",
    "parse_share",
    "seconds",
]

MICROSECOND: Final = 1_000
MILLISECOND: Final = 1_000_000
SECOND: Final = 1_000_000_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR

# One table gives the parser, the formatter and the sentence that an error prints.
_DURATION_UNITS: Final = {
    "ns": 1,
    "us": MICROSECOND,
    "ms": MILLISECOND,
    "s": SECOND,
    "min": MINUTE,
    "h": HOUR,
    "d": DAY,
}
# As disks and Kubernetes count: powers of a thousand, and with an i of 1,024.
_BYTE_UNITS: Final = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
_RATE_UNITS: Final = {"s": 1.0, "min": 60.0, "h": 3600.0}

_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_NUMBER_RE: Final = re.compile(_NUMBER)
_DURATION_RE: Final = re.compile(rf"({_NUMBER}) ?(ns|us|ms|s|min|h|d)")
_BYTES_RE: Final = re.compile(rf"({_NUMBER}) ?([kMGT]B|[KMGT]iB|B)")
_RATE_RE: Final = re.compile(rf"({_NUMBER}) ?/ ?(s|min|h)")
_SHARE_RE: Final = re.compile(rf"({_NUMBER}) ?%")
_FACTOR_RE: Final = re.compile(rf"({_NUMBER}) ?x")

_BYTES_MAX: Final = 10**18

# A century. Longer than any setting and short enough that sums of a few stay exact in a float.
_DURATION_MAX: Final = 100 * 365 * DAY

type_names: Final = {
    "duration": "a duration with its unit, as 250ms, 10s, 5min or 2h",
    "bytes": "a size with its unit, as 512B, 64kB, 10MB, 50GB or 16MiB",
    "rate": "a rate with its unit, as 600/s, 30/min or 100/h",
    "share": "a share, as 30% or 0.3",
    "factor": "a factor, as 4x",
    "count": "a whole number, as 100",
    "per_request": "a probability (30%) or a number of calls (3, 2.5)",
}


def _meta(kind: str, pattern: str, *, number: bool) -> Meta:
    written: dict[str, object] = {"type": "string", "pattern": f"^{pattern}$"}
    schema: dict[str, object] = {"description": type_names[kind]}
    if number:
        schema |= {"type": ["number", "string"], "pattern": f"^{pattern}$"}
    else:
        schema |= written
    return Meta(extra={"unit": kind}, extra_json_schema=schema)


Instant = int
"""Nanoseconds of whatever clock the shell uses; only differences mean anything."""

Duration = Annotated[int, _meta("duration", rf"{_NUMBER} ?(ns|us|ms|s|min|h|d)", number=False)]
"""Nanoseconds. Written `250ms`, `10s`, `5min`, `2h`, `14d`."""

Bytes = Annotated[int, _meta("bytes", rf"{_NUMBER} ?([kMGT]B|[KMGT]iB|B)", number=False)]
"""Bytes. Written `512B`, `64kB`, `10MB`, `50GB`, or in powers of 1,024 `16MiB`."""

Rate = Annotated[float, _meta("rate", rf"{_NUMBER} ?/ ?(s|min|h)", number=False)]
"""Per second. Written `600/s`, `30/min`, `100/h`."""

Share = Annotated[float, _meta("share", rf"{_NUMBER} ?%", number=True)]
"""A part of one. Written `30%` or `0.3`."""

Factor = Annotated[float, _meta("factor", rf"{_NUMBER} ?x", number=True)]
"""A multiple. Written `4x`."""

Count = Annotated[int, _meta("count", r"[0-9]+", number=True)]
"""A whole number of things."""

PerRequest = Annotated[float, _meta("per_request", rf"{_NUMBER} ?%", number=True)]
"""Calls per request: `30%` a chance of one, `3` three, `2.5` two and half a chance of a third."""


def _as_number(text: str, kind: str) -> float:
    if not _NUMBER_RE.fullmatch(text):
        raise ValueError(f"expected {type_names[kind]}, found {_quoted(text)}")
    return _finite(float(text), kind, text)


def _finite(value: float, kind: str, text: str) -> float:
    if not math.isfinite(value):
        raise ValueError(f"expected {type_names[kind]}, found {_quoted(text)}")
    return value


def _quoted(text: str) -> str:
    """The text as a person wrote it, cut so that a 10 MB scalar does not fill the terminal."""
    shown = text if len(text) <= 40 else text[:37] + "..."
    return repr(shown) if shown else "nothing"


def parse_duration(text: str) -> int:
    """Nanoseconds of `250ms`. Raises ValueError with what was expected; never negative."""
    match = _DURATION_RE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"expected {type_names['duration']}, found {_quoted(text)}")
    number = _finite(float(match[1]), "duration", text)
    if number * _DURATION_UNITS[match[2]] > _DURATION_MAX:
        raise ValueError(f"expected a duration of at most 100 years, found {_quoted(text)}")
    if "." in match[1]:
        return round(number * _DURATION_UNITS[match[2]])
    # Whole numbers stay whole: a float is exact only up to 104 days of nanoseconds.
    return int(match[1].lstrip("0") or "0") * _DURATION_UNITS[match[2]]


def parse_bytes(text: str) -> int:
    """Bytes of `10MB`, rounded to a whole one. At most a million terabytes."""
    match = _BYTES_RE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"expected {type_names['bytes']}, found {_quoted(text)}")
    number, unit = _finite(float(match[1]), "bytes", text), _BYTE_UNITS[match[2]]
    if number * unit > _BYTES_MAX:
        raise ValueError(f"expected a size of at most 1,000,000TB, found {_quoted(text)}")
    if "." in match[1]:
        return round(number * unit)
    return int(match[1].lstrip("0") or "0") * unit  # a float is exact only up to 9 PB


def parse_rate(text: str) -> float:
    """Events per second of `600/s`, `30/min` or `100/h`."""
    match = _RATE_RE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"expected {type_names['rate']}, found {_quoted(text)}")
    return _finite(float(match[1]), "rate", text) / _RATE_UNITS[match[2]]


def parse_share(text: str) -> float:
    """A part of one from `30%` or `0.3`. Above one is allowed here; settings bound it."""
    match = _SHARE_RE.fullmatch(text.strip())
    if match is not None:
        return _finite(float(match[1]), "share", text) / 100
    return _as_number(text.strip(), "share")


def parse_factor(text: str) -> float:
    """A multiple from `4x` or `4`."""
    match = _FACTOR_RE.fullmatch(text.strip())
    return _as_number(match[1] if match else text.strip(), "factor")


def parse_count(text: str) -> int:
    """A whole number from `100`; underscores and signs are refused."""
    if not re.fullmatch(r"[0-9]{1,18}", text.strip()):
        raise ValueError(f"expected {type_names['count']}, found {_quoted(text)}")
    return int(text)


def parse_per_request(text: str) -> float:
    """Calls per request from `30%`, `3` or `2.5`."""
    match = _SHARE_RE.fullmatch(text.strip())
    if match is not None:
        return _finite(float(match[1]), "per_request", text) / 100
    return _as_number(text.strip(), "per_request")


def seconds(value: float) -> int:
    """Nanoseconds of a number of seconds, rounded to the nearest: the edge for Python callers."""
    if not math.isfinite(value) or value < 0:
        raise ValueError(f"expected a number of seconds, zero or more, found {value!r}")
    return round(value * SECOND)


def _shortest(value: float) -> str:
    """Three significant digits, no exponent, no trailing zeros: 1.5, 250, 0.004."""
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{min(digits, 9)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def format_duration(nanoseconds: float) -> str:
    """The largest unit that leaves a number of one or more: `250ms`, `1.5s`, `21.1min`."""
    if nanoseconds == math.inf:
        return "for ever"
    for name, size in reversed(_DURATION_UNITS.items()):
        if abs(nanoseconds) >= 0.9995 * size:  # 999.9ms is shown as 1s, not as 1,000ms
            return f"{_shortest(nanoseconds / size)}{name}"
    return "0s"


def format_bytes(size: float) -> str:
    """A size in powers of a thousand, three significant digits: `64kB`, `1.5GB`."""
    for name in ("TB", "GB", "MB", "kB", "B"):
        if abs(size) >= 0.9995 * _BYTE_UNITS[name]:
            return f"{_shortest(size / _BYTE_UNITS[name])}{name}"
    return "0B"


def format_rate(per_second: float) -> str:
    """A rate per second with three significant digits: `600/s`, `0.5/s`."""
    return f"{_shortest(per_second)}/s"


def format_share(share: float) -> str:
    """A share in percent; below a tenth of a percent it says so instead of showing zero."""
    if share != 0 and abs(share) < 0.001:
        return "<0.1%"
    percent = share * 100
    return f"{percent:.1f}%".replace(".0%", "%")
