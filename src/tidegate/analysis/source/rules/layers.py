"""Where does one retry stand around another, and how many attempts does one user action become?

The calls are followed from function to function, through imports, over every module of the audit.
Two layers count as nested only if the code shows that the outer one repeats on what leaves the
inner one: the failure must get out (no handler keeps it), and the exceptions must fit. A retry on a
`ValueError` around a client that repeats on lost connections multiplies nothing.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final, NamedTuple, final

from tidegate.analysis.source.clients import remote
from tidegate.analysis.source.families import families, is_broad, meet
from tidegate.analysis.source.model import (
    UNLIMITED,
    Exported,
    Function,
    Layer,
    Module,
    Site,
    Wrapping,
)
from tidegate.analysis.source.rules.rule import Hit, Rule, Step, number

__all__ = ["RULES", "find"]

NESTED: Final = Rule(
    "nested-retries",
    "error",
    "A retry around what is retried already.",
    "Attempts multiply: three layers of three are 27 attempts for one user action, at the moment"
    " when the far side can bear least.",
    "Retry in one place, next to what fails, and let the others pass the failure on.",
)
RULES: Final = (NESTED,)

_HOPS: Final = 8  # from an import to what it stands for
_UNKNOWN: Final = frozenset(("?",))
_LEAST: Final = 2.0  # what a number of attempts that is not shown counts, when paths are compared


class _Chain(NamedTuple):
    """Layers from the outermost to the innermost, and the families of what leaves them."""

    steps: tuple[Step, ...]
    raised: frozenset[str]

    @property
    def weight(self) -> float:
        return math.prod(_LEAST if s.attempts is None else s.attempts for s in self.steps)


_NOTHING: Final = _Chain((), _UNKNOWN)


def find(modules: Iterable[Module]) -> Iterator[tuple[str, Hit]]:
    """Each outermost layer above another one, with its file and its worst path."""
    chains = _Calls(modules).chains()
    told: set[tuple[Step, ...]] = set()
    seen: set[tuple[str, int]] = set()
    for chain in sorted(chains, key=lambda c: (-len(c.steps), -c.weight, c.steps[0][:2])):
        top = chain.steps[0]
        if len(chain.steps) < 2 or (top.file, top.line) in seen or chain.steps in told:
            continue
        seen.add((top.file, top.line))
        told.update(chain.steps[i:] for i in range(len(chain.steps)))
        product = " x ".join(_factor(step) for step in chain.steps)
        total = _total(chain.steps)
        says = (
            f"{top.library} in {top.function} repeats what {chain.steps[1].library} in"
            f" {chain.steps[1].function} repeats already: {product}"
            f"{f' = {total}' if total else ''} attempts for one user action"
        )
        yield top.file, Hit(NESTED, top.line, top.column, top.line, says, path=chain.steps)


def _factor(step: Step) -> str:
    """A factor of the product: a number, their name for it, or `?` for what is only a condition."""
    if step.attempts is not None or " " not in step.bound:
        return step.bound
    return f"({step.bound})" if any(sign in step.bound for sign in "+-*/") else "?"


def _total(steps: tuple[Step, ...]) -> str:
    """The product in words; empty when a factor is not shown as a number."""
    if any(step.attempts == UNLIMITED for step in steps):
        return "unlimited"
    if any(step.attempts is None for step in steps):
        return ""
    return number(math.prod(step.attempts or 1 for step in steps))


@final
class _Calls:
    """The functions of all modules, and what their calls lead to."""

    def __init__(self, modules: Iterable[Module]) -> None:
        self.functions: Final[dict[str, Function]] = {}
        self.exports: Final[dict[str, Exported]] = {}
        for module in modules:
            self.functions.update(module.functions)
            prefix = f"{module.name}."
            self.exports.update((prefix + name, e) for name, e in module.exports.items())
        self._worst: Final[dict[str, _Chain]] = {}
        self._ended: Final[list[_Chain]] = []  # chains whose failures stay in their function

    def chains(self) -> list[_Chain]:
        """The worst chain of each function, and each that ends within one."""
        for name in self.functions:
            self._compute(name)
        return [c for c in (*self._worst.values(), *self._ended) if len(c.steps) > 1]

    def _compute(self, root: str) -> None:
        """Callees first, without recursion; a circle of calls is entered once."""
        if root in self._worst:
            return
        entered = {root}
        stack: list[tuple[str, Iterator[str]]] = [(root, self._callees(root))]
        while stack:
            name, callees = stack[-1]
            following = next(
                (c for c in callees if c not in self._worst and c not in entered), None
            )
            if following is not None:
                entered.add(following)
                stack.append((following, self._callees(following)))
                continue
            self._worst[name] = self._of(self.functions[name])
            stack.pop()

    def _callees(self, name: str) -> Iterator[str]:
        for site in self.functions[name].sites:
            for target in (site.target, *(handed for _, handed in site.handed)):
                found = self._lead(target)
                if isinstance(found, Function):
                    yield found.name

    def _of(self, function: Function) -> _Chain:
        """The worst chain that leaves a function."""
        worst: _Chain | None = None
        for site in function.sites:
            chain = self._below(site, function)
            for layer in site.layers:
                chain = _around(layer, chain, function)
            if site.absorbed:
                self._ended.append(chain)
            elif worst is None or _heavier(chain, worst):
                worst = chain
        chain = worst or _NOTHING
        for layer in reversed(function.layers):
            chain = _around(layer, chain, function)
        for wrapping in reversed(function.wrappings):
            found = self._lead(wrapping.name)
            if isinstance(found, Function) and found.gives is not None and not found.takes:
                chain = _around(_used(found, found.gives, wrapping), chain, function)
        return chain

    def _below(self, site: Site, function: Function) -> _Chain:
        far = remote(site.target)
        if site.client is not None:
            if far is None and not _asks(site.target):
                return _NOTHING
            return _own(site.client, function, site.line, far.family if far else "?")
        if far is not None:
            return _Chain((), frozenset((far.family,)))
        found = self._lead(site.target)
        if isinstance(found, Function):
            inside = self._worst.get(found.name, _NOTHING)
            handed = self._handed(found, site, function)
            return handed if handed is not None and _heavier(handed, inside) else inside
        if isinstance(found, tuple):
            layer, target = found
            family = remote(target)
            if family is not None:
                return _own(layer, function, site.line, family.family)
        return _NOTHING

    def _handed(self, taker: Function, site: Site, function: Function) -> _Chain | None:
        """The chain of what a call hands to a function that repeats it."""
        if taker.takes is None or taker.gives is None:
            return None
        for place, target in site.handed:
            if place in taker.takes:
                below = self._below(Site(target, site.line, site.column), function)
                here = replace(
                    taker.gives,
                    library=f"{taker.name.rpartition('.')[2]}()",
                    line=site.line,
                    column=site.column,
                )
                return _around(here, below, function)
        return None

    def _lead(self, target: str) -> Function | tuple[Layer, str] | None:
        """What a dotted path leads to, over re-exports and objects of other modules."""
        for _ in range(_HOPS):
            plain = target.replace("()", "")
            for name in (target, plain, f"{plain}.__init__"):
                if name in self.functions:
                    return self.functions[name]
            found = self._exported(target.split(".")) or self._exported(plain.split("."))
            if found is None:
                return None
            exported, rest = found
            following = f"{exported.target}.{rest}" if rest else exported.target
            if exported.client is not None and rest:
                return exported.client, following
            if following == target:
                return None
            target = following
        return None

    def _exported(self, parts: list[str]) -> tuple[Exported, str] | None:
        """The longest part of a path that is a name of some module, and what follows it."""
        for cut in range(len(parts), 1, -1):
            exported = self.exports.get(".".join(parts[:cut]))
            if exported is not None:
                return exported, ".".join(parts[cut:])
        return None


def _used(decorator: Function, gives: Layer, wrapping: Wrapping) -> Layer:
    """A retry of the project's own, with what is given to it where it is used."""
    name, _, more = gives.bound.partition(" + ")
    number = wrapping.numbers.get(name, decorator.defaults.get(name))
    attempts, bound = gives.attempts, gives.bound
    if attempts is None and number is not None and more in ("", "1"):
        attempts = float(number + (1 if more else 0))
        bound = f"{attempts:g}"
    catches = gives.catches
    if catches is not None and wrapping.catches:
        known = tuple(name for name in catches if not name.startswith("?"))
        catches = (*known, *wrapping.catches) if len(known) < len(catches) else catches
    return replace(
        gives,
        library=f"@{decorator.name.rpartition('.')[2]}",
        line=wrapping.line,
        column=wrapping.column,
        attempts=attempts,
        bound=bound,
        catches=catches,
    )


