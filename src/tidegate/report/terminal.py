"""How does text fit a terminal of any width, without losing a word of it?

A table that does not fit becomes paragraphs, one for each row, with the column's head before each
cell: nothing is cut. Widths are counted in cells, since a Chinese character takes two. Colour is
put on last, over words whose place is settled, so that it can move nothing and says nothing that
the words do not.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

__all__ = ["Columns", "cells", "hang", "paint", "wrap"]

_GAP: Final = 2  # blanks between two columns
_WORDS_LEAST: Final = 18  # a column of words narrower than this reads worse than paragraphs


def cells(text: str) -> int:
    """How many columns of a terminal the text takes."""
    if text.isascii():
        return len(text)
    return sum(_cell(character) for character in text)


def _cell(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0  # drawn over the one before
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def wrap(text: str, width: int) -> list[str]:
    """Lines of at most `width` cells; broken at blanks, and inside a word only if it must be."""
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        joined = f"{line} {word}" if line else word
        if cells(joined) <= width:
            line = joined
            continue
        if line:
            lines.append(line)
        *full, line = _chunks(word, width)
        lines.extend(full)
    return [*lines, line] if line or not lines else lines


def _chunks(word: str, width: int) -> list[str]:
    """A word in pieces of at most `width` cells (one character at least)."""
    pieces = [""]
    for character in word:
        if pieces[-1] and cells(pieces[-1]) + _cell(character) > width:
            pieces.append("")
        pieces[-1] += character
    return pieces


def hang(label: str, text: str, width: int, indent: int) -> list[str]:
    """A label with its text beside it, every line of the text starting at the same column."""
    lines = wrap(text, width - indent)
    if cells(label) < indent:
        first = f"{_left(label, indent)}{lines[0]}".rstrip()
        return [first, *(_shifted(lines[1:], indent))]
    return [*wrap(label, width), *_shifted(lines, indent)]


def _shifted(lines: Iterable[str], indent: int) -> list[str]:
    return [" " * indent + line for line in lines]


def _left(text: str, width: int) -> str:
    return text + " " * (width - cells(text))


class Columns:
    """The layout of one table: as columns when they fit, else as a paragraph for each row.

    The first and the last column hold words and wrap; those between hold figures and do not.
    `right` names the columns, counted from 0, whose figures are compared by size and therefore
    stand flush right. `indent` is for the rows; the heads begin at the edge.
    """

    def __init__(
        self,
        head: Sequence[str],
        rows: Iterable[Sequence[str]],
        *,
        width: int,
        indent: int = 2,
        right: Iterable[int] = (),
    ) -> None:
        self._names = head
        self._width = width
        self._indent = indent
        self._right = frozenset(right)
        every = [("", *head[1:]), *(_indented(row, indent) for row in rows)]
        natural = [max(cells(row[i]) for row in every) for i in range(len(head))]
        middle = natural[1:-1]
        room = width - _GAP * (len(head) - 1) - sum(middle)
        last = min(natural[-1], max(room - natural[0], room // 2))
        first = min(max(natural[0], cells(head[0])), room - last)
        self._widths = [first, *middle, last]
        self._fits = all(
            given >= min(wanted, _WORDS_LEAST)
            for given, wanted in ((first, natural[0]), (last, natural[-1]))
        )

    def head(self) -> list[str]:
        """The heads: one line if the first fits its column, else that one on a line before.

        When each cell carries its own head, the first stands alone.
        """
        title, *names = self._names
        if self._fits and cells(title) <= self._widths[0]:
            return self._aligned(self._names, 0)
        alone = wrap(title, self._width)
        return [*alone, *self._aligned(["", *names], 0)] if self._fits else alone

    def row(self, row: Sequence[str]) -> list[str]:
        """The lines of one row."""
        return self._aligned(row, self._indent) if self._fits else self._spelled(row)

    def _aligned(self, row: Sequence[str], indent: int) -> list[str]:
        first = _shifted(wrap(row[0], self._widths[0] - indent), indent)
        columns = [first, *([cell] for cell in row[1:-1]), wrap(row[-1], self._widths[-1])]
        high = max(len(column) for column in columns)
        return [
            (" " * _GAP)
            .join(self._placed(i, c[n] if n < len(c) else "") for i, c in enumerate(columns))
            .rstrip()
            for n in range(high)
        ]

    def _placed(self, column: int, cell: str) -> str:
        space = " " * (self._widths[column] - cells(cell))
        return space + cell if column in self._right else cell + space

    def _spelled(self, row: Sequence[str]) -> list[str]:
        told = [f"{n} {c}".strip() for n, c in zip(self._names[1:], row[1:], strict=True) if c]
        first, *rest = wrap(f"{row[0]}: {', '.join(told)}", self._width - self._indent - 2)
        return [" " * self._indent + first, *_shifted(rest, self._indent + 2)]


def _indented(row: Sequence[str], indent: int) -> list[str]:
    return [" " * indent + row[0], *row[1:]]


_BAD: Final = "31"
_WARY: Final = "33"
_GOOD: Final = "32"
_BOLD: Final = "1"
_COLOURS: Final = {
    "FAILS": f"{_BOLD};{_BAD}",
    "COLLAPSES BY ITSELF": f"{_BOLD};{_BAD}",
    "VULNERABLE": f"{_BOLD};{_WARY}",
    "NOT JUDGED": f"{_BOLD};{_WARY}",
    "STABLE": f"{_BOLD};{_GOOD}",
    "TOO THIN": f"{_BOLD};{_WARY}",
    "INTERRUPTED": f"{_BOLD};{_WARY}",
    "HOLDS": f"{_BOLD};{_GOOD}",
    "DOES NOT HOLD": f"{_BOLD};{_BAD}",
    "STICKS": _BAD,
    "OSCILLATES": _BAD,
    "SLOW TO DRAIN": _WARY,
    "RECOVERS": _GOOD,
    "UNHARMED": _GOOD,
}
_SECTIONS: Final = ("SERVICES", "TRIGGERS", "GETTING OUT", "CURES", "AUDIT", "LANE")
_HEADS: Final = re.compile(rf"^( *)({'|'.join((*_COLOURS, *_SECTIONS))})(?=[ :]|$)", re.MULTILINE)


def paint(text: str) -> str:
    """The same text with its heads and its outcomes coloured (ECMA-48 select graphic rendition)."""
    return _HEADS.sub(_coloured, text)


def _coloured(match: re.Match[str]) -> str:
    return f"{match[1]}\x1b[{_COLOURS.get(match[2], _BOLD)}m{match[2]}\x1b[0m"
