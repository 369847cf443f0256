"""Which retries never end, come back all at once, or repeat what must not be repeated?"""

import ast
import re
from collections.abc import Iterator
from typing import Final

from tidegate.analysis.source.clients import remote
from tidegate.analysis.source.families import connects_only, families
from tidegate.analysis.source.literals import argument, is_none, value
from tidegate.analysis.source.loops import GIVES_UP
from tidegate.analysis.source.model import UNLIMITED, Wait
from tidegate.analysis.source.rules.rule import Hit, Rule, at, repeats, times
from tidegate.analysis.source.seen import Call, Placed, Source
from tidegate.analysis.source.walk import inside, words

__all__ = ["RULES", "find"]

UNLIMITED_RETRIES: Final = Rule(
    "unlimited-retries",
    "error",
    "A retry that nothing ends but success.",
    "While the far side is down, every caller stays and asks again; those who come add to those"
    " who stayed, so the load after the fault is larger than any before it.",
    "Give it a number of attempts and a time after which it gives up.",
)
AT_ONCE: Final = Rule(
    "retry-at-once",
    "warning",
    "A retry that does not wait.",
    "All callers that failed together come back together, within the millisecond in which the far"
    " side can bear it least.",
    "Wait before each attempt, longer each time, with jitter.",
)
NO_JITTER: Final = Rule(
    "retry-no-jitter",
    "warning",
    "A wait between attempts that is the same for everybody.",
    "All callers that failed together come back together, wave after wave.",
    "Draw each wait at random from zero to its full length.",
)
EFFECT: Final = Rule(
    "effect-retried",
    "warning",
    "A request that changes something and is sent again after it failed.",
    "After a timeout or a lost connection nobody knows whether it was done; the second attempt may"
    " do it twice.",
    "Send a key by which the far side knows a repeat, or repeat only when nothing was sent.",
)
RETRY_AFTER: Final = Rule(
    "retry-after-ignored",
    "warning",
    "A refusal for too many requests (429) that is answered by a wait of one's own choice.",
    "The far side says how long to stay away (Retry-After); who comes back sooner is refused again"
    " and keeps the limit exhausted for everybody.",
    "Wait as long as Retry-After says, and give up when that is too long.",
)
CANCELLATION: Final = Rule(
    "cancellation-retried",
    "error",
    "A retry in a coroutine that also repeats when the coroutine is cancelled.",
    "A timeout around it does not end it: the cancellation is caught like any failure and the work"
    " starts again, so deadlines and shutdowns do nothing.",
    "Repeat on the exceptions that you mean, and never on BaseException.",
)
GENERATOR: Final = Rule(
    "generator-retried",
    "error",
    "A retry around a generator.",
    "Calling a generator runs none of it, so nothing can fail while the retry looks; stamina alone"
    " steps into it, starts it again from the top, and its items come twice.",
    "Put the retry around what fetches one item, inside the generator.",
)

RULES: Final = (UNLIMITED_RETRIES, AT_ONCE, NO_JITTER, EFFECT, RETRY_AFTER, CANCELLATION, GENERATOR)

_EFFECTS: Final = ("POST", "PATCH")
# A POST to such a path reads, or opens a session: done twice it does no harm.
_READS: Final = frozenset(
    [
        "auth",
        "chat",
        "completion",
        "embed",
        "generate",
        "graphql",
        "infer",
        "introspect",
        "login",
        "oauth",
        "predict",
        "query",
        "rpc",
        "search",
        "token",
        "validate",
        "verify",
    ]
)
_POLLS: Final = re.compile("(^|_)(wait|poll)")
_REFUSALS: Final = (
    "RateLimitError",
    "RateLimitException",
    "TooManyRequests",
    "TooManyRequestsError",
)
_GENERATORS: Final = ("tenacity", "backoff", "retrying", "retry", "stamina")


def find(source: Source) -> Iterator[Hit]:
    """Every breach in one module."""
    for placed in source.placed:
        if not placed.layer.named:  # else told once, where it is set up
            yield from _unlimited(placed)
            yield from _waits(placed)
            yield from _refusals(placed)
        yield from _effects(placed)
        yield from _cancellation(placed)
    yield from _tasks(source)
    for function in source.functions:
        for _, _, layer in function.decorators:
            if layer is not None and function.generates and layer.library in _GENERATORS:
                does = (
                    "starts it again from the top, so its items come twice"
                    if layer.library == "stamina"
                    else "sees only its creation, which never fails: nothing is retried"
                )
                yield Hit(
                    GENERATOR,
                    *at(layer),
                    f"{function.label} is a generator; {layer.library} around it {does}",
                )


def _unlimited(placed: Placed) -> Iterator[Hit]:
    layer = placed.layer
    if layer.attempts != UNLIMITED or placed.function.generates:
        return
    also = ", and without a wait" if layer.wait is Wait.NONE else ""
    yield Hit(UNLIMITED_RETRIES, *at(layer), f"{repeats(placed)} tries again without end{also}")


def _tasks(source: Source) -> Iterator[Hit]:
    """A celery task with `max_retries=None` that asks for a retry itself, with `self.retry`."""
    asking = {id(call.function) for call in source.calls if _asks_for_retry(call)}
    for function in source.functions:
        if id(function) not in asking:
            continue
        for decorator, name, layer in function.decorators:
            if layer is not None or not isinstance(decorator, ast.Call):
                continue
            task = (name or "").endswith((".task", ".shared_task"))
            if task and is_none(argument(decorator, "max_retries")):
                yield Hit(
                    UNLIMITED_RETRIES,
                    decorator.lineno,
                    decorator.col_offset,
                    decorator.end_lineno or decorator.lineno,
                    f"celery on {function.label} tries again without end (max_retries=None)",
                )


