"""What does one module call, from where, and what stands around each call?

One pass over the tree. Every call is seen with its function, the retries and timeouts around it in
that function, and whether its failure can leave the function. Nothing is decided here: the rules
read what is gathered, and `layers` follows the calls from module to module.
"""

import ast
from typing import Final, final

from tidegate.analysis.source.bindings import bind
from tidegate.analysis.source.clients import adapter, client, owner, transport
from tidegate.analysis.source.families import families, types
from tidegate.analysis.source.loops import Loop, loop
from tidegate.analysis.source.model import Layer
from tidegate.analysis.source.names import Scope, dotted
from tidegate.analysis.source.remember import export, remember
from tidegate.analysis.source.retriers import in_block, retrier
from tidegate.analysis.source.seen import Call, Decorated, Placed, Source
from tidegate.analysis.source.walk import children, inside

__all__ = ["read"]

_CANCELS: Final = frozenset(
    [
        "asyncio.timeout",
        "asyncio.timeout_at",
        "async_timeout.timeout",
        "anyio.fail_after",
        "anyio.move_on_after",
        "trio.fail_after",
        "trio.move_on_after",
    ]
)
_WAITS_FOR: Final = ("asyncio.wait_for",)


def read(tree: ast.Module, *, name: str, file: str, package: bool) -> Source:
    """Gather what the rules need. `RecursionError` if the code is nested too deeply for it."""
    scope, scopes = bind(tree, name, package=package)
    reader = _Reader(scopes)
    reader.module(tree, scope)
    mounted = _clients(reader.calls)
    placed = _placed(reader)
    module = remember(name, file, reader.functions, reader.calls, placed)
    export(module, scope, scopes, mounted)
    return Source(
        file, module, scope, reader.functions, reader.calls, placed, _patches(reader.functions)
    )


def _patches(functions: list[Decorated]) -> bool:
    """Whether `x.request = ...` stands anywhere."""
    return any(
        isinstance(target, ast.Attribute) and target.attr == "request"
        for function in functions
        for node in inside(function.node.body)
        if isinstance(node, ast.Assign)
        for target in node.targets
    )


@final
class _Reader:
    """Walks the statements with what stands around them on a stack."""

    def __init__(self, scopes: dict[ast.AST, Scope]) -> None:
        self.scopes: Final = scopes
        self.functions: Final[list[Decorated]] = []
        self.calls: Final[list[Call]] = []
        self.blocks: Final[list[tuple[Layer, Decorated, Loop | None]]] = []
        self.free: Final[list[tuple[Layer, Decorated]]] = []  # settings of retries, used elsewhere
        self._stack: list[Layer | bool] = []  # a layer, or whether a `try` keeps failures in
        self._cancels: list[ast.AST] = []
        self._own: dict[ast.AST, Layer] = {}  # a `try` in a loop that repeats what stands in it

    def module(self, tree: ast.Module, scope: Scope) -> None:
        top = Decorated(tree, scope, f"{scope.path}.<module>")
        self.functions.append(top)
        self._body(tree.body, scope, top)

    def _body(self, statements: list[ast.stmt], scope: Scope, function: Decorated) -> None:
        for statement in statements:
            self._statement(statement, scope, function)

    def _statement(self, node: ast.stmt, scope: Scope, function: Decorated) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._define(node, scope, function)
            case ast.ClassDef():
                for part in (*node.decorator_list, *node.bases, *(k.value for k in node.keywords)):
                    self._expression(part, scope, function)
                self._body(node.body, self.scopes[node], function)
            case ast.Try() | ast.TryStar():
                self._try(node, scope, function)
            case ast.For() | ast.AsyncFor() | ast.While():
                self._loop(node, scope, function)
            case ast.With() | ast.AsyncWith():
                self._with(node, scope, function)
            case ast.If():
                self._expression(node.test, scope, function)
                self._body(node.body, scope, function)
                self._body(node.orelse, scope, function)
            case ast.Match():
                self._expression(node.subject, scope, function)
                for case in node.cases:
                    self._body(case.body, scope, function)
            case _:
                for child in children(node):
                    if isinstance(child, ast.expr):
                        self._expression(child, scope, function)

    def _define(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope, outer: Decorated
    ) -> None:
        inner = self.scopes[node]
        decorators = []
        for decorator in node.decorator_list:
            name = dotted(decorator.func if isinstance(decorator, ast.Call) else decorator, scope)
            decorators.append((decorator, name, retrier(decorator, scope)))
            if isinstance(decorator, ast.Call):
                for part in (*decorator.args, *(k.value for k in decorator.keywords)):
                    self._expression(part, scope, outer)
        generates = any(isinstance(part, ast.Yield | ast.YieldFrom) for part in inside(node.body))
        made = Decorated(node, inner, inner.path, tuple(decorators), generates)
        self.functions.append(made)
        kept = self._stack, self._cancels, self._own
        self._stack, self._cancels, self._own = [], [], {}
        self._body(node.body, inner, made)
        self._stack, self._cancels, self._own = kept

    def _try(self, node: ast.Try | ast.TryStar, scope: Scope, function: Decorated) -> None:
        keeps = self._own.get(node) or any(_keeps(handler, scope) for handler in node.handlers)
        self._stack.append(keeps)
        self._body(node.body, scope, function)
        self._stack.pop()
        for handler in node.handlers:
            self._body(handler.body, scope, function)
        self._body(node.orelse, scope, function)
        self._body(node.finalbody, scope, function)

    def _loop(
        self, node: ast.For | ast.AsyncFor | ast.While, scope: Scope, function: Decorated
    ) -> None:
        head = node.test if isinstance(node, ast.While) else node.iter
        self._expression(head, scope, function)
        layer = None if isinstance(node, ast.While) else in_block(node.iter, scope)
        found = None
        if layer is None:
            found = loop(node, scope, function.node, timed=bool(self._cancels))
            layer = found.layer if found is not None else None
        if layer is not None:
            self.blocks.append((layer, function, found))
        if found is not None:
            self._own |= dict.fromkeys(found.tries, found.layer)
        elif layer is not None:
            self._stack.append(layer)
        self._body(node.body, scope, function)
        if found is None and layer is not None:
            self._stack.pop()
        self._body(node.orelse, scope, function)

    def _with(self, node: ast.With | ast.AsyncWith, scope: Scope, function: Decorated) -> None:
        cancels, keeps = 0, 0
        for item in node.items:
            self._expression(item.context_expr, scope, function)
            name = dotted(item.context_expr, scope) or ""
            if name.removesuffix("()") in _CANCELS:
                self._cancels.append(node)
                cancels += 1
            elif name == "contextlib.suppress()" and isinstance(item.context_expr, ast.Call):
                caught = tuple(t for a in item.context_expr.args for t in types(a, scope))
                self._stack.append(not families(caught) <= {"local"})
                keeps += 1
        self._body(node.body, scope, function)
        for _ in range(cancels):
            self._cancels.pop()
        for _ in range(keeps):
            self._stack.pop()

    def _expression(self, node: ast.expr, scope: Scope, function: Decorated) -> None:
        waiting: list[tuple[ast.AST, ast.AST | None]] = [
            (node, self._cancels[-1] if self._cancels else None)
        ]
        while waiting:
            part, cancel = waiting.pop()
            if isinstance(part, ast.Call):
                self._call(part, scope, function, cancel)
                target = self.calls[-1].target
                if target in _WAITS_FOR:
                    cancel = part
            waiting += [(child, cancel) for child in children(part)]

    def _call(
        self, node: ast.Call, scope: Scope, function: Decorated, cancel: ast.AST | None
    ) -> None:
        target = dotted(node.func, scope)
        layers, absorbed = self._around()
        inner = retrier(node.func, scope) if isinstance(node.func, ast.Call | ast.Name) else None
        if inner is None and target == "retry.retry_call":
            inner = retrier(node, scope)
        if inner is not None and node.args:
            wrapped = dotted(node.args[0], scope)  # `Retrying(...)(f, x)`, `retry(...)(f)`
            if wrapped is not None and not wrapped.endswith("Error"):
                self.blocks.append((inner, function, None))
                both = (inner, *layers) if not absorbed or layers else (inner,)
                self.calls.append(Call(node, wrapped, scope, function, both, absorbed, cancel))
                return
        made = retrier(node, scope) or transport(node, scope)
        if made is not None:
            self.free.append((made, function))
        self.calls.append(Call(node, target, scope, function, layers, absorbed, cancel))

    def _around(self) -> tuple[tuple[Layer, ...], bool]:
        """The retries that see a failure from here, innermost first, and if it stays inside."""
        found: list[Layer] = []
        for entry in reversed(self._stack):
            if isinstance(entry, Layer):
                found.append(entry)
                if not entry.leaks:
                    return tuple(found), True
            elif entry:
                return tuple(found), True
        return tuple(found), False