def _asks(target: str) -> bool:
    """Whether a method of a client goes to the far side, if its name does not settle it."""
    return target.count(".") > 1 and not target.endswith((".close", ".mount", ".update"))


def _heavier(one: _Chain, other: _Chain) -> bool:
    return (one.weight, len(one.steps)) > (other.weight, len(other.steps)) or (
        not other.steps and not one.steps and other.raised == _UNKNOWN and one.raised != _UNKNOWN
    )


def _own(layer: Layer, function: Function, line: int, family: str) -> _Chain:
    """The retries of a client itself, told where it is called."""
    step = Step(
        function.file,
        line,
        layer.column,
        f"{function.short}()",
        layer.library,
        layer.attempts,
        layer.bound,
    )
    raised = families((layer.raises,)) if layer.raises else frozenset((family,))
    return _Chain((step,), raised)


def _around(layer: Layer, chain: _Chain, function: Function) -> _Chain:
    """A chain with one more layer outside, if that repeats on what leaves the chain."""
    if layer.attempts == 1:
        return chain
    step = Step(
        function.file,
        layer.line,
        layer.column,
        f"{function.short}()",
        layer.library,
        layer.attempts,
        layer.bound,
    )
    catches = layer.catches
    if chain.steps and (catches is None or not meet(catches, chain.raised)):
        alone = _Chain((step,), families((layer.raises,)) if layer.raises else _UNKNOWN)
        return alone if alone.weight > chain.weight else chain
    raised = chain.raised
    if layer.raises:
        raised = families((layer.raises,))
    elif raised == _UNKNOWN and catches and not is_broad(catches):
        raised = families(catches)
    return _Chain((step, *chain.steps), raised)
