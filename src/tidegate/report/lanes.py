"""How is shown what becomes of a spool's lanes, on one screen and on a page?

The lane as it is configured comes first and then what others do, so that one look down a column
says what the configuration is worth. A file that is of a spool alone has nothing else to tell.
"""

import bisect
import math
from collections.abc import Iterable, Sequence
from typing import Final

from tidegate.findings import CheckReport, LanePlan, LaneResult, LaneWay, Measure
from tidegate.report import blocks, charts
from tidegate.report.blocks import Cell
from tidegate.report.charts import Series
from tidegate.report.figures import (
    clean,
    duration,
    figure,
    number,
    plural,
    runs_behind,
    sentence,
    share,
    some,
)
from tidegate.report.markup import Markup, el, lines
from tidegate.report.terminal import Columns, hang

__all__ = ["lanes_section", "lanes_text", "of_spool_alone", "worst_first"]

_LABEL: Final = 12
_LANES: Final = 2  # told in full; the others in a line
_ORDER: Final = ("collapses by itself", "fails", "vulnerable", "not judged", "stable")
_HEADS: Final = ("peak", "live lost", "late", "gone after", "of least", "p99")


def of_spool_alone(report: CheckReport) -> bool:
    """Whether there is nothing to be said but of lanes."""
    return bool(report.lanes) and not report.services


def worst_first(lanes: Iterable[LaneResult]) -> list[LaneResult]:
    """By verdict, else as written."""
    return sorted(lanes, key=lambda lane: _ORDER.index(lane.verdict))


# On a screen.


def lanes_text(report: CheckReport, width: int) -> list[str]:
    """The lanes, the worst first, each with its ways as a table and what is planned."""
    ranked = worst_first(report.lanes)
    told: list[str] = []
    for lane in ranked[:_LANES]:
        told += [""] if told else []
        told += _lane(lane, width, alone=of_spool_alone(report) and len(ranked) == 1)
    rest = [f"{clean(lane.lane)} {lane.verdict}" for lane in ranked[_LANES:]]
    if rest:
        told += hang("", f"and {plural(len(rest), 'more lane')}: {some(rest)}", width, 2)
    return told


def _lane(lane: LaneResult, width: int, *, alone: bool) -> list[str]:
    title = f"LANE {clean(lane.lane)} ({runs_behind(way.peak for way in lane.ways)} of each)"
    rows = [_row(way) for way in lane.ways]
    table = Columns(
        (title, *_HEADS, ""), [(*row, "") for row in rows], width=width, right=range(1, 7)
    )
    told = [] if alone else hang(f"{lane.verdict.upper()}", sentence(lane.says), width, _LABEL)
    told += table.head()
    told += [line for row in rows for line in table.row((*row, ""))]
    for way in lane.ways[:1]:
        told += hang("  spread", _spread(way), width, _LABEL)
    told += hang("  plan", "; ".join(clean(said) for said in lane.plan.says), width, _LABEL)
    if lane.fix:
        told += hang("  cure", sentence(lane.fix), width, _LABEL)
        told += hang("  write", "this into the file:", width, _LABEL)
        for line in lane.yaml.rstrip().split("\n"):
            told += hang("", clean(line), width, _LABEL + 2 + len(line) - len(line.lstrip()))
    return told + hang("  assumed", "; ".join(map(clean, lane.assumptions)), width, _LABEL)


def _row(way: LaneWay) -> tuple[str, ...]:
    """One way in means; how far the runs differ is said of the configured way, below."""
    return (
        clean(way.way),
        f"{number(way.peak.value)}x",
        share(way.lost.value),
        share(way.late.value),
        "never" if way.drained is None else duration(_round(way.drained.value)),
        "-" if way.of_limit is None else f"{way.of_limit.value:.2f}x",
        f"{number(round(1000 * way.p99.value))}ms",
    )


def _round(seconds: float) -> float:
    return float(f"{seconds:.3g}")


def _spread(way: LaneWay) -> str:
    """The configured way again, with the lowest and the highest of its runs."""
    lost = f"{share(way.lost.value)} ({share(way.lost.low)}..{share(way.lost.high)})"
    told = [f"peak {figure(_short(way.peak))}", f"live lost {lost}"]
    if way.drained is not None:
        told.append(f"gone after {figure(_short(way.drained))}")
    return f"{clean(way.way)}: {', '.join(told)} of the runs"


def _short(measure: Measure) -> Measure:
    """The same to three digits: so many the runs agree on."""
    three = (float(f"{v:.3g}") for v in (measure.value, measure.low, measure.high))
    value, low, high = three
    return Measure(
        value=value, low=low, high=high, unit=measure.unit, runs=measure.runs, how=measure.how
    )


# On a page.


def lanes_section(report: CheckReport) -> tuple[str, Sequence[str | None]] | None:
    """The lanes with all their figures and a picture of each."""
    if not report.lanes:
        return None
    articles = (_article(lane, f"lane-{i}") for i, lane in enumerate(worst_first(report.lanes), 1))
    return "lanes", (el("h2", "Lanes of the spool"), *articles)


