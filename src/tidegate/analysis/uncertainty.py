"""In what share of what the file allows does the verdict hold, and which unknown decides it?

The open numbers are drawn by a Latin hypercube, every draw is a system of its own, and each is run
once under the same luck. An unknown decides as much as its value alone tells the bad draws from the
good ones: the rank-biserial correlation, twice the distance of the Mann-Whitney probability from
one half (Cureton 1956). One means that a threshold on this number alone gives the verdict.
"""

from collections.abc import Mapping, Sequence

from tidegate.analysis.statistics import confidence
from tidegate.findings import Measure, UnknownEffect
from tidegate.settings.unknowns import Path, Unknown

__all__ = ["effects", "holding"]


def holding(bad: Sequence[bool], verdict_is_bad: bool) -> Measure:
    """The share of the draws in which the verdict is the same, with its interval."""
    return confidence(sum(one == verdict_is_bad for one in bad), len(bad))


def effects(
    unknowns: Sequence[Unknown], draws: Sequence[Mapping[Path, float]], bad: Sequence[bool]
) -> list[UnknownEffect]:
    """Every unknown with how much it decides, the most decisive first."""
    found = [_effect(unknown, draws, bad) for unknown in unknowns]
    return sorted(found, key=lambda effect: (-effect.decides, effect.path))


def _effect(
    unknown: Unknown, draws: Sequence[Mapping[Path, float]], bad: Sequence[bool]
) -> UnknownEffect:
    worse = [draw[unknown.path] for draw, is_bad in zip(draws, bad, strict=True) if is_bad]
    better = [draw[unknown.path] for draw, is_bad in zip(draws, bad, strict=True) if not is_bad]
    toward = _separation(worse, better)
    name = ".".join(unknown.path)
    if not worse or not better:
        says = f"{name}: the verdict is the same over all of its range"
    else:
        side = "high values" if toward > 0 else "low values"
        if unknown.kind == "utilisation":
            side = "the busier ones" if toward > 0 else "the less busy ones"
        says = f"{name}: the bad outcomes come with {side}"
    return UnknownEffect(
        path=name,
        low=unknown.text(unknown.low),
        high=unknown.text(unknown.high),
        decides=abs(toward),
        says=says,
    )


def _separation(worse: Sequence[float], better: Sequence[float]) -> float:
    """P(worse > better) - P(worse < better) over all pairs; zero if one side is empty."""
    pairs = len(worse) * len(better)
    if not pairs:
        return 0.0
    return sum((w > b) - (w < b) for w in worse for b in better) / pairs
