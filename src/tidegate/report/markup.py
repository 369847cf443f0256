"""How is HTML built so that no text can become markup by accident?

Everything that is put into an element is escaped unless it is itself an element. There is no way
to forget it, and nothing to remember.
"""

from collections.abc import Iterable
from html import escape
from typing import Final

from tidegate.report.figures import clean

__all__ = ["Markup", "el", "join", "lines"]

_VOID: Final = frozenset({"br", "hr", "link", "meta"})  # HTML, section 13.1.2: no end tag


class Markup(str):
    """Text that is already HTML. Only this module makes it."""

    __slots__ = ()


def el(tag: str, *children: str | None, **attributes: str | float | bool | None) -> Markup:
    """An element. `class_` is the attribute `class`, `aria_label` is `aria-label`.

    A child or an attribute that is None is left out; an attribute that is True stands bare.
    """
    inner = join(children)
    given = (item for item in attributes.items() if item[1] is not None and item[1] is not False)
    start = tag + "".join(_attribute(name, value) for name, value in given)
    return Markup(f"<{start}>" if tag in _VOID else f"<{start}>{inner}</{tag}>")


def _attribute(name: str, value: str | float | bool | None) -> str:
    name = name.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(clean(str(value)))}"'


def join(children: Iterable[str | None]) -> Markup:
    """Elements and texts one after another; texts are escaped and made visible."""
    return Markup("".join(_safe(child) for child in children if child is not None))


def lines(text: str) -> Markup:
    """Text whose lines matter, for a `pre`: each is made visible, the breaks are kept."""
    return Markup("\n".join(_safe(line) for line in text.split("\n")))


def _safe(child: str) -> str:
    return child if isinstance(child, Markup) else escape(clean(child))
