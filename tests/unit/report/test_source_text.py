"""The audit of source code as a person and as a program read it."""

import json
from typing import Any

from tidegate.analysis.source.findings import (
    SourceAllowed,
    SourceFinding,
    SourceReport,
    SourceStep,
    SourceUnread,
)
from tidegate.report import source_json, source_text

STEP = SourceStep(file="b.py", line=2, function="g()", library="openai.OpenAI", attempts="3")


def finding(line: int, **other: Any) -> SourceFinding:
    plain = {
        "rule": "no-timeout",
        "severity": "warning",
        "file": "a.py",
        "line": line,
        "column": 5,
        "end_line": line,
        "says": "it waits",
        "why": "Because.",
        "fix": "Do not.",
    }
    return SourceFinding(**(plain | other))


def report(**other: Any) -> SourceReport:
    plain = {
        "version": "1.2.3",
        "paths": ["src"],
        "files": 1200,
        "lines": 30_000,
        "tests_left_out": 0,
        "findings": [],
        "allowed": [],
        "unread": [],
        "exit_code": 0,
    }
    return SourceReport(**(plain | other))


def test_nothing_found_is_one_line() -> None:
    assert source_text.render(report()) == "NOTHING FOUND in 1,200 files, 30,000 lines\n"


def test_the_verdict_first_then_each_place_and_why_once_for_each_rule() -> None:
    nested = finding(1, rule="nested-retries", severity="error", path=[STEP])
    text = source_text.render(report(findings=[nested, finding(3), finding(9)], files=1))
    assert (
        text
        == """\
1 error, 2 warnings in 1 file, 30,000 lines

a.py:1:5: error: nested-retries
    it waits
      b.py:2: openai.OpenAI in g(): 3
    why: Because.
    fix: Do not.

a.py:3:5: warning: no-timeout
    it waits
    why: Because.
    fix: Do not.

a.py:9:5: warning: no-timeout
    it waits
"""
    )


def test_a_fix_of_its_own_is_told() -> None:
    text = source_text.render(report(findings=[finding(3), finding(9, fix="Or else.")]))
    assert "fix: Or else." in text


def test_the_end_tells_what_was_allowed_not_read_and_left_out() -> None:
    text = source_text.render(
        report(
            allowed=[SourceAllowed(rule="no-timeout", file="c.py", line=7, reason="it ends")],
            unread=[SourceUnread(file=f"d{i}.py", says="is no Python") for i in range(25)],
            tests_left_out=1,
        )
    )
    assert "allowed   c.py:7 no-timeout: it ends\n" in text
    assert "not read  d0.py is no Python\n" in text
    assert "not read  and 5 more; --json has them all\n" in text
    assert text.endswith("left out  1 file of tests; name their folder to read them\n")


def test_no_line_is_wider_than_asked_and_nothing_escapes() -> None:
    said = "a long sentence about a call that waits for ever and ever and ever and ever"
    text = source_text.render(report(findings=[finding(1, says=said, file="\x1b[2J.py")]), width=40)
    assert "\x1b" not in text
    assert all(len(line) <= 40 for line in text.splitlines()[2:])
    assert "\x1b[33mwarning\x1b[0m" in source_text.render(report(findings=[finding(1)]), color=True)


def test_the_document_is_the_report() -> None:
    text = source_json.render(report(findings=[finding(1, file="\udcff.py")]))
    assert text.isascii()
    document = json.loads(text)
    assert document["format"] == "tidegate.source/1"
    assert list(document)[:4] == ["format", "version", "paths", "files"]
    assert document["findings"][0]["path"] == []
