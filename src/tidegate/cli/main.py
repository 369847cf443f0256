"""The command line: parse, call, print, exit code.

Exit codes: 0 fine, 1 a finding, 2 bad input, 3 our own bug or a process of ours that was killed.
"""

import argparse
import errno
import io
import os
import sys
from collections.abc import Sequence

from tidegate._version import __version__
from tidegate.cli import check, hold, init, lab, schema, spool, status
from tidegate.errors import InputError, MissingExtra, SettingsError, SpoolError, WorkerLost

__all__ = ["build_parser", "main"]

_COMMANDS = (check, init, schema, lab, hold, status, spool)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def build_parser() -> argparse.ArgumentParser:
    """The parser of every command."""
    parser = argparse.ArgumentParser(
        prog="tidegate",
        description="Keeps an overloaded dependency from becoming an outage of everything that"
        " calls it.",
    )
    parser.add_argument("--version", action="version", version=f"tidegate {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.add(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    parser = build_parser()
    arguments = parser.parse_args(argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names may not fit an ASCII terminal
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
    except (SettingsError, InputError, SpoolError, MissingExtra) as error:
        print(f"tidegate: {_visible(str(error))}", file=sys.stderr)
        return 2
    except WorkerLost as error:
        print(f"tidegate: {error}", file=sys.stderr)
        return 3
    except BrokenPipeError:
        # The reader has left (`| head`): not an error, and nothing more can be said to it.
        _write_no_more()
        return 0
    except KeyboardInterrupt:
        print("tidegate: interrupted", file=sys.stderr)
        return 130
    except OSError as error:
        if error.errno not in _FULL:
            return _our_bug(error)
        _write_no_more()
        print(f"tidegate: cannot write all of it: {error.strerror}", file=sys.stderr)
        return 2
    except Exception as error:  # noqa: BLE001 - the last resort: a sentence, not a traceback
        return _our_bug(error)
    return code


def _write_no_more() -> None:
    """What is still buffered goes nowhere, else Python would try again at its end, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _visible(text: str) -> str:
    """The text on one line: a file's name may hold a newline or an escape of the terminal."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def _our_bug(error: Exception) -> int:
    if os.environ.get("TIDEGATE_TRACEBACK"):
        raise error
    print(
        f"tidegate: a bug of ours, {type(error).__name__}: {error};"
        " set TIDEGATE_TRACEBACK=1 to see where",
        file=sys.stderr,
    )
    return 3


if __name__ == "__main__":
    sys.exit(main())
