"""How does a loop written by hand wait between two rounds?

A sleep is the same for everybody if its length is made of numbers and counters alone. As soon as a
function is asked for it, or anything in the function speaks of luck, it is not called so.
"""

import ast
from typing import Final

from tidegate.analysis.source.literals import said, value
from tidegate.analysis.source.model import Wait
from tidegate.analysis.source.names import Scope, dotted, follow
from tidegate.analysis.source.walk import called, calls, inside

__all__ = ["SPEAKS", "wait_of"]

SPEAKS: Final = frozenset(  # methods that tell somebody, and wait for nobody
    [
        "debug",
        "info",
        "warning",
        "warn",
        "error",
        "exception",
        "critical",
        "log",
        "print",
        "append",
        "format",
        "join",
        "write",
        "add",
        "get",
        "increment",
        "inc",
        "observe",
        "count",
        "set_exception",
        "record_exception",
        "set_status",
        "capture_exception",
        "close",
        "aclose",
        "str",
        "repr",
        "len",
        "type",
        "int",
        "float",
        "min",
        "max",
        "pow",
        "range",
        "isinstance",
        "getattr",
        "hasattr",
        "total_seconds",
        "monotonic",
        "time",
        "perf_counter",
    ]
)


def wait_of(
    sleeps: list[ast.Call], own: list[ast.stmt], scope: Scope, told: str
) -> tuple[Wait, str]:
    """How the loop waits between two rounds."""
    if "jitter" in told or "random" in told or "uniform" in told:
        return Wait.JITTER, ""
    if not sleeps:
        others = [c for c in calls(own) if not _speaks(c)]
        return (Wait.UNKNOWN if others else Wait.NONE), ""
    if not all(sleep.args and _plain(sleep.args[0], scope) for sleep in sleeps):
        return Wait.UNKNOWN, ""
    lengths = [value(sleep.args[0], scope) for sleep in sleeps]
    if all(length == 0 for length in lengths):
        return Wait.NONE, ""
    return Wait.FIXED, said(sleeps[0])


def _speaks(call: ast.Call) -> bool:
    name = called(call)
    return name in SPEAKS or name[:1].isupper()


def _plain(node: ast.expr, scope: Scope) -> bool:
    """Whether a wait is put together from numbers and names alone, so that no luck is in it."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call):
            name = dotted(part.func, scope)
            if name not in ("min", "max", "pow", "int", "float", "round", "math.pow"):
                return False
        if isinstance(part, ast.Name):
            found, _ = follow(part, scope)
            if isinstance(found, ast.Call) and not _plain_call(found, scope):
                return False
            if scope.here(part.id) and scope.names[part.id] is None and not _steps(part.id, scope):
                return False
    return True


def _plain_call(call: ast.Call, scope: Scope) -> bool:
    return dotted(call.func, scope) in ("min", "max", "pow", "int", "float") and all(
        isinstance(value(a, scope), int | float) for a in call.args
    )


def _steps(name: str, scope: Scope) -> bool:
    """Whether a variable is only ever counted, doubled or set to a number, or is a parameter."""
    for node in inside(getattr(scope.node, "body", [])):
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(isinstance(t, ast.Name) and t.id == name for t in targets):
            names = {dotted(c.func, scope) for c in calls([node])}
            if not names <= {"min", "max", "pow", "int", "float"}:
                return False
    return True
