"""What does the tree of a file say, read beside the records that it must fit?

Two steps. `Decoder` reads the tree once: unknown keys, wrong kinds and unreadable numbers are
refused at their place, numbers that are left open are noted. `build` makes the records, with a
value for each open number, as often as one likes; what the records' own rules refuse is put back to
the place in the file.
"""

from collections.abc import Iterator, Mapping
from itertools import combinations_with_replacement, product
from typing import Any, Final, NamedTuple, NoReturn, TypeAlias, final

from tidegate.errors import SettingsError, nearest
from tidegate.settings.numbers import parse_number, parse_range, write_number
from tidegate.settings.policies import Settings
from tidegate.settings.shapes import (
    Block,
    Choice,
    Field,
    Flag,
    Named,
    Number,
    Shape,
    Word,
    fields,
)
from tidegate.settings.unknowns import Blank, Path, Unknown, blank_for
from tidegate.settings.yaml_nodes import At, Entry, Keys, Listed, Node, Text

__all__ = ["Decoder", "Open", "Record", "build", "corners", "explained", "place"]

# What other tools call it: a newcomer's first guess deserves the right word.
_ALSO_KNOWN_AS: Final = {
    "retries": "attempts (tries in all, the first included: retries + 1)",
    "max_retries": "attempts (tries in all, the first included: retries + 1)",
    "tries": "attempts",
    "concurrency": "workers",
    "threads": "workers",
    "pool": "workers",
    "instances": "replicas",
    "latency": "time",
    "duration": "time or for",
    "service_time": "time",
    "rps": "rate",
    "qps": "rate",
    "depends_on": "calls",
    "dependencies": "calls",
    "circuit_breaker": "breaker",
    "probability": "per_request",
}


class Open(NamedTuple):
    """Stands in a record where the file leaves a number open."""

    path: Path


class Record(NamedTuple):
    """One record before it is made: its parts by the names that Python uses."""

    kind: type[Settings]
    path: Path
    parts: "dict[str, Part]"


# Plain values (numbers, words, flags, tuples of words) are whatever their field declares.
Part: TypeAlias = Record | dict[str, Record] | Open | Any


