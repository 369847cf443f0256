"""How is a storm told to somebody who has a minute: on a screen, and as one picture on a page?

Four rows, always in the same order: without a guard and with one, each predicted and live. The
sentence above them is the comparison that matters: what was still answered in time, of what the
service could still do, and when it was over.
"""

from collections.abc import Callable, Sequence
from typing import Final

from tidegate.findings import Measure
from tidegate.lab.findings import StormAgreement, StormReport, StormRun
from tidegate.report import blocks, charts, page
from tidegate.report.charts import Series
from tidegate.report.figures import clean, figure, number, rate, runs_behind, seeds_in_short, share
from tidegate.report.markup import Markup, el
from tidegate.report.terminal import Columns, hang, paint

__all__ = ["render_html", "render_text"]

_LABEL: Final = 12
_ROWS: Final = (
    "in time before",
    "in time during",
    "of what is left",
    "in time after",
    "back after",
    "attempts during",
)
_CLIENTS: Final = {"unguarded": "without a guard", "guarded": "with a guard"}
_HOW: Final = {"simulated": "predicted", "measured": "live"}


def render_text(report: StormReport, *, width: int, color: bool) -> str:
    """The screen, ended by a newline, in lines of at most `width` cells (40 at least)."""
    width = max(width, 40)
    rows = _rows(report)
    columns = Columns(_heads(report), rows, width=width, indent=0)
    blocks = [
        [
            *hang(_verdict(report).upper(), clean(report.says), width, _LABEL),
            *hang("", _offered(report), width, _LABEL),
        ],
        [*columns.head(), *(line for row in rows for line in columns.row(row))],
        [
            *hang("simulator", _agreed(report.agreement), width, _LABEL),
            *(line for doubt in _doubts(report) for line in hang("doubt", doubt, width, _LABEL)),
            *hang("guard", clean(report.guard), width, _LABEL),
            *hang("seeds", f"{seeds_in_short(report.seeds)}; {_took(report)}", width, _LABEL),
            f"{'repeat':{_LABEL}}{clean(report.repeat)}",
        ],
    ]
    text = "\n\n".join("\n".join(lines) for lines in blocks) + "\n"
    return paint(text) if color else text


def render_html(report: StormReport) -> str:
    """The page, ended by a newline."""
    goodput = _picture(
        report,
        "goodput",
        "Answered in time, each second",
        lambda run: run.timeline.goodput,
        "The thin lines are the simulator's, which knew nothing of the live runs.",
    )
    attempts = _picture(
        report,
        "attempts",
        "Attempts that reach the service, each second",
        lambda run: run.timeline.attempts,
        f"{rate(report.left)} can be served while the trigger lasts.",
    )
    return page.document(
        f"{_verdict(report)}: {report.source} (tidegate lab storm)",
        el("a", "Skip to the picture", href="#goodput", class_="skip"),
        el(
            "header",
            el("p", "tidegate lab storm of ", el("strong", report.source), class_="muted"),
            el("h1", blocks.badge(_TONE[_verdict(report)], _verdict(report)), " ", report.says),
            el("p", _offered(report), class_="muted"),
        ),
        el(
            "main",
            el("section", goodput, attempts),
            el("section", el("h2", "In figures"), _table(report), *_below(report)),
            el("section", el("h2", "How this was made"), _made(report)),
        ),
    )


_TONE: Final = {"holds": "stable", "does not hold": "fails"}


def _verdict(report: StormReport) -> str:
    return "does not hold" if report.exit_code else "holds"


def _offered(report: StormReport) -> str:
    return (
        f"{clean(report.trigger)}; {rate(report.offered)} are offered before, and"
        f" {rate(report.left)} of what is offered can be served while it lasts."
    )


def _name(run: StormRun) -> str:
    return f"{_CLIENTS[run.client]}, {_HOW[run.how]}"


def _heads(report: StormReport) -> tuple[str, ...]:
    return ("", *(f"{run.client}, {_HOW[run.how]}" for run in report.runs))


def _rows(report: StormReport) -> list[tuple[str, ...]]:
    """One figure a row, the runs beside each other: that is how they are compared."""
    return list(zip(_ROWS, *map(_cells, report.runs), strict=True))


def _cells(run: StormRun) -> tuple[str, ...]:
    back = "not while watched" if run.back_after is None else _plain(run.back_after)
    figures = (run.before, run.during, run.kept, run.after)
    return (*map(_plain, figures), back, _plain(run.attempts))


def _plain(measure: Measure) -> str:
    """The figure with its spread; how it was got stands in the row's name."""
    as_simulated = Measure(
        value=measure.value,
        low=measure.low,
        high=measure.high,
        unit=measure.unit,
        runs=measure.runs,
        how="simulated",
    )
    return figure(as_simulated).removesuffix(" (one run)")


def _agreed(agreement: Sequence[StormAgreement]) -> str:
    """How far the simulator was off, over the whole of each run."""
    told = [
        f"{a.what} {_CLIENTS[a.client]} {number(a.measured.value)} live,"
        f" {_with_spread(a.simulated)} predicted ({100 * a.difference:+.1f}%)"
        for a in agreement
    ]
    return f"per request, over the whole run: {'; '.join(told)}" if told else "nothing to compare"


def _with_spread(said: Measure) -> str:
    if said.runs == 1:
        return number(said.value)
    return f"{number(said.value)} ({number(said.low)}..{number(said.high)})"


def _doubts(report: StormReport) -> list[str]:
    return [f"{_name(run)}: {run.doubt}" for run in report.runs if run.doubt]


def _took(report: StormReport) -> str:
    return f"took {report.took_s:.0f}s; tidegate {report.version}, exit code {report.exit_code}"


def _picture(
    report: StormReport,
    key: str,
    title: str,
    values: Callable[[StormRun], Sequence[float]],
    says: str,
) -> Markup:
    offered = Series("offered", "offered", report.runs[-1].timeline.offered, rate)
    curves = [Series(_name(run), _kind(run), values(run), rate) for run in report.runs]
    run = report.runs[0].timeline
    seeds = sorted({run.timeline.seed for run in report.runs})
    return charts.overlay(
        [offered, *curves],
        (run.start, float(len(run.seconds)) if run.end is None else run.end),
        key=key,
        title=title,
        says=says,
        how=f"Each curve is one run, seed {seeds_in_short(seeds)}.",
    )


def _kind(run: StormRun) -> str:
    return run.client if run.how == "measured" else f"{run.client}-said"


def _table(report: StormReport) -> Markup:
    behind = runs_behind(run.during for run in report.runs) or "not in this report"
    return blocks.table(
        f"Requests answered in time per second. Predicted: {behind}, (lowest..highest); live: one"
        " run. Back: seconds from the trigger's end until 95% of what is offered is answered in"
        " time again.",
        ("each second", *_heads(report)[1:]),
        _rows(report),
        numbers=range(1, len(report.runs) + 1),
    )


def _below(report: StormReport) -> list[Markup]:
    agreed = el("p", f"The simulator beside the live runs, {_agreed(report.agreement)}.")
    return [agreed, *blocks.notes("Doubts", _doubts(report))]


def _made(report: StormReport) -> Markup:
    return blocks.facts(
        [
            ("the guard", report.guard),
            ("kept at worst", share(min(run.kept.low for run in report.runs))),
            ("seeds", seeds_in_short(report.seeds)),
            ("repeat", el("code", report.repeat)),
            ("made", _took(report)),
        ]
    )
