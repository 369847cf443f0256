"""`tidegate hold` and `tidegate release`: the switch that takes a dependency out, and back in."""

import argparse
import os
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tidegate.errors import InputError, nearest
from tidegate.units import SECOND, format_duration, parse_duration

if TYPE_CHECKING:
    from tidegate.runtime.shared.status import GuardStatus
    from tidegate.runtime.shared.store import Command, Store

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
    from tidegate.runtime.shared import place

    base, now, wall = place.directory(), time.monotonic_ns(), time.time()
    from tidegate.runtime.shared import hold as holds
    from tidegate.runtime.shared.status import status
    from tidegate.runtime.shared.store import Command
    from tidegate.runtime.shared.table import names

    name, author = arguments.name, arguments.author or holds.author()
    duration = None if arguments.duration is None else _duration(arguments.duration)
    store, number = _others()
    known = names(base)
    held = holds.hold(
        base,
        name,
        reason=arguments.reason,
        author=author,
        duration=duration,
        now=now,
        wall=wall,
        command=number,
    )
    until = "until it is released"
    if held.until:
        clock = datetime.fromtimestamp(held.until_wall, UTC).astimezone()
        until = f"until {clock:%Y-%m-%d %H:%M:%S %Z} ({format_duration(held.until - now)})"
    print(f"{name} is held {until}; {_reached(status(base, name, now))}")
    if name not in known:
        print(f"no process of this host has used a guard of this name{nearest(name, known)}")
    if store is not None:
        command = Command(number, held=True, reason=held.reason, author=author, since_wall=wall)
        _tell(store, name, command, duration)
        print("other hosts are told")
    return 0


def _reached(seen: "GuardStatus") -> str:
    if not seen.processes:
        return "no process has it now, and whichever starts to use it will obey"
    if seen.processes == 1:
        return "1 process has it and obeys at its next call"
    return f"{seen.processes} processes have it and obey, each at its next call"


def run_release(arguments: argparse.Namespace) -> int:
    """Release it."""
    from tidegate.runtime.shared import place

    base, now, wall = place.directory(), time.monotonic_ns(), time.time()
    from tidegate.runtime.shared import hold as holds
    from tidegate.runtime.shared.store import Command

    name, author = arguments.name, arguments.author or holds.author()
    store, number = _others()
    elsewhere = None if store is None else _last(store, name)
    try:
        held = holds.release(base, name, author=author, now=now, wall=wall, command=number)
    except InputError:
        if elsewhere is None or not elsewhere.held:
            raise
        print(f"{name} is not held on this host")
    else:
        lasted = format_duration(round(max(0, wall - held.since_wall)) * SECOND)
        print(f"{name} is released after {lasted}; held by {held.author}: {held.reason}")
        print("calls come back by probes first, then as a ramp, if it has a breaker")
    if store is not None:
        reason = "released" if elsewhere is None else elsewhere.reason
        command = Command(number, held=False, reason=reason, author=author, since_wall=wall)
        _tell(store, name, command, None)
        print("other hosts are told")
    return 0


def _duration(text: str) -> int:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise InputError(f"--for: {error}") from None


# Other hosts.


def _others() -> "tuple[Store | None, int]":
    """The server that hosts share, if there is one, and a number for a command.

    Its address may hold a password: it comes from the environment, since everybody on the host can
    read the arguments of a command.
    """
    url = os.environ.get("TIDEGATE_VALKEY")
    if not url:
        return None, 0
    from secrets import randbits

    from tidegate.runtime.shared.store import open_store

    return open_store(url), randbits(61) + 1


def _last(store: "Store", name: str) -> "Command | None":
    from tidegate.runtime.shared.store import StoreAwayError

    try:
        return store.last(name)
    except StoreAwayError:
        return None  # it is said when it cannot be told


def _tell(store: "Store", name: str, command: "Command", duration: int | None) -> None:
    from tidegate.runtime.shared.store import StoreAwayError

    try:
        store.send(name, command, duration)
    except StoreAwayError as error:
        done = "held" if command.held else "released"
        raise InputError(
            f"{name} is {done} on this host, and other hosts could not be told: {error}"
        ) from None
