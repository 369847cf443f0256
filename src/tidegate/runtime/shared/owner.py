"""Does the process that wrote this still run?

A number of a process comes back after its death, so an owner is a number with an instant of birth,
as `/proc` has both, and with the namespace in which the number means anything.
"""

import os
from pathlib import Path
from typing import NamedTuple

__all__ = ["Owner", "is_alive", "this_process"]


class Owner(NamedTuple):
    """A process, told apart from a later one with the same number by when it began."""

    pid: int
    started: int
    namespace: int


def is_alive(owner: Owner) -> bool:
    """Whether this process of our own namespace still runs: not ended, and no other by now.

    Where it cannot be told, as when no more files can be opened, it lives: a storm in which files
    run out must not bury the living.
    """
    try:
        return _started(owner.pid) == owner.started
    except OSError:
        return True


def _started(pid: int) -> int:
    """When a process began, in ticks since the boot; 0 if it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - half the time of Path
            fields = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return 0 if fields[0] in {b"Z", b"X"} else int(fields[19])


def this_process() -> Owner:
    """The owner that is calling. Raises OSError where it cannot be told."""
    pid = os.getpid()
    return Owner(pid, _started(pid), Path("/proc/self/ns/pid").stat().st_ino)
