"""Text fits any terminal and loses nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.report.terminal import Columns, cells, hang, paint, wrap

WORDS = st.text(alphabet="ab日\u0301 -", max_size=60)


@given(WORDS, st.integers(2, 30))
def test_wrapping_keeps_every_word_and_the_width(text: str, width: int) -> None:
    lines = wrap(text, width)
    assert all(cells(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def test_cells_are_counted_as_a_terminal_does() -> None:
    assert cells("plain") == 5
    assert cells("日本") == 4
    assert cells("e\u0301") == 1


def test_a_label_that_is_too_long_stands_alone() -> None:
    assert hang("short", "some text that goes on", 20, 8) == [
        "short   some text",
        "        that goes on",
    ]
    assert hang("much too long", "text", 20, 8) == ["much too long", "        text"]


ROWS = [("marketplace", "750/s", "what it costs is told here"), ("edge", "5/s", "nothing")]
HEAD = ("SERVICES", "load", "costs")


def laid(width: int) -> list[str]:
    table = Columns(HEAD, ROWS, width=width, right=(1,))
    return [*table.head(), *(line for row in ROWS for line in table.row(row))]


def test_a_table_that_fits_is_a_table() -> None:
    assert laid(60) == [
        "SERVICES        load  costs",
        "  marketplace  750/s  what it costs is told here",
        "  edge           5/s  nothing",
    ]


def test_the_last_column_takes_what_is_left() -> None:
    assert laid(42) == [
        "SERVICES        load  costs",
        "  marketplace  750/s  what it costs is",
        "                      told here",
        "  edge           5/s  nothing",
    ]


def test_a_table_that_does_not_fit_becomes_paragraphs() -> None:
    assert laid(30) == [
        "SERVICES",
        "  marketplace: load 750/s,",
        "    costs what it costs is",
        "    told here",
        "  edge: load 5/s, costs",
        "    nothing",
    ]


def test_a_long_title_stands_above_its_table() -> None:
    table = Columns(("A TITLE OF SOME LENGTH", "x", "y"), [("a", "1", "2")], width=24)
    assert table.head() == ["A TITLE OF SOME LENGTH", "                    x  y"]
    assert table.row(("a", "1", "2")) == ["  a                 1  2"]


def test_paint_colours_heads_and_outcomes_at_the_start_of_a_line_only() -> None:
    painted = paint("FAILS       because\n  STICKS: stays\nCURES (20 runs)  x\nsays STICKS\n")
    assert painted == (
        "\x1b[1;31mFAILS\x1b[0m       because\n  \x1b[31mSTICKS\x1b[0m: stays\n"
        "\x1b[1mCURES\x1b[0m (20 runs)  x\nsays STICKS\n"
    )


@pytest.mark.parametrize(
    "text", ["A lone capital\n", "  DB  a name in capitals\n", "x1 FAILS\n", "STABLER\n"]
)
def test_paint_leaves_the_rest(text: str) -> None:
    assert paint(text) == text
