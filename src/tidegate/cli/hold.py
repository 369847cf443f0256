"""`tidegate hold` and `tidegate release`: the switch that takes a dependency out, and back in."""

import argparse
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tidegate.errors import InputError, nearest
from tidegate.units import SECOND, format_duration, parse_duration

if TYPE_CHECKING:
    from tidegate.runtime.shared.status import GuardStatus

__all__ = ["add"]


def add(commands: "argparse._SubParsersAction[Any]") -> None:
    """Add both commands."""
    hold = commands.add_parser("hold", help="let nobody on this host call a dependency any more")
    hold.add_argument("name", metavar="NAME", help="the guard's name, as in guard(NAME)")
    hold.add_argument("--reason", required=True, help="why; callers and the log are told")
    hold.add_argument(
        "--for", dest="duration", metavar="DURATION", help="until then, as 10min; else for good"
    )
    hold.add_argument("--author", help="who holds it (default: the user)")
    hold.set_defaults(run=run_hold)
    release = commands.add_parser("release", help="let everybody call it again, with care")
    release.add_argument("name", metavar="NAME", help="the guard's name")
    release.add_argument("--author", help="who releases it (default: the user)")
    release.set_defaults(run=run_release)


def run_hold(arguments: argparse.Namespace) -> int:
    """Hold it, and say who is reached."""
    from tidegate.runtime.shared import hold as holds
    from tidegate.runtime.shared.status import status
    from tidegate.runtime.shared.table import names

    duration = None if arguments.duration is None else _duration(arguments.duration)
    base, now = holds.directory(), time.monotonic_ns()
    known = names(base)
    held = holds.hold(
        base,
        arguments.name,
        reason=arguments.reason,
        author=arguments.author or holds.author(),
        duration=duration,
        now=now,
        wall=time.time(),
    )
    until = "until it is released"
    if held.until:
        clock = datetime.fromtimestamp(held.until_wall, UTC).astimezone()
        until = f"until {clock:%Y-%m-%d %H:%M:%S %Z} ({format_duration(held.until - now)})"
    print(f"{arguments.name} is held {until}; {_reached(status(base, arguments.name, now))}")
    if arguments.name not in known:
        hint = nearest(arguments.name, known)
        print(f"no process of this host has used a guard of this name{hint}")
    return 0


def _reached(seen: "GuardStatus") -> str:
    if not seen.processes:
        return "no process has it now, and whichever starts to use it will obey"
    if seen.processes == 1:
        return "1 process has it and obeys at its next call"
    return f"{seen.processes} processes have it and obey, each at its next call"


def run_release(arguments: argparse.Namespace) -> int:
    """Release it."""
    from tidegate.runtime.shared import hold as holds

    held = holds.release(
        holds.directory(),
        arguments.name,
        author=arguments.author or holds.author(),
        now=time.monotonic_ns(),
        wall=time.time(),
    )
    lasted = format_duration(round(time.time() - held.since_wall) * SECOND)
    print(
        f"{arguments.name} is released after {lasted}; it was held by {held.author}:"
        f" {held.reason}\ncalls come back by probes first, then as a ramp, if it has a breaker"
    )
    return 0


def _duration(text: str) -> int:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise InputError(f"--for: {error}") from None
