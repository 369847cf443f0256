"""`tidegate lab storm`: a storm on this machine, predicted, live, and stopped by a guard."""

import argparse
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tidegate.cli.progress import Progress
from tidegate.errors import InputError, missing_extra

if TYPE_CHECKING:
    from tidegate.lab.findings import StormReport
    from tidegate.lab.storm import Storm

__all__ = ["add"]

_SECONDS: Final = (5, 600)


def add(commands: "argparse._SubParsersAction[Any]") -> None:
    """Add the command."""
    parser = commands.add_parser(
        "lab",
        help="raise a storm on this machine, and stop it with a guard",
        description="Starts the service of a system file as a process on this machine, loads it"
        " as its client does, slows it down, and measures: without a guard, then with one, beside"
        " what the simulator says. All of it stays on the loopback and ends with the command.",
        epilog="Exit code 0: the guard holds; 1: it does not; 2: bad input; 3: a bug of ours;"
        " 130: interrupted.",
    )
    parser.add_argument("what", choices=["storm"], help="what to raise")
    parser.add_argument(
        "file",
        nargs="?",
        type=Path,
        metavar="FILE",
        help="a system file of one client, one service, one slowdown or surge (default: ours)",
    )
    parser.add_argument(
        "--seconds", type=_seconds, metavar="N", help="how long the trigger lasts, live and told"
    )
    parser.add_argument("--seed", type=_seed, default=1, metavar="N", help="of its luck (1)")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page with the picture")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Predict, raise, measure, print, and give the exit code."""
    _refuse_a_lost_page(arguments.html, arguments.file)
    try:
        from tidegate.lab.show import show
    except ModuleNotFoundError as error:
        raise InputError(str(missing_extra(error, "lab", "the lab"))) from None
    storm, source = _story(arguments)
    with Progress(sys.stderr) as progress:
        report = show(
            storm,
            source=source,
            seed=arguments.seed,
            repeat=_repeat(arguments),
            progress=progress.show,
        )
    _print(report, arguments)
    return report.exit_code


def _story(arguments: argparse.Namespace) -> "tuple[Storm, str]":
    from tidegate.lab.show import default_story
    from tidegate.lab.storm import story
    from tidegate.settings.load import load, loads
    from tidegate.units import SECOND

    lasts = None if arguments.seconds is None else arguments.seconds * SECOND
    if arguments.file is None:
        return story(loads(default_story(), "storm.yaml").system(), lasts=lasts), "our own storm"
    return story(load(arguments.file).system(), lasts=lasts), str(arguments.file)


def _refuse_a_lost_page(page: Path | None, file: Path | None) -> None:
    """Before a minute has been spent: a page needs a folder, and must not replace what is read."""
    if page is None:
        return
    if file is not None and page.exists() and file.exists() and page.samefile(file):
        raise InputError(f"--html {page} would overwrite the input {file}; give it another name")
    if not page.resolve().parent.is_dir():
        raise InputError(f"cannot write {page}: there is no folder {page.resolve().parent}")


def _seconds(text: str) -> int:
    low, high = _SECONDS
    if not text.isdecimal() or not low <= int(text[:6]) <= high:
        raise argparse.ArgumentTypeError(f"expected a number from {low} to {high}, found {text!r}")
    return int(text)


def _seed(text: str) -> int:
    if not text.isdecimal() or len(text) > 18:
        raise argparse.ArgumentTypeError(f"expected a whole number from 0, found {text!r}")
    return int(text)


def _repeat(arguments: argparse.Namespace) -> str:
    words = ["tidegate", "lab", arguments.what]
    if arguments.file is not None:
        words.append(str(arguments.file))
    if arguments.seconds is not None:
        words += ["--seconds", str(arguments.seconds)]
    return shlex.join([*words, "--seed", str(arguments.seed)])


def _print(report: "StormReport", arguments: argparse.Namespace) -> None:
    """The report first: a page that cannot be written is no reason to lose it."""
    if arguments.json:
        from tidegate.report import json

        sys.stdout.write(json.render(report))
    else:
        from tidegate.report import storm

        terminal = sys.stdout.isatty()
        width = min(shutil.get_terminal_size((100, 24)).columns, 120) if terminal else 100
        color = terminal and not os.environ.get("NO_COLOR")
        print(storm.render_text(report, width=width, color=color), end="")
    if arguments.html is not None:
        from tidegate.report import files, storm

        sys.stdout.flush()
        files.write_atomic(arguments.html, storm.render_html(report))
        if not arguments.json:
            print(f"{'picture':12}{arguments.html}")