@final
class Decoder:
    """Reads one file; `unknowns` fills up with the numbers that it leaves open, in its order."""

    def __init__(self, name: str) -> None:
        self.name: Final = name
        self.unknowns: list[Unknown] = []

    def record(
        self, kind: type[Settings], entry: Entry, path: Path, blank: Blank | None = None
    ) -> Record:
        """A block of keys, or the bare value that stands for its main key."""
        node = entry.node
        known = fields(kind)
        parts: dict[str, Part] = {}
        if isinstance(node, Keys):
            for key, child in self._parted(kind, node.entries, path).items():
                if key not in known:
                    self._refuse(_no_such_key(key, tuple(known)), child.at, (*path, key))
                field = known[key]
                parts[field.name] = self.value(
                    field.shape, child, (*path, key), blank_for(kind, field, blank)
                )
            for field in known.values():
                if field.required and field.key not in node.entries:
                    self._refuse(f"the key {field.key!r} is missing", entry.at, path)
        else:
            field = self._main_key(kind, node, path)
            parts[field.name] = self.value(field.shape, entry, path, blank_for(kind, field, blank))
        return Record(kind, path, parts)

    def _parted(
        self, kind: type[Settings], entries: dict[str, Entry], path: Path
    ) -> dict[str, Entry]:
        """The keys; `replicas: 1 of 3` as the two that it stands for."""
        if kind.both is None:
            return entries
        key, word, second = kind.both
        entry = entries.get(key)
        if entry is None or not isinstance(entry.node, Text) or word not in entry.node.text:
            return entries
        if second in entries:
            self._refuse(
                f"expected {key} to say it all, as {entry.node.shown}, or {second} beside it, not"
                " both",
                entries[second].at,
                (*path, second),
            )
        first, _, last = entry.node.text.partition(word)
        return entries | {
            key: Entry(entry.at, entry.node._replace(text=first.strip())),
            second: Entry(entry.at, entry.node._replace(text=last.strip())),
        }

    def _main_key(self, kind: type[Settings], node: Node, path: Path) -> Field:
        known = fields(kind).values()
        field = next((field for field in known if field.name == kind.shorthand), None)
        empty = isinstance(node, Text) and node.resolved == "nothing"
        if field is None or isinstance(node, Listed) or (empty and field.shape == Word()):
            hint = "; write {} where there is nothing to say" if empty else ""
            keys = ", ".join([field.key for field in known][:4])
            self._refuse(f"expected keys, as {keys}, found {node.shown}{hint}", node.at, path)
        return field

    def value(self, shape: Shape, entry: Entry, path: Path, blank: Blank | None) -> Part:
        """One value of whatever shape; `blank` is what it means to leave it blank."""
        if isinstance(shape, Block):
            return self.record(shape.kind, entry, path, blank)
        if isinstance(shape, Named):
            return self._named(shape.kind, entry, path)
        node = entry.node
        if isinstance(shape, Choice) and shape.many and isinstance(node, Listed):
            return tuple(self._word(shape, self._scalar(item, path), path) for item in node.nodes)
        text = self._scalar(node, path)
        if isinstance(shape, Number):
            return self._number(shape, text, path, blank)
        if isinstance(shape, Choice):
            word = self._word(shape, text, path)
            return (word,) if shape.many else word
        return self._plain(shape, text, path)

    def _named(self, kind: type[Settings], entry: Entry, path: Path) -> dict[str, Record]:
        node = entry.node
        if isinstance(node, Text) and node.resolved == "nothing":
            return {}  # a section whose entries are all commented out
        if not isinstance(node, Keys):
            self._refuse(f"expected names with a block each, found {node.shown}", node.at, path)
        return {
            name: self.record(kind, child, (*path, name)) for name, child in node.entries.items()
        }

    def _scalar(self, node: Node, path: Path) -> Text:
        if not isinstance(node, Text):
            self._refuse(f"expected a single value, found {node.shown}", node.at, path)
        return node

    def _number(self, shape: Number, text: Text, path: Path, blank: Blank | None) -> Part:
        written = text.text.strip()
        if written == "unknown" or text.resolved == "nothing":
            if blank is None:
                self._refuse(
                    "this key cannot be left open; give a range, as"
                    f" {_range_example(shape)}, or leave the key out",
                    text.at,
                    path,
                )
            return self._open(path, text.at, blank, assumed=True)
        try:
            ends = parse_range(shape.unit, written)
            if ends is not None and ends[0] < ends[1]:
                return self._open(path, text.at, Blank(shape.unit, *ends), assumed=False)
            return ends[0] if ends is not None else parse_number(shape.unit, written)
        except ValueError as error:
            self._refuse(str(error), text.at, path)

    def _open(self, path: Path, at: At, over: Blank, *, assumed: bool) -> Open:
        unknown = Unknown(
            path=path,
            kind=over.kind,
            low=over.low,
            high=over.high,
            where=self.where(at),
            assumed=assumed,
        )
        self.unknowns.append(unknown)
        return Open(path)

    def _word(self, shape: Choice, text: Text, path: Path) -> str:
        if text.text not in shape.words:
            near = nearest(text.text, shape.words) if len(shape.words) > 4 else ""
            expected = f"one of {', '.join(shape.words)}"
            self._refuse(f"expected {expected}, found {text.shown}{near}", text.at, path)
        return text.text

    def _plain(self, shape: Shape, text: Text, path: Path) -> object:
        if isinstance(shape, Flag):
            if text.resolved != "boolean":
                self._refuse(f"expected true or false, found {text.shown}", text.at, path)
            return text.text.lower() == "true"
        if isinstance(shape, Word):
            if text.resolved != "text" or not text.text:
                quotes = f"; put {text.text} in quotes" if text.text else ""
                self._refuse(f"expected a name, found {text.shown}{quotes}", text.at, path)
            return text.text
        try:
            return int(parse_number("count", text.text))
        except ValueError as error:
            self._refuse(str(error), text.at, path)

    def where(self, at: At) -> str:
        """`file:line:column`."""
        return f"{self.name}:{at[0]}:{at[1]}"

    def _refuse(self, message: str, at: At, path: Path) -> NoReturn:
        raise SettingsError(message, path=path, where=self.where(at))


