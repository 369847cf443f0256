"""Which names does a module bind, and where?

One pass over the statements; expressions are not entered. A class collects what its methods put on
`self`, so that `self.client` means the same in all of them.
"""

import ast
from collections.abc import Iterable, Iterator
from typing import Final, final

from tidegate.analysis.source.names import Bound, Defined, Imported, Meaning, Scope, Self

__all__ = ["bind"]


def bind(tree: ast.Module, module: str, *, package: bool) -> tuple[Scope, dict[ast.AST, Scope]]:
    """The module's scope, and the scope of each function and class in it."""
    scope = Scope(module, "", tree, None, is_class=False)
    scopes: dict[ast.AST, Scope] = {tree: scope}
    _Binder(scopes, module if package else module.rpartition(".")[0]).body(tree.body, scope)
    return scope, scopes


@final
class _Binder:
    """Gives every name of a module its meaning, in one pass over the statements."""

    __slots__ = ("package", "scopes")

    def __init__(self, scopes: dict[ast.AST, Scope], package: str) -> None:
        self.scopes: Final = scopes
        self.package: Final = package

    def body(self, statements: Iterable[ast.stmt], scope: Scope) -> None:
        for statement in statements:
            self._statement(statement, scope)

    def _statement(self, node: ast.stmt, scope: Scope) -> None:
        match node:
            case ast.Import() | ast.ImportFrom():
                self._imports(node, scope)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self._define(node, scope)
            case ast.Assign():
                for target in node.targets:
                    self._target(target, Bound(node.value, scope), scope)
            case ast.AnnAssign():
                bare = node.value is None
                given = Bound(node.value or node.annotation, scope, made=bare, bare=bare)
                self._target(node.target, given, scope)
            case ast.AugAssign() | ast.For() | ast.AsyncFor():
                self._target(node.target, None, scope)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    if item.optional_vars is not None:
                        self._target(item.optional_vars, Bound(item.context_expr, scope), scope)
            case ast.Global():
                scope.shared.update(node.names)
            case _:
                pass
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for statements in _bodies(node):
                self.body(statements, scope)

    def _imports(self, node: ast.Import | ast.ImportFrom, scope: Scope) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                scope.put(alias.asname or first, Imported(alias.name if alias.asname else first))
            return
        base = node.module or ""
        if node.level:
            parts = self.package.split(".") if self.package else []
            kept = parts[: len(parts) - node.level + 1]
            base = ".".join((*kept, base) if base else kept)
        for alias in node.names:
            scope.put(alias.asname or alias.name, Imported(f"{base}.{alias.name}".lstrip(".")))

    def _define(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, scope: Scope
    ) -> None:
        is_class = isinstance(node, ast.ClassDef)
        inner = scope.child(node.name, node, is_class=is_class)
        scope.put(node.name, Defined(inner.path, node, inner))
        self.scopes[node] = inner
        if not isinstance(node, ast.ClassDef):
            self._parameters(node, inner, scope)
        self.body(node.body, inner)

    def _parameters(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, inner: Scope, scope: Scope
    ) -> None:
        given = node.args
        every = [*given.posonlyargs, *given.args, *given.kwonlyargs]
        for argument in every:
            note = argument.annotation
            inner.names[argument.arg] = Bound(note, scope, made=True) if note else None
        for rest in (given.vararg, given.kwarg):
            if rest is not None:
                inner.names[rest.arg] = None
        static = any(
            isinstance(d, ast.Name) and d.id == "staticmethod" for d in node.decorator_list
        )
        if scope.is_class and every and not static:
            inner.names[every[0].arg] = Self(scope)

    def _target(self, target: ast.expr, meaning: Meaning, scope: Scope) -> None:
        match target:
            case ast.Name():
                scope.put(target.id, meaning)
            case ast.Attribute(value=ast.Name(id=owner)):
                found = scope.find(owner)
                if isinstance(found, Self):
                    found.scope.put(target.attr, meaning)
            case ast.Tuple() | ast.List():
                for part in target.elts:
                    self._target(part, None, scope)
            case ast.Starred():
                self._target(target.value, None, scope)
            case _:
                pass


def _bodies(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The lists of statements right inside a statement."""
    for field in ("body", "orelse", "finalbody"):
        statements = getattr(node, field, None)
        if isinstance(statements, list):
            yield statements
    for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield part.body
