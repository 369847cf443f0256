"""Does every example load, and does it say of each number whether a report states it?"""

import re
from pathlib import Path

import pytest

from tidegate.settings.load import load

EXAMPLES = Path(__file__).parents[2] / "examples"
OUTAGES = ("token-service", "sign-in", "portal", "portal-19-may", "collectors")
MARK = re.compile(r"\((?:assumed|stated)\)")
PLAIN = {"tidegate: 1"}


def unmarked(text: str) -> list[str]:
    """Lines with a number that neither they nor the comment below them mark."""
    lines = text.splitlines()
    found = []
    for index, line in enumerate(lines):
        setting, _, comment = line.partition("#")
        for below in lines[index + 1 :]:
            if not below.strip().startswith("#"):
                break
            comment += below
        if re.search(r"\d", setting) and setting.strip() not in PLAIN and not MARK.search(comment):
            found.append(line.strip())
    return found


@pytest.mark.parametrize("file", sorted(EXAMPLES.rglob("*.yaml")), ids=lambda file: file.stem)
def test_every_example_loads(file: Path) -> None:
    system = load(file).system()
    assert system.services or system.spool


@pytest.mark.parametrize("name", OUTAGES)
def test_every_number_of_an_outage_is_marked_as_assumed_or_stated(name: str) -> None:
    assert unmarked((EXAMPLES / f"{name}.yaml").read_text("utf-8")) == []


def test_a_number_without_a_mark_is_seen() -> None:
    text = "tidegate: 1\na: 2  # (assumed)\nb: 3\nc: 4  # why\n   # (stated)\nd: 5 # why\n"
    assert unmarked(text) == ["b: 3", "d: 5 # why"]
