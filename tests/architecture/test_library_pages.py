"""Do the pages of the library show code that runs, names that exist, figures that are exported?"""

import ast
import inspect
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tidegate
from tidegate import testing
from tidegate.core.circuit_breaker import State
from tidegate.core.outcome import Outcome
from tidegate.runtime.dependency import _LINES_A_MINUTE
from tidegate.runtime.keywords import KEYWORDS, call_settings
from tidegate.runtime.metrics import METRICS
from tidegate.runtime.registry import _forget
from tidegate.server.refusal import REFUSALS
from tidegate.spooler.metrics import METRICS as SPOOL_METRICS

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("guard.md", "telemetry.md", "moving.md")
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)

SYSTEM = """\
tidegate: 1
clients: {readers: {rate: 5/s, calls: {stock: {to: edge, timeout: 3s}}}}
services: {edge: {}}
"""


def text(page: str) -> str:
    return (DOCS / page).read_text("utf-8")


class Client:
    """A client of HTTP, as the pages have one."""

    def get(self, path: str, timeout: float | None = None) -> Any:
        return SimpleNamespace(status_code=200, json=lambda: {"path": path, "price": 42.0})

    def post(self, path: str, body: object) -> Any:
        return self.get(path)


class AsyncClient:
    async def get(self, path: str) -> Any:
        return Client().get(path)

    async def lines(self, path: str) -> Any:
        yield "first"
        yield "second"


async def play(page: str) -> int:
    """Run a page's code from top to bottom, as one program; its tests are run as well."""
    names: dict[str, Any] = {"client": Client(), "async_client": AsyncClient(), "headers": {}}
    tests = 0
    for number, block in enumerate(_BLOCK.findall(page)):
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        code = compile(block, f"block {number}", "exec", flags)
        done = eval(code, names)
        if inspect.iscoroutine(done):
            await done
        for name in [name for name in names if name.startswith("test_")]:
            names.pop(name)()
            tests += 1
    return tests


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    """Guards that nobody has made, and a place with a system file and no exporter in it."""
    prometheus = pytest.importorskip("prometheus_client")
    import tidegate.runtime.prometheus as ours

    monkeypatch.setattr(ours, "REGISTRY", prometheus.CollectorRegistry())
    monkeypatch.setattr(ours.register, "__defaults__", (ours.REGISTRY,))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "system.yaml").write_text(SYSTEM)
    _forget()
    yield
    _forget()


@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_runs(page: str, fresh: None) -> None:
    tests = testing.run(play(text(page)))
    assert tests == {"guard.md": 3}.get(page, 0)


def test_code_that_does_not_run_is_seen(fresh: None) -> None:
    with pytest.raises(AssertionError):
        testing.run(play("```python\nassert 1 == 2\n```\n"))
    with pytest.raises(ZeroDivisionError):
        testing.run(play("```python\ndef test_it():\n    1 / 0\n```\n"))


def rows(page: str, head: str) -> list[list[str]]:
    """The cells of the table that begins so."""
    table = page.partition(head)[2].partition("\n\n")[0]
    lines = [re.split(r"(?<!\\)\|", line)[1:-1] for line in table.splitlines()[2:]]
    return [[cell.strip().strip("`") for cell in line] for line in lines]


def test_every_metric_is_on_the_page_as_it_is_exported() -> None:
    pages = {
        "dependency": "## Metrics",
        "server": "## Metrics of a server",
        "lane": "## Metrics of a spool",
    }
    for of, heading in pages.items():
        _, found, section = text("telemetry.md").partition(f"\n{heading}\n")
        assert found
        assert f"Each has the label `{of}`" in section.partition("|")[0]
        shown = rows(section, "| metric | kind |")
        table = [m for m in (*METRICS, *SPOOL_METRICS) if m.of == of]
        assert shown == [[m.name, m.kind, m.unit, m.label or "", m.meaning] for m in table]
    door = text("telemetry.md").partition("each with the label `collector`:")[2]
    table = [m for m in SPOOL_METRICS if m.of == "collector"]
    shown = rows(door, "| metric | kind |")
    assert shown == [[m.name, m.kind, m.unit, m.label or "", m.meaning] for m in table]


def test_the_values_of_labels_are_on_the_page() -> None:
    table = text("telemetry.md").partition("| label | values |")[2].partition("\n\n")[0]
    found = [re.findall(r"`([\w-]+)`", line) for line in table.splitlines()[2:]]
    shown = {names[0]: names[1:] for names in found}
    assert shown["result"] == [*METRICS[0].read(tidegate.guard("labels").snapshot())]
    assert shown["outcome"] == [outcome.name.lower() for outcome in Outcome]
    assert shown["state"] == [state.value for state in State]
    server = text("telemetry.md").partition("## Metrics of a server")[2]
    (reasons,) = (row[1] for row in rows(server, "| label | values |") if row[0] == "reason")
    named = re.findall(r"(\w+)`", reasons + "`")
    assert sorted(named) == sorted(reason.name.lower() for reason in REFUSALS)


def test_the_line_that_is_shown_is_the_line_that_is_logged(caplog) -> None:
    _forget()
    with testing.instant():
        guard = tidegate.guard("licences", attempts=1, fallback=lambda: None)
        stub = testing.scripted(*[ConnectionError] * 20)
        for _ in range(20):
            guard.call(stub.call)
    _forget()
    (line,) = [record.getMessage() for record in caplog.records]
    assert f"```text\n{line}\n```" in text("telemetry.md")
    assert f"No more than {_LINES_A_MINUTE} lines a minute" in text("telemetry.md")


def test_every_keyword_of_a_guard_is_on_the_page() -> None:
    shown = {row[0] for row in rows(text("guard.md"), "| keyword | default |")}
    assert shown <= KEYWORDS.keys()
    assert KEYWORDS.keys() - shown <= {"hedge"}  # the simulator's


def test_the_defaults_on_the_page_are_those_of_a_guard() -> None:
    said = {row[0]: row[1] for row in rows(text("guard.md"), "| keyword | default |")}
    settings = call_settings({})
    assert settings.breaker is not None
    assert settings.budget is not None
    assert settings.backoff is not None
    assert said["attempts"] == f"{settings.tries} tries in all"
    assert said["timeout"] == "10 s for one attempt"
    assert settings.timeout == 10_000_000_000
    assert said["retry_on"] == ", ".join(f"`{name}`" for name in settings.retry_on)[1:-1]
    assert settings.budget.ratio == 0.1
    assert (settings.breaker.failures, settings.breaker.volume) == (0.5, 20)
    assert settings.breaker.window == 10_000_000_000
    assert settings.backoff.base == 100_000_000
    assert [settings.deadline, settings.rate_limit, settings.throttle] == [None] * 3


def test_every_name_of_the_library_on_a_page_exists() -> None:
    for page in PAGES:
        for path in re.findall(r"`tidegate\.([A-Za-z_.]+)", text(page)):
            if path.startswith(("calls", "attempts", "retries", "refused", "would_refuse")):
                continue  # a metric
            found: Any = tidegate
            if path.split(".")[0] in {m.name.split(".")[1] for m in (*METRICS, *SPOOL_METRICS)}:
                continue
            for part in path.rstrip(".").split("."):
                found = getattr(found, part)


def test_every_helper_for_tests_is_on_the_page() -> None:
    shown = {row[0].partition("(")[0] for row in rows(text("guard.md"), "| name | does |")}
    functions = {name for name in testing.__all__ if inspect.isfunction(getattr(testing, name))}
    assert shown == functions
