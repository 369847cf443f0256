"""Is this loop a retry that somebody wrote by hand, and how often does it go round?

A loop is taken for a retry when the syntax shows all of it: it leaves on success, it stays when an
exception is caught, each round does the same (the counter is not an argument of the work), and what
it does goes to a far side, or is waited for with a sleep. A worker's endless loop over jobs does
not leave on success, a walk over pages or mirrors does something else each round, and a question
put to a person catches a `ValueError`: none of them is a retry.
"""

import ast
from typing import Final, NamedTuple

from tidegate.analysis.source.clients import remote
from tidegate.analysis.source.families import families, types
from tidegate.analysis.source.literals import UNKNOWN, said, value
from tidegate.analysis.source.model import EVERYTHING, UNLIMITED, Layer
from tidegate.analysis.source.names import Scope, dotted
from tidegate.analysis.source.waits import SPEAKS, wait_of
from tidegate.analysis.source.walk import called, calls, inside, words

__all__ = ["GIVES_UP", "Loop", "loop"]

_SLEEPS: Final = frozenset(
    ["time.sleep", "asyncio.sleep", "anyio.sleep", "trio.sleep", "gevent.sleep", "eventlet.sleep"]
)
GIVES_UP: Final = "until it gives up"
"""How often a loop tries that counts in a way of its own."""

_NETWORK: Final = frozenset(
    [
        "connect",
        "create_connection",
        "urlopen",
        "request",
        "send",
        "sendall",
        "recv",
        "get",
        "post",
        "put",
    ]
)
_LEAVES: Final = (ast.Return, ast.Break)
_GOOD: Final = ("ok", "is_success", "status_code", "status")


class Loop(NamedTuple):
    """A retry written by hand: its layer, and the `try` statements that make it one."""

    layer: Layer
    tries: frozenset[ast.AST]
    catches: tuple[str, ...]


def loop(
    node: ast.For | ast.AsyncFor | ast.While, scope: Scope, function: ast.AST, *, timed: bool
) -> Loop | None:
    """The retry that a loop is, or None. `timed` when a timeout around it ends it."""
    times = _times(node, scope)
    if times is None:
        return None
    attempts, bound = times
    tried = _try(node)
    if tried is None or not _leaves_on_success(node, tried) or _counts(node, tried):
        return None
    staying = [h for h in tried.handlers if _stays(h) and not _is_local(h, scope)]
    catches = tuple(name for h in staying for name in _repeated(h, scope))
    if not staying or set(catches) == {"TimeoutError"}:
        return None  # to wait in slices is to wait, not to try again
    caught = families(catches)
    own = [*(s for h in staying for s in h.body), *(s for s in node.body if s is not tried)]
    sleeps = [c for c in calls(own) if dotted(c.func, scope) in _SLEEPS]
    far = any(remote(dotted(c.func, scope) or "") for c in calls(tried.body))
    if set(catches) <= {"OSError", "TimeoutError"}:
        if not far and not any(called(call) in _NETWORK for call in calls(tried.body)):
            return None  # a file, a lock or a port of this machine
    elif not (far or sleeps or caught - {"*", "?", "local"}):
        return None
    told = words(function)
    ends = [*(s for h in staying for s in h.body), *_before(node, tried)]
    if attempts == UNLIMITED and (timed or _gives_up(ends)):
        attempts, bound = None, GIVES_UP
    wait, wait_said = wait_of(sleeps, own, scope, told)
    after = [h for h in tried.handlers if _raises(h.body)]
    layer = Layer(
        library="a loop",
        line=node.lineno,
        column=node.col_offset,
        end_line=node.end_lineno or node.lineno,
        attempts=attempts,
        bound=bound,
        wait=wait,
        wait_said=wait_said,
        catches=catches,
        leaks=bool(after) or _raises_after(node, function),
        kind="loop",
        hears="retry-after" in told or "retry_after" in told or "retryafter" in told or None,
    )
    return Loop(layer, frozenset((tried,)), catches)


def _repeated(handler: ast.ExceptHandler, scope: Scope) -> tuple[str, ...]:
    """What a handler repeats on: of a BaseException, not what it raises again when it looks."""
    named = types(handler.type, scope)
    looks = _raises(handler.body)
    return tuple(EVERYTHING if name == "BaseException" and looks else name for name in named)


def _is_local(handler: ast.ExceptHandler, scope: Scope) -> bool:
    return families(types(handler.type, scope)) <= {"local"}


def _times(
    node: ast.For | ast.AsyncFor | ast.While, scope: Scope
) -> tuple[float | None, str] | None:
    """How often a loop goes round at most; None when it is no loop that counts or never ends."""
    if isinstance(node, ast.While):
        return _while(node.test, scope)
    call = node.iter
    if not isinstance(call, ast.Call):
        return None
    name = dotted(call.func, scope)
    if name == "itertools.count":
        return UNLIMITED, "unlimited"
    if name != "range" or not 1 <= len(call.args) <= 2:
        return None
    start = value(call.args[0], scope) if len(call.args) == 2 else 0
    end = value(call.args[-1], scope)
    if isinstance(start, int) and isinstance(end, int):
        return (float(end - start), str(end - start)) if end - start > 0 else None
    return None, said(call.args[-1])


