"""Which retries count as nested, and what one user action can become."""

import pytest
from source_code import hits

OUTER = """
import tenacity, openai, httpx, requests
from tenacity import retry, stop_after_attempt, wait_random
from other import inner, Api
T = stop_after_attempt(3)
W = wait_random(0, 1)
"""
INNER = """
import stamina, httpx
@stamina.retry(on=httpx.HTTPError, attempts=4)
def inner(): ...
class Api:
    @stamina.retry(on=httpx.HTTPError, attempts=5)
    def get(self): ...
"""


def nested(code: str, inner: str = INNER) -> list[str]:
    found = [h for h in hits(OUTER + code, other=inner) if h.rule.name == "nested-retries"]
    return [" x ".join(step.bound for step in hit.path) for hit in found]


def test_a_function_of_another_module() -> None:
    assert nested("@retry(stop=T, wait=W)\ndef f():\n    inner()\n") == ["3 x 4"]


def test_a_method_of_an_object_of_another_module() -> None:
    assert nested("@retry(stop=T, wait=W)\ndef f():\n    Api().get()\n") == ["3 x 5"]
    assert nested("api = Api()\n@retry(stop=T, wait=W)\ndef f():\n    api.get()\n") == ["3 x 5"]


def test_functions_between_them_are_walked_through() -> None:
    code = "def g():\n    inner()\ndef h():\n    g()\n@retry(stop=T, wait=W)\ndef f():\n    h()\n"
    assert nested(code) == ["3 x 4"]


def test_three_layers_are_one_finding_at_the_outermost() -> None:
    code = """
@retry(stop=T, wait=W)
def g():
    inner()
@retry(stop=stop_after_attempt(2), wait=W)
def f():
    g()
"""
    assert nested(code) == ["2 x 3 x 4"]


def test_the_worst_path_is_told() -> None:
    assert nested("@retry(stop=T, wait=W)\ndef f():\n    inner()\n    Api().get()\n") == ["3 x 5"]


def test_a_handler_between_them_keeps_the_failure_in() -> None:
    code = "def g():\n    try:\n        inner()\n    except Exception:\n        return None\n"
    assert nested(code + "@retry(stop=T, wait=W)\ndef f():\n    g()\n") == []


@pytest.mark.parametrize(
    ("catches", "found"),
    [
        ("Exception", ["3 x 4"]),
        ("httpx.ReadTimeout", ["3 x 4"]),
        ("ValueError", []),
        ("requests.Timeout", []),
        ("(ValueError, httpx.HTTPError)", ["3 x 4"]),
    ],
)
def test_the_outer_one_must_repeat_on_what_leaves_the_inner_one(
    catches: str, found: list[str]
) -> None:
    code = f"@retry(stop=T, wait=W, retry=tenacity.retry_if_exception_type({catches}))\n"
    assert nested(code + "def f():\n    inner()\n") == found


def test_a_retry_error_hides_what_was_caught() -> None:
    inner = "import tenacity, httpx\n@tenacity.retry(stop=tenacity.stop_after_attempt(4){})\n"
    inner += "def inner(): ...\nclass Api: ...\n"
    outer = "@retry(stop=T, wait=W, retry=tenacity.retry_if_exception_type(httpx.HTTPError))\n"
    outer += "def f():\n    inner()\n"
    assert nested(outer, inner.format("")) == []
    catches = ", reraise=True, retry=tenacity.retry_if_exception_type(httpx.HTTPError)"
    assert nested(outer, inner.format(catches)) == ["3 x 4"]


def test_a_predicate_says_nothing_of_what_it_repeats_on() -> None:
    code = "@retry(stop=T, wait=W, retry=tenacity.retry_if_exception(g))\ndef f():\n    inner()\n"
    assert nested(code) == []


def test_a_client_of_another_module_repeats_by_itself() -> None:
    inner = "import openai\nclient = openai.OpenAI(timeout=9)\ndef inner(): ...\nclass Api: ...\n"
    code = "from other import client\n@retry(stop=T, wait=W)\ndef f():\n"
    assert nested(f"{code}    client.responses.create()\n", inner) == ["3 x 3"]
    assert nested(f"{code}    client.close()\n", inner) == []


