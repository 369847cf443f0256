"""What do tenacity's `stop`, `wait` and `retry` come to?

Strategies are put together with `|`, `&` and `+`; what is not tenacity's own stays unknown. Read in
tenacity 9.2: without `stop` it never ends, without `wait` it never waits, without `reraise=True` it
raises `RetryError` at the end, and `retry_if_not_exception_type` lets everything else through to
the next attempt, a cancellation too.
"""

import ast
from typing import Final

from tidegate.analysis.source.attempts import bounded, layer, sooner, within
from tidegate.analysis.source.families import types
from tidegate.analysis.source.literals import ABSENT, argument, opaque, said, value, value_of
from tidegate.analysis.source.model import EVERYTHING, UNLIMITED, Layer, Wait
from tidegate.analysis.source.names import Scope, dotted, follow

__all__ = ["TENACITY", "tenacity"]

TENACITY: Final = ("tenacity.retry", "tenacity.Retrying", "tenacity.AsyncRetrying")
_JITTER: Final = frozenset(
    f"tenacity.wait_{name}"
    for name in ("random", "random_exponential", "full_jitter", "exponential_jitter")
)
_FIXED: Final = frozenset(
    f"tenacity.wait_{name}" for name in ("fixed", "exponential", "incrementing")
)


def tenacity(node: ast.expr, call: ast.Call | None, scope: Scope, _: str) -> Layer:
    """The layer of `@retry`, `@retry(...)`, `Retrying(...)` or `AsyncRetrying(...)`."""
    if call is None:
        return layer(
            node,
            "tenacity",
            attempts=UNLIMITED,
            bound="unlimited",
            wait=Wait.NONE,
            raises="tenacity.RetryError",
        )
    hidden = opaque(call)
    stop, wait, retry = (argument(call, name) for name in ("stop", "wait", "retry"))
    attempts, bound = (None, "arguments not shown") if hidden else (UNLIMITED, "unlimited")
    if stop is not None:
        attempts, bound = _stop(stop, scope)
    waits = (Wait.UNKNOWN if hidden else Wait.NONE) if wait is None else _wait(wait, scope)
    catches: tuple[str, ...] | None = None if hidden else (EVERYTHING,)
    if retry is not None:
        catches = _retry(retry, scope)
    reraise = value_of(call, scope, "reraise")
    gives = argument(call, "retry_error_callback")
    return layer(
        node,
        "tenacity",
        attempts=attempts,
        bound=bound,
        wait=waits,
        wait_said=said(wait) if wait is not None else "",
        catches=catches,
        raises="tenacity.RetryError" if reraise in (ABSENT, False) else None,
        leaks=gives is None and not hidden,
    )


def _stop(node: ast.expr, scope: Scope) -> tuple[float | None, str]:
    node, scope = follow(node, scope)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return sooner([_stop(node.left, scope), _stop(node.right, scope)])
    name = dotted(node.func if isinstance(node, ast.Call) else node, scope)
    if name == "tenacity.stop_never":
        return UNLIMITED, "unlimited"
    if isinstance(node, ast.Call):
        first = argument(node, "max_attempt_number", "max_delay", at=0)
        if name == "tenacity.stop_after_attempt" and first is not None:
            return bounded(value(first, scope), first)
        if name in ("tenacity.stop_after_delay", "tenacity.stop_before_delay") and first:
            return None, within(value(first, scope), first)
        if name == "tenacity.stop_any" and node.args:
            return sooner([_stop(part, scope) for part in node.args])
    return None, said(node)


def _wait(node: ast.expr, scope: Scope) -> Wait:
    node, scope = follow(node, scope)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _together([_wait(node.left, scope), _wait(node.right, scope)])
    name = dotted(node.func if isinstance(node, ast.Call) else node, scope)
    if name == "tenacity.wait_none":
        return Wait.NONE
    if name in _JITTER:
        return Wait.JITTER
    if name in _FIXED and isinstance(node, ast.Call):
        first = argument(node, "wait", at=0) if name.endswith("fixed") else None
        return Wait.NONE if first is not None and value(first, scope) == 0 else Wait.FIXED
    if name in ("tenacity.wait_combine", "tenacity.wait_chain") and isinstance(node, ast.Call):
        parts = [part for part in node.args if not isinstance(part, ast.Starred)]
        if len(parts) == len(node.args) and parts:
            return _together([_wait(part, scope) for part in parts])
    return Wait.UNKNOWN


def _together(waits: list[Wait]) -> Wait:
    for wait in (Wait.UNKNOWN, Wait.JITTER, Wait.FIXED):
        if wait in waits:
            return wait
    return Wait.NONE


def _retry(node: ast.expr, scope: Scope) -> tuple[str, ...] | None:
    node, scope = follow(node, scope)
    if isinstance(node, ast.BinOp):
        left, right = _retry(node.left, scope), _retry(node.right, scope)
        if left is None or right is None:
            return None
        if isinstance(node.op, ast.BitAnd):  # both must say yes: the narrower side decides
            return (
                right if left == ("BaseException",) else left if "BaseException" in right else None
            )
        return (*left, *right)
    if not isinstance(node, ast.Call):
        return None
    name = dotted(node.func, scope)
    match name:
        case "tenacity.retry_if_exception_type":
            given = argument(node, "exception_types", at=0)
            return types(given, scope) if given is not None else (EVERYTHING,)
        case "tenacity.retry_if_not_exception_type" | "tenacity.retry_unless_exception_type":
            return ("BaseException",)
        case "tenacity.retry_if_result" | "tenacity.retry_if_not_result":
            return ()
        case "tenacity.retry_any":
            parts = [_retry(part, scope) for part in node.args]
            found = [part for part in parts if part is not None]
            return tuple(t for part in found for t in part) if len(found) == len(parts) else None
        case _:
            return None
