"""How does a person take a dependency out of all processes of a host, and who is told of it?

A hold is written into the guard's table; each process that calls finds it within a tenth of a
second, and one that does not call has nobody to refuse. When it ends is an instant of the monotonic
clock, so that no step of the wall clock ends it early or late; the wall times are for people.

Each hold and release leaves a line in `audit.jsonl`, in the same directory: when, what, which
guard, why, who. The file is the user's own and bounded; its last megabyte is kept.
"""

import fcntl
import json
import os
import pwd
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tidegate.errors import InputError, nearest
from tidegate.runtime.shared import place
from tidegate.runtime.shared.store import Command
from tidegate.runtime.shared.table import Hold, Table, names
from tidegate.units import DAY, SECOND, Duration, Instant

__all__ = ["AUDIT", "author", "hold", "hold_in_force", "obey", "release"]

AUDIT: Final = "audit.jsonl"

_AUDIT_MAX: Final = 512 * 1024  # bytes; then it is moved aside, over the one moved aside before
_TEXT_MAX: Final = 200  # characters of a reason or a name: a line of a log
_FOR_MAX: Final = 365 * DAY


def author() -> str:
    """Who is at the keyboard, as far as the system knows: behind `sudo`, the one who used it."""
    with suppress(KeyError):
        return os.environ.get("SUDO_USER") or pwd.getpwuid(os.geteuid()).pw_name
    return f"user {os.geteuid()}"


def hold(
    base: Path,
    name: str,
    *,
    reason: str,
    author: str,
    duration: Duration | None,
    now: Instant,
    wall: float,
    command: int = 0,
) -> Hold:
    """Hold a guard open in every process of the host until `duration` is over or it is released.

    `now` is the monotonic clock, `wall` the time in seconds since 1970. A guard that nobody has
    used yet is held as well, as soon as somebody does. `command` is the number under which other
    hosts are told. Raises InputError.
    """
    place.check_name(name)
    for what, text in (("reason", reason), ("author", author)):
        if not 0 < len(text) <= _TEXT_MAX or not text.isprintable():
            raise InputError(f"the {what} is 1 to {_TEXT_MAX} printable characters, not {text!r}")
    if duration is not None and not 0 < duration <= _FOR_MAX:
        raise InputError("a guard is held for more than nothing and at most 365d")
    made = _made(reason, author, duration, now, wall, since_wall=wall)
    table = Table.open(base, name)
    table.write_hold(made, command)
    table.close()
    _audit(base, "hold", name, made, author, wall)
    return made


def _made(
    reason: str,
    author: str,
    duration: Duration | None,
    now: Instant,
    wall: float,
    *,
    since_wall: float,
) -> Hold:
    until, until_wall = 0, 0.0
    if duration is not None:
        until, until_wall = now + duration, wall + duration / SECOND
    return Hold(reason, author, until, since_wall, until_wall)


def release(
    base: Path, name: str, *, author: str, now: Instant, wall: float, command: int = 0
) -> Hold:
    """Release a guard; the answer is the hold that was. InputError if it is not held."""
    place.check_name(name)
    try:
        table = Table.open(base, name, create=False)
    except FileNotFoundError:
        raise InputError(f"{name!r} is not held{nearest(name, names(base))}") from None
    held = hold_in_force(table, now)
    if held is None:
        others = [other for other in names(base) if _is_held(base, other, now)]
        raise InputError(f"{name!r} is not held{nearest(name, others)}")
    table.write_hold(None, command)
    table.close()
    _audit(base, "release", name, held, author, wall)
    return held


def obey(
    table: Table, command: Command, left: Duration | None, *, now: Instant, wall: float
) -> None:
    """Do on this host what was commanded on another; `left` is how long a hold still has."""
    before = hold_in_force(table, now)
    if command.held:
        made = _made(command.reason, command.author, left, now, wall, since_wall=command.since_wall)
        table.write_hold(made, command.number)
        _audit(table.directory, "hold", table.name, made, command.author, wall)
        return
    table.write_hold(None, command.number)
    if before is not None:
        _audit(table.directory, "release", table.name, before, command.author, wall)


def hold_in_force(table: Table, now: Instant) -> Hold | None:
    """The hold of this table, if its time is not over."""
    held = table.hold()
    return held if held is not None and not (held.until and now >= held.until) else None


def _is_held(base: Path, name: str, now: Instant) -> bool:
    try:
        return hold_in_force(Table.open(base, name, create=False), now) is not None
    except (InputError, FileNotFoundError):
        return False


def _audit(base: Path, what: str, name: str, held: Hold, who: str, wall: float) -> None:
    """One line, in one write, so that two commands at once do not mix."""
    line = {
        "at": _iso(wall),
        "what": what,
        "guard": name,
        "reason": held.reason,
        "author": who,
        "until": _iso(held.until_wall) if held.until else None,
        "uid": os.getuid(),
    }
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(base / AUDIT, flags, 0o600)
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX)
            if os.fstat(fd).st_size > _AUDIT_MAX:
                (base / AUDIT).replace(base / f"{AUDIT}.1")
                os.close(fd)
                fd = os.open(base / AUDIT, flags, 0o600)
            os.write(fd, json.dumps(line, ensure_ascii=False).encode() + b"\n")
        finally:
            os.close(fd)
    except OSError as error:
        raise InputError(
            f"{name!r} is {'held' if what == 'hold' else 'released'}, but {base / AUDIT} cannot be"
            f" written: {error.strerror}"
        ) from None


def _iso(wall: float) -> str:
    return datetime.fromtimestamp(wall, UTC).isoformat(timespec="seconds")
