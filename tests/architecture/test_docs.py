"""The documentation does not lie: links lead somewhere, shown output is what is printed today."""

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


def _load(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


docs = _load(ROOT / "docs/regenerate.py")
PAGES = docs.pages(ROOT)

_FENCED = re.compile(r"^(`{3,}).*?^\1$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)|^\[[^\]]+\]: (\S+)", re.MULTILINE)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def anchors(page: str) -> set[str]:
    """The names under which a page's headings can be linked, as code hosts make them."""
    headings = _HEADING.findall(_FENCED.sub("", page))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in headings}


def dead_links(page: Path) -> Iterator[str]:
    for inline, reference in _LINK.findall(_FENCED.sub("", page.read_text("utf-8"))):
        target = inline or reference
        if re.match(r"[a-z]+:", target):
            continue  # an address elsewhere; a test does not go there
        name, _, anchor = target.partition("#")
        file = page.parent / name if name else page
        if not file.exists() or (anchor and anchor not in anchors(file.read_text("utf-8"))):
            yield target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page: Path) -> None:
    assert list(dead_links(page)) == []


def test_a_dead_link_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A page\n[a](page.md) [b](#a-page) [c](gone.md)\n"
        "[d](page.md#gone) [e](https://x.example)\n"
        "```\n[f](in-code.md)\n```\n[g]: gone-too.md\n"
    )
    assert list(dead_links(page)) == ["gone.md", "page.md#gone", "gone-too.md"]


@pytest.mark.slow  # runs what the pages show
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_shown_output_is_printed_today(page: Path) -> None:
    shown = page.read_text("utf-8")
    assert docs.regenerate(shown) == shown, "run: .venv/bin/python docs/regenerate.py"


@pytest.mark.golden
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_shown_output_of_long_commands_is_printed_today(page: Path) -> None:
    shown = page.read_text("utf-8")
    now = docs.regenerate(shown, golden=True)
    assert now == shown, "run: .venv/bin/python docs/regenerate.py --golden"


PROGRAM = """\
#!{python}
import sys
verb, *rest = sys.argv[1:]
if verb == "write":
    open(rest[0], "w").write("kept for the next command")
elif verb == "read":
    print(open(rest[0]).read())
elif verb == "time":
    print("verdict   stable\\n\\ntook      1.25 s of CPU time")
elif verb == "complain":
    print("one sentence", file=sys.stderr)
sys.exit({{"complain": 2, "fail": 3}}.get(verb, 0))
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A command line that does little, in place of ours."""
    file = tmp_path / "tidegate"
    file.write_text(PROGRAM.format(python=sys.executable))
    file.chmod(0o755)
    return file


def block(*lines: str, mark: str = "") -> str:
    return "\n".join(
        ["before", "", *([mark] if mark else []), "```console", *lines, "```", "after"]
    )


def test_old_output_is_replaced(program: Path) -> None:
    now = docs.regenerate(block("$ tidegate complain 'two words'", "old"), program=program)
    assert now == block("$ tidegate complain 'two words'", "one sentence")


def test_output_that_is_missing_is_filled_in(program: Path) -> None:
    now = docs.regenerate(block("$ tidegate complain"), program=program)
    assert now == block("$ tidegate complain", "one sentence")


def test_commands_of_a_page_share_a_folder(program: Path) -> None:
    old = block("$ tidegate write f", "", "$ tidegate read f", "old", "", "$ make demo", "stays")
    assert docs.regenerate(old, program=program) == block(
        *("$ tidegate write f", "", "$ tidegate read f", "kept for the next command", ""),
        *("$ make demo", "stays"),
    )


def test_another_machine_s_time_is_no_change_but_another_verdict_is(program: Path) -> None:
    there = block("$ tidegate time", "verdict   stable", "", "took      80 ms of CPU time")
    assert docs.regenerate(there, program=program) == there
    wrong = there.replace("stable", "fails")
    assert "took      1.25 s" in docs.regenerate(wrong, program=program)


def test_long_commands_wait_for_golden(program: Path) -> None:
    old = block("$ tidegate complain", "old", mark="<!-- golden -->")
    assert docs.regenerate(old, program=program) == old
    now = docs.regenerate(old, golden=True, program=program)
    assert now == old.replace("\nold\n", "\none sentence\n")


def test_blocks_that_are_not_a_console_stay(program: Path) -> None:
    old = block("$ tidegate complain", "old").replace("console", "text")
    assert docs.regenerate(old, program=program) == old


def test_a_bug_of_ours_is_never_written_down(program: Path) -> None:
    with pytest.raises(RuntimeError, match="tidegate fail met a bug of ours"):
        docs.regenerate(block("$ tidegate fail"), program=program)
