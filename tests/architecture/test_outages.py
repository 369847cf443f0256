"""Does `docs/outages.md`, the contract with the reader, name only what exists and is proved?"""

import argparse
import ast
import importlib
import importlib.util
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "outages.md"

ACTIONS = {"S0": 9, "S1": 7, "S2": 6, "S3": 5, "S4": 6}
IMPLIED = {"S0.9", "S2.6", "S3.4", "S3.5"}
CODE = re.compile(r"`([^`]+)`")


class Row(NamedTuple):
    number: str
    action: str
    answer: str
    proof: str
    state: str


def rows(text: str) -> list[Row]:
    """The rows of every table of actions; a row with another number of cells is an error."""
    lines = (line for line in text.splitlines() if re.match(r"\| \(?S\d", line))
    return [Row(*(cell.strip() for cell in line.strip("|").split("|"))) for line in lines]


def figures(text: str) -> list[list[str]]:
    """The rows of every table of figures."""
    cells = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    return [row for row in cells if len(row) == 3 and row[0] not in ("figure", "---")]


def named(text: str) -> list[str]:
    return CODE.findall(text)


@cache
def commands() -> dict[str, argparse.ArgumentParser]:
    """Every command that the parser of the command line knows; none while there is no parser."""
    if importlib.util.find_spec("tidegate.cli.main") is None:
        return {}
    parser = importlib.import_module("tidegate.cli.main").build_parser()
    groups = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    return {name: command for group in groups for name, command in group.choices.items()}


def command_exists(text: str) -> bool:
    """Whether `tidegate check --json` is a command with these options."""
    _, name, *rest = text.split()
    options = [word for word in rest if word.startswith("--")]
    return name in commands() and set(options) <= set(commands()[name]._option_string_actions)


def api_exists(text: str) -> bool:
    """Whether `tidegate.a.b.Name.method` leads to something."""
    parts = re.split(r"[(\s]", text)[0].split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[cut:]:
            if not hasattr(found, attribute):
                return False
            found = getattr(found, attribute)
        return True
    return False


def test_exists(text: str) -> bool:
    """Whether `tests/x.py::name` is a file with such a test."""
    path, _, name = text.partition("::")
    if not (ROOT / path).is_file():
        return False
    if not name:
        return True
    tree = ast.parse((ROOT / path).read_text())
    defined = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    return name.startswith("test_") and name in defined


test_exists.__test__ = False  # type: ignore[attr-defined]  # its name is about tests, it is none


def missing(text: str) -> list[str]:
    """What stands in code font and does not exist: commands, Python names, tests and files."""
    judges = {
        "tidegate ": command_exists,
        "tidegate.": api_exists,
        "tests/": test_exists,
        "examples/": lambda path: (ROOT / path).exists(),
    }
    return [
        item
        for item in named(text)
        for start, exists in judges.items()
        if item.startswith(start) and not exists(item)
    ]


def faults(text: str) -> list[str]:
    """Everything that is wrong with the page, one sentence each."""
    found = [f"{item} does not exist" for item in missing(text)]
    for row in rows(text):
        proofs = [item for item in named(row.proof) if item.startswith("tests/")]
        answers = [i for i in named(row.answer) if i.startswith(("tidegate ", "tidegate."))]
        if row.state not in ("works", "not yet") and not re.match(r"not ours: \w", row.state):
            found.append(f"{row.number}: {row.state!r} is not a state")
        if row.state == "works" and not proofs:
            found.append(f"{row.number} works, but no test proves it")
        if row.state == "works" and not answers:
            found.append(f"{row.number} works, but no command or name answers it")
    for figure, mark, proof in figures(text):
        if mark not in ("stated", "model"):
            found.append(f"{figure}: {mark!r} is not a mark")
        if mark == "model" and not any(i.startswith("tests/") for i in named(proof)):
            found.append(f"{figure}: a model figure that no test yields")
    return found


def test_every_action_of_the_five_reports_is_there_in_order() -> None:
    expected = [f"{case}.{n}" for case, count in ACTIONS.items() for n in range(1, count + 1)]
    marked = [f"({number})" if number in IMPLIED else number for number in expected]
    assert [row.number for row in rows(PAGE.read_text())] == marked


def test_the_page_names_only_what_exists_and_proves_what_works() -> None:
    assert faults(PAGE.read_text()) == []


GOOD = (
    "| S9.1 | do it | `tidegate.units.parse_rate` | `tests/architecture/test_outages.py` | works |"
)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("| S9.1 | do it | `tidegate nothing` | | not yet |", "tidegate nothing does not exist"),
        ("| S9.1 | do it | `tidegate.units.no` | | not yet |", "tidegate.units.no does not exist"),
        ("| S9.1 | do it | `tidegate.no.x` | | not yet |", "tidegate.no.x does not exist"),
        ("| S9.1 | do it | x | `tests/no.py` | not yet |", "tests/no.py does not exist"),
        ("| S9.1 | do it | `examples/no.yaml` | | not yet |", "examples/no.yaml does not exist"),
        ("| S9.1 | do it | x | | planned |", "S9.1: 'planned' is not a state"),
        ("| S9.1 | do it | x | | not ours |", "S9.1: 'not ours' is not a state"),
        (
            "| S9.1 | do it | `tidegate.units.parse_rate` | | works |",
            "S9.1 works, but no test proves it",
        ),
        (
            "| S9.1 | do it | x | `tests/architecture/test_outages.py` | works |",
            "S9.1 works, but no command or name answers it",
        ),
        ("| 5 min | fact | the report |", "5 min: 'fact' is not a mark"),
        ("| 5 min | model | a guess |", "5 min: a model figure that no test yields"),
    ],
)
def test_each_fault_is_seen(line: str, complaint: str) -> None:
    assert faults(GOOD) == []
    assert faults(line) == [complaint]


def test_a_test_name_that_is_not_in_its_file_is_seen() -> None:
    here = "tests/architecture/test_outages.py"
    assert test_exists(f"{here}::test_each_fault_is_seen")
    assert not test_exists(f"{here}::test_that_nobody_wrote")
    assert not test_exists(f"{here}::faults")
