"""How often, how soon and upon what does a retry of a known library repeat?

Every default here was read in the library's own source, and those that do harm were measured with
an always failing function: tenacity 9.2 and retrying 1.4 without a stop never end and never wait,
backoff 2.2 without `max_tries` or `max_time` never ends, stamina 26.1 tries ten times or 45 s,
retry 0.9 has `tries=-1`, google-api-core 2.44 goes on for 120 s, celery 5.7 makes 3 retries 180 s
apart, dramatiq 2.2 makes 20.
"""

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from tidegate.analysis.source.attempts import bounded, layer, within
from tidegate.analysis.source.families import types
from tidegate.analysis.source.literals import (
    ABSENT,
    UNKNOWN,
    argument,
    opaque,
    value,
    value_of,
)
from tidegate.analysis.source.model import EVERYTHING, UNLIMITED, Layer, Wait
from tidegate.analysis.source.names import Scope, dotted, follow
from tidegate.analysis.source.tenacity import TENACITY, tenacity

__all__ = ["in_block", "retrier"]

_Parser = Callable[[ast.expr, "ast.Call | None", Scope, str], Layer]


def retrier(node: ast.expr, scope: Scope) -> Layer | None:
    """The layer that a decorator or a retrying object makes; None if it is no retry we know."""
    found, where = follow(node, scope)
    call = found if isinstance(found, ast.Call) else None
    name = dotted(call.func if call is not None else found, where)
    if name is None:
        return None
    parse = _PARSERS.get(name)
    if parse is not None:
        return _used(parse(node, call, where, name), node, call)
    if (call is not None and name.endswith(".task")) or name in (
        "celery.shared_task",
        "celery.task",
    ):
        return _celery(node, call, where, name) if call is not None else None
    return None


def in_block(node: ast.expr, scope: Scope) -> Layer | None:
    """The layer of `for attempt in X:`, where X hands out attempts; None if it is no such thing."""
    found, where = follow(node, scope)
    if not isinstance(found, ast.Call):
        return None
    name = dotted(found.func, where)
    if name in ("tenacity.Retrying", "tenacity.AsyncRetrying", "stamina.retry_context"):
        return _used(_PARSERS[name](node, found, where, name), node, found)
    return None


def _used(layer: Layer, node: ast.expr, call: ast.Call | None) -> Layer:
    """The layer as it is used here: set up right here, or elsewhere in the module."""
    return layer if call is None or call is node else replace(layer, named=True)


def _backoff(node: ast.expr, call: ast.Call | None, scope: Scope, name: str) -> Layer:
    assert call is not None or name  # a bare `@backoff.on_exception` is a TypeError of theirs
    if call is None:
        return layer(node, "backoff", attempts=None, bound="a number not shown", catches=None)
    tries, most = argument(call, "max_tries"), argument(call, "max_time")
    attempts, bound = (None, "arguments not shown") if opaque(call) else (UNLIMITED, "unlimited")
    if tries is not None and value(tries, scope) is not None:
        attempts, bound = bounded(value(tries, scope), tries)
    elif most is not None and value(most, scope) is not None:
        attempts, bound = None, within(value(most, scope), most)
    jitter = value_of(call, scope, "jitter")
    polls = name == "backoff.on_predicate"
    generator = dotted(argument(call, "wait_gen", at=0), scope)
    return layer(
        node,
        "backoff",
        attempts=None if polls and attempts == UNLIMITED else attempts,
        bound="until the answer is another one" if polls and attempts == UNLIMITED else bound,
        wait=Wait.FIXED if jitter is None else Wait.JITTER,
        wait_said="jitter=None",
        catches=() if polls else types(argument(call, "exception", at=1), scope),
        leaks=value_of(call, scope, "raise_on_giveup") in (ABSENT, True),
        hears=True if generator == "backoff.runtime" else None,
    )