def _no_such_key(key: str, known: tuple[str, ...]) -> str:
    also = _ALSO_KNOWN_AS.get(key.lower())
    if also is not None and any(word in known for word in also.split()):
        return f"there is no key {key!r} here; write {also}"
    return f"there is no key {key!r} here{nearest(key, known)}"


def _range_example(shape: Number) -> str:
    examples = {"duration": "1s..10s", "rate": "100/s..1000/s", "share": "10%..40%"}
    return examples.get(shape.unit, "2..8")


def build(record: Record, values: Mapping[Path, Any]) -> Any:
    """The record as Python has it, every open number replaced by its value.

    Raises SettingsError as the records do; its path starts at the top of the file.
    """
    made = {}
    for name, part in record.parts.items():
        if isinstance(part, Open):
            made[name] = values[part.path]
        elif isinstance(part, Record):
            made[name] = build(part, values)
        elif isinstance(part, dict):
            made[name] = {key: build(child, values) for key, child in part.items()}
        else:
            made[name] = part
    try:
        return record.kind(**made)
    except SettingsError as error:
        raise _defaulted(record, error).under(*record.path) from None


def _defaulted(record: Record, error: SettingsError) -> SettingsError:
    """A default can be what is wrong, beside a number that the file gives: say so."""
    field = next((f for f in fields(record.kind).values() if (f.name,) == error.path), None)
    if field is None or field.name in record.parts or not isinstance(field.shape, Number):
        return error
    if field.default is None or not error.expected:
        return error
    default = write_number(field.shape.unit, field.default)
    return SettingsError(f"expected {error.expected}, found the default {default}", path=error.path)


def corners(
    record: Record, ranges: Mapping[Path, tuple[float, float]]
) -> Iterator[tuple[Record, dict[Path, float]]]:
    """Every record with open numbers, with the ends of each two of them.

    The rules of a record compare at most two numbers, so whatever holds at these ends holds
    everywhere between.
    """
    mine = [p.path for p in record.parts.values() if isinstance(p, Open) and p.path in ranges]
    for pair in combinations_with_replacement(mine, 2):
        for ends in product((0, 1), repeat=2):
            yield record, {path: ranges[path][end] for path, end in zip(pair, ends, strict=True)}
    for part in record.parts.values():
        children = part.values() if isinstance(part, dict) else (part,)
        for child in children:
            if isinstance(child, Record):
                yield from corners(child, ranges)


def place(root: Entry, path: Path) -> tuple[At, Path, Node | None]:
    """Where a path stands in the file: its deepest key that exists, and the value if it is there.

    Paths of the records use Python's names (`for_`) and the main key of a shorthand; the path that
    comes back is the file's.
    """
    entry = root
    written: list[str] = []
    for index, name in enumerate(path):
        if not isinstance(entry.node, Keys):
            break  # a bare value stands for a block: there is nothing deeper
        key = name if name in entry.node.entries else name.removesuffix("_")
        if key not in entry.node.entries:
            return entry.at, (*written, *path[index:]), None
        entry = entry.node.entries[key]
        written.append(key)
    return entry.at, tuple(written), entry.node


def explained(error: SettingsError, root: Entry, name: str) -> SettingsError:
    """An error of the records, at its place in the file, and in the words of the file."""
    at, path, node = place(root, error.path)
    message = error.message
    if error.expected and isinstance(node, Text) and node.text:
        message = f"expected {error.expected}, found {node.shown}"
    elif error.expected and isinstance(node, Listed) and len(node.nodes) > 9:
        message = f"expected {error.expected}, found a list of {len(node.nodes)}"
    elif error.expected and node is None:
        message = f"expected {error.expected}, found nothing"
    spot = node.at if isinstance(node, Text) else at
    return SettingsError(
        message, path=path, where=f"{name}:{spot[0]}:{spot[1]}", expected=error.expected
    )
