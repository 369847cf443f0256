"""What does a name in a module stand for: an import, a definition here, or an object made of one?

A name becomes a dotted path. `post` after `from requests import post` is `requests.post`;
`self.http.get` is `httpx.Client().get` where `self.http = httpx.Client(...)` stands in the class:
`()` marks what a call gave. A name that is given two different meanings has none, since an audit
that guesses is not believed.
"""

import ast
import builtins
from typing import Final, NamedTuple, final

__all__ = [
    "Bound",
    "Defined",
    "Imported",
    "Meaning",
    "Scope",
    "Self",
    "dotted",
    "follow",
    "members",
]

_HOPS: Final = 12  # names that stand for names: real code has two or three
_WORK_MAX: Final = 5_000_000  # names followed in one module; a long one takes a hundredth of it
_BUILTINS: Final = frozenset(dir(builtins))

# Where a library's own modules, or a copy inside another one, lead to the name that people know.
_SAME: Final = (
    ("requests.packages.urllib3.", "urllib3."),
    ("urllib3.util.retry.", "urllib3."),
    ("urllib3.util.Retry", "urllib3.Retry"),
    ("requests.api.", "requests."),
    ("requests.sessions.", "requests."),
    ("requests.session()", "requests.Session()"),
    ("requests.exceptions.", "requests."),
    ("requests.adapters.", "requests."),
    ("tenacity.retry.", "tenacity."),
    ("tenacity.stop.", "tenacity."),
    ("tenacity.wait.", "tenacity."),
    ("tenacity._asyncio.", "tenacity."),
    ("tenacity.asyncio.", "tenacity."),
    ("backoff._decorator.", "backoff."),
    ("retry.api.", "retry."),
    ("aiohttp.client.", "aiohttp."),
    ("aiohttp.client_exceptions.", "aiohttp."),
    ("google.api_core.retry_async.", "google.api_core.retry."),
    ("google.api_core.retry.retry_unary.", "google.api_core.retry."),
    ("google.api_core.retry.retry_unary_async.", "google.api_core.retry."),
    ("botocore.client.Config", "botocore.config.Config"),
    ("concurrent.futures.TimeoutError", "TimeoutError"),
    ("asyncio.TimeoutError", "TimeoutError"),
    ("asyncio.exceptions.TimeoutError", "TimeoutError"),
    ("socket.timeout", "TimeoutError"),
    ("socket.error", "OSError"),
    ("IOError", "OSError"),
    ("EnvironmentError", "OSError"),
    ("builtins.", ""),
)
_HEADS: Final = frozenset(old.partition(".")[0].removesuffix("()") for old, _ in _SAME)


class Defined(NamedTuple):
    """A function or class of the module, by its qualified name."""

    name: str
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    inner: "Scope"


class Imported(NamedTuple):
    """A name from elsewhere."""

    name: str


class Bound(NamedTuple):
    """A name that stands for an expression; `made` when it stands for an instance of it.

    `bare` when it is only declared (`x: Client`), so that its value still comes.
    """

    node: ast.expr
    scope: "Scope"
    made: bool = False
    bare: bool = False


class Self(NamedTuple):
    """The first parameter of a method: an instance of the class (or the class)."""

    scope: "Scope"


Meaning = Defined | Imported | Bound | Self | None


@final
class Scope:
    """The names of a module, a class or a function."""

    __slots__ = ("is_class", "module", "names", "node", "parent", "qualname", "shared", "work")

    def __init__(
        self, module: str, qualname: str, node: ast.AST, parent: "Scope | None", *, is_class: bool
    ) -> None:
        self.module: Final = module
        self.qualname: Final = qualname
        self.node: Final = node
        self.parent: Final = parent
        self.is_class: Final = is_class
        self.names: Final[dict[str, Meaning]] = {}
        self.shared: Final[set[str]] = set()  # declared `global`
        self.work: Final[list[int]] = [0] if parent is None else parent.work

    def child(self, name: str, node: ast.AST, *, is_class: bool) -> "Scope":
        """A scope inside this one."""
        qualname = f"{self.qualname}.{name}" if self.qualname else name
        return Scope(self.module, qualname, node, self, is_class=is_class)

    @property
    def path(self) -> str:
        """The dotted name of what this is the inside of."""
        return f"{self.module}.{self.qualname}" if self.qualname else self.module

    def put(self, name: str, meaning: Meaning) -> None:
        """Give a name a meaning; the second one that differs takes it away."""
        if name in self.shared:
            self.top().put(name, meaning)
        elif name not in self.names or _says_less(self.names[name], meaning):
            self.names[name] = meaning
        elif not _says_nothing(meaning) and not _alike(self.names[name], meaning):
            self.names[name] = None

    def top(self) -> "Scope":
        """The module's own scope."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope

    def find(self, name: str) -> Meaning:
        """What a name means here, by Python's rules: a class is not searched from its methods."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names and (scope is self or not scope.is_class):
                return scope.names[name]
            scope = scope.parent
        return Imported(name) if name in _BUILTINS else None

    def here(self, name: str) -> bool:
        """Whether the name belongs to this very scope."""
        return name in self.names


def _says_nothing(meaning: Meaning) -> bool:
    """`x = None` before the real value says nothing of it."""
    return (
        isinstance(meaning, Bound)
        and isinstance(meaning.node, ast.Constant)
        and meaning.node.value is None
        and not meaning.made
    )


def _says_less(one: Meaning, other: Meaning) -> bool:
    """Whether a later meaning is worth more: any than None, a value than an annotation."""
    if isinstance(one, Bound) and isinstance(other, Bound) and one.bare:
        return not other.made and not _says_nothing(other)
    return _says_nothing(one)


