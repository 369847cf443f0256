"""How does a curve get onto a page that has no script, no network and any width?

Written by hand as SVG, because the page must stay self-contained, themeable and light: matplotlib
brings 60 MB and fixed colours, Altair needs 800 kB of script in every page, and pygal scales its
text with the picture (unreadable on a phone) and styles itself past the page's light and dark.

The curves live in an inner picture that stretches with the page, their strokes do not; the labels
are placed in percent around it and keep the size of the text. Curves differ by colour (blue and
orange, which no common colour blindness confuses), by dash and by weight. Each chart is a
`figure`: what it shows in a sentence, a key, the picture, and the table of its points.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from tidegate.findings import Hysteresis, Timeline
from tidegate.report.figures import duration, rate, share
from tidegate.report.markup import Markup, el, join

__all__ = ["POINTS_MOST", "Series", "hysteresis", "overlay", "timeline"]

POINTS_MOST: Final = 120  # of one curve: three pixels each on a phone, and a table one can scroll

_WIDE: Final = 1000  # of the inner picture, which stretches
_HIGH: Final = 200  # of the plot, in pixels
_TOP: Final = 8  # above it, for half of the topmost label
_BELOW: Final = 26  # under it, for the labels of the x axis
_STEPS: Final = (1.0, 2.0, 2.5, 5.0, 10.0)
_STEPS_OF_TIME: Final = (
    *(0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800),
    *(3600.0, 7200, 14400, 21600, 43200, 86400),
)
_DASHES: Final = {
    "offered": "2 3",
    "goodput": None,
    "attempts": "9 4",
    "healthy": None,
    "collapsed": "9 4",
    "today": None,
    "hidden": "2 3",
    "tips": "9 3 2 3",
    "guarded": None,
    "guarded-said": "3 3",
    "unguarded": "9 4",
    "unguarded-said": "2 4",
}

Number = float | None
Form = Callable[[float], str]


class Series(NamedTuple):
    """One curve: its name in the key, its class in the style sheet, its height at each x."""

    name: str
    kind: str
    values: Sequence[Number]
    form: Form


class Mark(NamedTuple):
    """One instant or load that the picture points out, as a line from top to bottom."""

    name: str
    kind: str
    x: float


class Axis(NamedTuple):
    """What one axis runs from and to, and where it is labelled."""

    low: float
    high: float
    ticks: Sequence[float]
    form: Form

    def part(self, value: float) -> float:
        """Where a value lies, from 0 at the low end to 1 at the high end."""
        span = self.high - self.low
        return (value - self.low) / span if span > 0 else 0.0


def timeline(run: Timeline, *, key: str, of: str) -> Markup:
    """Offered load, goodput and attempts of one run, the trigger's window shaded.

    `key` makes the ids of this figure unique on its page; `of` names the trigger.
    """
    rows, step = _binned(run)
    if not rows:
        return el("p", "No timeline was kept of this run.", class_="muted")
    starts = [row[0] for row in rows]
    series = [
        Series("offered", "offered", [row[1] for row in rows], rate),
        Series("answered in time (goodput)", "goodput", [row[2] for row in rows], rate),
        Series("attempts", "attempts", [row[3] for row in rows], rate),
    ]
    across = _time_axis(starts[0], starts[-1] + step)
    up = _axis(0, max(v for s in series for v in s.values if v is not None), rate, 4)
    window = (max(run.start, across.low), across.high if run.end is None else run.end)
    whose = f"client {run.client}" if run.client else "all clients together"
    title = f"{of}: load, goodput and attempts over time, {whose}"
    return _figure(
        key=key,
        title=title,
        says=_told(run, rows),
        plot=_plot(key, title, _told(run, rows), across, up, starts, series, window=window),
        legend=_legend(series, [], shaded="the trigger lasts"),
        table=_table("from", starts, series, _instant, _in_window(starts, run)),
        how=f"One simulated run, seed {run.seed}; each point is the mean of {duration(step)}.",
    )


def overlay(
    series: Sequence[Series],
    window: tuple[float, float] | None,
    *,
    key: str,
    title: str,
    says: str,
    how: str,
    every: float = 1.0,
) -> Markup:
    """Several runs over each other from second 0 on, a point `every` so many; `window` shaded."""
    starts = [every * point for point in range(max(len(one.values) for one in series))]
    across = _time_axis(0.0, starts[-1] + every)
    up = _axis(0, max(v for s in series for v in s.values if v is not None), series[0].form, 4)
    inside = None
    if window is not None:
        inside = ["yes" if window[0] <= at < window[1] else "no" for at in starts]
    return _figure(
        key=key,
        title=title,
        says=says,
        plot=_plot(key, title, says, across, up, starts, series, window=window),
        legend=_legend(series, [], shaded=None if window is None else "the trigger lasts"),
        table=_table("from", starts, series, _instant, inside),
        how=how,
    )


def hysteresis(curve: Hysteresis, *, key: str) -> Markup:
    """Where one service works and where it stays down, by the load that it is offered."""
    if not curve.load:
        return el("p", "No steady states were computed.", class_="muted")
    series = [
        Series("coming from health", "healthy", curve.healthy, share),
        Series("once it is down", "collapsed", curve.collapsed, share),
    ]
    marks = [
        Mark("today", "today", curve.today),
        *([] if curve.hidden is None else [Mark("heals below", "hidden", curve.hidden)]),
        *([] if curve.tips_at is None else [Mark("tips over at", "tips", curve.tips_at)]),
    ]
    across = _axis(0, max(*curve.load, *(mark.x for mark in marks)), rate, 4, whole=False)
    up = Axis(0, 1, (0, 0.25, 0.5, 0.75, 1), lambda value: share(value, 0))
    title = f"{curve.service}: {curve.unit}, by offered load"
    says = _told_states(curve)
    return _figure(
        key=key,
        title=title,
        says=says,
        plot=_plot(key, title, says, across, up, curve.load, series, marks=marks),
        legend=_legend(series, marks),
        table=_table("offered", curve.load, series, rate, None),
        how="Steady states of the fluid model: computed, no spread.",
    )


def _binned(run: Timeline) -> tuple[list[tuple[float, float, float, float]], float]:
    """At most `POINTS_MOST` rows (from, offered, goodput, attempts), and how long each lasts."""
    every = list(zip(run.seconds, run.offered, run.goodput, run.attempts, strict=False))
    size = max(1, math.ceil(len(every) / POINTS_MOST))
    rows = []
    for first in range(0, len(every), size):
        part = every[first : first + size]
        offered, goodput, attempts = (sum(row[i] for row in part) / len(part) for i in (1, 2, 3))
        rows.append((part[0][0], offered, goodput, attempts))
    apart = every[1][0] - every[0][0] if len(every) > 1 else 1.0
    return rows, apart * size


def _told(run: Timeline, rows: Sequence[tuple[float, float, float, float]]) -> str:
    """The curve in words, for those who do not see it and for those in a hurry."""
    before = [row[2] for row in rows if row[0] < run.start]
    after = [row for row in rows if row[0] >= run.start]
    peak = max(row[3] for row in rows)
    start = f"Goodput is {rate(sum(before) / len(before))} before the trigger, " if before else ""
    if not after:
        return f"{start}which is not reached in this run; attempts peak at {rate(peak)}."
    lowest = min(row[2] for row in after)
    return (
        f"{start or 'Goodput is '}{rate(lowest)} at its lowest and {rate(rows[-1][2])} at the end,"
        f" where {rate(rows[-1][1])} are offered; attempts peak at {rate(peak)}."
    )


def _told_states(curve: Hysteresis) -> str:
    told = [f"Today {curve.service} is offered {rate(curve.today)}."]
    if curve.hidden is not None:
        told.append(f"Below {rate(curve.hidden)} it comes back by itself after any trigger.")
    if curve.tips_at is not None:
        told.append(f"From {rate(curve.tips_at)} on it goes down without any trigger.")
    return " ".join(told)


def _in_window(starts: Sequence[float], run: Timeline) -> list[str]:
    end = math.inf if run.end is None else run.end
    return ["yes" if run.start <= at < end else "no" for at in starts]


def _instant(seconds: float) -> str:
    """`305s`: instants of one table are compared, so they keep one unit and every second."""
    return f"{seconds:,.1f}".removesuffix(".0") + "s"


def _axis(low: float, high: float, form: Form, most: int, *, whole: bool = True) -> Axis:
    """Round steps, at most `most` of them. It ends with a step if `whole`, else with the data."""
    span = max(high - low, 1e-9)
    size = 10 ** math.floor(math.log10(span / most))
    step = next(s * size for s in _STEPS if s * size * most >= span * (1 - 1e-9))
    count = span / step
    steps = math.ceil(count - 1e-9) if whole else math.floor(count + 1e-9)
    end = low + steps * step if whole else high
    return Axis(low, end, [low + i * step for i in range(steps + 1)], form)


def _time_axis(low: float, high: float) -> Axis:
    """Steps that a clock has, few enough for a phone; the axis ends where the data ends."""
    few = 4.5
    step = next((s for s in _STEPS_OF_TIME if (high - low) / s <= few), (high - low) / few)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return Axis(low, high, [i * step for i in range(first, last + 1)], duration)


def _figure(
    *, key: str, title: str, says: str, plot: Markup, legend: Markup, table: Markup, how: str
) -> Markup:
    return el(
        "figure",
        el("figcaption", el("strong", title), " ", says, " ", el("span", how, class_="muted")),
        legend,
        plot,
        el(
            "details",
            el("summary", "The numbers of this chart"),
            el("div", table, class_="scroll", tabindex=0, role="region", aria_label=title),
            class_="numbers",
        ),
        id=key,
    )


def _plot(
    key: str,
    title: str,
    says: str,
    across: Axis,
    up: Axis,
    xs: Sequence[float],
    series: Sequence[Series],
    *,
    window: tuple[float, float] | None = None,
    marks: Sequence[Mark] = (),
) -> Markup:
    """Two pictures side by side: the labels of the y axis, and the plot with those of the x."""
    curves = el(
        "svg",
        # The first last: what is offered often lies upon what is answered, and is the thinner.
        *(_curve(across, up, xs, one) for one in reversed(series)),
        y=_TOP,
        width="100%",
        height=_HIGH,
        viewBox=f"0 0 {_WIDE} {_HIGH}",
        preserveAspectRatio="none",
    )
    picture = el(
        "svg",
        el("title", title, id=f"{key}-title"),
        el("desc", says, id=f"{key}-desc"),
        None if window is None else _shade(across, *window),
        *(_rule(_down(up, tick)) for tick in up.ticks),
        *(_mark(across, mark) for mark in marks),
        curves,
        *(_x_label(across, tick) for tick in across.ticks),
        class_="plot",
        role="img",
        aria_labelledby=f"{key}-title {key}-desc",
    )
    labels = (_y_label(_down(up, tick), up.form(tick)) for tick in up.ticks)
    return el(
        "div", el("svg", *labels, class_="scale", aria_hidden="true"), picture, class_="chart"
    )


def _down(up: Axis, value: float) -> float:
    return round(_TOP + _HIGH * (1 - up.part(value)), 1)


def _percent(part: float) -> str:
    return f"{100 * min(1.0, max(0.0, part)):.2f}%"


def _curve(across: Axis, up: Axis, xs: Sequence[float], series: Series) -> Markup:
    """One path; a missing value is a gap in it."""
    steps = []
    drawing = False
    for x, y in zip(xs, series.values, strict=False):
        if y is not None:
            place = f"{_WIDE * across.part(x):.1f} {_HIGH * (1 - up.part(y)):.1f}"
            steps.append(f"L{place}" if drawing else f"M{place}h0")
        drawing = y is not None
    return el("path", d="".join(steps), class_=f"curve {series.kind}", **_stroke(series.kind))


def _stroke(kind: str) -> dict[str, str | None]:
    return {"vector_effect": "non-scaling-stroke", "stroke_dasharray": _DASHES[kind]}


def _shade(across: Axis, start: float, end: float) -> Markup:
    left, right = (min(1.0, max(0.0, across.part(x))) for x in (start, end))
    wide = _percent(right - left)
    return el("rect", x=_percent(left), y=_TOP, width=wide, height=_HIGH, class_="window")


def _rule(y: float) -> Markup:
    return el("line", x1=0, x2="100%", y1=y, y2=y, class_="rule")


def _mark(across: Axis, mark: Mark) -> Markup:
    x = _percent(across.part(mark.x))
    dash = _DASHES[mark.kind]
    kind = f"curve {mark.kind}"
    return el("line", x1=x, x2=x, y1=_TOP, y2=_TOP + _HIGH, class_=kind, stroke_dasharray=dash)


def _y_label(y: float, text: str) -> Markup:
    return el("text", text, x="100%", y=y, dx=-6, dy="0.32em", text_anchor="end")


def _x_label(across: Axis, tick: float) -> Markup:
    part = across.part(tick)
    anchor = "start" if part < 0.05 else "end" if part > 0.95 else "middle"
    y = _TOP + _HIGH + _BELOW - 8
    return el("text", across.form(tick), x=_percent(part), y=y, text_anchor=anchor)


def _legend(series: Iterable[Series], marks: Iterable[Mark], shaded: str | None = None) -> Markup:
    entries = [(one.kind, one.name) for one in series]
    entries += [(mark.kind, f"{mark.name} {rate(mark.x)}") for mark in marks]
    items = [el("li", _swatch(kind), name) for kind, name in entries]
    if shaded is not None:
        box = el("rect", width=28, height=12, class_="window")
        items.append(el("li", el("svg", box, class_="swatch", aria_hidden="true"), shaded))
    return el("ul", *items, class_="key")


def _swatch(kind: str) -> Markup:
    line = el(
        "line", x1=0, x2=28, y1=6, y2=6, class_=f"curve {kind}", stroke_dasharray=_DASHES[kind]
    )
    return el("svg", line, class_="swatch", aria_hidden="true")


def _table(
    first: str,
    xs: Sequence[float],
    series: Sequence[Series],
    form: Form,
    inside: Sequence[str] | None,
) -> Markup:
    heads = [first, *(one.name for one in series), *(["in the trigger"] if inside else [])]
    rows = []
    for i, x in enumerate(xs):
        cells = [_told_value(one, i) for one in series] + ([inside[i]] if inside else [])
        rows.append(el("tr", el("th", form(x), scope="row"), *(el("td", cell) for cell in cells)))
    head = el("thead", el("tr", *(el("th", text, scope="col") for text in heads)))
    return el("table", head, el("tbody", join(rows)), class_="figures")


def _told_value(series: Series, i: int) -> str:
    value = series.values[i] if i < len(series.values) else None
    return "none" if value is None else series.form(value)
