"""Has `docs/cli.md` every command, option and variable that there is, and no other?"""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

from tidegate.cli.main import build_parser

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "cli.md").read_text("utf-8")
CLI = ROOT / "src" / "tidegate" / "cli"
BY_THE_STANDARD_LIBRARY = {"COLUMNS"}


def first_cells(page: str, heading: str) -> set[str]:
    """What stands as code in the first column of the tables right under a heading."""
    section = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return set(re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE))


def options(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Each option as a person writes it: `--seed N`, `FILE`."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            continue
        name = action.option_strings[-1] if action.option_strings else ""
        if action.choices:
            value = "|".join(action.choices)
        else:
            value = "" if action.nargs == 0 else str(action.metavar or action.dest.upper())
        yield f"{name} {value}".strip()


def commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Every command that has no further ones below it, by all its words."""
    found: dict[str, argparse.ArgumentParser] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                below = commands(command)
                found |= {f"{name} {verb}": part for verb, part in below.items()} or {name: command}
    return found


def faults(page: str, parser: argparse.ArgumentParser) -> list[str]:
    there = {"tidegate": set(options(parser))}
    for name, command in commands(parser).items():
        there[f"tidegate {name}"] = set(options(command)) - {"--help"}
    headings = set(re.findall(r"^## (tidegate.*)$", page, re.MULTILINE))
    found = [f"{name} has no section" for name in sorted(there.keys() - headings)]
    found += [f"{name} is no command" for name in sorted(headings - there.keys())]
    for name in sorted(there.keys() & headings):
        told = first_cells(page, name)
        found += [f"{name} {option} is not told" for option in sorted(there[name] - told)]
        found += [f"{name} {option} is no option" for option in sorted(told - there[name])]
    return found


def test_page_and_parser_have_the_same_commands_and_options() -> None:
    assert faults(PAGE, build_parser()) == []


def test_an_option_more_or_less_is_seen() -> None:
    planted = PAGE.replace("| `--seed N` |", "| `--sed N` |", 1)
    planted = planted.replace("## tidegate init", "## Init")
    assert faults(planted, build_parser()) == [
        "tidegate init has no section",
        "tidegate check --seed N is not told",
        "tidegate check --sed N is no option",
    ]


def test_page_and_code_read_the_same_variables() -> None:
    code = "".join(file.read_text("utf-8") for file in CLI.glob("*.py"))
    read = set(re.findall(r"environ(?:\.get\(|\[)\"(\w+)\"", code))
    assert read
    assert first_cells(PAGE, "Environment") == read | BY_THE_STANDARD_LIBRARY