def _keeps(handler: ast.ExceptHandler, scope: Scope) -> bool:
    """Whether a handler lets no failure of a far side out."""
    if families(types(handler.type, scope)) <= {"local"}:
        return False
    return not any(isinstance(node, ast.Raise) for node in inside(handler.body))


def _clients(calls: list[Call]) -> dict[ast.Call, Layer | None]:
    """Give each call the retries of the client it is made on; returns what is mounted where."""
    mounted: dict[ast.Call, Layer | None] = {}
    for call in calls:
        if isinstance(call.node.func, ast.Attribute) and call.node.func.attr == "mount":
            found = owner(call.node.func, call.scope)
            if found is not None and found[2] == "requests.Session" and len(call.node.args) == 2:
                mounted[found[0]] = adapter(call.node.args[1], call.scope)
    made: dict[ast.Call, Layer | None] = {}
    for call in calls:
        if call.target is None or "()." not in call.target:
            continue
        found = owner(call.node.func, call.scope)
        if found is None:
            continue
        maker, where, name = found
        if maker not in made:
            made[maker] = mounted[maker] if maker in mounted else client(maker, where, name)
        call.client = made[maker]
    return mounted


def _placed(reader: _Reader) -> list[Placed]:
    """Every retry of the module, each once, with the calls that it repeats."""
    found: dict[tuple[int, int, str], Placed] = {}
    around: dict[int, list[Placed]] = {}

    def put(layer: Layer, function: Decorated, seen: Loop | None) -> Placed:
        key = (layer.line, layer.column, function.name)
        return found.setdefault(key, Placed(layer, function, loop=seen))

    for function in reader.functions:
        for layer in function.layers:
            around.setdefault(id(function), []).append(put(layer, function, None))
    blocks = {id(layer): put(layer, f, seen) for layer, f, seen in reader.blocks}
    for call in reader.calls:
        for layer in call.layers:
            if id(layer) in blocks:
                blocks[id(layer)].calls.append(call)
        if not call.absorbed:
            for placed in around.get(id(call.function), ()):
                placed.calls.append(call)
    places = {(p.layer.line, p.layer.column) for p in found.values()}
    for layer, function in reader.free:
        if (layer.line, layer.column) not in places:
            put(layer, function, None).free = True
    return list(found.values())
