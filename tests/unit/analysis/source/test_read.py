"""What stands around a call: retries, handlers that keep failures in, timeouts that cancel."""

import pytest
from source_code import source

from tidegate.analysis.source.seen import Call

IMPORTS = "import tenacity, requests, asyncio, contextlib, anyio\n"


def call(body: str, target: str = "requests.get") -> Call:
    return next(c for c in source(IMPORTS + body).calls if c.target == target)


@pytest.mark.parametrize(
    ("body", "absorbed"),
    [
        ("requests.get(u)", False),
        ("try:\n    requests.get(u)\nexcept Exception:\n    pass", True),
        ("try:\n    requests.get(u)\nexcept Exception:\n    raise", False),
        ("try:\n    requests.get(u)\nexcept KeyError:\n    pass", False),
        ("try:\n    requests.get(u)\nexcept requests.Timeout:\n    return", True),
        ("try:\n    pass\nexcept Exception:\n    requests.get(u)", False),
        ("try:\n    pass\nexcept Exception:\n    pass\nelse:\n    requests.get(u)", False),
        ("try:\n    pass\nfinally:\n    requests.get(u)", False),
        ("with contextlib.suppress(OSError):\n    requests.get(u)", True),
        ("with contextlib.suppress(KeyError):\n    requests.get(u)", False),
    ],
)
def test_whether_a_failure_can_leave(body: str, absorbed: bool) -> None:
    body = "def f():\n    " + body.replace("\n", "\n    ")
    assert call(body).absorbed is absorbed


def test_a_handler_outside_a_retry_keeps_in_what_leaves_the_retry() -> None:
    body = """
try:
    for attempt in tenacity.Retrying(stop=tenacity.stop_after_attempt(3)):
        with attempt:
            requests.get(u)
except Exception:
    pass
"""
    found = call(body)
    assert [layer.attempts for layer in found.layers] == [3]
    assert found.absorbed


@pytest.mark.parametrize(
    ("body", "repeated"),
    [
        ("try:\n        return requests.get(u)\n    except OSError:\n        pass", True),
        ("try:\n        return g()\n    except OSError:\n        requests.get(u)", False),
        (
            "requests.get(u)\n    try:\n        return g()\n    except OSError:\n        sleep(1)",
            False,
        ),
    ],
)
def test_a_loop_repeats_what_it_tries_and_nothing_else(body: str, repeated: bool) -> None:
    body = f"from time import sleep\nfor attempt in range(3):\n    {body}".replace("\n", "\n    ")
    body = f"def g(): ...\ndef f():\n    {body.replace('g()', 'requests.put(u)')}"
    assert bool(call(body).layers) is repeated


def test_a_handler_inside_a_retry_leaves_it_nothing_to_repeat() -> None:
    body = """
for attempt in tenacity.Retrying(stop=tenacity.stop_after_attempt(3)):
    with attempt:
        try:
            requests.get(u)
        except Exception:
            pass
"""
    found = call(body)
    assert found.layers == ()
    assert found.absorbed


@pytest.mark.parametrize(
    ("body", "cancelled"),
    [
        ("async with asyncio.timeout(1):\n    await g()", True),
        ("await asyncio.wait_for(g(), 1)", True),
        ("with anyio.fail_after(1):\n    await g()", True),
        ("async with other.timeout(1):\n    await g()", False),
        ("async with asyncio.timeout(1):\n    pass\nawait g()", False),
    ],
)
def test_timeouts_that_cancel(body: str, cancelled: bool) -> None:
    body = "def g(): ...\nasync def f():\n    " + body.replace("\n", "\n    ")
    assert (call(body, "app.g").cancelled is not None) is cancelled


def test_what_stands_around_a_function_is_not_around_one_defined_inside() -> None:
    body = """
try:
    def f():
        requests.get(u)
except Exception:
    pass
"""
    assert not call(body).absorbed


def test_a_retrying_object_that_is_called_is_around_what_it_calls() -> None:
    body = """
def load(): ...
def f():
    tenacity.Retrying(stop=tenacity.stop_after_attempt(2))(load, 1)
    again = tenacity.Retrying(stop=tenacity.stop_after_attempt(4))
    again(load)
"""
    found = [c for c in source(IMPORTS + body).calls if c.target == "app.load"]
    assert [[layer.attempts for layer in c.layers] for c in found] == [[2], [4]]


def test_every_expression_is_looked_into() -> None:
    body = """
class A(requests.get(1)):
    b = [requests.get(2) for _ in range(3)]
    @requests.get(3)
    def f(self, x=1):
        match requests.get(4):
            case _:
                return lambda: requests.get(5)
    while requests.get(6):
        assert requests.get(7), f"{requests.get(8)}"
"""
    found = [c for c in source(IMPORTS + body).calls if c.target == "requests.get"]
    assert len(found) >= 7
