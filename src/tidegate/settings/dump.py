"""How is a `System` written as a file that a person would have written?

Bare values where they say it all, units on every number, nothing that is a default, the order of
the records. A comment may stand at any key, since whoever writes a file from evidence (traces,
source) must say where each number is from; and a number may be left open instead of made up.
"""

import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias, final

from tidegate.errors import SettingsError
from tidegate.settings.numbers import write_number
from tidegate.settings.policies import Settings
from tidegate.settings.shapes import Block, Choice, Field, Flag, Named, Number, Shape, Word, fields
from tidegate.settings.system import Client, Service, System
from tidegate.settings.unknowns import Path
from tidegate.settings.yaml_nodes import fault_of, resolved

__all__ = ["Changes", "dump", "inline", "patch"]

Changes: TypeAlias = Mapping[Path, Mapping[str, Any]]
"""New values of some settings, by the path of the client, service or call that they belong to."""

_WIDTH: Final = 100
_INDENT: Final = "  "
_OPENED: Final = (System, Client, Service)  # never on one line: these are what a reader looks for
_BARE_WORD: Final = re.compile(r"[^\W\d][\w .-]*(?<! )|https?://[\w.:/-]*[\w/]")
# Words that a reader of YAML 1.1 would take for booleans.
_YAML_1_1: Final = frozenset({"y", "n", "yes", "no", "on", "off"})


def dump(
    system: System,
    *,
    comments: Mapping[Path, str] | None = None,
    leave_open: Mapping[Path, str] | None = None,
) -> str:
    """The text of a system file; `loads` of it gives the same system.

    A comment stands behind the key at its path, or above it where the line would be too long; the
    one at `()` opens the file. `leave_open` gives what is written instead of a number, or of a
    block with a main number: `""` leaves it blank, `"10ms..50ms"` gives a range. A path that leads
    to no key is refused.
    """
    writer = _Writer(comments or {}, leave_open or {})
    lines = writer.comment((), "")
    for field in writer.said(system, ()):
        section = list(writer.entry(field.key, field.shape, getattr(system, field.name), (), ""))
        if lines and len(section) > 1:
            lines.append("")
        lines += section
    writer.check_all_said()
    return "\n".join(lines) + "\n"


def inline(record: Settings) -> str:
    """One record on one line, as it stands behind its key: `10%`, `{limit: 100, order: lifo}`."""
    said, main = _said(record), _main_field(type(record))
    if main is not None and said in ([], [main]) and getattr(record, main.name) is not None:
        return _scalar(main.shape, getattr(record, main.name))
    told = {f.key: _flow(f.shape, getattr(record, f.name)) for f in said}
    if record.both is not None and record.both[2] in told:
        key, word, second = record.both
        told[key] += word + told.pop(second)
    return f"{{{', '.join(f'{key}: {text}' for key, text in told.items())}}}"


def patch(changes: Changes) -> str:
    """The YAML that makes these changes, a line for each section: to be merged into a file.

    Each key of a client, a service or a call replaces the one that is there; all others stay.
    """
    tree: dict[str, Any] = {}  # names to trees, keys to text
    for path, values in changes.items():
        node: dict[str, Any] = tree
        kind: type[Settings] = System
        for section, name in zip(path[::2], path[1::2], strict=True):
            shape = fields(kind)[section].shape
            assert isinstance(shape, Named)
            kind = shape.kind
            node = node.setdefault(section, {}).setdefault(_text(name), {})
        for field in fields(kind).values():
            if field.name in values:
                node[field.key] = _flow(field.shape, values[field.name])
    return "\n".join(f"{section}: {_braced(named)}" for section, named in tree.items())


def _braced(tree: dict[str, Any] | str) -> str:
    if isinstance(tree, str):
        return tree
    return f"{{{', '.join(f'{key}: {_braced(value)}' for key, value in tree.items())}}}"


def _flow(shape: Shape, value: Any) -> str:
    if isinstance(shape, Block):
        return inline(value)
    if isinstance(shape, Named):
        return f"{{{', '.join(f'{_text(name)}: {inline(v)}' for name, v in value.items())}}}"
    return _scalar(shape, value)


def _said(record: Settings) -> list[Field]:
    """The fields that stand in a file because their value is not the default."""
    known = fields(type(record)).values()
    return [f for f in known if f.required or getattr(record, f.name) != f.default]


def _main_field(kind: type[Settings]) -> Field | None:
    return next((f for f in fields(kind).values() if f.name == kind.shorthand), None)


