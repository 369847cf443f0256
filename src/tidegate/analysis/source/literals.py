"""Which argument does a call give, and what plain value does it have?

Three answers are told apart everywhere: the argument is absent, it is there and cannot be read from
the syntax (`UNKNOWN`), or it has a value. Names of constants are followed, so `MAX_TRIES = 3` some
lines above counts as 3.
"""

import ast
from typing import Any, Final, final

from tidegate.analysis.source.names import Scope, follow

__all__ = ["ABSENT", "UNKNOWN", "argument", "is_none", "opaque", "said", "value", "value_of"]


@final
class _Mark:
    """A value that is no value."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name: Final = name

    def __repr__(self) -> str:
        return self.name


ABSENT: Final = _Mark("ABSENT")
UNKNOWN: Final = _Mark("UNKNOWN")
_SAID_MAX: Final = 40  # characters of their code that are quoted in a sentence


def opaque(call: ast.Call) -> bool:
    """Whether the call hands on arguments that are not written out: `*args` or `**kwargs`."""
    return any(isinstance(a, ast.Starred) for a in call.args) or any(
        k.arg is None for k in call.keywords
    )


def argument(call: ast.Call, *names: str, at: int | None = None) -> ast.expr | None:
    """The argument of one of these names, or else at a position; None if it is not written."""
    for keyword in call.keywords:
        if keyword.arg in names:
            return keyword.value
    if at is None or at >= len(call.args):
        return None
    hidden = any(isinstance(given, ast.Starred) for given in call.args[: at + 1])
    return None if hidden else call.args[at]


def value_of(call: ast.Call, scope: Scope, *names: str, at: int | None = None) -> Any:
    """The plain value of an argument, `ABSENT`, or `UNKNOWN`."""
    given = argument(call, *names, at=at)
    if given is None:
        return UNKNOWN if opaque(call) else ABSENT
    return value(given, scope)


def is_none(node: ast.expr | None) -> bool:
    """Whether None itself is written there: a name that holds it may get another value later."""
    return isinstance(node, ast.Constant) and node.value is None


def value(node: ast.expr, scope: Scope) -> Any:
    """A number, text, truth value or None that an expression is known to have, else `UNKNOWN`."""
    node, scope = follow(node, scope)
    match node:
        case ast.Constant(value=constant):
            return constant
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            number = value(operand, scope)
            return -number if isinstance(number, int | float) else UNKNOWN
        case ast.BinOp():
            return _computed(node, scope)
        case ast.Call(func=ast.Name(id="int" | "float"), args=[only], keywords=[]):
            number = value(only, scope)
            return number if isinstance(number, int | float) else UNKNOWN
        case _:
            return UNKNOWN


def _computed(node: ast.BinOp, scope: Scope) -> Any:
    left, right = value(node.left, scope), value(node.right, scope)
    if not (isinstance(left, int | float) and isinstance(right, int | float)):
        return UNKNOWN
    match node.op:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case _:
            return UNKNOWN


def said(node: ast.expr) -> str:
    """Their own words, on one line and not too long."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= _SAID_MAX else f"{text[: _SAID_MAX - 3]}..."
