"""What can be seen to be wrong with a system from its description alone?

`audit` asks every rule, and answers with findings, the worst first. It needs no capacity and no
simulation: a finding says what a setting does as soon as something is slow, not whether it will be.
The rules stand in `rules/`, each with its page section in `docs/audit.md`.
"""

from collections.abc import Iterable
from typing import Final

from tidegate.analysis.rules import edges, pools, retries, times
from tidegate.analysis.rules.view import Hit, Rule, View
from tidegate.findings import AuditFinding, Severity
from tidegate.settings.system import System

__all__ = ["RULES", "audit"]

RULES: Final[tuple[Rule, ...]] = (*retries.RULES, *times.RULES, *pools.RULES, *edges.RULES)

_ORDER: Final[tuple[Severity, ...]] = ("error", "warning", "note")


def audit(system: System, rules: Iterable[Rule] = RULES) -> list[AuditFinding]:
    """Every breach of a rule, by severity, then by place in the file, then by rule."""
    view = View(system)
    found = [(rule, hit) for rule in rules for hit in rule.find(view)]
    places = _places(view.system)

    def rank(item: tuple[Rule, Hit]) -> tuple[int, int]:
        rule, hit = item
        return _ORDER.index(hit.severity or rule.severity), places[_place(hit)]

    return [_finding(rule, hit) for rule, hit in sorted(found, key=rank)]


def _finding(rule: Rule, hit: Hit) -> AuditFinding:
    return AuditFinding(
        rule=rule.name,
        severity=hit.severity or rule.severity,
        where=".".join(hit.path),
        says=hit.says,
        fix=f"{hit.fix[0].upper()}{hit.fix[1:]}.",
        yaml=hit.yaml,
    )


def _place(hit: Hit) -> tuple[str, ...]:
    """The call, or else the client or service, that a finding is about."""
    return hit.path[:4] if hit.path[2:3] == ("calls",) else hit.path[:2]


def _places(system: System) -> dict[tuple[str, ...], int]:
    """Where each client, service and call stands in the file."""
    paths: list[tuple[str, ...]] = []
    for section, caller, calls in system.callers():
        paths.append((section, caller))
        paths.extend((section, caller, "calls", name) for name in calls)
    return {path: index for index, path in enumerate(paths)}
