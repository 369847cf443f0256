"""How does a person read the audit of source code?

The verdict first, on one line. Then a paragraph for each finding, the worst first, which opens with
`file:line:column: severity: rule` as compilers do, so that editors jump there. Where retries nest,
the layers follow with their attempts. Why it is bad and what to do is told once for each rule. The
end tells what was allowed, and what was not read.
"""

from collections.abc import Iterator
from typing import Final

from tidegate.analysis.source.findings import SourceFinding, SourceReport
from tidegate.findings import Severity
from tidegate.report.figures import clean
from tidegate.report.terminal import hang, wrap

__all__ = ["render"]

_COLOURS: Final[dict[Severity, str]] = {"error": "1;31", "warning": "33", "note": "36"}
_INDENT: Final = 4
_TOLD: Final = 9  # where the words after `why:` and `fix:` begin
_ALLOWED_MAX: Final = 20  # lines of what is allowed or unread; the JSON has them all


def render(report: SourceReport, *, width: int = 100, color: bool = False) -> str:
    """The whole report as text, ended by a newline."""
    lines = [_verdict(report), ""]
    told: set[tuple[str, str]] = set()
    for finding in report.findings:
        key = finding.rule, finding.fix
        lines += [*_finding(finding, width, first=key not in told, color=color), ""]
        told.add(key)
    lines += _rest(report, width)
    return "\n".join(lines).rstrip() + "\n"


def _verdict(report: SourceReport) -> str:
    read = f"{_count(report.files, 'file')}, {_count(report.lines, 'line')}"
    if not report.findings:
        return f"NOTHING FOUND in {read}"
    severities: tuple[Severity, ...] = ("error", "warning", "note")
    counts = [(s, sum(f.severity == s for f in report.findings)) for s in severities]
    return f"{', '.join(_count(n, s) for s, n in counts if n)} in {read}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _finding(finding: SourceFinding, width: int, *, first: bool, color: bool) -> Iterator[str]:
    severity: str = finding.severity
    if color:
        severity = f"\x1b[{_COLOURS[finding.severity]}m{severity}\x1b[0m"
    place = f"{clean(finding.file)}:{finding.line}:{finding.column}"
    yield f"{place}: {severity}: {finding.rule}"
    yield from _indented(clean(finding.says), width)
    for step in finding.path:
        said = f"{step.library} in {step.function}: {step.attempts}"
        yield from _indented(clean(f"{step.file}:{step.line}: {said}"), width, _INDENT + 2)
    if first:
        yield from hang("    why:", finding.why, width, _TOLD)
        yield from hang("    fix:", finding.fix, width, _TOLD)


def _indented(text: str, width: int, indent: int = _INDENT) -> list[str]:
    return [" " * indent + line for line in wrap(text, width - indent)]


def _rest(report: SourceReport, width: int) -> Iterator[str]:
    for head, texts in (
        ("allowed", [f"{a.file}:{a.line} {a.rule}: {a.reason}" for a in report.allowed]),
        ("not read", [f"{u.file} {u.says}" for u in report.unread]),
    ):
        for text in texts[:_ALLOWED_MAX]:
            yield from hang(head, clean(text), width, 10)
        if len(texts) > _ALLOWED_MAX:
            yield f"{head:10}and {len(texts) - _ALLOWED_MAX:,} more; --json has them all"
    if report.tests_left_out:
        yield from hang(
            "left out",
            f"{_count(report.tests_left_out, 'file')} of tests; name their folder to read them",
            width,
            10,
        )
