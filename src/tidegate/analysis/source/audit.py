"""What will hurt in this source code once something it calls is slow?

One file after the other is read, asked by every rule and forgotten but for its calls; the calls are
followed at the end. So memory grows with the number of functions, not with the size of the code.
"""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tidegate._version import __version__
from tidegate.analysis.source import suppress
from tidegate.analysis.source.files import find, lines, parse
from tidegate.analysis.source.findings import (
    SourceAllowed,
    SourceFinding,
    SourceReport,
    SourceStep,
    SourceUnread,
)
from tidegate.analysis.source.model import UNLIMITED, Module
from tidegate.analysis.source.read import read
from tidegate.analysis.source.rules import breakers, layers, retries, timeouts
from tidegate.analysis.source.rules.rule import Hit, Rule, number
from tidegate.analysis.source.seen import Source
from tidegate.errors import InputError
from tidegate.findings import Severity

__all__ = ["RULES", "audit"]

RULES: Final[tuple[Rule, ...]] = (
    *layers.RULES,
    *retries.RULES,
    *timeouts.RULES,
    *breakers.RULES,
    *suppress.RULES,
)
_LOCAL: Final = (retries.find, timeouts.find, breakers.find)
_ORDER: Final[tuple[Severity, ...]] = ("error", "warning", "note")


class _Kept(NamedTuple):
    """What is kept of a file until all are read: `wide` are its lines that are not ASCII alone."""

    hits: list[Hit]
    allowed: list[suppress.Allowance]
    wide: dict[int, str]


def audit(
    paths: Sequence[Path],
    *,
    fail_on: Severity = "warning",
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> SourceReport:
    """Audit Python files and folders of them.

    The exit code is 1 if a finding is left that is as bad as `fail_on` or worse. `progress` is told
    how many of the files are done. `InputError` if a path cannot be read, or if no file can.
    """
    found = find(paths)
    kept: dict[str, _Kept] = {}
    modules: list[Module] = []
    unread = [SourceUnread(file=folder, says=fault) for folder, fault in found.closed]
    called: set[str] = set()
    count = 0
    for done, (file, module) in enumerate(found.files):
        progress(done, len(found.files))
        name = file.as_posix()
        parsed = parse(file)
        fault = parsed.fault
        if parsed.tree is not None:
            try:
                source = read(
                    parsed.tree, name=module, file=name, package=file.name == "__init__.py"
                )
                leave = suppress.allowances(parsed.text)
                kept[name] = _Kept(_hits(source), leave, _wide(source, parsed.text))
            except RecursionError:
                fault = "is nested too deeply"
            else:
                modules.append(source.module)
                called.update(c.target for c in source.calls if c.target in _VOIDING)
                count += len(parsed.text.splitlines())
        if fault:
            unread.append(SourceUnread(file=name, says=fault))
    if not kept:
        raise InputError(f"{unread[0].file} {unread[0].says}")
    for name, hit in layers.find(modules):
        kept[name].hits.append(hit)
    findings, allowed = _findings(kept, called)
    worst = _ORDER.index(fail_on)
    return SourceReport(
        version=__version__,
        paths=[str(path) for path in paths],
        files=len(kept),
        lines=count,
        tests_left_out=found.tests,
        findings=findings,
        allowed=allowed,
        unread=unread,
        exit_code=int(any(_ORDER.index(f.severity) <= worst for f in findings)),
    )


_VOIDING: Final = frozenset(("socket.setdefaulttimeout",))
"""Calls that make a breach void wherever they stand (`Hit.unless`)."""


def _hits(source: Source) -> list[Hit]:
    return [hit for rules in _LOCAL for hit in rules(source)]


def _wide(source: Source, text: str) -> dict[int, str]:
    """The lines with other than ASCII on which a finding may stand."""
    if text.isascii():
        return {}
    told = {call.node.lineno for call in source.calls} | {p.layer.line for p in source.placed}
    every = enumerate(lines(text), 1)
    return {number: line for number, line in every if number in told and not line.isascii()}


def _column(line: str, offset: int) -> int:
    """The column in characters, from one, of an offset in bytes of UTF-8."""
    return len(line.encode("utf-8", "replace")[:offset].decode("utf-8", "ignore")) + 1


def _findings(
    kept: dict[str, _Kept], called: set[str]
) -> tuple[list[SourceFinding], list[SourceAllowed]]:
    known = frozenset(rule.name for rule in RULES)
    findings: list[SourceFinding] = []
    allowed: list[SourceAllowed] = []
    for name, file in kept.items():
        hits = [hit for hit in file.hits if hit.unless not in called]
        left, quiet = suppress.apply(hits, file.allowed, known)
        findings.extend(_finding(name, hit, file.wide) for hit in left)
        allowed.extend(
            SourceAllowed(rule=hit.rule.name, file=name, line=hit.line, reason=reason)
            for hit, reason in quiet
        )
    findings.sort(key=lambda f: (_ORDER.index(f.severity), f.file, f.line, f.column, f.rule))
    return findings, allowed


def _finding(file: str, hit: Hit, wide: dict[int, str]) -> SourceFinding:
    factors = [step.attempts for step in hit.path]
    product = math.prod(1 if factor is None else factor for factor in factors)
    return SourceFinding(
        rule=hit.rule.name,
        severity=hit.severity or hit.rule.severity,
        file=file,
        line=hit.line,
        column=_column(wide[hit.line], hit.column) if hit.line in wide else hit.column + 1,
        end_line=max(hit.end_line, hit.line),
        says=hit.says,
        why=hit.rule.why,
        fix=hit.fix or hit.rule.fix,
        attempts=None if not factors or None in factors or product == UNLIMITED else product,
        path=[
            SourceStep(
                file=step.file,
                line=step.line,
                function=step.function,
                library=step.library,
                attempts=step.bound if step.attempts is None else number(step.attempts),
            )
            for step in hit.path
        ],
    )
