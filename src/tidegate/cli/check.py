"""`tidegate check`: a verdict on a system, from its file or from traces, or on its source code."""

import argparse
import os
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tidegate.cli import source as source_code
from tidegate.cli.progress import Progress
from tidegate.errors import InputError
from tidegate.findings import CheckReport

if TYPE_CHECKING:
    from tidegate.settings.load import Draft

__all__ = ["add"]

_TRACES = (".json", ".jsonl", ".ndjson", ".gz")


class _Source(NamedTuple):
    """What is checked, and what is to be said of where it came from."""

    draft: "Draft"
    name: str
    notes: tuple[str, ...] = ()
    thin: tuple[str, ...] = ()
    judged: bool = True


def add(commands: "argparse._SubParsersAction[Any]") -> None:
    """Add the command."""
    parser = commands.add_parser(
        "check",
        help="can this system storm, who falls that need not, what cures it",
        description="Reads a system file, or the traces of a system that nobody has described, and"
        " says whether it can storm, who falls that need not, whether it stays down, and what"
        " cures it; of a spool's lanes, whom a replay hurts and when it is done. Given Python"
        " files or folders of them, it says which retries, timeouts and breakers in them will"
        " hurt.",
        epilog="Exit code 0: fine; 1: a finding; 2: bad input; 3: a bug of ours; 130: interrupted"
        " before anything was found.",
    )
    parser.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="a system file (YAML), or traces: OTLP/JSON or Jaeger JSON, also gzipped; or source"
        " code: Python files and folders",
    )
    parser.add_argument(
        "--write", type=Path, metavar="FILE", help="write the system that the traces show"
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page with charts")
    parser.add_argument(
        "--sarif", type=Path, metavar="FILE", help="of source code: write the findings as SARIF"
    )
    parser.add_argument(
        "--seed", type=_seed, default=1, metavar="N", help="of the first run (default: 1)"
    )
    parser.add_argument(
        "--processes",
        type=_processes,
        default=None,
        metavar="N",
        help="how many to run in (default: one per core); the answer does not depend on it",
    )
    parser.add_argument(
        "--fail-on",
        type=_level,
        metavar="LEVEL",
        help="vulnerable: exit with 1 also for that; of source code: error, warning or note",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Check, print, and give the exit code."""
    if source_code.is_source(arguments.files):
        with Progress(sys.stderr) as progress:
            return source_code.run(arguments, progress.show)
    if arguments.sarif is not None:
        raise InputError("--sarif goes with source code: folders and Python files")
    if arguments.fail_on in source_code.LEVELS:
        raise InputError(f"--fail-on {arguments.fail_on} goes with source code; here: vulnerable")
    from tidegate.analysis.check import Check
    from tidegate.analysis.runs import Runner

    _refuse_overwriting(arguments)
    with Progress(sys.stderr) as progress:
        source = _read(arguments, progress.show)
        with Runner(arguments.processes, progress.show) as runner:
            report = Check(
                source.draft,
                source=source.name,
                repeat=_repeat(arguments),
                runner=runner,
                seed=arguments.seed,
                fail_on_vulnerable=arguments.fail_on == "vulnerable",
                notes=source.notes,
                thin=source.thin,
                judged=source.judged,
            ).run()
    _print(report, arguments)
    return report.exit_code


def _refuse_overwriting(arguments: argparse.Namespace) -> None:
    """Nothing that is read may be written, and nothing twice; a page needs a folder to go to."""
    taken = {os.path.realpath(path): f"the input {path}" for path in arguments.files}
    for option, path in (("--write", arguments.write), ("--html", arguments.html)):
        if path is None:
            continue
        real = os.path.realpath(path)
        same = taken.get(real) or _same_file(path, arguments.files)
        if same is not None:
            raise InputError(f"{option} {path} would overwrite {same}; give it another name")
        taken[real] = f"what {option} writes"
        folder = os.path.dirname(real)  # noqa: PTH120 - of the resolved text
        if not os.path.isdir(folder):  # noqa: PTH112
            raise InputError(f"cannot write {path}: there is no folder {folder}")


def _same_file(path: Path, files: list[Path]) -> str | None:
    """The input that `path` is another name of (a hard link); None if there is none."""
    for file in files:
        if path.exists() and file.exists() and path.samefile(file):
            return f"the input {file}"
    return None


def _read(arguments: argparse.Namespace, show: Callable[[str], None]) -> _Source:
    files: list[Path] = arguments.files
    traces = [path for path in files if path.suffix.lower() in _TRACES]
    if traces and len(traces) == len(files):
        return _read_traces(files, arguments.write, show)
    if arguments.write is not None:
        raise InputError(f"--write goes with traces ({', '.join(_TRACES)}), not with {files[0]}")
    if len(files) > 1:
        raise InputError(
            f"expected one system file, or traces ({', '.join(_TRACES)}) alone,"
            f" found {len(files)} files: {files[0]}, {files[1]}"
        )
    from tidegate.settings.load import load

    return _Source(load(files[0]), str(files[0]))


def _read_traces(files: list[Path], write: Path | None, show: Callable[[str], None]) -> _Source:
    from tidegate.analysis.infer import infer
    from tidegate.report import files as output
    from tidegate.settings.load import loads

    def progress(done: int, total: int) -> None:
        show(f"reading traces: {done / max(total, 1):.0%} of {total / 1e6:,.0f} MB")

    found = infer(files, progress=progress)
    text = found.text()
    name = f"{len(files)} trace files" if len(files) > 1 else str(files[0])
    if write is not None:
        output.write_atomic(write, text)
        name = str(write)
    odd = ", ".join(f"{count} {kind}" for kind, count in sorted(found.oddities.items()))
    read = f"read from {found.spans:,} spans in {found.traces:,} traces"
    notes = (read + (f"; odd: {odd}" if odd else ""), *found.notes)
    return _Source(loads(text, name), name, notes, found.thin.says, found.thin.judged)


def _level(text: str) -> str:
    known = ("vulnerable", *source_code.LEVELS)
    if text not in known:
        raise argparse.ArgumentTypeError(f"expected one of {', '.join(known)}, found {text!r}")
    return text


def _seed(text: str) -> int:
    if not text.isdecimal() or len(text) > 18:
        raise argparse.ArgumentTypeError(f"expected a whole number from 0, found {text!r}")
    return int(text)


def _processes(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text[:6]) <= 256:
        raise argparse.ArgumentTypeError(f"expected a number from 1 to 256, found {text!r}")
    return int(text)


def _repeat(arguments: argparse.Namespace) -> str:
    words = ["tidegate", "check", *map(str, arguments.files), "--seed", str(arguments.seed)]
    if arguments.fail_on is not None:
        words += ["--fail-on", arguments.fail_on]
    return shlex.join(words)


def _print(report: CheckReport, arguments: argparse.Namespace) -> None:
    """The report first: it may have taken minutes, and a page that cannot be written is no reason
    to lose it.
    """
    _print_report(report, arguments)
    if arguments.html is not None:
        from tidegate.report import files, html

        sys.stdout.flush()
        files.write_atomic(arguments.html, html.render(report))
    if not arguments.json:
        for what, path in (("charts", arguments.html), ("system", arguments.write)):
            if path is not None:
                print(f"{what:12}{path}")


def _print_report(report: CheckReport, arguments: argparse.Namespace) -> None:
    if arguments.json:
        from tidegate.report import json

        sys.stdout.write(json.render(report))
        return
    from tidegate.report import text

    terminal = sys.stdout.isatty()
    width = min(shutil.get_terminal_size((100, 24)).columns, 120) if terminal else 100
    color = terminal and not os.environ.get("NO_COLOR")
    print(text.render(report, width=width, color=color), end="")
