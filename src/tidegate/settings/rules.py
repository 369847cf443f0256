"""How does a settings record refuse a value, in one sentence with the key's name?"""

import math

from tidegate.errors import SettingsError, nearest
from tidegate.units import format_duration

__all__ = ["finite", "lasting", "not_so_long", "one_of", "refuse", "whole"]


def refuse(key: str, expected: str, found: object) -> SettingsError:
    """The error for one key; the caller raises it."""
    return SettingsError(f"expected {expected}, found {found!r}", path=(key,), expected=expected)


def finite(key: str, value: float, low: float, high: float, expected: str) -> None:
    """Raise unless low <= value <= high; NaN, infinity and what is no number never pass."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (number and math.isfinite(value) and low <= value <= high):
        raise refuse(key, expected, value)


def whole(key: str, value: float, low: int, high: int, expected: str) -> None:
    """As `finite`, for counts and nanoseconds: neither 2.5 calls nor 0.5 (seconds?) pass."""
    if not isinstance(value, int):
        raise refuse(key, expected, value)
    finite(key, value, low, high, expected)


def lasting(key: str, value: float, low: int, high: int, expected: str) -> None:
    """As `whole`, for durations: what was found is shown as a person writes it."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise refuse(key, expected, value)
    if not low <= value <= high:
        raise not_so_long(key, expected, value)


def not_so_long(key: str, expected: str, found: int) -> SettingsError:
    """The error for a duration; the caller raises it."""
    message = f"expected {expected}, found {format_duration(found)}"
    return SettingsError(message, path=(key,), expected=expected)


def one_of(key: str, value: str, known: tuple[str, ...]) -> None:
    """Raise unless `value` is one of the known words, and name the nearest.

    In a file the type has checked it already; in a line of Python nothing has.
    """
    if value not in known:
        raise SettingsError(
            f"there is no {key} {value!r}{nearest(str(value), known)}",
            path=(key,),
            expected=f"one of {', '.join(known)}",
        )