def _while(test: ast.expr, scope: Scope) -> tuple[float | None, str] | None:
    if isinstance(test, ast.Constant) and test.value:
        return UNLIMITED, "unlimited"
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        limit = test.comparators[0]
        counter = test.left
        if isinstance(test.ops[0], ast.Lt | ast.LtE) and isinstance(counter, ast.Name):
            if not _by_one(counter.id, scope):
                return None  # it counts time, so it waits for something and says how long
            number = value(limit, scope)
            more = 1 if isinstance(test.ops[0], ast.LtE) else 0
            first = _first_value(counter.id, scope)
            if isinstance(number, int) and isinstance(first, int) and number + more > first:
                return float(number + more - first), str(number + more - first)
            return None, said(limit)
    return None


def _by_one(name: str, scope: Scope) -> bool:
    """Whether a counter goes up by one, and by nothing else."""
    steps = [
        statement.value
        for statement in inside(getattr(scope.node, "body", []))
        if isinstance(statement, ast.AugAssign)
        and isinstance(statement.target, ast.Name)
        and statement.target.id == name
    ]
    return bool(steps) and all(isinstance(s, ast.Constant) and s.value == 1 for s in steps)


def _first_value(name: str, scope: Scope) -> object:
    """What a counter starts at: the one plain number that it is set to in its function."""
    found = {
        statement.value.value
        for statement in inside(getattr(scope.node, "body", []))
        if isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Constant)
        and any(isinstance(t, ast.Name) and t.id == name for t in statement.targets)
    }
    return found.pop() if len(found) == 1 else UNKNOWN


def _try(node: ast.For | ast.AsyncFor | ast.While) -> ast.Try | None:
    """The one `try` right in a loop, also inside a `with`."""
    statements = node.body
    for _ in range(3):
        found = [s for s in statements if isinstance(s, ast.Try) and s.handlers]
        if len(found) == 1:
            return found[0]
        blocks = [s for s in statements if isinstance(s, ast.With | ast.AsyncWith)]
        if found or len(blocks) != 1:
            return None
        statements = blocks[0].body
    return None


def _leaves_on_success(node: ast.For | ast.AsyncFor | ast.While, tried: ast.Try) -> bool:
    after = node.body[node.body.index(tried) + 1 :] if tried in node.body else []
    return any(_left(statements) for statements in (tried.body, tried.orelse, after))


def _before(node: ast.For | ast.AsyncFor | ast.While, tried: ast.Try) -> list[ast.stmt]:
    """What a round does outside the `try` and not on its way to success."""
    if tried not in node.body:
        return []
    at = node.body.index(tried)
    after = node.body[at + 1 :]
    return [*node.body[:at], *([] if _left(after) else after)]


def _left(statements: list[ast.stmt]) -> bool:
    """Whether the statements end the loop, at their end or when an answer is said to be good."""
    if not statements:
        return False
    last = statements[-1]
    if isinstance(last, _LEAVES):
        return True
    if isinstance(last, ast.With | ast.AsyncWith):
        return _left(last.body)
    for statement in statements:
        if isinstance(statement, ast.If):
            leaves = any(isinstance(s, _LEAVES) for s in statement.body)
            if leaves and _is_good(statement.test):
                return True
            if statement is last and statement.orelse:
                return _left(statement.body) and _left(statement.orelse)
    return False


def _is_good(test: ast.expr) -> bool:
    """`response.ok`, `response.status_code == 200`, `200 <= response.status < 300`."""
    if isinstance(test, ast.UnaryOp):
        return False
    named = {n.attr for n in ast.walk(test) if isinstance(n, ast.Attribute)}
    codes = [n.value for n in ast.walk(test) if isinstance(n, ast.Constant)]
    if named & set(_GOOD[:2]):
        return True
    return bool(named & set(_GOOD)) and any(isinstance(c, int) and 200 <= c < 300 for c in codes)


def _counts(node: ast.For | ast.AsyncFor | ast.While, tried: ast.Try) -> bool:
    """Whether the counter is part of the work, so that each round does something else."""
    if not isinstance(node, ast.For | ast.AsyncFor) or not isinstance(node.target, ast.Name):
        return False
    counter = node.target.id
    for call in calls(tried.body):
        name = called(call)
        if name == "sleep" or (name in SPEAKS and name != "get"):
            continue
        given = [*call.args, *(k.value for k in call.keywords)]
        if any(isinstance(n, ast.Name) and n.id == counter for n in inside(given)):
            return True
    return any(
        isinstance(n, ast.Subscript)
        and any(isinstance(m, ast.Name) and m.id == counter for m in ast.walk(n.slice))
        for n in inside(tried.body)
    )


def _stays(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    if isinstance(last, (ast.Raise, *_LEAVES)):
        return False
    if isinstance(last, ast.If) and last.orelse:
        ends = (last.body[-1], last.orelse[-1])
        return not all(isinstance(end, (ast.Raise, *_LEAVES)) for end in ends)
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
        return called(last.value) not in ("exit", "_exit", "fail", "skip", "abort", "reraise")
    return True


def _gives_up(statements: list[ast.stmt]) -> bool:
    """Whether anything but success ends the loop."""
    return any(isinstance(n, (ast.Raise, *_LEAVES)) for n in inside(statements))


def _raises(statements: list[ast.stmt]) -> bool:
    return any(isinstance(n, ast.Raise) for n in inside(statements))


def _raises_after(node: ast.stmt, function: ast.AST) -> bool:
    """Whether the function says at its end that it has failed."""
    end = node.end_lineno or node.lineno
    orelse = getattr(node, "orelse", [])
    if _raises(orelse):
        return True
    return any(
        isinstance(n, ast.Raise) and n.lineno > end for n in inside(getattr(function, "body", []))
    )