def _alike(one: Meaning, other: Meaning) -> bool:
    if isinstance(one, Bound) and isinstance(other, Bound):
        return one.node is other.node or (not one.made and other.made)
    if isinstance(one, Imported) or isinstance(other, Imported):
        return isinstance(one, Imported)  # `try: import a; except ImportError: import b as a`
    return isinstance(one, Defined) and isinstance(other, Defined)  # overloads


def follow(node: ast.expr, scope: Scope) -> tuple[ast.expr, Scope]:
    """The expression that a name stands for at the end, and where it stands.

    `RecursionError` when a module was made to have no end: `a = b + b`, `b = c + c` and so on.
    """
    scope.work[0] += 1
    if scope.work[0] > _WORK_MAX:
        raise RecursionError
    for _ in range(_HOPS):
        if isinstance(node, ast.Await):
            node = node.value
            continue
        meaning = _meaning(node, scope)
        if not isinstance(meaning, Bound) or meaning.made:
            break
        node, scope = meaning.node, meaning.scope
    return node, scope


def _meaning(node: ast.expr, scope: Scope) -> Meaning:
    if isinstance(node, ast.Name):
        return scope.find(node.id)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        owner = scope.find(node.value.id)
        if isinstance(owner, Self):
            return owner.scope.names.get(node.attr)
        if isinstance(owner, Defined) and isinstance(owner.node, ast.ClassDef):
            return owner.inner.names.get(node.attr)  # a constant of a class: `Limits.TRIES`
    return None


def dotted(node: ast.expr | None, scope: Scope, hops: int = _HOPS) -> str | None:
    """The dotted path of an expression; None when the module does not show it."""
    if node is None or hops <= 0:
        return None
    found = _path(node, scope, hops - 1)
    if found is None or found.partition(".")[0].removesuffix("()") not in _HEADS:
        return found
    for old, new in _SAME:
        if found.startswith(old) and (old[-1] in ".)" or found[len(old) :][:1] in ("", ".", "(")):
            found = new + found[len(old) :]
    return found


def _path(node: ast.expr, scope: Scope, hops: int) -> str | None:
    match node:
        case ast.Name():
            return _of_meaning(scope.find(node.id), hops)
        case ast.Attribute():
            return _attribute(node, scope, hops)
        case ast.Call():
            made = dotted(node.func, scope, hops)
            if made == "functools.partial" and node.args:
                return dotted(node.args[0], scope, hops)
            if made == "typing.cast" and len(node.args) > 1:
                return _of_meaning(Bound(node.args[0], scope, made=True), hops)
            return f"{made}()" if made else None
        case ast.Await():
            return dotted(node.value, scope, hops)
        case _:
            return None


def _attribute(node: ast.Attribute, scope: Scope, hops: int) -> str | None:
    if isinstance(node.value, ast.Name):
        owner = scope.find(node.value.id)
        if isinstance(owner, Self):
            return _member(owner.scope, node.attr, hops)
    base = dotted(node.value, scope, hops)
    return f"{base}.{node.attr}" if base else None


def _member(of: Scope, name: str, hops: int) -> str | None:
    """`self.name`: of the class itself, else of its one base."""
    if name in of.names:
        return _of_meaning(of.names[name], hops)
    bases = of.node.bases if isinstance(of.node, ast.ClassDef) else []
    if len(bases) != 1 or of.parent is None:
        return f"{of.path}.{name}"
    base = dotted(bases[0], of.parent, hops)
    return f"{base}.{name}" if base and base != "object" else f"{of.path}.{name}"


def _of_meaning(meaning: Meaning, hops: int) -> str | None:
    match meaning:
        case Imported() | Defined():
            return meaning.name
        case Self():
            return f"{meaning.scope.path}()"
        case Bound(made=False):
            return dotted(meaning.node, meaning.scope, hops)
        case Bound():
            note = _annotated(meaning.node)
            found = dotted(note, meaning.scope, hops)
            return f"{found}()" if found else None
        case _:
            return None


def _annotated(note: ast.expr) -> ast.expr | None:
    """The one class of an annotation: of `X`, `"X"`, `X | None`, `Optional[X]`."""
    match note:
        case ast.Constant(value=str(text)):
            try:
                return _annotated(ast.parse(text[:200], mode="eval").body)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                return None
        case ast.BinOp(op=ast.BitOr(), left=left, right=ast.Constant(value=None)):
            return _annotated(left)
        case ast.BinOp(op=ast.BitOr(), left=ast.Constant(value=None), right=right):
            return _annotated(right)
        case ast.Subscript(value=ast.Name(id="Optional") | ast.Attribute(attr="Optional")):
            return _annotated(note.slice)
        case ast.Name() | ast.Attribute():
            return note
        case _:
            return None


def members(node: ast.expr, scope: Scope) -> list[tuple[ast.expr, Scope]]:
    """The parts of a tuple, a list, a set or a union; the node itself if it is none.

    A tuple that is made of itself, or of another one twice, is taken apart once.
    """
    found: list[tuple[ast.expr, Scope]] = []
    seen: set[ast.expr] = set()
    waiting = [(node, scope)]
    while waiting:
        node, scope = follow(*waiting.pop())
        if node in seen:
            continue
        seen.add(node)
        match node:
            case ast.Tuple() | ast.List() | ast.Set():
                waiting.extend((part, scope) for part in reversed(node.elts))
            case ast.BinOp(op=ast.BitOr() | ast.Add()):
                waiting += [(node.right, scope), (node.left, scope)]
            case ast.Starred():
                waiting.append((node.value, scope))
            case ast.Call(func=ast.Name(id="frozenset" | "set" | "tuple" | "list"), args=[only]):
                waiting.append((only, scope))
            case _:
                found.append((node, scope))
    return found
