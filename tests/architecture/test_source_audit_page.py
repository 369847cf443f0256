"""Does `docs/source-audit.md` tell every rule, and does its code break and mend what it says?"""

import re
from pathlib import Path

import pytest
from source_code import broken

from tidegate.analysis.source.audit import RULES

PAGE = (Path(__file__).parents[2] / "docs" / "source-audit.md").read_text("utf-8")
PARTS = ("**Sees**", "**Why**", "**Do**", "**Allow it**")


def sections(page: str) -> dict[str, str]:
    """The text under each heading of the third level, by its title."""
    pieces = re.split(r"^### ", page, flags=re.MULTILINE)[1:]
    return {piece.partition("\n")[0]: piece.partition("\n")[2] for piece in pieces}


def faults(page: str) -> list[str]:
    told, rules = sections(page), {rule.name for rule in RULES}
    found = [f"{name} has no section" for name in sorted(rules - told.keys())]
    found += [f"{name} is no rule" for name in sorted(told.keys() - rules)]
    for name, text in told.items():
        found += [f"{name} lacks {part}" for part in PARTS if part not in text]
        blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        if len(blocks) != 2:
            found.append(f"{name} has {len(blocks)} pieces of code")
            continue
        if broken(blocks[0]) != [name]:
            found.append(f"the first code of {name} breaks {broken(blocks[0])}")
        if broken(blocks[1]):
            found.append(f"the second code of {name} breaks {broken(blocks[1])}")
    return found


def test_page_and_rules_agree() -> None:
    assert faults(PAGE) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("### no-timeout\n", "", "no-timeout has no section"),
        ("### no-timeout\n", "### no-timeouts\n", "no-timeouts is no rule"),
        ("**Allow it** for a single caller.", "", "retry-no-jitter lacks **Allow it**"),
        ("timeout=2).json()", ").json()", "the second code of no-timeout breaks ['no-timeout']"),
        ("jitter=None)", ")", "the first code of retry-no-jitter breaks []"),
    ],
)
def test_a_page_that_is_wrong_is_seen(old: str, new: str, fault: str) -> None:
    assert old in PAGE
    assert fault in faults(PAGE.replace(old, new))


def test_the_example_at_the_top_is_what_the_rules_say() -> None:
    code = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[0]
    assert broken(code) == ["nested-retries", "sdk-defaults"]
