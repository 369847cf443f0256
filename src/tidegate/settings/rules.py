"""How does a settings record refuse a value, in one sentence with the key's name?"""

import math

from tidegate.errors import SettingsError

__all__ = ["finite", "refuse"]


def refuse(key: str, expected: str, found: object) -> SettingsError:
    """The error for one key; the caller raises it."""
    return SettingsError(f"expected {expected}, found {found!r}", path=(key,), expected=expected)


def finite(key: str, value: float, low: float, high: float, expected: str) -> None:
    """Raise unless low <= value <= high; NaN and infinity never pass."""
    if not (math.isfinite(value) and low <= value <= high):
        raise refuse(key, expected, value)
