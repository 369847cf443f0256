"""Which keys and texts does a YAML file hold, and where does each stand?

Objects are never built from the file: only parser events are read, so a file can neither run code
nor unfold into a bomb. What would surprise a reader is refused: `on`, `off`, `yes` and `no` are
plain words (YAML 1.2), while anchors, aliases, tags, merge keys, a key given twice and a second
document are errors with their place. Size, depth, number of values and length of a text are bounded
before anything is made of them.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn, TypeAlias, final

from tidegate.errors import InputError, SettingsError
from tidegate.settings.input_file import open_input, unreadable

__all__ = [
    "At",
    "Entry",
    "Keys",
    "Listed",
    "Node",
    "Text",
    "fault_of",
    "read_file",
    "read_text",
    "resolved",
]

SIZE_MAX: Final = 1 << 20  # bytes: a thousand services with a comment on every line fit
DEPTH_MAX: Final = 20  # the deepest key of a system file stands at 7
NODES_MAX: Final = 200_000  # more than SIZE_MAX of written-out settings can hold
TEXT_MAX: Final = 500  # characters; YAML takes no longer key than 1024, quoted and escaped

At: TypeAlias = tuple[int, int]
"""Line and column, both counted from one."""

# What the core schema of YAML 1.2 (section 10.3.2) reads as something else than text.
_RESOLVED: Final = (
    ("nothing", re.compile(r"null|Null|NULL|~|")),
    ("boolean", re.compile(r"true|True|TRUE|false|False|FALSE")),
    (
        "number",
        re.compile(
            r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
            r"|0o[0-7]+|0x[0-9a-fA-F]+|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
        ),
    ),
)
# What YAML 1.2 (section 5.1) does not allow in a stream, and lone halves of UTF-16.
_UNPRINTABLE: Final = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)


class Text(NamedTuple):
    """A scalar as it is written, without its quotes."""

    text: str
    plain: bool
    at: At

    @property
    def resolved(self) -> str:
        """What a YAML 1.2 reader takes it for: `nothing`, `boolean`, `number` or `text`."""
        return resolved(self.text) if self.plain else "text"

    @property
    def shown(self) -> str:
        """The text for a sentence: quoted, cut to 40 characters, `nothing` when empty."""
        if not self.text:
            return "nothing"
        return repr(self.text if len(self.text) <= 40 else self.text[:37] + "...")


class Listed(NamedTuple):
    """A list."""

    nodes: "tuple[Node, ...]"
    at: At

    @property
    def shown(self) -> str:
        """The word for a sentence."""
        return "a list"


class Keys(NamedTuple):
    """A block of keys, in the order of the file."""

    entries: "dict[str, Entry]"
    at: At

    @property
    def shown(self) -> str:
        """The word for a sentence."""
        return "a block of keys"


Node: TypeAlias = Text | Listed | Keys


class Entry(NamedTuple):
    """A value, and where the key that leads to it stands."""

    at: At
    node: Node


def resolved(text: str) -> str:
    """What a YAML 1.2 reader takes an unquoted text for."""
    return next((name for name, pattern in _RESOLVED if pattern.fullmatch(text)), "text")


def fault_of(text: str) -> str:
    """Why this cannot be a name or a value of a settings file; empty when it can."""
    if len(text) > TEXT_MAX:
        return f"expected at most {TEXT_MAX} characters, found {len(text)}"
    return "" if text.isprintable() else "expected one line of printable text"


def read_file(path: Path) -> Entry:
    """The tree of one file. Raises SettingsError with the place of whatever is wrong."""
    try:
        with open_input(path) as file:
            content = file.read(SIZE_MAX + 1)
    except InputError as error:
        raise SettingsError(str(error)) from None
    except OSError as error:
        raise SettingsError(str(unreadable(path, error))) from None
    return read_text(content, str(path))


def read_text(content: str | bytes, name: str) -> Entry:
    """The tree of one document; `name` stands for the file in errors."""
    size = len(content) if isinstance(content, bytes) else len(content.encode("utf-8", "replace"))
    if size > SIZE_MAX:
        raise SettingsError(
            f"expected at most {SIZE_MAX >> 20} MiB, found more; a system file is written by hand",
            where=name,
        )
    text = _decoded(content, name) if isinstance(content, bytes) else content
    text = text.removeprefix("\ufeff")
    strange = _UNPRINTABLE.search(text)
    if strange is not None:
        line = text.count("\n", 0, strange.start()) + 1
        column = strange.start() - text.rfind("\n", 0, strange.start())
        raise SettingsError(
            f"expected readable text, found the character U+{ord(strange[0]):04X}",
            where=f"{name}:{line}:{column}",
        )
    return _Reader(text, name).document()


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - content.rfind(b"\n", 0, error.start)
        raise SettingsError(
            f"expected UTF-8 text, found the byte 0x{content[error.start]:02X}",
            where=f"{name}:{line}:{column}",
        ) from None


@final
class _Reader:
    """Builds the tree from events: recursion is bounded by DEPTH_MAX, so the stack is safe."""

    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self.name = name
        self.nodes = 0
        try:
            import yaml
        except ImportError:
            raise SettingsError(
                "reading YAML needs PyYAML: pip install 'tidegate[files]'", where=name
            ) from None
        self.yaml = yaml
        self.events = self._events()

    def document(self) -> Entry:
        next(self.events)  # the start of the stream
        event = next(self.events)
        if isinstance(event, self.yaml.StreamEndEvent):
            raise SettingsError("expected a system, found an empty file", where=self.name)
        node = self._node(next(self.events), ())
        next(self.events)  # the end of the document
        event = next(self.events)
        if not isinstance(event, self.yaml.StreamEndEvent):
            self._refuse("expected one document, found a second one", event.start_mark, ())
        return Entry((1, 1), node)

    def _events(self) -> Iterator[Any]:
        """Parser events, its errors turned into ours. The C parser where PyYAML has it."""
        loader = getattr(self.yaml, "CSafeLoader", self.yaml.SafeLoader)
        try:
            yield from self.yaml.parse(self.text, Loader=loader)
        except self.yaml.MarkedYAMLError as error:
            raise self._broken(error) from None
        except (self.yaml.YAMLError, ValueError, OverflowError) as error:
            # An escape beyond Unicode, as "\U00110000", in the parser written in Python.
            raise SettingsError(
                f"this is not YAML: {str(error).splitlines()[0]}", where=self.name
            ) from None

    def _broken(self, error: Any) -> SettingsError:
        """One sentence for what the parser could not read, with a hint for the usual slips."""
        mark = error.problem_mark
        if "quoted scalar" in (error.context or "") and error.context_mark is not None:
            mark = error.context_mark  # where the quote opens says more than the end of the file
        line, column = (mark.line, mark.column) if mark is not None else (0, 0)
        lines = self.text.splitlines()
        found = lines[line][column : column + 1] if line < len(lines) else ""
        hint = ""
        if found == "\t":
            hint = "; indent with spaces, never with tabs"
        elif "mapping values" in str(error.problem):
            hint = "; check the indentation, and put a value that holds ': ' in quotes"
        elif "unexpected ':'" in str(error.problem):
            hint = "; put a space after the colon, or write unknown"
        elif "cannot start any token" in str(error.problem):
            hint = "; put the value in quotes"
        return SettingsError(
            f"this is not YAML: {error.problem}{hint}", where=f"{self.name}:{line + 1}:{column + 1}"
        )

    def _refuse(self, message: str, mark: Any, path: tuple[str, ...]) -> NoReturn:
        where = f"{self.name}:{mark.line + 1}:{mark.column + 1}"
        raise SettingsError(message, path=path, where=where)

    def _node(self, event: Any, path: tuple[str, ...]) -> Node:
        mark = event.start_mark
        self.nodes += 1
        if self.nodes > NODES_MAX:
            self._refuse(f"expected at most {NODES_MAX} values, found more", mark, path)
        if len(path) > DEPTH_MAX:
            self._refuse(f"expected at most {DEPTH_MAX} levels, found more", mark, path)
        if event.anchor is not None:
            self._refuse(
                "anchors (&) and aliases (*) are not read: write the value out", mark, path
            )
        if event.tag is not None:
            self._refuse("tags (!) are not read: write the value alone", mark, path)
        at = (mark.line + 1, mark.column + 1)
        if isinstance(event, self.yaml.ScalarEvent):
            return self._text(event, at, path)
        if isinstance(event, self.yaml.SequenceStartEvent):
            return Listed(tuple(self._items(path)), at)
        return Keys(self._entries(path), at)

    def _text(self, event: Any, at: At, path: tuple[str, ...]) -> Text:
        fault = fault_of(event.value)
        if fault:
            self._refuse(fault, event.start_mark, path)
        return Text(event.value, plain=event.implicit[0], at=at)

    def _items(self, path: tuple[str, ...]) -> Iterator[Node]:
        while not isinstance(event := next(self.events), self.yaml.SequenceEndEvent):
            yield self._node(event, (*path, "-"))

    def _entries(self, path: tuple[str, ...]) -> dict[str, Entry]:
        entries: dict[str, Entry] = {}
        while not isinstance(event := next(self.events), self.yaml.MappingEndEvent):
            key = self._key(event, path)
            if key.text in entries:
                first = entries[key.text].at[0]
                self._refuse(
                    f"the key is given twice, first on line {first}",
                    event.start_mark,
                    (*path, key.text),
                )
            node = self._node(next(self.events), (*path, key.text))
            if isinstance(node, Text) and not node.text:
                node = node._replace(at=key.at)  # parsers disagree on where nothing stands
            entries[key.text] = Entry(key.at, node)
        return entries

    def _key(self, event: Any, path: tuple[str, ...]) -> Text:
        if isinstance(event, self.yaml.CollectionStartEvent):
            self._refuse("expected a name as the key, found a block", event.start_mark, path)
        key = self._node(event, path)  # which refuses an alias
        assert isinstance(key, Text)
        if key.plain and key.text == "<<":
            self._refuse("merge keys (<<) are not read: write the keys out", event.start_mark, path)
        if not key.text:
            self._refuse("expected a name as the key, found nothing", event.start_mark, path)
        if key.resolved != "text":
            kind = "nothing" if key.resolved == "nothing" else f"a {key.resolved}"
            self._refuse(
                f"expected a name as the key, found {key.text}, which YAML reads as {kind};"
                " put it in quotes",
                event.start_mark,
                path,
            )
        return key
