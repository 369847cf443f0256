"""What can an audit of source code say, and the report render?

These records are the `--json` document of `tidegate check PATH`, version 1. Lines and columns count
from one, columns in characters.
"""

from typing import Literal

import msgspec

from tidegate.findings import Severity

__all__ = ["SourceAllowed", "SourceFinding", "SourceReport", "SourceStep", "SourceUnread"]


class SourceStep(msgspec.Struct, frozen=True, kw_only=True):
    """One layer on a path of retries: who tries again, where, and how often.

    `attempts` is a number, `unlimited`, or what the code says instead of a number.
    """

    file: str
    line: int
    function: str
    library: str
    attempts: str


class SourceFinding(msgspec.Struct, frozen=True, kw_only=True):
    """One breach of a rule: where, what is there, what that does, and what to do.

    `attempts` is what one user action can become where retries nest, None when that is no number;
    `path` holds the layers, the outermost first.
    """

    rule: str
    severity: Severity
    file: str
    line: int
    column: int
    end_line: int
    says: str
    why: str
    fix: str
    attempts: float | None = None
    path: list[SourceStep] = []


class SourceAllowed(msgspec.Struct, frozen=True, kw_only=True):
    """A finding that a comment in the code allows, and its reason."""

    rule: str
    file: str
    line: int
    reason: str


class SourceUnread(msgspec.Struct, frozen=True, kw_only=True):
    """A file that could not be read, and why: `is no Python 3.11: line 3: invalid syntax`."""

    file: str
    says: str


class SourceReport(msgspec.Struct, frozen=True, kw_only=True):
    """The whole answer, the worst findings first."""

    format: Literal["tidegate.source/1"] = "tidegate.source/1"
    version: str
    paths: list[str]
    files: int
    lines: int
    tests_left_out: int
    findings: list[SourceFinding]
    allowed: list[SourceAllowed]
    unread: list[SourceUnread]
    exit_code: int
