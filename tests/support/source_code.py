"""Code in a string, audited without a disk."""

import ast
from textwrap import dedent

from tidegate.analysis.source import suppress
from tidegate.analysis.source.audit import RULES
from tidegate.analysis.source.read import read
from tidegate.analysis.source.rules import breakers, layers, retries, timeouts
from tidegate.analysis.source.rules.rule import Hit
from tidegate.analysis.source.seen import Source

KNOWN = frozenset(rule.name for rule in RULES)


def source(code: str, name: str = "app", *, package: bool = False) -> Source:
    """One module, read."""
    return read(ast.parse(dedent(code)), name=name, file=f"{name}.py", package=package)


def hits(code: str, **others: str) -> list[Hit]:
    """Every breach in a module, and those of its nested retries through other modules."""
    code = dedent(code)
    main = source(code)
    modules = [main.module, *(source(text, name).module for name, text in others.items())]
    found = [hit for rules in (retries, timeouts, breakers) for hit in rules.find(main)]
    found += [hit for file, hit in layers.find(modules) if file == "app.py"]
    left, _ = suppress.apply(found, suppress.allowances(code), KNOWN)
    return left


def broken(code: str, **others: str) -> list[str]:
    """The names of the rules that a module breaks, each as often as it does."""
    return sorted(hit.rule.name for hit in hits(code, **others))
