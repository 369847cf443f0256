"""Which pieces is the page put together from?

A badge, a list of facts, a list of notes, and a table that a phone shows as a list of rows.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from tidegate.report.markup import Markup, el, join

__all__ = ["Cell", "badge", "facts", "notes", "table"]

_TONES: Final = {
    "fails": "bad",
    "collapses by itself": "bad",
    "sticks": "bad",
    "oscillates": "bad",
    "error": "bad",
    "overloaded": "bad",
    "vulnerable": "wary",
    "slow to drain": "wary",
    "warning": "wary",
    "not judged": "wary",
    "stable": "good",
    "recovers": "good",
    "unharmed": "good",
}

Cell = str | Markup
"""What may stand in a table or a list of facts."""


def badge(word: str, shown: str | None = None) -> Markup:
    """A word in its colour; `shown` is what stands in it when that is another word."""
    return el("span", shown or word, class_=f"badge {_TONES.get(word, 'plain')}")


def facts(pairs: Iterable[tuple[str, Cell]]) -> Markup:
    """Names and their values, one under another."""
    rows = (join([el("dt", name), el("dd", value)]) for name, value in pairs)
    return el("dl", *rows, class_="facts")


def notes(title: str, told: Sequence[str]) -> list[Markup]:
    """A titled list; nothing at all when there is nothing to tell."""
    return [el("h3", title), el("ul", *(el("li", note) for note in told))] if told else []


def table(
    caption: str,
    heads: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    *,
    numbers: Iterable[int] = (),
) -> Markup:
    """A table that becomes a list of rows on a narrow window.

    The roles are spelled out because a style sheet that changes how a table is displayed takes
    them from a screen reader otherwise.
    """
    right = frozenset(numbers)
    kinds = ["num" if i in right else None for i in range(len(heads))]
    head = el(
        "tr",
        *(
            el("th", text, scope="col", role="columnheader", class_=kind)
            for text, kind in zip(heads, kinds, strict=True)
        ),
        role="row",
    )
    body = (
        el(
            "tr",
            el("th", row[0], scope="row", role="rowheader"),
            *(
                el("td", cell, role="cell", class_=kind, data_head=text)
                for cell, text, kind in zip(row[1:], heads[1:], kinds[1:], strict=True)
            ),
            role="row",
        )
        for row in rows
    )
    return el(
        "table",
        el("caption", caption),
        el("thead", head, role="rowgroup"),
        el("tbody", *body, role="rowgroup"),
        role="table",
        class_="stack",
    )
