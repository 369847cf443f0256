"""What is kept of a module once its tree is gone, so that calls can be followed through it?"""

import ast
from collections.abc import Iterator
from typing import Final

from tidegate.analysis.source.clients import client
from tidegate.analysis.source.families import types
from tidegate.analysis.source.literals import value
from tidegate.analysis.source.model import Exported, Function, Layer, Module, Site, Wrapping
from tidegate.analysis.source.names import Bound, Imported, Scope, dotted, follow
from tidegate.analysis.source.seen import Call, Decorated, Placed
from tidegate.analysis.source.walk import inside

__all__ = ["export", "remember"]

_PROPERTIES: Final = frozenset(("property", "cached_property", "functools.cached_property"))
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
_SEVERAL: Final = (ast.Tuple, ast.List, ast.Name, ast.Attribute)  # what may name exceptions
_GUARDS: Final = ("tidegate.guard", "tidegate.guard()")  # as a decorator; kept in a name


def remember(
    name: str, file: str, functions: list[Decorated], calls: list[Call], placed: list[Placed]
) -> Module:
    """The module without its tree: of each function only the calls that can lead somewhere."""
    module = Module(name, file)
    for function in functions:
        line = getattr(function.node, "lineno", 1)
        guarded = any(name in _GUARDS for _, name, _ in function.decorators)
        kept = Function(function.name, file, line, () if guarded else function.layers)
        kept.wrappings = tuple(_wrappings(function))
        module.functions[function.name] = kept
    seen: set[tuple[str, str, tuple[int, ...], bool]] = set()
    for call in calls:
        target = call.target
        if target is None or "." not in target:
            continue
        key = (call.function.name, target, tuple(id(la) for la in call.layers), call.absorbed)
        if key in seen:
            continue
        seen.add(key)
        handed = tuple(_handed(call)) if call.client is None else ()
        line, column = call.node.lineno, call.node.col_offset
        site = Site(target, line, column, call.layers, call.absorbed, call.client, handed)
        module.functions[call.function.name].sites.append(site)
    _gives(placed, module)
    return module


def _handed(call: Call) -> Iterator[tuple[str, str]]:
    """Functions that are handed to a call: by their name, or a lambda that calls one."""
    given = [(str(place), node) for place, node in enumerate(call.node.args)]
    given += [(keyword.arg, keyword.value) for keyword in call.node.keywords if keyword.arg]
    for place, node in given:
        if isinstance(node, ast.Lambda) and isinstance(node.body, ast.Call):
            node = node.body.func
        elif not isinstance(node, ast.Name | ast.Attribute):
            continue
        target = dotted(node, call.scope)
        if target is not None and "." in target and not target.endswith("()"):
            yield place, target


def _wrappings(function: Decorated) -> Iterator[Wrapping]:
    """Decorators of nobody we know: they may be retries of the project's own."""
    scope = function.scope.parent
    for decorator, name, layer in function.decorators:
        if layer is not None or scope is None or name is None or "." not in name:
            continue
        given = decorator.keywords if isinstance(decorator, ast.Call) else []
        plain = {k.arg: value(k.value, scope) for k in given if k.arg}
        numbers = {n: v for n, v in plain.items() if isinstance(v, int) and v is not True}
        named = [t for k in given if isinstance(k.value, _SEVERAL) for t in types(k.value, scope)]
        line, column = decorator.lineno, decorator.col_offset
        yield Wrapping(name, line, column, numbers, tuple(named))


def _gives(placed: list[Placed], module: Module) -> None:
    """Mark the functions that are retries of the project's own: a loop around a parameter of a
    function outside, which is what a decorator does.
    """
    for place in placed:
        if place.loop is None:
            continue
        for call in place.calls:
            outer = _parameter_of(call.node.func, call.scope)
            if outer is None:
                continue
            if outer is call.scope:
                _takes(call, place.layer, module)
                continue
            top = outer
            while top.parent is not None and isinstance(top.parent.node, _FUNCTIONS):
                top = top.parent
            made = module.functions.get(top.path)
            if made is not None and isinstance(top.node, _FUNCTIONS):
                made.gives = place.layer
                made.defaults = _defaults(top.node)


def _parameter_of(node: ast.expr, scope: Scope) -> Scope | None:
    """The function whose parameter is called: this one, or one outside."""
    if not isinstance(node, ast.Name):
        return None
    outer: Scope | None = scope
    while outer is not None and not outer.here(node.id):
        outer = outer.parent
    if outer is None or not isinstance(outer.node, _FUNCTIONS):
        return None
    return outer if node.id in _parameters(outer.node) else None


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    given = node.args
    return [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]


def _takes(call: Call, layer: Layer, module: Module) -> None:
    """Mark a function that repeats what it is handed: `again(load)`."""
    scope = call.scope
    made = module.functions.get(scope.path)
    if made is None or not isinstance(call.node.func, ast.Name):
        return
    if not isinstance(scope.node, _FUNCTIONS):
        return
    names = _parameters(scope.node)
    if scope.parent is not None and scope.parent.is_class:
        names = names[1:]
    if call.node.func.id in names:
        made.gives = layer
        made.takes = call.node.func.id, str(names.index(call.node.func.id))


def _defaults(node: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, int]:
    given = node.args
    plain = [*given.posonlyargs, *given.args]
    pairs = [*zip(reversed(plain), reversed(given.defaults), strict=False)]
    pairs += [(a, d) for a, d in zip(given.kwonlyargs, given.kw_defaults, strict=True) if d]
    return {
        a.arg: d.value
        for a, d in pairs
        if isinstance(d, ast.Constant) and isinstance(d.value, int) and d.value is not True
    }


def export(
    module: Module,
    scope: Scope,
    scopes: dict[ast.AST, Scope],
    mounted: dict[ast.Call, Layer | None],
) -> None:
    """What names of the module and of its classes stand for, for those who import them, and what
    its functions give back. `mounted` holds the retries of sessions that have an adapter.
    """
    for inner in (scope, *scopes.values()):
        if isinstance(inner.node, _FUNCTIONS):
            _export_result(module, inner, mounted)
            continue
        prefix = f"{inner.qualname}." if inner.qualname else ""
        for name, meaning in inner.names.items():
            if isinstance(meaning, Imported) and "." in meaning.name:
                module.exports[prefix + name] = Exported(meaning.name)
            elif isinstance(meaning, Bound) and not meaning.made:
                found = _exported(meaning.node, meaning.scope, mounted)
                if found is not None:
                    module.exports[prefix + name] = found


def _exported(
    node: ast.expr, scope: Scope, mounted: dict[ast.Call, Layer | None]
) -> Exported | None:
    target = dotted(node, scope)
    if target is None or "." not in target:
        return None
    found, where = follow(node, scope)
    if not isinstance(found, ast.Call):
        return Exported(target)
    if found in mounted:
        return Exported(target, mounted[found])
    maker = dotted(found.func, where)
    return Exported(target, client(found, where, maker) if maker else None)


def _export_result(module: Module, scope: Scope, mounted: dict[ast.Call, Layer | None]) -> None:
    """What a function gives back, if that is one thing: a session, a client. A property gives it
    without being called.
    """
    node = scope.node
    assert isinstance(node, _FUNCTIONS)
    given = [n.value for n in inside(node.body) if isinstance(n, ast.Return) and n.value]
    found = [_exported(value, scope, mounted) for value in given]
    if not found or found[0] is None or any(other != found[0] for other in found):
        return
    named = {ast.unparse(decorator) for decorator in node.decorator_list}
    called = "" if named & _PROPERTIES else "()"
    module.exports[f"{scope.qualname}{called}"] = found[0]
