"""How often does a retry try, and how is that said when the code shows no number?"""

import ast
import math

from tidegate.analysis.source.literals import said
from tidegate.analysis.source.model import Layer

__all__ = ["bounded", "layer", "sooner", "within"]


def bounded(attempts: object, node: ast.expr | None) -> tuple[float | None, str]:
    """A number of attempts and how it is said; a number that is not shown is said by its name."""
    if isinstance(attempts, int | float) and not isinstance(attempts, bool) and attempts > 0:
        return float(attempts), f"{attempts:g}"
    return None, said(node) if node is not None else "a number not shown"


def layer(node: ast.expr, library: str, **rest: object) -> Layer:
    """A layer in the place of an expression."""
    return Layer(
        library=library,
        line=node.lineno,
        column=node.col_offset,
        end_line=node.end_lineno or node.lineno,
        **rest,  # type: ignore[arg-type]
    )


def sooner(stops: list[tuple[float | None, str]]) -> tuple[float | None, str]:
    """Whichever ends first: a known number, else what is not a number."""
    numbers = [stop for stop in stops if stop[0] is not None and math.isfinite(stop[0])]
    if numbers:
        return min(numbers, key=lambda stop: stop[0] or 0)
    others = [stop for stop in stops if stop[0] is None]
    return others[0] if others else stops[0]


def within(seconds: object, node: ast.expr) -> str:
    """A number of attempts that only a time bounds."""
    known = isinstance(seconds, int | float)
    return f"as many as fit into {f'{seconds:g} s' if known else said(node)}"
