"""Which loops are retries, and how they are bounded and wait."""

from textwrap import indent

import pytest
from source_code import source

from tidegate.analysis.source.model import UNLIMITED, Layer, Wait

IMPORTS = "import time, asyncio, random, requests, itertools, socket, fcntl\n"


def layers(body: str, before: str = "pass", head: str = "def f(n, jobs):") -> list[Layer]:
    code = f"{IMPORTS}{head}\n{indent(before, '    ')}\n{indent(body, '    ')}\n"
    return [placed.layer for placed in source(code).placed]


TRY = """
    try:
        return requests.get("u", timeout=1)
    except requests.RequestException:
        {handler}
"""


def loop(head: str, handler: str = "time.sleep(1)") -> str:
    return f"{head}\n{TRY.format(handler=handler)}"


@pytest.mark.parametrize(
    ("head", "attempts"),
    [
        ("for attempt in range(3):", 3),
        ("for attempt in range(1, 5):", 4),
        ("for attempt in range(n):", None),
        ("for attempt in itertools.count():", UNLIMITED),
        ("while True:", UNLIMITED),
        ("while 1:", UNLIMITED),
    ],
)
def test_how_often(head: str, attempts: float | None) -> None:
    assert [layer.attempts for layer in layers(loop(head))] == [attempts]


def test_a_counter_bounds_a_while() -> None:
    body = loop("while tries < 4:", "time.sleep(1)\n        tries += 1")
    assert [layer.attempts for layer in layers(body, "tries = 0")] == [4]
    body = loop("while tries <= n:", "time.sleep(1)\n        tries += 1")
    assert [layer.bound for layer in layers(body, "tries = 0")] == ["n"]


@pytest.mark.parametrize(
    "handler",
    [
        "if n:\n            raise\n        time.sleep(1)",
        "n -= 1\n        if n < 0:\n            return None\n        time.sleep(1)",
        "if n > 9:\n            break\n        time.sleep(1)",
    ],
)
def test_a_loop_that_gives_up_is_bounded(handler: str) -> None:
    assert [layer.attempts for layer in layers(loop("while True:", handler))] == [None]


def test_a_timeout_around_a_loop_bounds_it() -> None:
    body = "async with asyncio.timeout(3):\n" + indent(loop("while True:"), "    ")
    assert [layer.attempts for layer in layers(body, head="async def f():")] == [None]


NO_RETRIES = {
    "a worker does not leave on success": """
while True:
    try:
        requests.post("u", data=jobs.get())
    except Exception:
        time.sleep(1)
""",
    "the counter is part of the work": """
for page in range(9):
    try:
        return requests.get("u", params={"page": page}, timeout=1)
    except requests.RequestException:
        time.sleep(1)
""",
    "the counter picks the work": """
for i in range(9):
    try:
        return requests.get(jobs[i], timeout=1)
    except requests.RequestException:
        time.sleep(1)
""",
    "other places, one after the other": """
for url in jobs:
    try:
        return requests.get(url, timeout=1)
    except requests.RequestException:
        time.sleep(1)
""",
    "a person is asked": """
while True:
    try:
        return int(input("how many? "))
    except ValueError:
        time.sleep(1)
""",
    "every failure ends it": """
for attempt in range(3):
    try:
        return requests.get("u", timeout=1)
    except requests.RequestException:
        raise
""",
    "it waits in slices": """
while True:
    try:
        return jobs.result(timeout=0.5)
    except TimeoutError:
        continue
""",
    "a lock of this machine": """
while True:
    try:
        fcntl.lockf(n, 2)
        break
    except OSError:
        time.sleep(1)
""",
    "it looks until something is ready": """
while True:
    time.sleep(1)
    try:
        status = jobs.status()
        if status in ("DONE", "FAILED"):
            break
    except Exception:
        continue
""",
    "it counts seconds": """
waited = 0
while waited < 30:
    try:
        return requests.get("u", timeout=1)
    except requests.RequestException:
        time.sleep(0.1)
    waited += 0.1
""",
    "nothing is sent and nobody waits": """
for attempt in range(3):
    try:
        return jobs.take()
    except Exception:
        continue
""",
    "each branch of the handler ends it": """
for attempt in range(3):
    try:
        return requests.get("u", timeout=1)
    except requests.RequestException:
        if attempt:
            raise
        else:
            return None
""",
    "the program ends": """
for attempt in range(3):
    try:
        return requests.get("u", timeout=1)
    except requests.RequestException:
        exit(1)
""",
    "two things are tried": """
for attempt in range(3):
    try:
        return requests.get("u", timeout=1)
    except requests.RequestException:
        pass
    try:
        return requests.get("v", timeout=1)
    except requests.RequestException:
        pass
""",
    "a list is walked": """
for index in range(0, 9, 3):
    try:
        return requests.get("u", timeout=1)
    except requests.RequestException:
        time.sleep(1)
""",
    "no try": "while True:\n    time.sleep(1)",
    "no rounds": """
for attempt in range(0):
    try:
        return requests.get("u", timeout=1)
    except OSError:
        time.sleep(1)
""",
}