SESSIONS = """
import requests
from requests.adapters import HTTPAdapter
from functools import cached_property
def make():
    s = requests.Session()
    s.mount("https://", HTTPAdapter(max_retries=1))
    return s
session = make()
other = requests.Session()
other.mount("https://", HTTPAdapter(max_retries=4))
def either(x):
    if x:
        return requests.Session()
    return make()
class Box:
    def __init__(self):
        self.kept = make()
    @cached_property
    def lazy(self):
        return make()
def inner(): ...
class Api: ...
"""


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("o.make().get(u)", ["3 x 2"]),
        ("o.session.get(u)", ["3 x 2"]),
        ("o.other.post(u)", ["3 x 5"]),
        ("o.Box().kept.get(u)", ["3 x 2"]),
        ("o.Box().lazy.get(u)", ["3 x 2"]),
        ("o.session.close()", []),
        ("o.either(1).get(u)", []),
        ("o.make()", []),
    ],
)
def test_a_session_that_a_function_of_another_module_makes(call: str, found: list[str]) -> None:
    code = f"import other as o\n@retry(stop=T, wait=W)\ndef f():\n    {call}\n"
    assert nested(code, SESSIONS) == found


def test_a_name_that_is_handed_on_is_followed() -> None:
    again = "from third import inner, Api\n"
    third = "import stamina\n@stamina.retry(on=OSError, attempts=2)\ndef inner(): ...\n"
    code = OUTER + "@retry(stop=T, wait=W)\ndef f():\n    inner()\n"
    found = [h for h in hits(code, other=again, third=third) if h.rule.name == "nested-retries"]
    assert [step.bound for step in found[0].path] == ["3", "2"]


def test_a_loop_is_a_layer_too_and_an_unknown_number_is_named() -> None:
    code = """
import time
def f(tries):
    for attempt in range(tries):
        try:
            return inner()
        except httpx.HTTPError:
            time.sleep(1)
    raise OSError
"""
    assert nested(code) == ["tries x 4"]
    found = next(h for h in hits(OUTER + code, other=INNER) if h.rule.name == "nested-retries")
    assert found.says.endswith("tries x 4 attempts for one user action")


def test_one_attempt_is_no_layer_and_circles_end() -> None:
    one = "@retry(stop=stop_after_attempt(1), wait=W)\ndef f():\n    inner()\n"
    assert nested(one) == []
    circle = "def f():\n    g()\ndef g():\n    f()\n    inner()\n"
    assert nested(circle + "@retry(stop=T, wait=W)\ndef h():\n    f()\n") == ["3 x 4"]


def test_without_end_is_told_as_such() -> None:
    found = hits(OUTER + "@retry\ndef f():\n    inner()\n", other=INNER)
    nested_hit = next(h for h in found if h.rule.name == "nested-retries")
    assert "unlimited x 4 = unlimited attempts" in nested_hit.says


def test_calls_that_go_deep_need_no_recursion() -> None:
    chain = "".join(f"def f{i}():\n    f{i + 1}()\n" for i in range(3000))
    code = f"{chain}def f3000():\n    inner()\n@retry(stop=T, wait=W)\ndef top():\n    f0()\n"
    assert nested(code) == ["3 x 4"]


@pytest.mark.parametrize(
    ("head", "end", "product"),
    [
        ("while True:", "if time.time() > tries: raise", "? x 4 attempts"),
        ("for attempt in range(tries + 1):", "pass", "(tries + 1) x 4 attempts"),
    ],
)
def test_a_factor_that_is_no_number_is_told_as_it_is(head: str, end: str, product: str) -> None:
    code = f"""
import time
def f(tries):
    {head}
        try:
            return inner()
        except httpx.HTTPError:
            {end}
            time.sleep(1)
    raise OSError
"""
    found = next(h for h in hits(OUTER + code, other=INNER) if h.rule.name == "nested-retries")
    assert product in found.says
