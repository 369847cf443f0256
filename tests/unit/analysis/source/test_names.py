"""What names stand for, told in expressions and their dotted paths."""

import ast
from textwrap import dedent

import pytest
from source_code import source

from tidegate.analysis.source.bindings import bind
from tidegate.analysis.source.names import Scope, dotted, follow, members


def _is_mark(node: ast.Assign) -> bool:
    return isinstance(node.targets[0], ast.Name) and node.targets[0].id == "_"


def last(code: str, *, package: bool = False, name: str = "app.main") -> tuple[ast.expr, Scope]:
    """The expression of the last statement `_ = ...`, wherever it stands, and its scope."""
    tree = ast.parse(dedent(code))
    _, scopes = bind(tree, name, package=package)
    where = {}
    for node, scope in scopes.items():
        for statement in getattr(node, "body", []):
            where[statement] = scope
    found = [n for n in ast.walk(tree) if isinstance(n, ast.Assign) and _is_mark(n)]
    return found[-1].value, where[found[-1]]


@pytest.mark.parametrize(
    ("code", "path"),
    [
        ("import requests\n_ = requests.get", "requests.get"),
        ("import requests as r\n_ = r.get", "requests.get"),
        ("import urllib.request\n_ = urllib.request.urlopen", "urllib.request.urlopen"),
        ("from requests import get as fetch\n_ = fetch", "requests.get"),
        ("from requests.exceptions import Timeout\n_ = Timeout", "requests.Timeout"),
        ("from urllib3.util.retry import Retry\n_ = Retry", "urllib3.Retry"),
        ("from requests.packages.urllib3.util.retry import Retry\n_ = Retry", "urllib3.Retry"),
        ("from socket import timeout\n_ = timeout", "TimeoutError"),
        ("_ = ValueError", "ValueError"),
        ("_ = nowhere", None),
        ("def f(): ...\n_ = f", "app.main.f"),
        ("class A:\n    def f(self): ...\n_ = A.f", "app.main.A.f"),
        ("import httpx\nc = httpx.Client()\n_ = c.get", "httpx.Client().get"),
        ("import httpx\nwith httpx.Client() as c:\n    pass\n_ = c.get", "httpx.Client().get"),
        ("import httpx\na = httpx\n_ = a.get", "httpx.get"),
        ("import requests\ns = requests.session()\n_ = s.get", "requests.Session().get"),
        ("import functools, requests\ng = functools.partial(requests.get)\n_ = g", "requests.get"),
        ("import typing, a\nx = typing.cast(a.B, 1)\n_ = x.c", "a.B().c"),
        ("x = x\n_ = x", None),
        ("x = y\ny = x\n_ = x", None),
        ("_ = (lambda: 1)()", None),
    ],
)
def test_paths(code: str, path: str | None) -> None:
    assert dotted(*last(code)) == path


@pytest.mark.parametrize(
    ("code", "path"),
    [
        ("import a\nif a:\n    x = a.b()\nelse:\n    x = a.c()\n_ = x.d", None),
        ("import a\nx = None\nx = a.b()\n_ = x.d", "a.b().d"),
        ("import a\nx = a.b()\nx += 1\n_ = x.d", None),
        ("import a\nx: a.B\nx = a.c()\n_ = x.d", "a.c().d"),
        ("import a\nx = a.c()\nx: a.B\n_ = x.d", "a.c().d"),
        ("import a\nx: a.B\nx = None\n_ = x.d", "a.B().d"),
        ("import a\nx, y = a.b()\n_ = x.d", None),
        ("import a\n[x, *y] = a.b()\n_ = y.d", None),
        ("import a\nx.y = a.b()\nx[1] = 1\n_ = x.d", None),
        ("def x(): ...\ndef x(): ...\n_ = x", "app.x"),
        ("import a\nfor x in a.b():\n    _ = x.d", None),
        ("try:\n    import a\nexcept ImportError:\n    import b as a\n_ = a.c", "a.c"),
        ("try:\n    from a import b\nexcept ImportError:\n    def b(): ...\n_ = b", "a.b"),
    ],
)
def test_two_meanings_are_none(code: str, path: str | None) -> None:
    tree = ast.parse(code)
    scope, _ = bind(tree, "app", package=False)
    found = next(n for n in ast.walk(tree) if isinstance(n, ast.Assign) and _is_mark(n))
    assert dotted(found.value, scope) == path


