"""The policies' pages say what the code does: examples run, defaults and states are compared."""

import doctest
import importlib
import re
from enum import StrEnum
from pathlib import Path

import msgspec
import pytest

from tidegate import findings
from tidegate.analysis.audit import RULES
from tidegate.cli.status import _document
from tidegate.core import lane, queue_order
from tidegate.core.bounds import Cause
from tidegate.core.circuit_breaker import TRANSITIONS, State
from tidegate.core.outcome import Outcome, Reason
from tidegate.runtime.metrics import METRICS
from tidegate.runtime.registry import _forget
from tidegate.runtime.shared.status import GuardStatus
from tidegate.settings import admission, spool
from tidegate.settings import policies as settings
from tidegate.spooler.metrics import METRICS as SPOOL_METRICS
from tidegate.spooler.status import LaneStatus
from tidegate.units import format_duration, format_share

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "policies"
CORE = ROOT / "src" / "tidegate" / "core"
NAMES = sorted(page.relative_to(PAGES).with_suffix("").as_posix() for page in PAGES.rglob("*.md"))
HEADINGS = [
    "About",
    "Usage",
    "Defaults",
    "Decisions and reasons",
    "Telemetry",
    "States",  # where there are phases
    "Patterns",
    "Anti-patterns",
]
PHASES = {"circuit_breaker", "replay"}  # the pages of what has a table of its changes
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
    "bounds": spool.Bounds,
    "gate": spool.Gate,
    "pacer": spool.Pace,
    "turns": spool.Turns,
}
NO_POLICY = {
    "live",
    "latency",
    "allowance",
    "flow",
    "errands",
    "lane",
    "leases",
    "medians",
    "member",
    "drain",
    "health",
    "__init__",
    "circuit",
    "outcome",
    "pipeline",
    "execution",
    "window",
    "calm",
    "leaves",
    "limit/__init__",
    "limit/rounds",
}
# What holds no number of its own: laws to choose from, and orders.
NO_NUMBER = {
    *("adaptive", "gradient", "vegas", "order", "late", "full"),
    *("speed", "through", "lost"),
}


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
    assert headings == [h for h in HEADINGS if h != "States" or name in PHASES]


@pytest.mark.parametrize("name", NAMES)
def test_its_examples_run(name: str) -> None:
    _forget()  # a page's guards are its own
    blocks = re.findall(r"^```python\n(.*?)^```", text(name), re.MULTILINE | re.DOTALL)
    example = doctest.DocTestParser().get_doctest("".join(blocks), {}, name, None, 0)
    assert example.examples
    failures: list[str] = []
    doctest.DocTestRunner(verbose=False).run(example, out=failures.append)
    _forget()
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


@pytest.mark.parametrize(
    ("name", "transitions"), [("circuit_breaker", TRANSITIONS), ("replay", lane.TRANSITIONS)]
)
def test_a_diagram_is_the_table_in_the_code(
    name: str, transitions: dict[StrEnum, set[StrEnum]]
) -> None:
    edges = re.findall(r"^    (\w+) --> (\w+):", text(name), re.MULTILINE)
    drawn = {(before.replace("_", "-"), after.replace("_", "-")) for before, after in edges}
    assert len(drawn) == len(edges)
    assert drawn == {(str(b), str(a)) for b, after in transitions.items() for a in after}


LABELS = {
    "reason": {reason.name.lower() for reason in Reason},
    "outcome": {outcome.name.lower() for outcome in Outcome},
    "cause": {*Cause},
}
SNAPSHOTS = {
    "circuit_breaker": "CircuitBreakerSnapshot",
    "retry_budget": "RetryBudgetSnapshot",
    "throttle": "ThrottleSnapshot",
    "token_bucket": "TokenBucketSnapshot",
    "concurrency_limiter": "ConcurrencyLimiterSnapshot",
    "codel": "CoDelSnapshot",
    "admission": "AdmissionSnapshot",
    "client_rates": "ClientRatesSnapshot",
    "bounds": "BoundsSnapshot",
    "gate": "GateSnapshot",
    "pacer": "PacerSnapshot",
    "turns": "TurnSnapshot",
    "replay": "ReplaySnapshot",
    "bisection": "BisectionSnapshot",
}


def telemetry(name: str) -> dict[str, str]:
    """The table of what shows the policy at work: where, then what."""
    table = text(name).partition("## Telemetry")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ", 1) for line in table.strip().splitlines()[2:]]
    return dict(rows)


def unknown_metrics(page: str) -> list[str]:
    """Metrics in inline code, and values of their labels, that no exporter has."""
    known = {metric.name: metric.label for metric in (*METRICS, *SPOOL_METRICS)}
    prometheus = {name.replace(".", "_") for name in known}
    found = []
    for name, label, value in re.findall(r'`(tidegate\.[\w.]+)(?:{(\w+)="(.+?)"})?`', page):
        if name in {"tidegate.listen", "tidegate.server"} or (  # a function, a logger
            name in known
            and (not label or (label == known[name] and value in LABELS.get(label, ())))
        ):
            continue
        found.append(name + value)
    names = re.findall(r"\b(tidegate_\w+)", page)
    return found + [name for name in names if name.removesuffix("_total") not in prometheus]


@pytest.mark.parametrize("name", NAMES)
def test_every_page_says_where_the_policy_is_seen(name: str) -> None:
    shown = telemetry(name)
    assert list(shown) == ["snapshot", "metrics", "log", "status", "check"]
    assert all(shown.values())


@pytest.mark.parametrize("name", NAMES)
def test_every_metric_on_the_page_exists(name: str) -> None:
    assert unknown_metrics(text(name)) == []
    assert "`tidegate." in telemetry(name)["metrics"]


def test_a_metric_that_does_not_exist_is_seen() -> None:
    page = '`tidegate.shed` `tidegate.refused{reason="mood"}` tidegate_sheds_total `tidegate.limit`'
    assert unknown_metrics(page) == [
        "tidegate.shed",
        "tidegate.refusedmood",
        "tidegate_sheds_total",
    ]


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_the_snapshot_on_the_page_is_the_one_in_the_code(name: str) -> None:
    module = importlib.import_module(f"tidegate.core.{name}")
    first = telemetry(name)["snapshot"].partition(";")[0]
    assert tuple(re.findall(r"`(\w+)`", first)) == getattr(module, SNAPSHOTS[name])._fields


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_of_a_command_on_the_page_exists(name: str) -> None:
    shown = telemetry(name)
    records = [kind for kind in vars(findings).values() if isinstance(kind, type)]
    figures = {f for kind in records for f in getattr(kind, "__struct_fields__", ())}
    rules = {rule.name for rule in RULES}
    assert set(re.findall(r"`(.+?)`", shown["check"])) <= figures | rules
    known = _document(GuardStatus("licences", State.CLOSED, None, *[0] * 11)).keys()
    assert set(re.findall(r"`(.+?)`", shown["status"])) <= known | {*LaneStatus.__struct_fields__}
