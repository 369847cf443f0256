"""How does another program read the audit of source code?

As one JSON document, `tidegate.source/1`: the record `SourceReport`, its fields in the order in
which they are declared. It is pure ASCII, so that a file name that is no UTF-8 gets through.
"""

import json

import msgspec

from tidegate.analysis.source.findings import SourceReport

__all__ = ["render"]


def render(report: SourceReport) -> str:
    """The document, on one line, ended by a newline."""
    return json.dumps(msgspec.to_builtins(report), separators=(",", ":")) + "\n"