@pytest.mark.parametrize(
    ("note", "path"),
    [
        ("httpx.Client", "httpx.Client().get"),
        ("'httpx.Client'", "httpx.Client().get"),
        ("httpx.Client | None", "httpx.Client().get"),
        ("None | httpx.Client", "httpx.Client().get"),
        ("Optional[httpx.Client]", "httpx.Client().get"),
        ("httpx.Client | httpx.AsyncClient", None),
        ("'httpx.'", None),
        ("list[httpx.Client]", None),
    ],
)
def test_annotations_say_what_a_parameter_is(note: str, path: str | None) -> None:
    code = f"import httpx\ndef f(client: {note}):\n    _ = client.get"
    assert dotted(*last(code)) == path


def test_a_class_knows_what_its_methods_put_on_self() -> None:
    code = """
        import httpx
        class Api(Base):
            def call(self):
                _ = self.http.get
            def __init__(self):
                self.http = httpx.Client()
    """
    assert dotted(*last(code)) == "httpx.Client().get"


@pytest.mark.parametrize(
    ("code", "path"),
    [
        ("class A:\n    def f(self):\n        _ = self.g\n    def g(self): ...", "app.main.A.g"),
        ("import x\nclass A(x.B):\n    def f(self):\n        _ = self.g", "x.B.g"),
        ("class A:\n    def f(self):\n        _ = self.g", "app.main.A.g"),
        ("class A:\n    @staticmethod\n    def f(a):\n        _ = a.g", None),
        ("class A:\n    def f(self):\n        _ = self", "app.main.A()"),
        ("class A:\n    n = 1\n    def f(self):\n        _ = n", None),
        ("def f(x=1, *args, y, **rest):\n    _ = rest", None),
        ("x = int\ndef f():\n    global x\n    _ = x", "int"),
    ],
)
def test_functions_and_classes(code: str, path: str | None) -> None:
    assert dotted(*last(code)) == path


@pytest.mark.parametrize(
    ("code", "package", "path"),
    [
        ("from . import db\n_ = db", False, "app.db"),
        ("from .db import get\n_ = get", False, "app.db.get"),
        ("from .db import get\n_ = get", True, "app.main.db.get"),
        ("from ..db import get\n_ = get", True, "app.db.get"),
        ("from ....db import get\n_ = get", False, "db.get"),
    ],
)
def test_relative_imports(code: str, package: bool, path: str) -> None:
    assert dotted(*last(code, package=package)) == path


def test_a_name_leads_to_the_expression_that_it_stands_for() -> None:
    node, _ = follow(*last("a = 3\nb = a\n_ = b"))
    assert ast.unparse(node) == "3"
    node, _ = follow(*last("class Limits:\n    TRIES = 3\n_ = Limits.TRIES"))
    assert ast.unparse(node) == "3"


def test_members_of_a_tuple_that_is_put_together() -> None:
    found = members(*last("A = (KeyError,)\nB = (*A, OSError)\n_ = B + (EOFError,)"))
    assert [ast.unparse(node) for node, _ in found] == ["KeyError", "OSError", "EOFError"]
    found = members(*last("_ = frozenset({500, 502})"))
    assert [ast.unparse(node) for node, _ in found] == ["500", "502"]


def test_a_tuple_that_is_made_of_itself_ends() -> None:
    twice = members(*last("A = (*A, 1, *A)\n_ = A"))
    assert [ast.unparse(node) for node, _ in twice] == ["1"]
    body = "    errors = (*errors, OSError)\n    _ = errors"
    found = members(*last(f"def f(errors: tuple):\n{body}"))
    assert [ast.unparse(node) for node, _ in found] == ["errors"]


def test_every_kind_of_statement_is_entered() -> None:
    code = """
        import a
        while a:
            try:
                pass
            except a.E:
                match a:
                    case 1:
                        x = a.b()
            else:
                y = a.c()
            finally:
                z: a.D
    """
    scope = source(code).scope
    named = {name: dotted(ast.parse(name, mode="eval").body, scope) for name in "xyz"}
    assert named == {"x": "a.b()", "y": "a.c()", "z": "a.D()"}
