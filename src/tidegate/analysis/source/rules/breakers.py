"""Which circuit breakers do not see what they are there to count?"""

import ast
from collections.abc import Iterator
from typing import Final

from tidegate.analysis.source.families import is_broad
from tidegate.analysis.source.model import Layer
from tidegate.analysis.source.rules.rule import Hit, Rule, at, times
from tidegate.analysis.source.seen import Decorated, Source

__all__ = ["RULES", "find"]

BLIND: Final = Rule(
    "breaker-blind",
    "error",
    "A pybreaker around a coroutine.",
    "The breaker sees the coroutine being made, which never fails, and not what it does: of 50"
    " failing calls it counted none and never opened.",
    "Use a breaker that awaits what it guards.",
)
AROUND: Final = Rule(
    "breaker-around-retry",
    "warning",
    "A circuit breaker outside a retry.",
    "It counts one failure where the far side had several attempts, so it opens that many times too"
    " late.",
    "Put the breaker inside, next to the call, and do not repeat what an open breaker refuses.",
)
REPEATED: Final = Rule(
    "open-breaker-retried",
    "warning",
    "A retry that also repeats when a breaker inside it is open.",
    "The refusal comes at once and will be the same a moment later: the caller waits through all"
    " attempts for an answer that is known.",
    "Leave the breaker's own exception out of what is repeated.",
)

RULES: Final = (BLIND, AROUND, REPEATED)

_BREAKERS: Final = {
    "pybreaker.CircuitBreaker()": "pybreaker",
    "circuitbreaker.circuit": "circuitbreaker",
    "circuitbreaker.CircuitBreaker": "circuitbreaker",
    "circuitbreaker.CircuitBreaker()": "circuitbreaker",
    "aiobreaker.CircuitBreaker()": "aiobreaker",
}


def find(source: Source) -> Iterator[Hit]:
    """Every breach in one module."""
    for function in source.functions:
        for place, (decorator, name, _) in enumerate(function.decorators):
            library = _BREAKERS.get(name or "")
            if library is not None:
                yield from _breaker(function, place, decorator, library)
    for function in source.functions:
        yield from _loops(source, function)


def _breaker(function: Decorated, place: int, decorator: ast.expr, library: str) -> Iterator[Hit]:
    where = decorator.lineno, decorator.col_offset, decorator.end_lineno or decorator.lineno
    if library == "pybreaker" and isinstance(function.node, ast.AsyncFunctionDef):
        yield Hit(
            BLIND,
            *where,
            f"{function.label} is a coroutine, of which pybreaker sees no failure: it never opens",
        )
        return
    for other, (_, _, layer) in enumerate(function.decorators):
        if layer is None:
            continue
        if other > place:
            yield Hit(AROUND, *where, _late(function, library, layer))
        elif layer.catches is not None and is_broad(layer.catches):
            yield Hit(
                REPEATED,
                *at(layer),
                f"{layer.library} on {function.label} tries {times(layer)} also when {library}"
                " refuses",
            )


def _late(function: Decorated, library: str, layer: Layer) -> str:
    return (
        f"{library} around {function.label} counts one failure for all attempts of"
        f" {layer.library}, which tries {times(layer)}"
    )


def _loops(source: Source, function: Decorated) -> Iterator[Hit]:
    """A breaker around a function that repeats in a loop of its own."""
    named = [(d, _BREAKERS[n]) for d, n, _ in function.decorators if n in _BREAKERS]
    if not named:
        return
    decorator, library = named[-1]
    for placed in source.placed:
        if placed.function is function and placed.layer.kind == "loop" and placed.layer.leaks:
            where = decorator.lineno, decorator.col_offset, decorator.end_lineno or decorator.lineno
            yield Hit(AROUND, *where, _late(function, library, placed.layer))
