"""What is a rule of the source audit, and what does it say when it is broken?"""

from typing import NamedTuple

from tidegate.analysis.source.model import UNLIMITED, Layer
from tidegate.analysis.source.seen import Placed
from tidegate.findings import Severity

__all__ = ["Hit", "Rule", "Step", "at", "number", "repeats", "times"]


class Rule(NamedTuple):
    """One rule: `title` is what it sees, `why` what that does, `fix` what to do."""

    name: str
    severity: Severity
    title: str
    why: str
    fix: str


class Step(NamedTuple):
    """One layer on a path of retries, from the outermost on."""

    file: str
    line: int
    column: int
    function: str
    library: str
    attempts: float | None
    bound: str


class Hit(NamedTuple):
    """One breach. `fix` and `severity` when they are others than the rule's own.

    `unless` names a call which, anywhere in what is audited, makes the breach void.
    """

    rule: Rule
    line: int
    column: int
    end_line: int
    says: str
    fix: str = ""
    severity: Severity | None = None
    path: tuple[Step, ...] = ()
    unless: str = ""


def at(layer: Layer) -> tuple[int, int, int]:
    """Where a layer stands: line, column, last line."""
    return layer.line, layer.column, layer.end_line


def number(value: float) -> str:
    """A count as people write it."""
    return "unlimited" if value == UNLIMITED else f"{value:g}"


def times(layer: Layer) -> str:
    """`3 times`, `MAX_TRIES times`, `as many times as fit into 60 s`, `without end`."""
    if layer.attempts == UNLIMITED:
        return "without end"
    if layer.attempts is not None:
        return f"{layer.attempts:g} times"
    if layer.bound.startswith("as many as"):
        return layer.bound.replace("as many as", "as many times as")
    return layer.bound if " " in layer.bound else f"{layer.bound} times"


def repeats(placed: Placed) -> str:
    """The subject of a sentence: `tenacity on fetch()`, `the loop in fetch()`."""
    layer, function = placed.layer, placed.function.label
    if placed.free:
        return f"{layer.library} as set up in {function}"
    match layer.kind:
        case "loop":
            return f"the loop in {function}"
        case "client":
            return f"{layer.library} as set up in {function}"
        case _:
            return f"{layer.library} on {function}"
