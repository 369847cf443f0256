"""Does `docs/tutorial.md` show every line by which its examples differ from the first file?"""

import re
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
START = ROOT / "examples" / "minimal.yaml"
CHANGED = sorted((ROOT / "examples" / "tutorial").glob("*.yaml"))


def settings(text: str) -> set[str]:
    """The lines that set something, without their comments and however deep they stand."""
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return {line for line in lines if line}


def blocks(page: str) -> set[str]:
    return settings("\n".join(re.findall(r"(?ms)^```yaml\n(.*?)^```", page)))


def faults(page: str, start: str, changed: Iterable[tuple[str, str]]) -> list[str]:
    shown, begun = blocks(page), settings(start)
    written = {name: settings(text) for name, text in changed}
    told = [f"{name} is not checked" for name in written if f"check {name}" not in page]
    told += [
        f"{name} has {line!r}, which the page does not show"
        for name, lines in written.items()
        for line in sorted(lines - begun - shown)
    ]
    return told + [
        f"no file has {line!r}" for line in sorted(shown.difference(begun, *written.values()))
    ]


def files() -> list[tuple[str, str]]:
    return [(file.relative_to(ROOT).as_posix(), file.read_text("utf-8")) for file in CHANGED]


def test_page_and_files_change_the_same_lines() -> None:
    assert CHANGED
    assert faults(PAGE, START.read_text("utf-8"), files()) == []


def test_a_line_more_or_less_is_seen() -> None:
    page = "```console\n$ tidegate check a\n```\n```yaml\nx: 1\ny: 2\nz: 3\n```\n"
    assert faults(page, "x: 1  # as it was", [("a", "x: 1\ny: 2"), ("b", "w: 4")]) == [
        "b is not checked",
        "b has 'w: 4', which the page does not show",
        "no file has 'z: 3'",
    ]