def _article(lane: LaneResult, key: str) -> Markup:
    behind = runs_behind(way.peak for way in lane.ways)
    harm = blocks.table(
        f"Ways to give the backlog back ({behind} of each; where no spread is shown they agree to"
        " three digits). Peak is of the live rate; lost is of the live records of the hour after"
        " the sink's return; of least is against the least possible time.",
        ("way", "peak", "live lost", "gone after", "of least"),
        [_harm(way) for way in lane.ways],
        numbers=range(1, 5),
    )
    price = blocks.table(
        "What else it costs, in the same runs. Of capacity is the peak against what the sink could"
        " take then; late is of the live records of that hour.",
        ("way", "p99", "of capacity", "late", "overload", "sent in vain"),
        [_price(way) for way in lane.ways],
        numbers=range(1, 6),
    )
    return el(
        "article",
        el("h3", blocks.badge(lane.verdict), " ", lane.lane, id=f"{key}-name"),
        el("p", sentence(lane.says)),
        harm,
        price,
        *([_chart(lane, f"{key}-run")] if _can_be_drawn(lane.ways) else []),
        blocks.facts(_facts(lane.plan)),
        el("ul", *(el("li", sentence(said)) for said in lane.plan.says)),
        *_cure(lane),
        *blocks.notes("Assumed", lane.assumptions),
        id=key,
        aria_labelledby=f"{key}-name",
    )


def _harm(way: LaneWay) -> tuple[Cell, ...]:
    return (
        _named(way),
        _agreed(way.peak),
        _agreed(way.lost),
        "never" if way.drained is None else _agreed(way.drained),
        "" if way.of_limit is None else _agreed(way.of_limit),
    )


def _price(way: LaneWay) -> tuple[Cell, ...]:
    measures = (way.p99, way.peak_of_capacity, way.late, way.overload, way.resent)
    return (_named(way), *map(_agreed, measures))


def _agreed(measure: Measure) -> str:
    """A figure with its spread, if there is one at three digits."""
    short = _short(measure)
    # A share has a form of its own: rounded twice, 4.05 % would be 4.1 % here and 4 % there.
    told = figure(measure if measure.unit == "share" else short)
    return told.partition(" (")[0] if short.low == short.high else told


def _named(way: LaneWay) -> Cell:
    return el("strong", way.way) if way.configured else way.way


def _can_be_drawn(ways: Sequence[LaneWay]) -> bool:
    """Whether there are two to be seen beside each other, point by point."""
    return len(ways) > 1 and all(
        len(way.seconds) == len(way.sent) == len(way.capacity) > 1
        and way.seconds[0] < way.seconds[1]
        for way in ways[:2]
    )


def _chart(lane: LaneResult, key: str) -> Markup:
    """What the fleet sends as it is configured, another way beside it, and what the sink takes.

    The way beside it is cut at three times what the sink takes, else nothing else would be seen.
    """
    way, other = lane.ways[0], lane.ways[1]
    step = way.seconds[1] - way.seconds[0] if len(way.seconds) > 1 else 1.0
    shown = _shown(way, other, step)
    size = max(1, math.ceil(shown / charts.POINTS_MOST))
    every = size * step
    takes = [min(way.capacity[i : i + size]) for i in range(0, shown, size)]
    beside = [_sent_at(other, point * every) for point in range(len(takes))]
    top = 3 * max(takes)
    series = [
        Series("the sink could take", "offered", takes, _times),
        Series(f"sent, {way.way}", "goodput", _cut(_highest(way.sent[:shown], size), top), _times),
        Series(f"sent, {other.way}", "attempts", _cut(beside, top), _times),
    ]
    return charts.overlay(
        series,
        None,
        key=key,
        title=f"{lane.lane}: what is sent, as multiples of the live rate",
        says=f"It peaks at {_times(max(way.sent))} {way.way}, and at {_times(max(other.sent))}"
        f" {other.way}.",
        how=f"One simulated run of each, seed {way.seed}; each point is the highest of"
        f" {duration(every)}, drawn up to {_times(top)}.",
        every=every,
    )


def _shown(way: LaneWay, other: LaneWay, step: float) -> int:
    """How many points: until a little after both are done, or all where one is not."""
    if way.drained is None or other.drained is None:
        return len(way.sent)
    both = max(way.drained.value, other.drained.value)
    return min(len(way.sent), max(2, math.ceil(1.25 * both / step)))


def _times(value: float) -> str:
    return f"{number(value)}x"


def _highest(values: Sequence[float], size: int) -> list[float]:
    """The highest of each so many: a mean would hide a peak."""
    return [max(values[i : i + size]) for i in range(0, len(values), size)]


def _cut(values: Iterable[float | None], top: float) -> list[float | None]:
    return [None if value is None else min(value, top) for value in values]


def _sent_at(way: LaneWay, at: float) -> float | None:
    """What was sent at that second; None after the run's end."""
    step = way.seconds[1] - way.seconds[0] if len(way.seconds) > 1 else 1.0
    place = bisect.bisect_right(way.seconds, at) - 1
    return None if at >= way.seconds[-1] + step else way.sent[place]


def _facts(plan: LanePlan) -> list[tuple[str, Cell]]:
    told: list[tuple[str, Cell]] = [
        ("backlog of all", figure(_short(plan.backlog))),
        ("on each collector", figure(_short(plan.needs))),
        ("least possible time", "none" if plan.limit is None else figure(_short(plan.limit))),
        ("likely, led", "none" if plan.likely is None else figure(_short(plan.likely))),
        ("without one broker", figure(_short(plan.spare))),
        ("too old at its turn", figure(_short(plan.too_old))),
    ]
    if plan.kept_for is not None:
        told.append(("bounds are met after", figure(_short(plan.kept_for))))
    return told


def _cure(lane: LaneResult) -> list[Markup]:
    if not lane.fix:
        return []
    return [
        el("h4", "Cure"),
        el("p", sentence(lane.fix)),
        el("pre", el("code", lines(lane.yaml))),
    ]
