"""`tidegate status`: what the processes of this host know of their guards."""

import argparse
import json
import time
from typing import TYPE_CHECKING, Any

from tidegate.errors import InputError, nearest
from tidegate.units import SECOND, format_duration, format_share

if TYPE_CHECKING:
    from tidegate.runtime.shared.status import GuardStatus

__all__ = ["add"]


def add(commands: "argparse._SubParsersAction[Any]") -> None:
    """Add the command."""
    parser = commands.add_parser("status", help="show the guards of this host's processes")
    parser.add_argument("name", nargs="?", metavar="NAME", help="one guard (default: all)")
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print one guard or all."""
    from tidegate.runtime.shared import place

    base, now = place.directory(), time.monotonic_ns()
    from tidegate.runtime.shared.status import status
    from tidegate.runtime.shared.table import names

    known = names(base)
    wanted = known if arguments.name is None else [arguments.name]
    try:
        guards = [status(base, name, now) for name in wanted]
    except FileNotFoundError:
        hint = nearest(arguments.name or "", known)
        raise InputError(
            f"no process of this host has used a guard named {arguments.name!r}{hint}"
        ) from None
    if arguments.json:
        print(json.dumps([_document(guard) for guard in guards], indent=2, ensure_ascii=False))
    elif guards:
        print("\n\n".join(_text(guard) for guard in guards))
    else:
        print(f"no process of this user has used a guard since the last boot (in {base})")
    return 0


def _text(guard: "GuardStatus") -> str:
    lines = [f"{guard.name}: {guard.state}, {_processes(guard)}"]
    hold = guard.hold
    if hold is not None:
        until = ""
        if hold.until:
            left = round(hold.until_wall - time.time())
            until = f", for another {format_duration(max(0, left) * SECOND)}"
        lines.append(f"  held by {hold.author}{until}: {hold.reason}")
    retried = f" ({format_share(guard.retries / guard.requests)})" if guard.requests else ""
    lines.append(f"  requests {guard.requests}, retries {guard.retries}{retried},")
    lines[-1] += f" refused {guard.retries_refused}, can retry {guard.retry_tokens:.1f} now"
    if guard.calls:
        lines.append(f"  {guard.failed} of the last {guard.calls} attempts failed")
    if guard.limit:
        lines.append(f"  in flight {guard.inflight}, limit {guard.limit}")
    if guard.alone:
        lines.append(f"  {guard.alone} times a process found no room here and went on alone")
    return "\n".join(lines)


def _processes(guard: "GuardStatus") -> str:
    count = f"{guard.processes} process{'' if guard.processes == 1 else 'es'}"
    if guard.seen is None:
        return count
    ago = format_duration(guard.seen // SECOND * SECOND) if guard.seen >= SECOND else "less than 1s"
    return f"{count}, last call {ago} ago"


def _document(guard: "GuardStatus") -> dict[str, Any]:
    hold = guard.hold
    return {
        "name": guard.name,
        "state": str(guard.state),
        "hold": None
        if hold is None
        else {
            "reason": hold.reason,
            "author": hold.author,
            "since": hold.since_wall,
            "until": hold.until_wall if hold.until else None,
        },
        "processes": guard.processes,
        "requests": guard.requests,
        "retries": guard.retries,
        "retries_refused": guard.retries_refused,
        "retry_tokens": guard.retry_tokens,
        "recent_attempts": guard.calls,
        "recent_failed": guard.failed,
        "in_flight": guard.inflight,
        "limit": guard.limit or None,
        "last_seen_s": None if guard.seen is None else guard.seen / SECOND,
        "alone": guard.alone,
    }