def _scalar(shape: Shape, value: Any) -> str:
    if isinstance(shape, Number):
        return write_number(shape.unit, value)
    if isinstance(shape, Flag):
        return "true" if value else "false"
    if isinstance(shape, Choice):
        return f"[{', '.join(value)}]" if shape.many else str(value)
    return _text(value) if isinstance(shape, Word) else str(value)


def _text(text: str) -> str:
    """A name as YAML 1.1 and 1.2 both read it as text; quoted only where it must be."""
    fault = fault_of(text) if text else "expected a name, found nothing"
    if fault:
        raise SettingsError(f"{fault}: {text[:40]!r}")
    bare = _BARE_WORD.fullmatch(text) and text.lower() not in _YAML_1_1
    return text if bare and resolved(text) == "text" else json.dumps(text, ensure_ascii=False)


@final
class _Writer:
    """Holds what is to be said beside the system, until it has been said."""

    def __init__(self, comments: Mapping[Path, str], leave_open: Mapping[Path, str]) -> None:
        self._comments: Final = dict(comments)
        self._open: Final = dict(leave_open)
        paths = (*comments, *leave_open)
        self._above: Final = {path[:end] for path in paths for end in range(len(path))}

    def check_all_said(self) -> None:
        """Raise for the first path that has led to no key."""
        for path in (*self._comments, *self._open):
            raise SettingsError("there is no key to comment on or to leave open", path=path)

    def said(self, record: Settings, path: Path) -> list[Field]:
        """The fields that stand in the file: no defaults, but whatever something is said about."""
        found = []
        plain = _said(record)
        for field in fields(type(record)).values():
            child = (*path, field.key)
            told = child in self._comments or child in self._above
            if (
                field in plain
                or field.key == "tidegate"
                or child in self._open
                or (told and getattr(record, field.name) is not None)
            ):
                found.append(field)
        return found

    def entry(self, key: str, shape: Shape, value: Any, above: Path, indent: str) -> Iterator[str]:
        """The lines of one key."""
        path = (*above, key)
        start = f"{indent}{_text(key)}:"
        if isinstance(shape, Named) and value:
            yield from self._with_comment(start, path, indent)
            for name, child in value.items():
                yield from self.entry(name, Block(shape.kind), child, path, indent + _INDENT)
        elif isinstance(shape, Block) and value is not None and path not in self._open:
            yield from self._block(start, value, path, indent)
        else:
            text = self._open.pop(path) if path in self._open else _flow(shape, value)
            yield from self._with_comment(f"{start} {text}".rstrip(), path, indent)

    def _block(self, start: str, record: Settings, path: Path, indent: str) -> Iterator[str]:
        """A record: its main value alone, or all on one line, or opened below its key."""
        said, main = self.said(record, path), _main_field(type(record))
        if main is not None and said in ([], [main]):
            text = self._main_text(record, main, path)
            yield from self._with_comment(f"{start} {text}".rstrip(), path, indent)
            return
        line = f"{start} {inline(record)}"
        opened = isinstance(record, _OPENED) and said
        if path not in self._above and not opened and len(line) <= _WIDTH:
            yield from self._with_comment(line, path, indent)
            return
        yield from self._with_comment(start, path, indent)
        for field in self.said(record, path):
            value = getattr(record, field.name)
            yield from self.entry(field.key, field.shape, value, path, indent + _INDENT)

    def _main_text(self, record: Settings, main: Field, path: Path) -> str:
        """The bare value that stands for a block; what is said about its main key is said here."""
        below = (*path, main.key)
        notes = [self._comments.pop(p) for p in (path, below) if p in self._comments]
        if notes:
            self._comments[path] = "; ".join(notes)
        return self._open.pop(below) if below in self._open else inline(record)

    def comment(self, path: Path, indent: str) -> list[str]:
        """The comment of a path as lines of their own."""
        said = self._comments.pop(path, "")
        return [
            f"{indent}# {line}".rstrip()
            for paragraph in said.splitlines()
            for line in textwrap.wrap(_printable(paragraph), _WIDTH - len(indent) - 2) or [""]
        ]

    def _with_comment(self, line: str, path: Path, indent: str) -> Iterator[str]:
        said = self._comments.get(path, "")
        if "\n" in said or len(line) + len(said) + 4 > _WIDTH:
            yield from self.comment(path, indent)
            yield line
        else:
            self._comments.pop(path, None)
            yield f"{line}  # {_printable(said)}" if said else line


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)
