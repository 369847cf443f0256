"""What is seen of a module while its tree is there: its calls, its functions, its retries."""

import ast
from dataclasses import dataclass, field

from tidegate.analysis.source.loops import Loop
from tidegate.analysis.source.model import Layer, Module
from tidegate.analysis.source.names import Scope

__all__ = ["Call", "Decorated", "Placed", "Source"]


@dataclass(slots=True)
class Call:
    """A call as the rules see it. `stack` holds what stands around it, outermost first."""

    node: ast.Call
    target: str | None
    scope: Scope
    function: "Decorated"
    layers: tuple[Layer, ...]  # innermost first
    absorbed: bool
    cancelled: ast.AST | None
    client: Layer | None = None


@dataclass(slots=True)
class Decorated:
    """A function, with what decorates it; the module's own statements are one too."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Module
    scope: Scope
    name: str
    decorators: tuple[tuple[ast.expr, str | None, Layer | None], ...] = ()  # outermost first
    generates: bool = False

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The retries among its decorators, outermost first; none within a guard of ours."""
        return tuple(layer for _, _, layer in self.decorators if layer is not None)

    @property
    def label(self) -> str:
        """How it is called in a sentence."""
        return "the module" if isinstance(self.node, ast.Module) else f"{self.node.name}()"


@dataclass(slots=True)
class Placed:
    """A retry in its place: the function that it is in or around, and the calls that it repeats."""

    layer: Layer
    function: Decorated
    calls: list[Call] = field(default_factory=list)
    loop: Loop | None = None
    free: bool = False  # set up here, and used somewhere by its name


@dataclass(slots=True)
class Source:
    """One module while its tree is there."""

    file: str
    module: Module
    scope: Scope
    functions: list[Decorated]
    calls: list[Call]
    placed: list[Placed]
    patched: bool = False  # some session's `request` is replaced: it may have a timeout since
