"""The policies' pages say what the code does: examples run, defaults and states are compared."""

import doctest
import re
from pathlib import Path

import msgspec
import pytest

from tidegate.core import queue_order
from tidegate.core.circuit_breaker import TRANSITIONS
from tidegate.settings import admission
from tidegate.settings import policies as settings
from tidegate.units import format_duration, format_share

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "policies"
CORE = ROOT / "src" / "tidegate" / "core"
NAMES = sorted(page.relative_to(PAGES).with_suffix("").as_posix() for page in PAGES.rglob("*.md"))
HEADINGS = ["About", "Usage", "Defaults", "Decisions and reasons", "Patterns", "Anti-patterns"]
RECORDS = {
    "backoff": settings.Backoff,
    "retry_budget": settings.Budget,
    "hedge": settings.Hedge,
    "throttle": settings.Throttle,
    "circuit_breaker": settings.Breaker,
    "token_bucket": settings.RateLimit,
    "concurrency_limiter": settings.Limit,
    "limit/aimd": settings.Adaptive,
    "limit/gradient": settings.Gradient,
    "limit/vegas": settings.Vegas,
    "codel": settings.CoDel,
    "admission": admission.Admission,
    "client_rates": admission.ClientRate,
    "shares": admission.Shares,
}
NO_POLICY = {
    "__init__",
    "circuit",
    "outcome",
    "pipeline",
    "execution",
    "window",
    "calm",
    "limit/__init__",
    "limit/rounds",
}
# What holds no number of its own: laws to choose from, and orders.
NO_NUMBER = {"adaptive", "gradient", "vegas", "order", "late"}


def text(name: str) -> str:
    return (PAGES / f"{name}.md").read_text("utf-8")


def defaults(name: str) -> dict[str, list[str]]:
    """The table of defaults: setting, then default, precedent, at half, at double."""
    part = text(name).partition("## Defaults")[2].partition("\n## ")[0]
    table = part.partition("| setting |")[2].partition("\n\n")[0]
    rows = [line.strip("|").split("|") for line in table.splitlines()[2:]]
    return {row[0].strip(" `"): [cell.strip() for cell in row[1:]] for row in rows}


def differences(record: settings.Settings) -> str:
    """What a record says that its own kind does not say by itself."""
    told = []
    for field in msgspec.inspect.type_info(type(record)).fields:
        value = getattr(record, field.name)
        if isinstance(value, settings.Settings):
            told.append(field.name)
        elif value != field.default:
            told.append(f"{field.name} {format_duration(value)}")
    return ", ".join(told)


def shown(field: msgspec.inspect.Field) -> str:
    """A default as a person writes it in a system file."""
    value = field.default
    kind = str(field.type)
    if isinstance(value, settings.Settings):
        return differences(value)
    if value is msgspec.NODEFAULT or value is None:
        return "none"
    if "duration" in kind:
        return format_duration(value)
    return format_share(value) if "'share'" in kind else str(value)


def test_every_policy_has_its_page() -> None:
    modules = {file.relative_to(CORE).with_suffix("").as_posix() for file in CORE.rglob("*.py")}
    assert set(NAMES) == modules - NO_POLICY


@pytest.mark.parametrize("name", NAMES)
def test_every_page_has_the_same_order(name: str) -> None:
    headings = re.findall(r"^## (.+)$", text(name), re.MULTILINE)
    assert [heading for heading in headings if heading != "States"] == HEADINGS


@pytest.mark.parametrize("name", NAMES)
def test_its_examples_run(name: str) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", text(name), re.MULTILINE | re.DOTALL)
    example = doctest.DocTestParser().get_doctest("".join(blocks), {}, name, None, 0)
    assert example.examples
    failures: list[str] = []
    doctest.DocTestRunner(verbose=False).run(example, out=failures.append)
    assert not failures, "".join(failures)


@pytest.mark.parametrize("name", RECORDS)
def test_its_table_has_every_setting_with_the_default_in_the_code(name: str) -> None:
    fields = msgspec.inspect.type_info(RECORDS[name]).fields
    table = defaults(name)
    assert list(table) == [field.name for field in fields]
    for field in fields:
        said = table[field.name][0]
        assert said.startswith(shown(field)) or "a tenth of a second's worth" in said


@pytest.mark.parametrize("name", NAMES)
def test_every_default_has_its_precedent_and_what_goes_wrong(name: str) -> None:
    for setting, (default, *cells) in defaults(name).items():
        no_number = default.startswith("none: say it") or setting in NO_NUMBER
        assert len(cells) == 3
        assert no_number or all(cells), f"{setting} on the page of {name}"


def test_the_margin_on_the_page_is_the_one_in_the_code() -> None:
    assert defaults("queue_order")["FINISH_MARGIN"][0] == str(queue_order.FINISH_MARGIN)


def test_the_diagram_of_the_breaker_is_its_table() -> None:
    edges = re.findall(r"^    (\w+) --> (\w+):", text("circuit_breaker"), re.MULTILINE)
    drawn = {(before.replace("_", "-"), after.replace("_", "-")) for before, after in edges}
    assert len(drawn) == len(edges)
    assert drawn == {(str(b), str(a)) for b, after in TRANSITIONS.items() for a in after}
