"""Whatever analysis says, the three renderings hold their promises."""

import json as standard
import types
import typing
from html.parser import HTMLParser
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.findings import CheckReport
from tidegate.report import html, json, text
from tidegate.report.figures import clean
from tidegate.report.terminal import cells

TEXTS = st.text(alphabet="ab <>&\"'\n\x1b\u202e日\u0301\udc80;:{}", max_size=12)
FIGURES = st.one_of(
    st.sampled_from([0.0, 1.0, 0.9999999, 1e-9, 1e15]),
    st.floats(0, 1e6, allow_nan=False),
)


def of(kind: Any) -> st.SearchStrategy[Any]:
    """Anything that the type of a field allows: small, but with every odd case in it."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin in (types.UnionType, typing.Union):
        return st.one_of(*map(of, arguments))
    if origin is list:
        return st.lists(of(arguments[0]), max_size=3)
    if origin is dict:
        return st.dictionaries(of(arguments[0]), of(arguments[1]), max_size=2)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        hints = typing.get_type_hints(kind)
        return st.builds(kind, **{name: of(hints[name]) for name in kind.__struct_fields__})
    plain = {str: TEXTS, float: FIGURES, int: st.integers(0, 99), bool: st.booleans()}
    return {**plain, type(None): st.none()}[kind]


REPORTS = of(CheckReport)


class Reader(HTMLParser):
    """Fails on an element that is not closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag != "script"
        assert not [name for name, _ in attrs if name.startswith("on")]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


@pytest.mark.slow  # a report has over a hundred fields to draw
@settings(max_examples=40)
@given(REPORTS, st.integers(20, 140))
def test_the_text_fits_and_colour_changes_no_word(report: CheckReport, width: int) -> None:
    told = text.render(report, width=width, color=False)
    lines = told.split("\n")
    assert lines.pop() == ""
    assert all(line.isprintable() for line in lines)
    assert all(cells(line) <= max(width, 40) for line in lines[:-1])  # the last is the command
    painted = text.render(report, width=width, color=True)
    for code in ("0", "1", "31", "32", "33", "1;31", "1;32", "1;33"):
        painted = painted.replace(f"\x1b[{code}m", "")
    assert painted == told


@pytest.mark.slow  # a report has over a hundred fields to draw
@settings(max_examples=40)
@given(REPORTS)
def test_the_document_is_read_back_as_it_was_written(report: CheckReport) -> None:
    written = json.render(report)
    again = msgspec.json.decode(written, type=CheckReport)
    assert json.render(again) == written
    assert list(standard.loads(written)) == list(CheckReport.__struct_fields__)


@pytest.mark.slow  # a report has over a hundred fields to draw
@settings(max_examples=40)
@given(REPORTS)
def test_the_page_is_well_formed_and_nothing_in_it_acts(report: CheckReport) -> None:
    seen = Reader(html.render(report))
    assert seen.open == []
    assert clean(report.repeat) in seen.words
    assert "\x1b" not in seen.words
