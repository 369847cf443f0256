"""What does an audit remember of a module once its tree is gone?

A `Layer` is one place that tries again: a decorator, a loop, a block, or a client that repeats by
itself. A `Site` is a call, with the layers of its own function around it. A `Function` holds its
sites, and the layers that decorate it. They hold names and numbers only, so that a million lines
fit into memory.
"""

import math
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

__all__ = [
    "EVERYTHING",
    "UNLIMITED",
    "Exported",
    "Function",
    "Layer",
    "Module",
    "Site",
    "Wait",
    "Wrapping",
]

UNLIMITED: Final = math.inf
EVERYTHING: Final = "Exception"  # what a handler names that stops at nothing


class Wait(Enum):
    """How long is waited before the next attempt."""

    NONE = "at once"
    FIXED = "the same for everybody"
    JITTER = "with jitter"
    UNKNOWN = "not shown"


@dataclass(slots=True, frozen=True, kw_only=True)
class Layer:
    """One place that tries again.

    `attempts` counts the first one too: `UNLIMITED`, or None when it is bounded by something that
    the code does not show as a number; `bound` says it in words. `catches` are the exceptions that
    it repeats on, as dotted names, None when that is decided by a function. `raises` is what leaves
    it at the end when that is not what it caught. `leaks` is false when nothing leaves it.
    """

    library: str
    line: int
    column: int
    attempts: float | None
    bound: str
    wait: Wait = Wait.UNKNOWN
    wait_said: str = ""
    catches: tuple[str, ...] | None = (EVERYTHING,)
    raises: str | None = None
    leaks: bool = True
    kind: str = "decorator"
    end_line: int = 0
    methods: tuple[str, ...] | None = None  # verbs that a transport repeats
    statuses: tuple[int, ...] = ()
    hears: bool | None = None  # whether it waits as long as Retry-After says
    named: bool = False  # whether it is set up elsewhere in the module and used here by its name


@dataclass(slots=True, frozen=True)
class Site:
    """One call: what is called, where, and what repeats it within its own function.

    `layers` are innermost first; `absorbed` when no failure of it can leave the function. `client`
    is the layer of the object it is called on, if that repeats by itself. `handed` are the
    functions among its arguments, each with its place or its keyword.
    """

    target: str
    line: int
    column: int = 0
    layers: tuple[Layer, ...] = ()
    absorbed: bool = False
    client: Layer | None = None
    handed: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True, frozen=True)
class Wrapping:
    """A decorator that is no library's: its name, and the numbers and exceptions given to it."""

    name: str
    line: int
    column: int
    numbers: dict[str, int] = field(default_factory=dict)
    catches: tuple[str, ...] = ()


@dataclass(slots=True)
class Function:
    """One function: its calls, and the layers around all of it (outermost first).

    `gives` is the loop around what it decorates, if it is a decorator that retries, and `defaults`
    are its parameters that are numbers. If it rather calls what it is handed, `takes` is the name
    and the place of that parameter.
    """

    name: str
    file: str
    line: int
    layers: tuple[Layer, ...] = ()
    sites: list[Site] = field(default_factory=list)
    wrappings: tuple[Wrapping, ...] = ()
    gives: Layer | None = None
    takes: tuple[str, str] | None = None
    defaults: dict[str, int] = field(default_factory=dict)

    @property
    def short(self) -> str:
        """Its name as people say it: with its class, without its module."""
        return ".".join(self.name.split(".")[-2:]) if self.name.count(".") else self.name


@dataclass(slots=True, frozen=True)
class Exported:
    """What a name of a module stands for, as others see it."""

    target: str
    client: Layer | None = None


@dataclass(slots=True)
class Module:
    """What is left of one file."""

    name: str
    file: str
    functions: dict[str, Function] = field(default_factory=dict)
    exports: dict[str, Exported] = field(default_factory=dict)
