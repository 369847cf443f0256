"""`tidegate check`: a verdict on a system, from its file or from traces."""

import argparse
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

from tidegate.cli.progress import Progress
from tidegate.findings import CheckReport

__all__ = ["add"]


def add(commands: "argparse._SubParsersAction[Any]") -> None:
    """Add the command."""
    parser = commands.add_parser(
        "check",
        help="can this system storm, who falls that need not, what cures it",
        description="Reads a system file and says whether it can storm, who falls that need not,"
        " whether it stays down, and what cures it.",
        epilog="Exit code 0: fine; 1: a finding; 2: bad input; 3: a bug of ours.",
    )
    parser.add_argument("file", type=Path, help="a system file (YAML)")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page with charts")
    parser.add_argument("--seed", type=int, default=1, help="of the first run (default: 1)")
    parser.add_argument(
        "--processes",
        type=int,
        default=None,
        metavar="N",
        help="how many to run in (default: one per core); the answer does not depend on it",
    )
    parser.add_argument(
        "--fail-on", choices=["vulnerable"], help="exit with 1 also for this verdict"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Check, print, and give the exit code."""
    from tidegate.analysis.check import Check
    from tidegate.analysis.runs import Runner
    from tidegate.settings.load import load

    draft = load(arguments.file)
    with Progress(sys.stderr) as progress, Runner(arguments.processes, progress.show) as runner:
        report = Check(
            draft.system(),
            source=str(arguments.file),
            repeat=_repeat(arguments),
            runner=runner,
            seed=arguments.seed,
            fail_on_vulnerable=arguments.fail_on == "vulnerable",
        ).run()
    _print(report, arguments)
    return report.exit_code


def _repeat(arguments: argparse.Namespace) -> str:
    words = ["tidegate", "check", str(arguments.file), "--seed", str(arguments.seed)]
    return shlex.join(words)


def _print(report: CheckReport, arguments: argparse.Namespace) -> None:
    if arguments.html is not None:
        from tidegate.report import files, html

        files.write_atomic(arguments.html, html.render(report))
    if arguments.json:
        from tidegate.report import json

        print(json.render(report))
        return
    from tidegate.report import text

    terminal = sys.stdout.isatty()
    width = min(shutil.get_terminal_size((100, 24)).columns, 120) if terminal else 100
    color = terminal and not os.environ.get("NO_COLOR")
    print(text.render(report, width=width, color=color), end="")
    if arguments.html is not None:
        print(f"charts      {arguments.html}")
