"""`tidegate spool`: keep records on disk while their sink is sick, and give them back gently."""

import argparse
import contextlib
import logging
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidegate.cli import spool_log
from tidegate.errors import InputError, nearest

if TYPE_CHECKING:
    from tidegate.settings.spool import Spool

__all__ = ["add"]


def add(commands: "argparse._SubParsersAction[Any]") -> None:
    """Add the command and what it can do."""
    parser = commands.add_parser(
        "spool",
        help="keep what must not be lost while its sink is sick, and replay it gently",
        description="A process that takes records over HTTP, acknowledges them when they are on"
        " disk, and gives them to a sink as fast as that can bear.",
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for name, run, says in (
        ("run", run_spool, "run the spool that FILE describes"),
        ("status", run_status, "show its lanes: what waits, why, and how long it will take"),
        ("plan", run_plan, "how long a replay will take, and what must hold for that"),
    ):
        verb = _verb(verbs, name, run, says)
        if name != "run":
            verb.add_argument("--json", action="store_true", help="as JSON")
    hold = _verb(verbs, "hold", run_hold, "send nothing to a lane's sink; records are still taken")
    hold.add_argument("lane", metavar="LANE")
    hold.add_argument("--reason", required=True, help="why; the log and the status say it")
    release = _verb(verbs, "release", run_release, "let a lane go on, through its gate")
    release.add_argument("lane", metavar="LANE")
    spool_log.add(verbs)


def _verb(verbs: Any, name: str, run: Any, says: str) -> argparse.ArgumentParser:
    verb: argparse.ArgumentParser = verbs.add_parser(name, help=says, description=says)
    verb.add_argument("file", type=Path, metavar="FILE", help="a system file with a `spool:`")
    verb.set_defaults(run=run)
    return verb


def settings_of(path: Path) -> "Spool":
    """The spool of a system file."""
    from tidegate.settings.load import load

    spool = load(path).system().spool
    if spool is None:
        raise InputError(
            f"{path} has no `spool:`; write one, as"
            " `spool: {lanes: {events: {to: 'file:events.jsonl'}}}`"
        )
    return spool


def lane_of(spool: "Spool", name: str) -> str:
    """The lane's name, if there is one."""
    if name not in spool.lanes:
        raise InputError(f"there is no lane {name!r}{nearest(name, tuple(spool.lanes))}")
    return name


def width() -> int:
    """Of what is printed."""
    return min(shutil.get_terminal_size((100, 24)).columns, 120) if sys.stdout.isatty() else 100


def color() -> bool:
    """Whether to paint."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def run_spool(arguments: argparse.Namespace) -> int:
    """Run until told to stop."""
    spool = settings_of(arguments.file)
    from tidegate.spooler.serve import serve

    with _logs():
        return serve(spool, arguments.file.resolve().parent, announce=_announce)


@contextlib.contextmanager
def _logs() -> Iterator[None]:
    """What changes goes to standard error, a line each, while the spool runs."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log = logging.getLogger("tidegate")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)


def _announce(line: str) -> None:
    print(line, flush=True)


def run_status(arguments: argparse.Namespace) -> int:
    """Ask the running process and print one screen."""
    spool = settings_of(arguments.file)
    from tidegate.spooler import ask

    status = ask.status(spool, arguments.file.resolve().parent)
    if arguments.json:
        _print_json(status)
        return 0
    from tidegate.report.spool import status_text

    print(status_text(status, width=width(), color=color()), end="")
    return 0


def run_plan(arguments: argparse.Namespace) -> int:
    """Compute it from the file alone. Exit code 1 if no time can be promised."""
    spool = settings_of(arguments.file)
    from tidegate.core.drain import plan

    plans = {
        name: None if lane.fleet is None else plan(lane, lane.fleet)
        for name, lane in spool.lanes.items()
    }
    if arguments.json:
        _print_json({name: found and found._asdict() for name, found in plans.items()})
    else:
        from tidegate.report.spool import plan_text

        print(plan_text(plans, width=width(), color=color()), end="")
    return int(any(found is not None and found.refusal is not None for found in plans.values()))


def run_hold(arguments: argparse.Namespace) -> int:
    """Hold a lane of the running process."""
    spool = settings_of(arguments.file)
    from tidegate.spooler import ask

    lane = lane_of(spool, arguments.lane)
    base = arguments.file.resolve().parent
    ask.command(spool, base, "hold", lane, reason=arguments.reason)
    print(f"{lane} is held until it is released; records are still taken")
    return 0


def run_release(arguments: argparse.Namespace) -> int:
    """Let it go on."""
    spool = settings_of(arguments.file)
    from tidegate.spooler import ask

    lane = lane_of(spool, arguments.lane)
    ask.command(spool, arguments.file.resolve().parent, "release", lane)
    print(f"{lane} goes on as soon as its gate lets it")
    return 0


def _print_json(document: Any) -> None:
    import msgspec

    print(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
