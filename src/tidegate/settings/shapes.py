"""What kinds of value can a key of the system file hold?

The records of `settings` are read once and turned into a handful of shapes. The reader, the writer,
the JSON Schema and the reference in the docs walk the same shapes, so none of them can know a key
that another has forgotten.
"""

from collections.abc import Iterator
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    TypeAlias,
    Union,
    get_args,
    get_origin,
)

import msgspec

from tidegate.settings.policies import Settings

__all__ = [
    "Block",
    "Choice",
    "Field",
    "Flag",
    "Named",
    "Number",
    "Shape",
    "Unit",
    "Version",
    "Word",
    "fields",
    "records",
]

Unit: TypeAlias = Literal["duration", "bytes", "rate", "share", "factor", "count", "per_request"]


class Number(NamedTuple):
    """A number with its unit; the only shape that may be a range or left open."""

    unit: Unit


class Flag(NamedTuple):
    """`true` or `false`."""


class Word(NamedTuple):
    """A name or an address."""


class Version(NamedTuple):
    """The version of the format: a bare whole number, never open."""


class Choice(NamedTuple):
    """One of these words, or with `many` a list of them."""

    words: tuple[str, ...]
    many: bool = False


class Block(NamedTuple):
    """A block of known keys."""

    kind: type[Settings]


class Named(NamedTuple):
    """A block whose keys are names that the user gives."""

    kind: type[Settings]


Shape: TypeAlias = Number | Flag | Word | Version | Choice | Block | Named

_PLAIN: Final[dict[object, Shape]] = {
    bool: Flag(),
    str: Word(),
    int: Version(),
    float: Number("factor"),
}


class Field(NamedTuple):
    """One key: its name in the file and in Python, its shape, its default."""

    key: str
    name: str
    shape: Shape
    required: bool
    default: Any  # of whatever type the record declares; None also when required


def _shape(hint: Any) -> Shape:
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        (hint,) = (part for part in get_args(hint) if part is not NoneType)
        origin = get_origin(hint)
    if origin is Annotated:
        (meta,) = (part for part in get_args(hint) if isinstance(part, msgspec.Meta))
        return Number((meta.extra or {})["unit"])
    if origin is Literal:
        return Choice(get_args(hint))
    if origin is tuple:
        return Choice(get_args(get_args(hint)[0]), many=True)
    if origin is dict:
        return Named(get_args(hint)[1])
    return _PLAIN[hint] if hint in _PLAIN else Block(hint)


@cache
def fields(kind: type[Settings]) -> dict[str, Field]:
    """The fields of a record by their key in the file, in the order of the record."""
    found = {}
    for info in msgspec.structs.fields(kind):
        default = info.default
        if info.default_factory is not msgspec.NODEFAULT:
            default = info.default_factory()
        absent = default is msgspec.NODEFAULT
        found[info.encode_name] = Field(
            info.encode_name, info.name, _shape(info.type), absent, None if absent else default
        )
    return found


def records(kind: type[Settings]) -> Iterator[type[Settings]]:
    """The record and every record below it, each once, in the order in which a reader meets it."""
    seen = {kind: None}
    waiting = [kind]
    while waiting:
        current = waiting.pop(0)
        yield current
        for field in fields(current).values():
            if isinstance(field.shape, Block | Named) and field.shape.kind not in seen:
                seen[field.shape.kind] = None
                waiting.append(field.shape.kind)
