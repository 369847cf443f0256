"""Arguments that are absent, unknown or known, and their plain values."""

import ast

import pytest
from source_code import source

from tidegate.analysis.source.literals import (
    ABSENT,
    UNKNOWN,
    argument,
    is_none,
    opaque,
    said,
    value,
    value_of,
)


def call(text: str) -> ast.Call:
    found = ast.parse(text, mode="eval").body
    assert isinstance(found, ast.Call)
    return found


SCOPE = source("A = 3\nB = A\nclass C:\n    D = 2\nE = None\nF = g()\nG = 1\nG = 2\n").scope


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("3", 3),
        ("-1", -1),
        ("'x'", "x"),
        ("B", 3),
        ("C.D", 2),
        ("B * 2 + 1 - 0.5", 6.5),
        ("int(3.5)", 3.5),
        ("E", None),
        ("True", True),
        ("F", UNKNOWN),
        ("G", UNKNOWN),
        ("B ** 2", UNKNOWN),
        ("-x", UNKNOWN),
        ("int(x)", UNKNOWN),
        ("[1]", UNKNOWN),
        ("x", UNKNOWN),
    ],
)
def test_values(text: str, plain: object) -> None:
    assert value(ast.parse(text, mode="eval").body, SCOPE) == plain


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("f(a=1)", 1),
        ("f(2)", 2),
        ("f()", ABSENT),
        ("f(**kw)", UNKNOWN),
        ("f(*args)", UNKNOWN),
        ("f(a=x)", UNKNOWN),
        ("f(a=1, **kw)", 1),
    ],
)
def test_arguments(text: str, found: object) -> None:
    assert value_of(call(text), SCOPE, "a", at=0) == found


def test_an_argument_after_a_star_has_no_place() -> None:
    assert argument(call("f(*a, 1)"), "x", at=1) is None
    assert argument(call("f(1, *a)"), "x", at=0) is not None
    assert opaque(call("f(*a, 1)"))
    assert not opaque(call("f(1, b=2)"))


def test_only_a_written_none_is_none() -> None:
    assert is_none(ast.parse("None", mode="eval").body)
    assert not is_none(ast.parse("E", mode="eval").body)
    assert not is_none(None)


def test_their_words_are_short_and_on_one_line() -> None:
    assert said(ast.parse("a +\\\n b", mode="eval").body) == "a + b"
    assert len(said(ast.parse("a" * 99, mode="eval").body)) == 40
    assert repr(UNKNOWN) == "UNKNOWN"