def _stamina(node: ast.expr, call: ast.Call | None, scope: Scope, _: str) -> Layer:
    if call is None:
        return layer(node, "stamina", attempts=None, bound="a number not shown", catches=None)
    tries, most = argument(call, "attempts"), argument(call, "timeout")
    attempts: float | None
    attempts, bound = (None, "arguments not shown") if opaque(call) else (10.0, "10")
    if tries is not None:
        if value(tries, scope) is not None:
            attempts, bound = bounded(value(tries, scope), tries)
        elif most is not None and value(most, scope) is None:
            attempts, bound = UNLIMITED, "unlimited"
        else:
            attempts, bound = None, within(45 if most is None else value(most, scope), tries)
    jitter = value_of(call, scope, "wait_jitter")
    on = argument(call, "on")
    catches = types(on, scope) if on is not None else None
    return layer(
        node,
        "stamina",
        attempts=attempts,
        bound=bound,
        wait=Wait.FIXED if jitter == 0 and jitter is not False else Wait.JITTER,
        wait_said="wait_jitter=0",
        catches=None if catches == ("?",) else catches,
    )


def _retrying(node: ast.expr, call: ast.Call | None, scope: Scope, _: str) -> Layer:
    if call is None:
        return layer(node, "retrying", attempts=UNLIMITED, bound="unlimited", wait=Wait.NONE)
    hidden = opaque(call)
    given = {keyword.arg for keyword in call.keywords}
    tries = argument(call, "stop_max_attempt_number")
    most = argument(call, "stop_max_delay")
    attempts, bound = (None, "arguments not shown") if hidden else (UNLIMITED, "unlimited")
    if tries is not None:
        attempts, bound = bounded(value(tries, scope), tries)
    elif most is not None:
        known = value(most, scope)
        in_s = known / 1000 if isinstance(known, int | float) else UNKNOWN
        attempts, bound = None, within(in_s, most)
    elif given & {"stop", "stop_func"}:
        attempts, bound = None, "a function"
    wait = Wait.UNKNOWN if hidden or given & {"wait", "wait_func"} else Wait.NONE
    if given & {"wait_random_min", "wait_random_max", "wait_jitter_max"}:
        wait = Wait.JITTER
    elif any(name and name.startswith(("wait_fixed", "wait_exp", "wait_inc")) for name in given):
        wait = Wait.FIXED
    decided = given & {"retry_on_exception", "retry_on_result"}
    chosen = argument(call, "retry_on_exception")
    catches: tuple[str, ...] | None = None if decided or hidden else (EVERYTHING,)
    if chosen is not None:
        catches = _chosen(*follow(chosen, scope))
    return layer(
        node,
        "retrying",
        attempts=attempts,
        bound=bound,
        wait=wait,
        catches=catches,
        wait_said="no wait_random_min, wait_random_max or wait_jitter_max",
    )


def _chosen(node: ast.expr, scope: Scope) -> tuple[str, ...] | None:
    """`(A, B)` or `lambda e: isinstance(e, (A, B))`."""
    match node:
        case ast.Tuple():
            return types(node, scope)
        case ast.Lambda(body=ast.Call(func=ast.Name(id="isinstance"), args=[_, named])):
            return types(named, scope)
        case _:
            return None


def _retry(node: ast.expr, call: ast.Call | None, scope: Scope, name: str) -> Layer:
    """The packages `retry` and `retry2`; `retry_call` takes three arguments more in front."""
    if call is None:
        return layer(node, "retry", attempts=UNLIMITED, bound="unlimited", wait=Wait.NONE)
    shift = 3 if name.endswith("retry_call") else 0
    hidden = opaque(call)
    tries = argument(call, "tries", at=1 + shift)
    attempts, bound = (None, "arguments not shown") if hidden else (UNLIMITED, "unlimited")
    if tries is not None and value(tries, scope) != -1:
        attempts, bound = bounded(value(tries, scope), tries)
    delay = value_of(call, scope, "delay", at=2 + shift)
    jitter = value_of(call, scope, "jitter", at=5 + shift)
    wait = Wait.FIXED if jitter in (ABSENT, 0) else Wait.JITTER
    if wait is Wait.FIXED and delay in (ABSENT, 0):
        wait = Wait.NONE
    if hidden or jitter is UNKNOWN:
        wait = Wait.UNKNOWN
    on = argument(call, "exceptions", at=shift)
    return layer(
        node,
        "retry",
        attempts=attempts,
        bound=bound,
        wait=wait,
        wait_said="jitter=0",
        catches=types(on, scope) if on is not None else (EVERYTHING,),
    )


