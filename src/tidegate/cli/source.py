"""`tidegate check PATH`: the audit of source code."""

import argparse
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tidegate.errors import InputError
from tidegate.findings import Severity

__all__ = ["LEVELS", "is_source", "run"]

LEVELS: Final[tuple[Severity, ...]] = ("error", "warning", "note")
"""What `--fail-on` takes here, the worst first."""


def is_source(files: list[Path]) -> bool:
    """Whether folders or Python files are named; `InputError` if something else is among them."""
    code = [path for path in files if path.suffix == ".py" or path.is_dir()]
    if code and len(code) < len(files):
        other = next(path for path in files if path not in code)
        raise InputError(
            "expected folders and Python files alone, or a system file, or traces;"
            f" found {code[0]} and {other}"
        )
    return bool(code)


def run(arguments: argparse.Namespace, show: Callable[[str], None]) -> int:
    """Audit, print, and give the exit code."""
    from tidegate.analysis.source.audit import RULES, audit
    from tidegate.report import files, sarif, source_json, source_text

    for option in ("html", "write"):
        if getattr(arguments, option) is not None:
            raise InputError(f"--{option} goes with a system, not with source code")
    wanted = arguments.fail_on or "warning"
    fail_on = next((level for level in LEVELS if level == wanted), None)
    if fail_on is None:
        raise InputError(f"--fail-on {wanted} goes with a system; here: {', '.join(LEVELS)}")
    if arguments.sarif is not None:
        _refuse_overwriting(arguments.sarif, arguments.files)
    report = audit(
        arguments.files,
        fail_on=fail_on,
        progress=lambda done, total: show(f"reading source: {done:,} of {total:,} files"),
    )
    if arguments.json:
        sys.stdout.write(source_json.render(report))
    else:
        terminal = sys.stdout.isatty()
        width = min(max(shutil.get_terminal_size((100, 24)).columns, 40), 120) if terminal else 100
        color = terminal and not os.environ.get("NO_COLOR")
        sys.stdout.write(source_text.render(report, width=width, color=color))
    if arguments.sarif is not None:
        sys.stdout.flush()
        files.write_atomic(arguments.sarif, sarif.render(report, RULES))
        if not arguments.json:
            print(f"{'sarif':10}{arguments.sarif}")
    return report.exit_code


def _refuse_overwriting(target: Path, sources: list[Path]) -> None:
    """No file of source code is ever written, whatever it is called."""
    real = Path(os.path.realpath(target))
    if target.suffix == ".py" or real in {Path(os.path.realpath(path)) for path in sources}:
        raise InputError(f"--sarif {target} would overwrite source code; give it another name")
    if not real.parent.is_dir():
        raise InputError(f"cannot write {target}: there is no folder {real.parent}")
