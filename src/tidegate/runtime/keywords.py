"""What does `guard("licences", timeout=0.25, attempts=3)` mean?

The same as a call's block in a system file with `protect: default`: what is not said has a safe
default, and what is `None` is switched off. Times are in seconds here, as everywhere in Python;
inside they are nanoseconds, and this is the edge where they change.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from tidegate.errors import SettingsError, nearest
from tidegate.settings.policies import Settings
from tidegate.settings.shapes import Block, Field, Flag, Number, fields
from tidegate.settings.system import Call, default_protection
from tidegate.units import SECOND

__all__ = ["KEYWORDS", "call_settings", "override", "value_of"]

# What a file says about a call and a guard has no use for: where it goes, how often, how far.
_NOT_OURS: Final = frozenset({"to", "per_request", "optional", "wait", "network", "protect"})

KEYWORDS: Final = {key: field for key, field in fields(Call).items() if key not in _NOT_OURS}
"""The settings of a guard by their names, which are those of the system file."""

_ALSO_KNOWN_AS: Final = {
    "retries": "attempts (tries in all, the first included: retries + 1)",
    "max_retries": "attempts (tries in all, the first included: retries + 1)",
    "attempt_timeout": "timeout (of one attempt, in seconds)",
    "retry_budget": "budget",
    "circuit_breaker": "breaker",
    "concurrency": "limit",
    "bulkhead": "limit",
    "rate": "rate_limit",
}


def call_settings(keywords: Mapping[str, Any]) -> Call:
    """The settings of a guard made by keywords, with every default written out.

    Raises SettingsError for an unknown keyword, a value out of its range, or a time that is no
    number of seconds.
    """
    given = override(keywords)
    said = {name: value for name, value in given.items() if value is not None}
    off = dict.fromkeys(given.keys() - said.keys())
    settings = default_protection(Call(**said, protect="default"))
    return msgspec.structs.replace(settings, **off) if off else settings


def override(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that differ from the rest, in the units of the records, each checked."""
    changed = {}
    for name, value in keywords.items():
        field = KEYWORDS.get(name)
        if field is None:
            raise _unknown(name)
        changed[name] = value_of(field, value)
    Call(**{name: value for name, value in changed.items() if value is not None})  # its rules
    return changed


def _unknown(name: str) -> SettingsError:
    if name in _ALSO_KNOWN_AS:
        return SettingsError(f"there is no setting {name!r}; here it is {_ALSO_KNOWN_AS[name]}")
    return SettingsError(f"there is no setting {name!r}{nearest(name, list(KEYWORDS))}")


def value_of(field: Field, value: Any) -> Any:
    """What a keyword's value means for the record that has the field: seconds become nanoseconds.

    A bare number stands for a record that is mostly about one. Raises SettingsError.
    """
    shape = field.shape
    if value is None:
        if field.default is not None:
            raise SettingsError("it cannot be switched off", path=(field.key,))
        return None
    if isinstance(shape, Flag) and not isinstance(value, bool):
        raise SettingsError(f"expected True or False, found {value!r}", path=(field.key,))
    if shape == Number("duration"):
        return _nanoseconds(field.key, value)
    if field.key == "retry_on":
        return (value,) if isinstance(value, str) else tuple(value)
    if isinstance(shape, Block) and not isinstance(value, shape.kind):
        return _from_shorthand(field.key, shape.kind, value)
    return value


def _from_shorthand(name: str, kind: type[Settings], value: Any) -> Settings:
    """A record from the one value that it is mostly about, as in the file."""
    short = kind.shorthand
    if short is None or isinstance(value, bool) or not isinstance(value, int | float):
        raise SettingsError(
            f"expected a number or a {kind.__name__}(...), found {value!r}", path=(name,)
        )
    if fields(kind)[short].shape == Number("duration"):
        value = _nanoseconds(name, value)
    try:
        return kind(**{short: value})
    except SettingsError as error:
        raise error.under(name) from None


def _nanoseconds(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 86_400:
        raise SettingsError(f"expected seconds, from 0 to 86400, found {value!r}", path=(name,))
    return round(value * SECOND)
