"""How is a figure shown, so that nobody takes it for more than it is?

A `Measure` is written with its unit and its range: `23% (21..25%)`. The range is the lowest and
the highest over the runs. A figure that was not simulated says so in the same bracket: `(fluid)`,
`(computed)`, `(assumed)`, `(stated)`. What was simulated carries no mark, because every report
says above its figures that they are; how many runs stand behind them is told by `runs_behind`.

Names come from files that somebody else wrote. `clean` makes them safe to put on a terminal or
on a page: what cannot be seen (escape sequences, bidirectional overrides) is spelled out.
"""

import math
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from tidegate.findings import Measure
from tidegate.units import SECOND, format_bytes, format_duration

__all__ = [
    "clean",
    "duration",
    "figure",
    "number",
    "plural",
    "rate",
    "runs_behind",
    "seeds_in_short",
    "sentence",
    "share",
    "some",
]

# Below ten thousand the digits are as short as the sign.
_LARGE: Final = ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k"))
_WIDE_SPREAD: Final = 0.005  # from half a point of spread on, tenths of a percent say nothing


def figure(measure: Measure, *, unit: str | None = None) -> str:
    """A measure for people: `23% (21..25%)`, `14s (12s..17s)`, `4,100 requests (computed)`.

    `unit` overrides the measure's own, so that a sentence can name it in its own words.
    """
    unit = measure.unit if unit is None else unit
    value, low, high = _spelled((measure.value, measure.low, measure.high), unit)
    marks = []
    if measure.how == "simulated":
        marks.append(_span(low, high, unit) if measure.runs != 1 else "one run")
    else:
        if measure.low != measure.high:
            marks.append(_span(low, high, unit))
        marks.append(measure.how)
    shown = value if unit in _FORMS or not unit else f"{value} {clean(unit)}"
    return f"{shown} ({', '.join(marks)})"


def _spelled(values: tuple[float, float, float], unit: str) -> tuple[str, str, str]:
    """A value with its low and its high end in one unit, all three equally precise."""
    if unit == "share":
        wide = values[2] - values[1] >= _WIDE_SPREAD
        low, high = (share(end, 0 if wide else 1) for end in values[1:])
        return share(values[0], 0 if wide else 1), low, high
    form = _FORMS.get(unit, number)
    return form(values[0]), form(values[1]), form(values[2])


def _span(low: str, high: str, unit: str) -> str:
    """`21..25%`: the sign of the unit once, at the end; durations keep both, they may differ."""
    sign = {"share": "%", "/s": "/s", "x": "x"}.get(unit, "")
    return f"{low.removesuffix(sign)}..{high}"


def number(value: float) -> str:
    """Three significant digits, no exponent: 581k, 1,840, 5.2, 0.04."""
    if not math.isfinite(value):
        return "endless" if value > 0 else "unknown"
    rounded = float(f"{value:.3g}")
    for least, size, sign in _LARGE:
        if abs(rounded) >= least:
            return f"{rounded / size:.6g}{sign}"
    if 0 < rounded < 0.001:
        return "<0.001"
    if rounded == 0 or abs(rounded) >= 100:
        return f"{rounded:,.0f}"
    return f"{rounded:,.6f}".rstrip("0").rstrip(".")


def share(value: float, digits: int = 1) -> str:
    """A share in percent. Rounding never makes all of it out of nearly all, nor none of some."""
    if not math.isfinite(value):
        return number(value)
    for places in range(digits, 2):
        text = f"{100 * value:.{places}f}"
        if (float(text) != 100 or value >= 1) and (float(text) != 0 or value <= 0):
            return (text.removesuffix(".0") if places else text) + "%"
    return "<0.1%" if value < 0.5 else ">99.9%"


def duration(seconds: float) -> str:
    """Seconds as a person says them: `250ms`, `14.2s`, `21.1min`."""
    return format_duration(seconds * SECOND) if math.isfinite(seconds) else number(seconds)


def rate(per_second: float) -> str:
    """`1,840/s`, three significant digits."""
    return f"{number(per_second)}/s"


def _factor(value: float) -> str:
    return f"{number(value)}x"


# The units that have a sign of their own; any other unit is a noun that follows its number.
_FORMS: Final[dict[str, Callable[[float], str]]] = {
    "share": share,
    "s": duration,
    "bytes": format_bytes,
    "/s": rate,
    "x": _factor,
}


def runs_behind(measures: Iterable[Measure]) -> str:
    """`simulated, 20 runs`: what stands behind the unmarked figures of a table, else ''."""
    runs = sorted({m.runs for m in measures if m.how == "simulated" and m.runs})
    if not runs:
        return ""
    if len(runs) == 1:
        return f"simulated, {plural(runs[0], 'run')}"
    return f"simulated, {runs[0]:,} to {runs[-1]:,} runs"


def plural(count: int, noun: str) -> str:
    """`1 run`, `20 runs`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def some(names: Sequence[str], most: int = 3) -> str:
    """The first few names, and how many more there are."""
    shown = ", ".join(clean(name) for name in names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def seeds_in_short(seeds: Sequence[int]) -> str:
    """`1..20, 31`: runs of neighbours by their ends, as they were used."""
    spans: list[tuple[int, int]] = []
    for seed in seeds:
        if spans and seed == spans[-1][1] + 1:
            spans[-1] = (spans[-1][0], seed)
        else:
            spans.append((seed, seed))
    return some([str(a) if a == b else f"{a}..{b}" for a, b in spans]) or "none"


def sentence(text: str) -> str:
    """The text, clean and with a full stop where it has none; nothing stays nothing."""
    told = clean(text).strip()
    return told if not told or told[-1] in ".!?" else f"{told}."


def clean(text: str) -> str:
    """The text on one line, everything that cannot be seen spelled out: ESC as backslash x1b."""
    if text.isprintable():
        return text  # nearly always
    return "".join(_visible(character) for character in text)


def _visible(character: str) -> str:
    if character.isprintable():
        return character
    if character in "\t\n\r" or unicodedata.category(character) == "Zs":
        return " "
    return character.encode("unicode_escape").decode("ascii")
