"""What is kept of a module: its calls, its own retries, and what its names stand for to others."""

import pytest
from source_code import hits, source

from tidegate.analysis.source.model import Function

IMPORTS = "import tenacity, requests\n"


def test_what_is_left_of_a_module_holds_no_tree() -> None:
    body = "@tenacity.retry\ndef f():\n    requests.get(u)\n    print(1)\n"
    body += "client = requests.Session()\n"
    module = source(IMPORTS + body).module
    assert set(module.functions) == {"app.<module>", "app.f"}
    function = module.functions["app.f"]
    assert [site.target for site in function.sites] == ["requests.get"]
    assert [layer.library for layer in function.layers] == ["tenacity"]
    assert module.exports["client"].target == "requests.Session()"


def test_a_guard_of_ours_bounds_what_it_decorates() -> None:
    body = "import tidegate\n@tidegate.guard('x')\n@tenacity.retry\ndef f(): ...\n"
    assert source(IMPORTS + body).module.functions["app.f"].layers == ()


def test_exports_lead_through_imports_and_classes() -> None:
    code = """
        from .http import fetch
        from requests import Session
        class Api:
            TRIES = 3
            def __init__(self):
                self.http = Session()
        session = Session()
        unknown = given
    """
    exports = source(code, "pkg", package=True).module.exports
    assert {name: exported.target for name, exported in exports.items()} == {
        "fetch": "pkg.http.fetch",
        "Session": "requests.Session",
        "session": "requests.Session()",
        "Api.http": "requests.Session()",
    }


OWN = """
import time, random
def again(tries=3, errors=(Exception,)):
    def decorate(f):
        def wrapper(*args):
            for attempt in range({times}):
                try:
                    return f(*args)
                except {caught}:
                    time.sleep(random.random())
            raise OSError
        return wrapper
    return decorate
"""


def own(times: str = "tries", caught: str = "Exception") -> Function:
    return source(OWN.format(times=times, caught=caught)).module.functions["app.again"]


def test_a_retry_of_the_project_s_own_is_known_as_one() -> None:
    found = own()
    assert found.gives is not None
    assert found.gives.bound == "tries"
    assert found.defaults == {"tries": 3}


def test_a_loop_around_something_else_is_no_decorator() -> None:
    code = OWN.format(times="tries", caught="Exception").replace("return f(*args)", "return g()")
    assert source(code).module.functions["app.again"].gives is None


INNER = """
import stamina
@stamina.retry(on=OSError, attempts=4)
def inner(): ...
"""


@pytest.mark.parametrize(
    ("times", "caught", "decorator", "bounds"),
    [
        ("tries", "Exception", "again()", ["3", "4"]),
        ("tries", "Exception", "again", ["3", "4"]),
        ("tries + 1", "Exception", "again(tries=5)", ["6", "4"]),
        ("5", "Exception", "again()", ["5", "4"]),
        ("tries", "errors", "again(errors=(OSError, KeyError))", ["3", "4"]),
        ("tries", "errors", "again(errors=[KeyError])", []),
        ("tries", "errors", "again(tries=n())", []),
        ("tries", "ValueError", "again()", []),
    ],
)
def test_it_is_a_layer_where_it_is_used(
    times: str, caught: str, decorator: str, bounds: list[str]
) -> None:
    code = f"from own import again\nfrom deep import inner\n@{decorator}\ndef f():\n    inner()\n"
    found = hits(code, own=OWN.format(times=times, caught=caught), deep=INNER)
    assert [[step.bound for step in hit.path] for hit in found] == ([bounds] if bounds else [])


TAKES = """
import time, random, httpx
def again(errors, work, *args):
    for attempt in range(3):
        try:
            return work(*args)
        except httpx.HTTPError:
            time.sleep(random.random())
    raise OSError
class Box:
    def again(self, work):
        for attempt in range(5):
            try:
                return work()
            except httpx.HTTPError:
                time.sleep(random.random())
        raise OSError
"""
DEEP = """
import stamina, httpx
@stamina.retry(on=httpx.HTTPError, attempts=4)
def inner(): ...
def plain(): ...
"""


@pytest.mark.parametrize(
    ("call", "bounds"),
    [
        ("again(x, inner)", ["3", "4"]),
        ("again(x, work=inner)", ["3", "4"]),
        ("again(x, lambda: inner(1))", ["3", "4"]),
        ("Box().again(inner)", ["5", "4"]),
        ("again(x, plain)", []),
        ("again(inner, plain)", []),
        ("again(x)", []),
    ],
)
def test_a_function_may_repeat_what_it_is_handed(call: str, bounds: list[str]) -> None:
    code = f"from own import again, Box\nfrom deep import inner, plain\ndef f(x):\n    {call}\n"
    found = hits(code, own=TAKES, deep=DEEP)
    assert [[step.bound for step in hit.path] for hit in found] == ([bounds] if bounds else [])


def test_decorators_of_others_are_no_layer() -> None:
    code = "from own import other\nfrom deep import inner\n@other\ndef f():\n    inner()\n"
    assert hits(code, own="def other(f):\n    return f\n", deep=INNER) == []
