"""Which nodes run as part of some statements, and which words stand in them?"""

import ast
from collections.abc import Iterable, Iterator
from typing import Final

__all__ = ["called", "calls", "inside", "words"]

_NESTED: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def words(node: ast.AST) -> str:
    """Every identifier and short text of a function, in lower case, one after the other."""
    found: list[str] = []
    for part in ast.walk(node):
        match part:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                found.append(name)
            case ast.keyword(arg=str(name)):
                found.append(name)
            case ast.Constant(value=str(text)) if len(text) < 40:
                found.append(text)
            case _:
                pass
    return " ".join(found).lower()


def inside(statements: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Every node that runs as part of these; what is only defined in them does not."""
    stack = list(statements)
    while stack:
        node = stack.pop()
        if isinstance(node, _NESTED):
            continue
        yield node
        stack.extend(ast.iter_child_nodes(node))


def called(call: ast.Call) -> str:
    """The last part of a called name."""
    named = call.func
    return named.attr if isinstance(named, ast.Attribute) else getattr(named, "id", "")


def calls(statements: Iterable[ast.AST]) -> Iterator[ast.Call]:
    """Every call that runs as part of these."""
    return (n for n in inside(statements) if isinstance(n, ast.Call))
