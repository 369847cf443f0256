"""Do the commands shown in the documentation still print what is shown?

A block fenced as `console` holds commands after `$ ` and, below each, what it printed. Those that
start with `tidegate` are run again, in a folder of their own with a copy of `examples`: one folder
for all commands of a page, so that a later one may read what an earlier one wrote. A block right
under the line `<!-- golden -->` takes longer than 20 s and is left to `--golden`.

    .venv/bin/python docs/regenerate.py            write what changed
    .venv/bin/python docs/regenerate.py --golden   the long ones too

`make test` and `make golden` compare without writing.
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TIDEGATE = Path(sys.executable).with_name("tidegate")
FOLDERS = ("docs", "benchmarks", "examples", "tests")
OUR_BUG = 3  # the exit code that no page may show

_BLOCK = re.compile(
    r"(?ms)(?P<golden>^<!-- golden -->\n)?^(?P<fence>`{3,})console\n.*?^(?P=fence)$"
)
_COMMAND = re.compile(
    r"(?m)^\$ tidegate (?P<arguments>.*)\n"
    r"(?P<shown>(?:(?!\$ |```).*\n)*?)(?P<gap>\n?)(?=\$ |```)"
)

# What differs between two machines that found the same. The one place that says so.
_MACHINE_DEPENDENT = [
    (re.compile(r"[0-9][0-9.,]* ?(?:ms|s|min)(?= (?:of )?(?:CPU|wall))"), "(time)"),
]


def normalise(text: str) -> str:
    """The text without what differs from machine to machine."""
    for figure, name in _MACHINE_DEPENDENT:
        text = figure.sub(name, text)
    return text


def pages(root: Path) -> list[Path]:
    """Every page of the project, in a fixed order."""
    return sorted(
        [*root.glob("*.md"), *(p for name in FOLDERS for p in (root / name).rglob("*.md"))]
    )


def regenerate(text: str, *, golden: bool = False, program: Path = TIDEGATE) -> str:
    """The page with its blocks as they print now: the quick ones, or with `golden` all."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if (ROOT / "examples").exists():
            shutil.copytree(ROOT / "examples", folder / "examples")

        def command_now(command: re.Match[str]) -> str:
            printed = run(command["arguments"], folder, program)
            if normalise(printed) == normalise(command["shown"]):
                return command[0]
            return f"$ tidegate {command['arguments']}\n{printed}{command['gap']}"

        def block_now(block: re.Match[str]) -> str:
            left_out = block["golden"] and not golden
            return block[0] if left_out else _COMMAND.sub(command_now, block[0])

        return _BLOCK.sub(block_now, text)


def run(arguments: str, folder: Path, program: Path) -> str:
    """What `tidegate ARGUMENTS` prints, in both streams, on a terminal of 100 columns."""
    answer = subprocess.run(
        [program, *shlex.split(arguments)],
        cwd=folder,
        env=os.environ | {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if answer.returncode == OUR_BUG:
        raise RuntimeError(f"tidegate {arguments} met a bug of ours:\n{answer.stdout}")
    return "".join(f"{line.rstrip()}\n" for line in answer.stdout.rstrip().splitlines())


def main() -> None:
    """Rewrite every page whose blocks have changed, and name it."""
    parser = argparse.ArgumentParser(description="Write anew what the documented commands print.")
    parser.add_argument("--golden", action="store_true", help="run the long commands too")
    golden = parser.parse_args().golden
    for page in pages(ROOT):
        old = page.read_text("utf-8")
        new = regenerate(old, golden=golden)
        if new != old:
            page.write_text(new, "utf-8")
            print(f"{page.relative_to(ROOT)}: written anew")


if __name__ == "__main__":
    main()
