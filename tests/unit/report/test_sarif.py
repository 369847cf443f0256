"""The SARIF document: its required shape, and what a code host reads from it."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tidegate.analysis.source.audit import RULES, audit
from tidegate.analysis.source.findings import (
    SourceAllowed,
    SourceFinding,
    SourceReport,
    SourceStep,
    SourceUnread,
)
from tidegate.report import sarif

# What SARIF 2.1.0 requires of the objects that are written here (its sections 3.13 to 3.38).
TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
REGION = {
    "type": "object",
    "properties": {
        "startLine": {"type": "integer", "minimum": 1},
        "startColumn": {"type": "integer", "minimum": 1},
        "endLine": {"type": "integer", "minimum": 1},
    },
    "additionalProperties": False,
}
LOCATION = {
    "type": "object",
    "properties": {
        "physicalLocation": {
            "type": "object",
            "required": ["artifactLocation"],
            "properties": {
                "artifactLocation": {
                    "type": "object",
                    "required": ["uri"],
                    "properties": {"uri": {"type": "string", "pattern": r"^[!-~]+$"}},
                    "additionalProperties": False,
                },
                "region": REGION,
            },
            "additionalProperties": False,
        },
        "message": TEXT,
    },
    "additionalProperties": False,
}
RESULT = {
    "type": "object",
    "required": ["message"],
    "properties": {
        "ruleId": {"type": "string"},
        "ruleIndex": {"type": "integer", "minimum": 0},
        "level": LEVEL,
        "message": TEXT,
        "locations": {"type": "array", "items": LOCATION},
        "partialFingerprints": {"type": "object", "additionalProperties": {"type": "string"}},
        "codeFlows": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["threadFlows"],
                "properties": {
                    "threadFlows": {
                        "type": "array",
                        "minItems": 1,
                        "items": {
                            "type": "object",
                            "required": ["locations"],
                            "properties": {
                                "locations": {
                                    "type": "array",
                                    "minItems": 1,
                                    "items": {
                                        "type": "object",
                                        "properties": {"location": LOCATION},
                                        "additionalProperties": False,
                                    },
                                }
                            },
                        },
                    }
                },
            },
        },
        "suppressions": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["kind"],
                "properties": {"kind": {"enum": ["inSource", "external"]}},
            },
        },
    },
    "additionalProperties": False,
}
SHAPE = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["tool"],
                "properties": {
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "type": "object",
                                "required": ["name"],
                                "properties": {
                                    "semanticVersion": {"pattern": r"^\d+\.\d+\.\d+$"},
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": {
                                            "type": "object",
                                            "required": ["id"],
                                            "properties": {
                                                "shortDescription": TEXT,
                                                "fullDescription": TEXT,
                                                "help": TEXT,
                                            },
                                        },
                                    },
                                },
                            }
                        },
                    },
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "invocations": {
                        "type": "array",
                        "items": {"type": "object", "required": ["executionSuccessful"]},
                    },
                    "results": {"type": "array", "items": RESULT},
                },
            },
        },
    },
}


def finding(**other: Any) -> SourceFinding:
    plain = {
        "rule": "no-timeout",
        "severity": "warning",
        "file": "src/a b.py",
        "line": 3,
        "column": 5,
        "end_line": 4,
        "says": "it waits",
        "why": "Because.",
        "fix": "Do not.",
    }
    return SourceFinding(**(plain | other))


STEPS = [
    SourceStep(file="a.py", line=1, function="f()", library="tenacity", attempts="3"),
    SourceStep(file="b.py", line=2, function="g()", library="openai.OpenAI", attempts="3"),
]
REPORT = SourceReport(
    version="0.1.0.dev0",
    paths=["src"],
    files=2,
    lines=9,
    tests_left_out=0,
    findings=[
        finding(),
        finding(line=8, end_line=8),
        finding(rule="nested-retries", severity="error", path=STEPS, file="/abs/ü\udcff.py"),
    ],
    allowed=[SourceAllowed(rule="no-timeout", file="c.py", line=7, reason="a watchdog ends it")],
    unread=[SourceUnread(file="d.py", says="is no Python 3.11: line 1: invalid syntax")],
    exit_code=1,
)


@pytest.fixture
def run() -> dict[str, Any]:
    document = json.loads(sarif.render(REPORT, RULES))
    jsonschema.validate(document, SHAPE)
    assert document["$schema"].endswith("sarif-2.1.0.json")
    found: dict[str, Any] = document["runs"][0]
    return found


def test_each_result_names_its_rule_by_name_and_place(run: dict[str, Any]) -> None:
    rules = run["tool"]["driver"]["rules"]
    assert len(rules) == len(RULES)
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    assert [r["level"] for r in run["results"]] == ["warning", "warning", "error", "warning"]


def test_places_are_regions_and_addresses(run: dict[str, Any]) -> None:
    first, second, third, _ = (r["locations"][0]["physicalLocation"] for r in run["results"])
    assert first["artifactLocation"]["uri"] == "src/a%20b.py"
    assert first["region"] == {"startLine": 3, "startColumn": 5, "endLine": 4}
    assert "endLine" not in second["region"]
    assert third["artifactLocation"]["uri"] == "file:///abs/%C3%BC%FF.py"


def test_nested_retries_are_a_flow(run: dict[str, Any]) -> None:
    flow = run["results"][2]["codeFlows"][0]["threadFlows"][0]["locations"]
    told = [step["location"]["message"]["text"] for step in flow]
    assert told == ["tenacity, attempts: 3", "openai.OpenAI, attempts: 3"]


def test_what_is_allowed_is_suppressed_and_what_is_not_read_is_told(run: dict[str, Any]) -> None:
    reason = [{"kind": "inSource", "justification": "a watchdog ends it"}]
    assert run["results"][3]["suppressions"] == reason
    notes = run["invocations"][0]["toolExecutionNotifications"]
    assert "invalid syntax" in notes[0]["message"]["text"]


def test_the_same_finding_twice_has_two_prints_and_keeps_them_when_lines_move() -> None:
    def prints(*lines: int) -> list[str]:
        found = [finding(line=line) for line in lines]
        report = SourceReport(
            version="1.2.3",
            paths=[],
            files=1,
            lines=1,
            tests_left_out=0,
            findings=found,
            allowed=[],
            unread=[],
            exit_code=1,
        )
        results = json.loads(sarif.render(report, RULES))["runs"][0]["results"]
        return [r["partialFingerprints"]["tidegate/v1"] for r in results]

    assert prints(3, 9) == prints(4, 20)
    assert len(set(prints(3, 9))) == 2


def test_a_real_audit_has_the_shape(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("import requests\nrequests.get('u')\n")
    document = json.loads(sarif.render(audit([tmp_path]), RULES))
    jsonschema.validate(document, SHAPE)
    assert len(document["runs"][0]["results"]) == 1


def test_a_broken_shape_is_seen() -> None:
    document = json.loads(sarif.render(REPORT, RULES))
    document["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"] = 0
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, SHAPE)
