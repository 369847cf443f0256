"""Traces of a single request were called STABLE, and that there was one stood at the very end."""

import json
from pathlib import Path

from tidegate.analysis.check import Check
from tidegate.analysis.infer import infer
from tidegate.analysis.ingest.span import Kind, Resource, Span
from tidegate.analysis.ingest.write import spans_to_otlp
from tidegate.analysis.runs import Runner
from tidegate.findings import CheckReport
from tidegate.report import html, text
from tidegate.settings.load import loads
from tidegate.units import MILLISECOND, SECOND


def report_of(requests: int, tmp_path: Path) -> CheckReport:
    """What is said of so many requests, one in half a second, before anything is simulated."""
    spans = [
        Span(
            trace=1 + n,
            id=1 + n,
            resource=Resource("web"),
            name="GET /",
            kind=Kind.SERVER,
            start=1_700_000_000 * SECOND + n * SECOND // 2,
            duration=(20 + n % 7) * MILLISECOND,
        )
        for n in range(requests)
    ]
    path = tmp_path / "traces.json"
    path.write_text(json.dumps(spans_to_otlp(spans)))
    found = infer([path])
    written = found.text()
    assert ("Too few to judge by: " in written) == bool(found.thin.says)
    return Check(
        loads(written),
        source="traces.json",
        repeat="tidegate check traces.json",
        runner=Runner(1),
        thin=found.thin.says,
        judged=found.thin.judged,
    ).report()


def test_one_request_is_not_judged_and_the_first_lines_say_why(tmp_path: Path) -> None:
    report = report_of(1, tmp_path)
    assert report.verdict == "not judged"
    first, second, third, *_ = text.render(report, width=100, color=False).splitlines()
    assert first.startswith("NOT JUDGED")
    assert second.startswith("TOO THIN    all was seen within one instant")
    assert "users: 1 request seen, and a rate takes 30" in f"{second} {third}".replace(
        "            ", ""
    )
    page = html.render(report)
    assert page.index("users: 1 request seen") < page.index("<main>")


def test_a_minute_of_requests_is(tmp_path: Path) -> None:
    report = report_of(120, tmp_path)
    assert (report.verdict, report.thin) == ("stable", [])
