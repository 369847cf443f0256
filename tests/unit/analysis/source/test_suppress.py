"""What a comment allows, and what is wrong with it."""

import pytest
from source_code import broken, hits

from tidegate.analysis.source.suppress import allowances

GET = "import requests\n"


@pytest.mark.parametrize(
    "code",
    [
        "requests.get(u)  # tidegate: allow no-timeout because it is ended elsewhere",
        "# tidegate: allow no-timeout because it is ended elsewhere\nrequests.get(u)",
        "requests.get(\n    u,  # tidegate: allow no-timeout because it is ended elsewhere\n)",
        "requests.get(u)  #tidegate:allow no-timeout,no-timeout because why not",
    ],
)
def test_where_a_comment_speaks(code: str) -> None:
    assert broken(GET + code) == []


def test_a_comment_at_the_end_of_a_line_says_nothing_of_the_next() -> None:
    code = "x = 1  # tidegate: allow no-timeout because of y\nrequests.get(u)"
    assert broken(GET + code) == ["allow-unused", "no-timeout"]


def test_no_reason_allows_nothing() -> None:
    for comment in ("allow no-timeout", "allow no-timeout because", "allow because of this"):
        code = f"{GET}requests.get(u)  # tidegate: {comment}"
        assert broken(code) == ["allow-without-reason", "no-timeout"]


def test_a_leave_that_meets_nothing_is_told() -> None:
    found = hits("x = 1  # tidegate: allow no-timeout, no-such because of y")
    assert [hit.says for hit in found] == [
        "nothing here breaks no-timeout",
        "there is no rule 'no-such'",
    ]


def test_only_comments_count() -> None:
    text = "x = '# tidegate: allow no-timeout because'\n# nothing\n"
    assert allowances(text) == []
    assert allowances("x = 1") == []


def test_a_comment_without_end_is_cut() -> None:
    text = f"# tidegate: allow x because y {'z' * 1000}"
    assert [len(a.reason) < 500 for a in allowances(text)] == [True]


def test_what_cannot_be_cut_into_tokens_allows_what_was_found_before() -> None:
    assert len(allowances("# tidegate: allow x because y\n'''")) <= 1
