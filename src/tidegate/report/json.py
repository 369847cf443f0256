"""How does another program read the report?

As one JSON document, `tidegate.check/1`: the record `tidegate.findings.CheckReport`, its fields in
the order in which they are declared, so that two documents can be compared line by line. Floats
have six significant digits: more would be noise of the simulation, fewer would round a count.
`docs/report.md` names every field; `schema` gives the JSON Schema (draft 2020-12) that the
documents obey. The storm of the lab is `tidegate.storm/1`, in the same way.
"""

import math
from typing import Any, Final

import msgspec

from tidegate.errors import InvariantError
from tidegate.findings import CheckReport
from tidegate.lab.findings import StormReport

__all__ = ["render", "schema", "schema_text"]

_DIGITS: Final = 6
_EXACT: Final = 2**53  # up to here a whole float is the same number as an int, and written as one


def render(report: CheckReport | StormReport) -> str:
    """The document, on one line, ended by a newline.

    A figure that is not finite is a bug of ours: `InvariantError` names it.
    """
    document = _tidy(msgspec.to_builtins(report, order="deterministic"), "report")
    return msgspec.json.encode(document).decode() + "\n"


def _tidy(value: Any, path: str) -> Any:  # any JSON value
    """The same value with its floats rounded and with no text that UTF-8 cannot carry."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvariantError(f"{path} is {value!r}, which is no figure")
        rounded = float(f"{value:.{_DIGITS}g}")
        return int(rounded) if rounded.is_integer() and abs(rounded) < _EXACT else rounded
    if isinstance(value, str):
        return _encodable(value)
    if isinstance(value, list):
        return [_tidy(item, f"{path}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, dict):
        return {_encodable(key): _tidy(item, f"{path}.{key}") for key, item in value.items()}
    return value


def _encodable(text: str) -> str:
    """A file name that is no UTF-8 reaches us with lone surrogates; they are spelled out."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def schema() -> dict[str, Any]:
    """The JSON Schema of the document."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "tidegate.check/1",
        **msgspec.json.schema(CheckReport),
    }


def schema_text() -> str:
    """The schema as `docs/check-report.schema.json` holds it."""
    return msgspec.json.format(msgspec.json.encode(schema()), indent=2).decode() + "\n"
