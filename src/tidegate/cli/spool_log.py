"""`tidegate spool check`, `repair` and `dump`: what a person does with a lane's log itself."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidegate.spooler.log.codec import Codec
    from tidegate.spooler.log.inspect import Checked, Trouble

__all__ = ["add"]

_SHOWN = 20


def add(verbs: Any) -> None:
    """Add what works on a lane's directory, whether a spool runs on it or not."""
    check = _tool(verbs, "check", run_check, "read a lane's log from end to end; changes nothing")
    check.add_argument("--json", action="store_true", help="as JSON")
    repair = _tool(verbs, "repair", run_repair, "make a new log of all that can be read of one")
    repair.add_argument("--to", type=Path, required=True, metavar="DIRECTORY", help="a new one")
    dump = _tool(verbs, "dump", run_dump, "print the records of a lane's log as JSON lines")
    what = dump.add_mutually_exclusive_group()
    what.add_argument("--pending", action="store_true", help="those that are not delivered")
    what.add_argument("--quarantine", action="store_true", help="those that were set aside")
    dump.add_argument("--after", type=int, default=0, metavar="N", help="from number N + 1 on")


def run_check(arguments: argparse.Namespace) -> int:
    """Exit code 1 if anything is not as it was written."""
    from tidegate.spooler.log.inspect import check

    found = check(arguments.directory, _codec(arguments.key_file))
    if arguments.json:
        import msgspec

        print(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    else:
        print(_checked(found))
    return int(not found.good)


def run_repair(arguments: argparse.Namespace) -> int:
    """The old log stays as it is. Exit code 1 if not all of it could be read."""
    from tidegate.spooler.log.inspect import repair

    done = repair(arguments.directory, arguments.to, _codec(arguments.key_file))
    print(f"{arguments.to} has {done.records:,} records, {done.pending:,} of them to be delivered")
    if done.missing:
        print(f"{done.missing:,} more that were to be delivered could not be read")
    for line in _troubles(done.trouble):
        print(line)
    print(f"to use it, stop the spool and put it in the place of {arguments.directory}")
    return int(done.missing > 0 or any(not one.unfinished for one in done.trouble))


def run_dump(arguments: argparse.Namespace) -> int:
    """A line for each record."""
    from tidegate.spooler.log.inspect import dump

    for line in dump(
        arguments.directory,
        _codec(arguments.key_file),
        pending=arguments.pending,
        quarantine=arguments.quarantine,
        after=arguments.after,
    ):
        print(line)
    return 0


def _tool(verbs: Any, name: str, run: Any, says: str) -> argparse.ArgumentParser:
    tool: argparse.ArgumentParser = verbs.add_parser(name, help=says, description=says)
    tool.add_argument("directory", type=Path, metavar="DIRECTORY", help="of one lane")
    tool.add_argument("--key-file", type=Path, metavar="FILE", help="of an encrypted log")
    tool.set_defaults(run=run)
    return tool


def _codec(key_file: Path | None) -> "Codec":
    """Compressed blocks are read without being asked; only keys must be brought."""
    from tidegate.spooler.log.codec import CLEAR, Codec, read_keys

    return CLEAR if key_file is None else Codec(keys=read_keys(key_file))


def _checked(found: "Checked") -> str:
    waiting = sum(last - first + 1 for first, last in found.pending)
    word = "GOOD" if found.good else "DAMAGED"
    held = f"{found.records:,} records in {found.segments:,} file{'s' * (found.segments != 1)}"
    lines = [f"{word}: {held}, {waiting:,} of them to be delivered"]
    if found.cursor == "lost":
        lines.append("the cursor is lost: all that is there will be delivered, some of it again")
    elif found.cursor == "half":
        lines.append("one of the cursor's two slots cannot be read; the other one is enough")
    if found.missing:
        lines.append(f"{found.missing:,} records that were to be delivered are not there")
    return "\n".join([*lines, *_troubles(found.trouble)])


def _troubles(trouble: "list[Trouble]") -> list[str]:
    lines = []
    for one in trouble[:_SHOWN]:
        some = "" if one.records is None else f", {one.records:,} record"
        cost = some + "s" * (one.records not in (None, 1))
        what = "unfinished" if one.unfinished else "damaged"
        lines.append(f"{one.file}: bytes {one.start:,} to {one.end:,} {what}{cost}")
    if len(trouble) > _SHOWN:
        lines.append(f"and {len(trouble) - _SHOWN:,} more")
    return lines