@pytest.mark.parametrize("body", NO_RETRIES.values(), ids=NO_RETRIES.keys())
def test_other_loops_are_no_retries(body: str) -> None:
    assert layers(body) == []


SUCCESSES = (
    """
    with n:
        try:
            return requests.get("u", timeout=1)
        except OSError:
            time.sleep(1)
""",
    """
    try:
        r = requests.get("u", timeout=1)
        if r.status_code == 200:
            break
    except OSError:
        time.sleep(1)
""",
    """
    try:
        r = requests.get("u", timeout=1)
    except OSError:
        time.sleep(1)
    else:
        return r
""",
    """
    try:
        r = requests.get("u", timeout=1)
    except OSError:
        time.sleep(1)
        continue
    return r
""",
    """
    try:
        r = requests.get("u", timeout=1)
        if r.ok:
            return r
        else:
            raise OSError
    except OSError:
        time.sleep(1)
""",
    """
    try:
        with requests.get("u", timeout=1) as r:
            return r
    except OSError:
        time.sleep(1)
""",
    """
    try:
        s = socket.create_connection(n)
        break
    except OSError:
        time.sleep(1)
""",
)


@pytest.mark.parametrize("body", SUCCESSES)
def test_success_may_leave_in_other_ways(body: str) -> None:
    assert [layer.attempts for layer in layers(f"while True:{body}")] == [UNLIMITED]


@pytest.mark.parametrize(
    ("handler", "wait"),
    [
        ("time.sleep(1)", Wait.FIXED),
        ("time.sleep(2 ** attempt)", Wait.FIXED),
        ("time.sleep(min(30, 2 ** attempt))", Wait.FIXED),
        ("time.sleep(n)", Wait.FIXED),
        ("time.sleep(random.uniform(0, 1))", Wait.JITTER),
        ("time.sleep(1 + jitter(attempt))", Wait.JITTER),
        ("time.sleep(delay_of(attempt))", Wait.UNKNOWN),
        ("time.sleep(0)", Wait.NONE),
        ("pass", Wait.NONE),
        ("print('again', attempt)", Wait.NONE),
        ("back_off(attempt)", Wait.UNKNOWN),
    ],
)
def test_waits(handler: str, wait: Wait) -> None:
    assert [layer.wait for layer in layers(loop("for attempt in range(3):", handler))] == [wait]


def test_a_wait_that_grows_is_the_same_for_all_and_one_that_is_asked_for_is_not_known() -> None:
    grows = loop("for attempt in range(3):", "time.sleep(delay)\n        delay = min(9, delay * 2)")
    assert [layer.wait for layer in layers(grows, "delay = 1")] == [Wait.FIXED]
    asked = loop("for attempt in range(3):", "delay = ask(n)\n        time.sleep(delay)")
    assert [layer.wait for layer in layers(asked)] == [Wait.UNKNOWN]


def test_what_leaves_at_the_end() -> None:
    quiet = loop("for attempt in range(3):")
    assert [layer.leaks for layer in layers(quiet)] == [False]
    assert [layer.leaks for layer in layers(f"{quiet}\nraise OSError")] == [True]
    assert [layer.leaks for layer in layers(f"{quiet}\nelse:\n    raise OSError")] == [True]
    last = loop(
        "for attempt in range(3):", "if attempt == 2:\n            raise\n        time.sleep(1)"
    )
    assert [layer.leaks for layer in layers(last)] == [True]


def test_retry_after_is_heard_wherever_the_function_speaks_of_it() -> None:
    handler = "time.sleep(headers['Retry-After'])"
    assert [layer.hears for layer in layers(loop("while True:", handler))] == [True]
    assert [layer.hears for layer in layers(loop("while True:"))] == [None]
