"""Laws of the source audit, over programs put together from pieces that break its rules and not."""

from textwrap import indent

from hypothesis import given
from hypothesis import strategies as st
from source_code import broken, hits

HEAD = """\
import asyncio, time, requests, httpx, openai, tenacity, backoff, stamina, aiohttp_retry
from urllib3 import Retry
from circuitbreaker import circuit
client = openai.OpenAI()
shared = httpx.AsyncClient()
"""
DECORATORS = (
    "@tenacity.retry",
    "@tenacity.retry(stop=tenacity.stop_after_attempt(3), wait=tenacity.wait_fixed(1))",
    "@backoff.on_exception(backoff.expo, OSError, max_tries=TRIES)",
    "@stamina.retry(on=OSError)",
    "@circuit",
    "@staticmethod",
    "@unknown(1)",
)
LINES = (
    "requests.get(url)",
    "requests.post(url, timeout=3)",
    "client.responses.create(input=url)",
    "Retry(3, status_forcelist=[429], respect_retry_after_header=False)",
    "aiohttp_retry.ExponentialRetry()",
    "f0()",
    "self.f1()",
    "x = lambda: requests.put(url)",
    "yield",
    "pass",
)
BLOCKS = (
    "if x:",
    "while True:",
    "for attempt in range(3):",
    "with requests.Session() as s:",
    "async with asyncio.timeout(1):",
    "class Inner:",
)
TRIES = "try:\n{body}\nexcept {caught}:\n    {handler}"


def nested(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    bodies = st.lists(inner, min_size=1, max_size=3).map("\n".join)
    blocks = st.tuples(st.sampled_from(BLOCKS), bodies).map(
        lambda pair: f"{pair[0]}\n{indent(pair[1], '    ')}"
    )
    caught = st.sampled_from(("OSError", "Exception", "BaseException", "ValueError", "(A, B)"))
    handlers = st.sampled_from(("pass", "raise", "time.sleep(1)", "return", "time.sleep(2 ** n)"))
    tried = st.tuples(bodies, caught, handlers).map(
        lambda t: TRIES.format(body=indent(f"{t[0]}\nreturn", "    "), caught=t[1], handler=t[2])
    )
    functions = st.tuples(
        st.lists(st.sampled_from(DECORATORS), max_size=3),
        st.sampled_from(("def f0(self, url, n):", "async def f1(self, url, n):")),
        bodies,
    ).map(lambda t: "\n".join((*t[0], t[1], indent(t[2], "    "))))
    return st.one_of(blocks, tried, functions)


STATEMENTS = st.recursive(st.sampled_from(LINES), nested, max_leaves=12)
PROGRAMS = st.lists(STATEMENTS, min_size=1, max_size=4).map(
    lambda parts: HEAD + indent("\n".join(("def top(url, x, n):", *_in(parts))), "") + "\n"
)


def _in(parts: list[str]) -> list[str]:
    return [indent(part, "    ") for part in parts]


@given(PROGRAMS)
def test_every_finding_stands_in_the_code_and_says_something(code: str) -> None:
    lines = code.count("\n")
    for hit in hits(code):
        assert 1 <= hit.line <= hit.end_line <= lines
        assert hit.says
        assert all(1 <= step.line <= lines for step in hit.path)
        assert not hit.path or len(hit.path) > 1


@given(PROGRAMS)
def test_the_same_code_says_the_same(code: str) -> None:
    assert hits(code) == hits(code)


@given(PROGRAMS)
def test_what_is_allowed_is_silent_and_every_leave_is_used(code: str) -> None:
    rules: dict[int, set[str]] = {}
    for hit in hits(code):
        rules.setdefault(hit.line, set()).add(hit.rule.name)
    lines = code.split("\n")
    for line, names in rules.items():
        lines[line - 1] += f"  # tidegate: allow {', '.join(sorted(names))} because it is a law"
    assert broken("\n".join(lines)) == []


@given(PROGRAMS, st.integers(1, 5))
def test_lines_above_move_findings_and_change_none(code: str, more: int) -> None:
    moved = hits("\n" * more + code)
    assert [(h.rule.name, h.line - more, h.says.count(" ")) for h in moved] == [
        (h.rule.name, h.line, h.says.count(" ")) for h in hits(code)
    ]