def _asks_for_retry(call: Call) -> bool:
    """`self.retry(...)` in a function whose first parameter is `self`."""
    match call.node.func, call.function.node:
        case (
            ast.Attribute(value=ast.Name(id=owner), attr="retry"),
            ast.FunctionDef(args=ast.arguments(args=[ast.arg(arg=first), *_])),
        ):
            return owner == first
        case _:
            return False


def _waits(placed: Placed) -> Iterator[Hit]:
    layer = placed.layer
    if layer.attempts == 1:
        return
    if placed.function.generates and layer.kind == "decorator":
        return
    decided = layer.catches is not None and layer.kind != "client"
    if decided and families(layer.catches or ()) <= {"local"}:
        return  # it polls, or repeats a lost race: it does not wait for a far side
    many = layer.bound != GIVES_UP and (layer.attempts is None or layer.attempts > 2)
    if layer.wait is Wait.NONE and many and layer.attempts != UNLIMITED:
        yield Hit(
            AT_ONCE, *at(layer), f"{repeats(placed)} tries {times(layer)} and waits for nothing"
        )
    elif layer.wait is Wait.FIXED and not (layer.kind == "loop" and layer.hears):
        if _POLLS.search(placed.function.name.rpartition(".")[2]):
            return  # it looks at steady intervals whether something has come to pass
        how = f" ({layer.wait_said})" if layer.wait_said else ""
        yield Hit(
            NO_JITTER,
            *at(layer),
            f"{repeats(placed)} waits the same time for everybody{how}",
            severity="note" if layer.kind == "loop" else None,
        )


def _effects(placed: Placed) -> Iterator[Hit]:
    layer = placed.layer
    if layer.kind == "client":
        verbs = [verb for verb in layer.methods or () if verb in _EFFECTS]
        if verbs:
            default = ", as it does unless `methods` says which"
            yield Hit(
                EFFECT,
                *at(layer),
                f"{repeats(placed)} sends {' and '.join(sorted(verbs, reverse=True))} again after"
                f" a failure{default if layer.library == 'aiohttp-retry' else ''}",
                "Leave the verbs that change something out of those it repeats.",
            )
        return
    catches = layer.catches
    if not catches or connects_only(catches) or families(catches) <= {"local", "?"}:
        return
    for call in placed.calls:
        verb = _verb(call)
        if verb in _EFFECTS and not _harmless(call):
            yield Hit(
                EFFECT,
                *at(layer),
                f"{repeats(placed)} tries {times(layer)} a {verb} in line {call.node.lineno} that"
                " carries no idempotency key",
            )
            return


def _verb(call: Call) -> str:
    far = remote(call.target or "")
    if far is None:
        return ""
    if far.verb == "REQUEST":
        given = argument(call.node, "method", at=0)
        verb = value(given, call.scope) if given is not None else ""
        return verb.upper() if isinstance(verb, str) else ""
    return far.verb


def _harmless(call: Call) -> bool:
    """Whether the code shows that a repeat does no harm: a key, or a path that only reads."""
    if "idempoten" in words(call.function.node):
        return True
    to = argument(call.node, "url", at=1 if remote(call.target or "") is None else 0)
    told = words(to) if to is not None else ""
    name = getattr(call.function.node, "name", "").lower()
    return any(word in told or word in name for word in _READS)


def _refusals(placed: Placed) -> Iterator[Hit]:
    layer = placed.layer
    if layer.hears or layer.wait is Wait.UNKNOWN:
        return
    if layer.kind == "client":
        if layer.hears is False and 429 in layer.statuses:
            yield Hit(
                RETRY_AFTER,
                *at(layer),
                f"{repeats(placed)} repeats on 429 and does not look at Retry-After",
            )
        return
    named = [c for c in layer.catches or () if c.rpartition(".")[2] in _REFUSALS]
    what = named[0] if named else "429" if placed.loop is not None and _sees_429(placed) else ""
    if what and layer.library not in ("google-api-core", "celery", "dramatiq"):
        yield Hit(
            RETRY_AFTER,
            *at(layer),
            f"{repeats(placed)} repeats on {what} and nothing in it reads Retry-After",
        )


def _sees_429(placed: Placed) -> bool:
    assert placed.loop is not None
    for tried in placed.loop.tries:
        for node in inside([tried]):
            if isinstance(node, ast.Compare) and any(
                isinstance(part, ast.Constant) and part.value == 429 and part.value is not True
                for part in ast.walk(node)
            ):
                return True
    return False


def _cancellation(placed: Placed) -> Iterator[Hit]:
    layer = placed.layer
    if not isinstance(placed.function.node, ast.AsyncFunctionDef):
        return
    if layer.kind == "client" or "BaseException" not in (layer.catches or ()):
        return
    how = "catches every BaseException" if layer.kind == "loop" else "repeats on BaseException"
    if layer.library == "tenacity":
        how = "repeats on every BaseException but those named"
    yield Hit(
        CANCELLATION,
        *at(layer),
        f"{repeats(placed)} {how}, and so on the cancellation that a timeout around it sends",
    )
