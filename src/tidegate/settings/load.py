"""How does a system file become a `System`, and what if it leaves numbers open?

`load(path)` reads and checks the whole file once and gives a `Draft`. `Draft.system()` is the
system with every open number at its middle; `Draft.system(values)` with the values given.
"""

from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path as FilePath
from typing import Any, final

from tidegate.errors import SettingsError
from tidegate.settings.decode import Decoder, Record, build, corners, explained, place
from tidegate.settings.graph import holding_times
from tidegate.settings.system import System
from tidegate.settings.unknowns import Path, Unknown, Values, derive, middles, spread
from tidegate.settings.yaml_nodes import Entry, read_file, read_text

__all__ = ["Draft", "load", "loads"]


def load(path: str | PathLike[str]) -> "Draft":
    """Reads a system file. Every error is a SettingsError with `file:line:column` and the path."""
    return _draft(read_file(FilePath(path)), str(path))


def loads(text: str | bytes, name: str = "<string>") -> "Draft":
    """Reads a system file's text; `name` stands for the file in errors."""
    return _draft(read_text(text, name), name)


def _draft(root: Entry, name: str) -> "Draft":
    decoder = Decoder(name)
    record = decoder.record(System, root, ())
    return Draft(name, root, record, decoder.unknowns)


@final
class Draft:
    """A system file that has been read and checked; numbers may still be open.

    `name` is the file's, `unknowns` are the open numbers in the order of the file.
    """

    __slots__ = ("_middle", "_record", "_root", "name", "unknowns")

    def __init__(self, name: str, root: Entry, record: Record, unknowns: list[Unknown]) -> None:
        self.name = name
        self._root = root
        self._record = record
        idle = {u.path: _idle(u) for u in unknowns}
        system = self._build(record, idle)
        for part, ends in corners(record, {u.path: (u.low, u.high) for u in _drawn(unknowns)}):
            self._build(part, idle | ends)
        self.unknowns: tuple[Unknown, ...] = spread(system, unknowns)
        self._check_workers(system)
        self._middle = self._make(middles(self.unknowns))

    def system(self, values: Values | None = None) -> System:
        """The system with these values for its open numbers, each other one at its middle.

        Values are in the unit of their `Unknown`: nanoseconds, per second, parts of one, counts.
        """
        if not values:
            return self._middle
        chosen = middles(self.unknowns)
        for path in values:
            if path not in chosen:
                raise SettingsError("the file does not leave this number open", path=path)
        return self._make(chosen | dict(values))

    def where(self, path: Path) -> str:
        """`file:line:column` of the deepest key of this path that stands in the file."""
        line, column = place(self._root, path)[0]
        return f"{self.name}:{line}:{column}"

    def _make(self, values: dict[Path, float]) -> System:
        busy = [u for u in self.unknowns if u.kind == "utilisation"]
        if busy:
            idle = self._build(self._record, values | {u.path: _idle(u) for u in busy})
            values = values | derive(idle, busy, values)
        system: System = self._build(self._record, values)
        return system

    def _build(self, record: Record, values: Mapping[Path, Any]) -> Any:
        try:
            return build(record, values)
        except SettingsError as error:
            raise explained(error, self._root, self.name) from None

    def _check_workers(self, system: System) -> None:
        held = holding_times(system)
        for unknown in self.unknowns:
            if unknown.path[-1] == "workers" and unknown.assumed and not held[unknown.path[1]]:
                raise SettingsError(
                    "this key can be left open only where `time` says how long one is busy",
                    path=unknown.path,
                    where=unknown.where,
                )


def _drawn(unknowns: list[Unknown]) -> Iterator[Unknown]:
    return (unknown for unknown in unknowns if unknown.kind != "utilisation")


def _idle(unknown: Unknown) -> float | None:
    """What stands for a number before it is known how busy the system is: no limit, any rate."""
    if unknown.kind != "utilisation":
        return unknown.middle
    return 1.0 if unknown.path[-1] == "rate" else None
