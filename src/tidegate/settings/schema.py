"""What may an editor offer and underline while a person writes a system file?

`schema()` is the JSON Schema (draft 2020-12) of the file, made from the same records as the reader.
It says which keys there are and how values are written. What compares two values, or names that
must exist, only the reader checks.
"""

from typing import Any, Final, TypeAlias

from tidegate.settings.meanings import MEANINGS
from tidegate.settings.numbers import pattern, write_number
from tidegate.settings.policies import Settings
from tidegate.settings.shapes import (
    Block,
    Choice,
    Field,
    Flag,
    Named,
    Number,
    Shape,
    Version,
    Word,
    fields,
    records,
)
from tidegate.settings.system import System
from tidegate.settings.unknowns import BLANKS, Blank, blank_for

__all__ = ["schema"]

Json: TypeAlias = dict[str, Any]  # JSON has no closer type

_BARE: Final = {"share": "number", "factor": "number", "per_request": "number", "count": "integer"}


def schema() -> Json:
    """The JSON Schema of the system file, as a dict that `json.dumps` takes."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:tidegate:system-file:1",
        "title": "Tidegate system file",
        "$ref": "#/$defs/System",
        "$defs": {kind.__name__: _record(kind) for kind in records(System)},
    }


def _record(kind: type[Settings]) -> Json:
    known = fields(kind)
    outer = _outer_blank(kind)
    found: Json = {
        "type": "object",
        "description": (kind.__doc__ or "").split("\n\n")[0].replace("\n    ", " "),
        "properties": {key: _property(kind, field, outer) for key, field in known.items()},
        "additionalProperties": False,
    }
    required = [key for key, field in known.items() if field.required]
    return found | ({"required": required} if required else {})


def _outer_blank(kind: type[Settings]) -> Blank | None:
    """The blank that a block's main key may inherit from a key that holds such a block."""
    for (holder, key), blank in BLANKS.items():
        if fields(holder)[key].shape == Block(kind):
            return blank
    return None


def _property(kind: type[Settings], field: Field, outer: Blank | None) -> Json:
    found = _value(field.shape, blank_for(kind, field, outer))
    if kind.both is not None and field.key == kind.both[0]:
        found["pattern"] = f"^({pattern('count')})({kind.both[1]}[0-9]{{1,18}})?$"
    found["description"] = MEANINGS[kind][field.key].says
    if isinstance(field.shape, Number) and field.default is not None:
        found["default"] = write_number(field.shape.unit, field.default)
    elif isinstance(field.shape, Flag | Choice | Version):
        many = isinstance(field.default, tuple)
        found["default"] = list(field.default) if many else field.default
    return found


def _value(shape: Shape, blank: Blank | None) -> Json:
    match shape:
        case Number(unit):
            types = ["string", *([_BARE[unit]] if unit in _BARE else [])]
            if blank is None:
                return {"type": types, "pattern": f"^({pattern(unit)})$", "minimum": 0}
            return {
                "type": [*types, "null"],
                "pattern": f"^({pattern(unit)}|unknown)$",
                "minimum": 0,
            }
        case Flag():
            return {"type": "boolean"}
        case Word():
            return {"type": "string", "minLength": 1}
        case Version():
            return {"const": 1}
        case Choice(words, many):
            word: Json = {"enum": list(words)}
            listed = {"type": "array", "items": word, "uniqueItems": True}
            return {"anyOf": [word, listed]} if many else word
        case Named(kind):
            return {
                "type": ["object", "null"],
                "propertyNames": {"minLength": 1},
                "additionalProperties": _value(Block(kind), None),
            }
        case Block(kind):
            block: Json = {"$ref": f"#/$defs/{kind.__name__}"}
            for field in fields(kind).values():
                if field.name == kind.shorthand:
                    bare = _value(field.shape, blank_for(kind, field, blank))
                    return {"anyOf": [bare, block]}
            return block
