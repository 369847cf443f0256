"""`tidegate init`: a commented system file to start from."""

import argparse
from pathlib import Path
from typing import Any

from tidegate.errors import InputError

__all__ = ["add"]


def add(commands: "argparse._SubParsersAction[Any]") -> None:
    """Add the command."""
    parser = commands.add_parser(
        "init", help="write a commented system file to start from (default: to the terminal)"
    )
    parser.add_argument("file", nargs="?", type=Path, help="where to; never overwrites")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print it, or write it where nothing stands yet."""
    from tidegate.settings.starter import starter

    if arguments.file is None:
        print(starter(), end="")
        return 0
    try:
        with arguments.file.open("x", encoding="utf-8") as file:
            file.write(starter())
    except FileExistsError:
        raise InputError(f"{arguments.file} exists already; nothing was written") from None
    except OSError as error:
        raise InputError(f"cannot write {arguments.file}: {error.strerror}") from None
    print(f"wrote {arguments.file}; next: tidegate check {arguments.file}")
    return 0
