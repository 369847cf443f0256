"""Has every rule of the audit its whole section in `docs/audit.md`, and every section its rule?"""

import re
from pathlib import Path

from tidegate.analysis.audit import RULES

PAGE = (Path(__file__).parents[2] / "docs" / "audit.md").read_text("utf-8")
PARTS = ("**Sees**", "**Why**", "**Do**", "**Leave it**")


def sections(page: str) -> dict[str, str]:
    """The text under each heading of the third level, by its title."""
    pieces = re.split(r"^#+ ", page, flags=re.MULTILINE)
    titles = re.findall(r"^#+ ", page, flags=re.MULTILINE)
    return {
        piece.partition("\n")[0]: piece.partition("\n")[2]
        for mark, piece in zip(titles, pieces[1:], strict=True)
        if mark == "### "
    }


def faults(page: str) -> list[str]:
    told, rules = sections(page), {rule.name for rule in RULES}
    found = [f"{name} has no section" for name in sorted(rules - told.keys())]
    found += [f"{name} is no rule" for name in sorted(told.keys() - rules)]
    return found + [
        f"{name} lacks {part}" for name, text in told.items() for part in PARTS if part not in text
    ]


def test_every_rule_has_its_section_and_every_section_its_rule() -> None:
    assert faults(PAGE) == []


def test_a_rule_without_a_section_is_seen() -> None:
    assert "no-timeout has no section" in faults(PAGE.replace("### no-timeout", "no-timeout"))


def test_a_section_without_a_rule_and_a_missing_part_are_seen() -> None:
    planted = f"{PAGE}\n### not-a-rule\n\n**Sees** x **Why** y **Do** z\n"
    assert faults(planted) == ["not-a-rule is no rule", "not-a-rule lacks **Leave it**"]
