"""How do a code host and an editor read the audit of source code?

As SARIF 2.1.0 (OASIS standard, 27 March 2020): one run, with the rules that were asked, a result
for each finding, a code flow from the outermost retry to the innermost where they nest, and what is
allowed marked as suppressed in source. A file that could not be read is a notification of the run.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import quote

from tidegate.analysis.source.findings import SourceAllowed, SourceFinding, SourceReport
from tidegate.analysis.source.rules.rule import Rule

__all__ = ["render"]

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def render(report: SourceReport, rules: Sequence[Rule]) -> str:
    """The document, ended by a newline. `rules` are all that were asked, broken or not."""
    index = {rule.name: number for number, rule in enumerate(rules)}
    seen: Counter[str] = Counter()
    results = [_result(finding, index, seen) for finding in report.findings]
    results += [_allowed(allowed, rules[index[allowed.rule]], index) for allowed in report.allowed]
    run = {
        "tool": {
            "driver": {
                "name": "Tidegate",
                "semanticVersion": _semantic(report.version),
                "version": report.version,
                "rules": [_rule(rule) for rule in rules],
            }
        },
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": True,
                "exitCode": report.exit_code,
                "toolExecutionNotifications": [
                    {
                        "level": "warning",
                        "message": {"text": f"not read: {unread.says}"},
                        "locations": [_location(unread.file)],
                    }
                    for unread in report.unread
                ],
            }
        ],
        "results": results,
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _semantic(version: str) -> str:
    """Three numbers, as `semanticVersion` asks for, without what Python puts after them."""
    return ".".join(version.split(".")[:3])


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.name,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.why},
        "help": {"text": rule.fix},
        "defaultConfiguration": {"level": rule.severity},
    }


def _result(finding: SourceFinding, index: dict[str, int], seen: Counter[str]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": index[finding.rule],
        "level": finding.severity,
        "message": {"text": f"{finding.says}. {finding.fix}"},
        "locations": [_location(finding.file, finding.line, finding.column, finding.end_line)],
        "partialFingerprints": {"tidegate/v1": _fingerprint(finding, seen)},
    }
    if finding.path:
        steps = [
            {
                "location": _location(
                    step.file, step.line, message=_said(step.library, step.attempts)
                )
            }
            for step in finding.path
        ]
        result["codeFlows"] = [{"threadFlows": [{"locations": steps}]}]
    return result


def _said(library: str, attempts: str) -> str:
    return f"{library}, attempts: {attempts}"


def _allowed(allowed: SourceAllowed, rule: Rule, index: dict[str, int]) -> dict[str, Any]:
    return {
        "ruleId": rule.name,
        "ruleIndex": index[rule.name],
        "level": rule.severity,
        "message": {"text": rule.title},
        "locations": [_location(allowed.file, allowed.line)],
        "suppressions": [{"kind": "inSource", "justification": allowed.reason}],
    }


def _fingerprint(finding: SourceFinding, seen: Counter[str]) -> str:
    """The same for the same finding, wherever lines above it move it to."""
    text = f"{finding.rule}\0{finding.file}\0{finding.says}"
    seen[text] += 1
    return hashlib.sha256(f"{text}\0{seen[text]}".encode("utf-8", "replace")).hexdigest()[:32]


def _location(
    file: str, line: int = 0, column: int = 0, end_line: int = 0, *, message: str = ""
) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(file)}}
    if line:
        region: dict[str, Any] = {"startLine": line}
        if column:
            region["startColumn"] = column
        if end_line > line:
            region["endLine"] = end_line
        physical["region"] = region
    location: dict[str, Any] = {"physicalLocation": physical}
    if message:
        location["message"] = {"text": message}
    return location


def _uri(file: str) -> str:
    """A relative path as it is, an absolute one as a file's address; both percent-encoded."""
    data = file.encode("utf-8", "surrogateescape")
    return f"file://{quote(data)}" if PurePath(file).is_absolute() else quote(data)
