"""Who may import whom: every contract holds for the tree, and fails on a planted breach.

A contract that nothing can break proves nothing. So the tree is copied, one breach of each kind is
planted in the copy, and the linters must name every one of them.
"""

import os
import random
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
OUTSIDE = ("time", "datetime", "threading", "asyncio", "socket", "logging")

UPWARDS = [
    ("report/planted.py", "tidegate.cli"),
    ("analysis/planted.py", "tidegate.report"),
    ("findings.py", "tidegate.analysis"),
    ("sim/planted.py", "tidegate.findings"),
    ("sim/planted.py", "tidegate.runtime"),
    ("runtime/planted.py", "tidegate.sim"),
    ("core/planted.py", "tidegate.sim"),
    ("settings/planted.py", "tidegate.core"),
    ("units.py", "tidegate.settings"),
    ("errors.py", "tidegate.settings"),
]
FINDINGS_RUN = [("findings.py", "tidegate.core"), ("findings.py", "tidegate.sim")]
KNOWING = [(f"{layer}/planted.py", name) for layer in ("core", "sim") for name in OUTSIDE]
THROUGH = [("core/through.py", "tidegate.settings.clock"), ("settings/clock.py", "time")]
UNPLACED = "unplaced"


def copy_of_the_tree(to: Path) -> Path:
    """The sources with their configuration, free to be broken."""
    shutil.copy(ROOT / "pyproject.toml", to)
    skip = shutil.ignore_patterns("__pycache__", "*.pyc")
    shutil.copytree(ROOT / "src", to / "src", ignore=skip)
    return to


def plant(tree: Path, where: str, line: str) -> None:
    file = tree / "src/tidegate" / where
    if not file.parent.exists():
        file.parent.mkdir()
        (file.parent / "__init__.py").touch()
    with file.open("a") as planted:
        planted.write(f"\n{line}\n")


def lint_imports(tree: Path) -> tuple[int, str]:
    env = os.environ | {"PYTHONPATH": str(tree / "src"), "COLUMNS": "200", "NO_COLOR": "1"}
    command = [str(BIN / "lint-imports"), "--no-cache"]
    run = subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True, check=False)
    return run.returncode, run.stdout + run.stderr


def ruff(tree: Path) -> tuple[int, str]:
    command = [str(BIN / "ruff"), "check", "--no-cache", "--output-format=concise", "src"]
    run = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    return run.returncode, run.stdout + run.stderr


@pytest.fixture(scope="module")
def breached(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the import linter says of a tree with every breach in it."""
    tree = copy_of_the_tree(tmp_path_factory.mktemp("imports"))
    for where, name in [*UPWARDS, *FINDINGS_RUN, *KNOWING, *THROUGH]:
        plant(tree, where, f"import {name}")
    plant(tree, f"{UNPLACED}.py", '"""A module without a row."""')
    code, said = lint_imports(tree)
    assert code == 1, said
    return said


def chain(where: str, name: str) -> str:
    module = "tidegate." + where.removesuffix(".py").replace("/", ".")
    return f"{module} -> {name} (l."


def test_every_contract_holds(tmp_path: Path) -> None:
    code, said = lint_imports(copy_of_the_tree(tmp_path))
    assert code == 0, said


@pytest.mark.parametrize(("where", "name"), [*UPWARDS, *FINDINGS_RUN, *KNOWING])
def test_a_planted_import_is_named(breached: str, where: str, name: str) -> None:
    assert chain(where, name) in breached


def test_a_clock_behind_another_module_is_found(breached: str) -> None:
    (where, through), (_, name) = THROUGH
    assert chain(where, through) in breached
    assert f"{through} -> {name} (l." in breached


def test_a_module_without_a_row_is_named(breached: str) -> None:
    assert UNPLACED in breached


def bans() -> dict[str, str]:
    config = tomllib.loads((ROOT / "src/tidegate/core/ruff.toml").read_text())
    table = config["lint"]["flake8-tidy-imports"]["banned-api"]
    return {name: ban["msg"] for name, ban in table.items()}


def test_nothing_that_must_stay_outside_is_forgotten() -> None:
    global_luck = {f"random.{name}" for name in random.__all__ if name != "Random"}
    assert bans().keys() >= {*OUTSIDE, *global_luck}


@pytest.fixture(scope="module", params=["core", "sim"])
def banned(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What ruff says of a folder that uses everything banned, and one seeded generator."""
    tree = copy_of_the_tree(tmp_path_factory.mktemp("bans"))
    used = [name if name.startswith("random.") else f"import {name}" for name in bans()]
    where = f"{request.param}/planted.py"
    plant(tree, where, "\n".join(["import random", *used, "LUCK = random.Random(7)"]))
    code, said = ruff(tree)
    assert code == 1, said
    return "\n".join(line for line in said.splitlines() if where in line)


def test_every_ban_says_what_to_do_instead(banned: str) -> None:
    for name, instead in bans().items():
        assert f"TID251 `{name}` is banned: {instead}" in banned


def test_a_seeded_generator_is_welcome(banned: str) -> None:
    assert banned.count("TID251") == len(bans())
