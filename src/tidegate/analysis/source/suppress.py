"""Which findings has somebody looked at and allowed, and why?

    session.get(url)  # tidegate: allow no-timeout because the pool's watchdog ends it

The comment stands on a line of what it allows, or alone on the line above. It names one rule or
several, with commas, and its reason follows `because`. Without a reason it allows nothing and is a
finding; one that meets nothing is a finding too, so that no leave outlives its cause.
"""

import io
import re
import tokenize
from collections.abc import Iterator
from typing import Final, NamedTuple

from tidegate.analysis.source.rules.rule import Hit, Rule

__all__ = ["RULES", "Allowance", "allowances", "apply"]

NO_REASON: Final = Rule(
    "allow-without-reason",
    "warning",
    "A suppression that does not say why.",
    "In a year nobody will know whether it still holds.",
    "Write `# tidegate: allow RULE because REASON`.",
)
UNUSED: Final = Rule(
    "allow-unused",
    "warning",
    "A suppression that suppresses nothing.",
    "It would hide the next finding on its line, which nobody has looked at.",
    "Take it out, or correct the name of its rule.",
)
RULES: Final = (NO_REASON, UNUSED)

_COMMENT: Final = re.compile(
    r"#\s*tidegate:\s*allow\b\s*(?P<rules>.*?)(?:\s+because\b\s*(?P<why>.*))?$"
)
_COMMENT_MAX: Final = 500  # characters; a reason is a sentence


class Allowance(NamedTuple):
    """A comment that allows some rules on some lines; `alone` when nothing else is on its line."""

    line: int
    column: int
    rules: tuple[str, ...]
    reason: str
    alone: bool

    def covers(self, hit: Hit) -> bool:
        """Whether a breach stands where this comment speaks."""
        here = hit.line <= self.line <= max(hit.end_line, hit.line)
        return hit.rule.name in self.rules and (here or (self.alone and self.line == hit.line - 1))


def allowances(text: str) -> list[Allowance]:
    """The comments of a module that allow something; text in strings is none."""
    if "tidegate:" not in text:
        return []
    found = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            match = (
                _COMMENT.match(token.string[:_COMMENT_MAX])
                if token.type == tokenize.COMMENT
                else None
            )
            if match is not None:
                rules = tuple(r for r in re.split(r"[,\s]+", match["rules"]) if r)
                line, column = token.start
                alone = not token.line[:column].strip()
                found.append(Allowance(line, column, rules, (match["why"] or "").strip(), alone))
    except (tokenize.TokenError, SyntaxError, IndentationError):
        return found
    return found


def apply(
    hits: list[Hit], allowed: list[Allowance], known: frozenset[str]
) -> tuple[list[Hit], list[tuple[Hit, str]]]:
    """What is left of the hits of one file, with what the comments got wrong; and what is allowed,
    each with its reason.
    """
    good = [a for a in allowed if a.reason and a.rules]
    left, quiet = [], []
    used: set[tuple[int, str]] = set()
    for hit in hits:
        by = next((a for a in good if a.covers(hit)), None)
        if by is None:
            left.append(hit)
        else:
            used.add((by.line, hit.rule.name))
            quiet.append((hit, by.reason))
    return [*left, *_faults(allowed, used, known)], quiet


def _faults(
    allowed: list[Allowance], used: set[tuple[int, str]], known: frozenset[str]
) -> Iterator[Hit]:
    for a in allowed:
        where = a.line, a.column, a.line
        if not a.rules:
            yield Hit(NO_REASON, *where, "the comment names no rule, so it allows nothing")
        elif not a.reason:
            said = ", ".join(a.rules)
            yield Hit(NO_REASON, *where, f"{said} is not allowed here: the comment gives no reason")
        else:
            for rule in a.rules:
                if rule not in known:
                    yield Hit(UNUSED, *where, f"there is no rule {rule!r}")
                elif (a.line, rule) not in used:
                    yield Hit(UNUSED, *where, f"nothing here breaks {rule}")