def _google(node: ast.expr, call: ast.Call | None, scope: Scope, _: str) -> Layer:
    if call is None:
        return layer(
            node,
            "google-api-core",
            attempts=None,
            bound="as many as fit into 120 s",
            wait=Wait.JITTER,
            catches=("google.api_core.exceptions.?",),
        )
    most = argument(call, "timeout", "deadline", at=4)
    known = value_of(call, scope, "timeout", "deadline", at=4)
    predicate = argument(call, "predicate", at=0)
    if known is None:
        attempts: float | None = UNLIMITED
        bound = "unlimited"
    else:
        attempts = None
        bound = "as many as fit into 120 s" if most is None else within(known, most)
    return layer(
        node,
        "google-api-core",
        attempts=attempts,
        bound=bound,
        wait=Wait.JITTER,
        catches=("google.api_core.exceptions.?",) if predicate is None else None,
        raises="google.api_core.exceptions.RetryError",
    )


def _celery(node: ast.expr, call: ast.Call | None, scope: Scope, _: str) -> Layer | None:
    """A task that repeats by itself (`autoretry_for`); other tasks ask for it with `self.retry`."""
    assert call is not None
    on = argument(call, "autoretry_for")
    if on is None:
        return None
    tries = argument(call, "max_retries")
    inner = argument(call, "retry_kwargs")
    if tries is None and isinstance(inner, ast.Dict):
        for key, given in zip(inner.keys, inner.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == "max_retries":
                tries = given
    attempts: float | None = 4.0
    bound = "4"
    if tries is not None:
        number = value(tries, scope)
        if number is None:
            attempts, bound = UNLIMITED, "unlimited"
        else:
            retries = number + 1 if isinstance(number, int) else UNKNOWN
            attempts, bound = bounded(retries, tries)
    elif inner is not None or opaque(call):
        attempts, bound = None, "arguments not shown"
    grows = value_of(call, scope, "retry_backoff")
    jitter = value_of(call, scope, "retry_jitter")
    if grows is UNKNOWN or jitter is UNKNOWN:
        wait = Wait.UNKNOWN
    elif grows in (ABSENT, False, 0, None) or jitter is False:
        wait = Wait.FIXED
    else:
        wait = Wait.JITTER
    return layer(
        node,
        "celery",
        attempts=attempts,
        bound=bound,
        wait=wait,
        catches=types(on, scope),
        wait_said="retry_jitter=False" if jitter is False else "no retry_backoff",
    )


def _dramatiq(node: ast.expr, call: ast.Call | None, scope: Scope, _: str) -> Layer:
    attempts: float | None = 21.0
    bound = "21"
    if call is not None:
        number = value_of(call, scope, "max_retries")
        decided = argument(call, "retry_when")
        if number is None and decided is None:
            attempts, bound = UNLIMITED, "unlimited"
        elif number is None or number is UNKNOWN or decided is not None:
            attempts, bound = None, "a number not shown"
        elif number is not ABSENT:
            attempts, bound = bounded(number + 1, argument(call, "max_retries"))
    return layer(node, "dramatiq", attempts=attempts, bound=bound, wait=Wait.JITTER)


_PARSERS: Final[dict[str, _Parser]] = {
    **dict.fromkeys(TENACITY, tenacity),
    "backoff.on_exception": _backoff,
    "backoff.on_predicate": _backoff,
    "stamina.retry": _stamina,
    "stamina.retry_context": _stamina,
    "stamina.RetryingCaller": _stamina,
    "stamina.AsyncRetryingCaller": _stamina,
    "retrying.retry": _retrying,
    "retrying.Retrying": _retrying,
    "retry.retry": _retry,
    "retry.retry_call": _retry,
    "google.api_core.retry.Retry": _google,
    "google.api_core.retry.AsyncRetry": _google,
    "google.api_core.retry.StreamingRetry": _google,
    "dramatiq.actor": _dramatiq,
}
