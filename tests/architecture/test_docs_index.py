"""Is every page of the docs in their index, and every source of the glossary in its list?"""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
INDEX = (DOCS / "README.md").read_text("utf-8")
GLOSSARY = (DOCS / "glossary.md").read_text("utf-8")


def missing(index: str, pages: set[str]) -> set[str]:
    return pages - set(re.findall(r"\]\(([^)#]+)\)", index)) - {"README.md"}


def sources(glossary: str) -> list[str]:
    """Faults in the sources: told and not listed, or listed and not told."""
    told, _, table = glossary.partition("## Sources")
    listed = re.findall(r"^\| ([^|]+?) \| .*\|$", table, re.MULTILINE)[1:]  # the first is the head
    listed = [name for name in listed if set(name) - set("- ")]
    cited = re.findall(r"^- .*\(([^()]+)\)$", told, re.MULTILINE)
    found = [f"{cite} is not listed" for cite in cited if not any(n in cite for n in listed)]
    return found + [f"{name} is not told" for name in listed if not any(name in c for c in cited)]


def test_every_page_is_in_the_index() -> None:
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    assert missing(INDEX, pages) == set()


def test_a_page_that_is_not_in_the_index_is_seen() -> None:
    assert missing("[a](a.md) [b](b.md#part)", {"README.md", "a.md", "c/d.md"}) == {"c/d.md"}


def test_every_source_of_the_glossary_is_told_and_listed() -> None:
    assert sources(GLOSSARY) == []


def test_a_source_that_is_missing_or_idle_is_seen() -> None:
    page = "- **a**: b. (Erlang 1917)\n- **c**: d. (Nobody)\n\n## Sources\n\n| short | work |\n"
    page += "|---|---|\n| Erlang 1917 | x |\n| Idle 1900 | y |\n"
    assert sources(page) == ["Nobody is not listed", "Idle 1900 is not told"]
