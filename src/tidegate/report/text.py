"""What does `tidegate check` print, for somebody who was woken by it?

One screen: the verdict, the three numbers, why, what happens, what gets out of it, what cures it;
then the small print that lets another person check it. What does not fit is counted, never dropped
in silence, and stands whole in the JSON and the HTML report.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from tidegate.findings import CheckReport, Cure, Loop, Measure, ServiceFacts, TriggerResult
from tidegate.report.figures import (
    clean,
    figure,
    number,
    plural,
    rate,
    runs_behind,
    seeds_in_short,
    sentence,
    share,
    some,
)
from tidegate.report.lanes import lanes_text, of_spool_alone
from tidegate.report.terminal import Columns, hang, paint, wrap
from tidegate.report.words import (
    action_name,
    action_outcome,
    audit_worst_first,
    cure_verdict,
    cures_best_first,
    harm_of,
    modelled,
    needs_of,
    objective_of,
    outcome_of,
    services_worst_first,
    thin_in_short,
    three_numbers,
    trigger_name,
    triggers_worst_first,
    work_of,
)

__all__ = ["render"]

_NARROWEST: Final = 40  # narrower than this nothing can be read; lines then are 40 wide
_LABEL: Final = 12  # where the text beside a label begins
_JOURNEYS: Final = 2
_SERVICES: Final = 4
_TRIGGERS: Final = 2  # told with their clients; the others in a line
_OTHERS: Final = 3
_CLIENTS: Final = 2
_ACTIONS: Final = 4
_CURES: Final = 2
_YAML: Final = 4
_AUDIT: Final = 2
_UNKNOWNS: Final = 2
_NOTES: Final = 2


def render(report: CheckReport, *, width: int, color: bool) -> str:
    """The screen, ended by a newline, in lines of at most `width` cells (40 at least).

    Only the command that repeats the run may be longer: broken, it could not be copied.
    """
    width = max(width, _NARROWEST)
    blocks = [lines for part in _PARTS if (lines := part(report, width))]
    text = "\n\n".join("\n".join(lines) for lines in blocks) + "\n"
    return paint(text) if color else text


def _verdict(report: CheckReport, width: int) -> list[str]:
    lines = hang(report.verdict.upper(), clean(report.says), width, _LABEL)
    if report.thin:
        lines += hang("TOO THIN", thin_in_short(report), width, _LABEL)
    if report.interrupted:
        lines += hang("INTERRUPTED", "this is what was known when it was stopped", width, _LABEL)
    return lines + hang("", modelled(report), width, _LABEL)


def _why(report: CheckReport, width: int) -> list[str]:
    if of_spool_alone(report):
        return []
    harm, falls, stays = three_numbers(report)
    # Whoever falls is named in the sentence itself.
    known = falls.long if report.falls and falls.long else f"{falls.short}: {falls.long}"
    return [
        *hang(harm.label, f"{harm.short}: {harm.long}", width, _LABEL),
        *hang(falls.label, known, width, _LABEL),
        *hang(stays.label, f"{stays.short}: {stays.long}", width, _LABEL),
        *hang("binding", _binding(report), width, _LABEL),
        *hang("loop", _loop(report.loop), width, _LABEL),
        *_journeys(report, width),
    ]


def _journeys(report: CheckReport, width: int) -> list[str]:
    """What fails with what: the share of a journey's requests that needs each service."""
    lines: list[str] = []
    for journey in report.journeys[:_JOURNEYS]:
        told = f"{clean(journey.journey)}: {needs_of(journey)} (computed)"
        if journey.removals:
            best = min(journey.removals, key=lambda r: r.needs_then - r.needs)
            then = share(best.needs_then)
            told += f"; were {clean(best.call)} optional, {then} would need {clean(best.service)}"
        lines += hang("needs", told, width, _LABEL)
    return lines + _more(len(report.journeys) - _JOURNEYS, "journey", width)


def _binding(report: CheckReport) -> str:
    if report.binding is None:
        return "none: no service limits what is asked today"
    curve = report.hysteresis
    told = clean(report.binding)
    parts = []
    if curve is not None and curve.service == report.binding:
        parts.append(f"{rate(curve.today)} today")
        if curve.hidden is not None:
            parts.append(f"heals below {rate(curve.hidden)}")
        if curve.tips_at is not None:
            parts.append(f"falls by itself from {rate(curve.tips_at)}")
    facts = next((f for f in report.services if f.service == report.binding), None)
    if facts is not None and facts.escape is not None and facts.escape > 1:
        parts.append(f"once down sure to return only above {number(facts.escape)}x its capacity")
    return f"{told}: {', '.join(parts)} (computed)" if parts else told


def _loop(loop: Loop | None) -> str:
    if loop is None:
        return "none: no path multiplies attempts"
    path = clean(loop.client)
    for hop in loop.hops:
        path += f" -({clean(hop.call)})-> {clean(hop.callee)} x{number(hop.cumulative)}"
    return f"{path}: {number(loop.attempts_per_action)} attempts per user action (computed)"


def _services(report: CheckReport, width: int) -> list[str]:
    ranked = services_worst_first(report.services, report.binding)
    rows = [_service(facts) for facts in ranked[:_SERVICES]]
    head = ("SERVICES (computed)", "load", "in use", "serves up to", "heals below", "attempts", "")
    table = Columns(head, rows, width=width, right=(1, 2, 3, 4, 5))
    return [*_laid(table, rows), *_more(len(ranked) - _SERVICES, "service", width)] if rows else []


def _service(facts: ServiceFacts) -> tuple[str, ...]:
    return (
        clean(facts.service),
        rate(facts.load),
        "-" if facts.utilisation is None else share(facts.utilisation),
        "-" if facts.advertised is None else rate(facts.advertised),
        "-" if facts.hidden is None else rate(facts.hidden),
        f"x{number(facts.amplification)}",
        facts.state,
    )


def _triggers(report: CheckReport, width: int) -> list[str]:
    """The worst with their clients, in one table; a few more in a line each; the rest counted."""
    ranked = triggers_worst_first(report.triggers)
    if of_spool_alone(report):
        return []
    if not ranked:
        return hang("TRIGGERS", "none was tried", width, _LABEL)
    told = ranked[:_TRIGGERS]
    rows = [_clients(trigger) for trigger in told]
    head = (_titled("TRIGGERS", _figures(told)), "in time before", "during", "after", "in the end")
    table = Columns(head, [row for part in rows for row in part], width=width, indent=4)
    lines = table.head()
    for trigger, part in zip(told, rows, strict=True):
        lines += _trigger(trigger, width)
        lines += [line for row in part for line in table.row(row)]
    for trigger in ranked[_TRIGGERS : _TRIGGERS + _OTHERS]:
        brief = f"{trigger_name(trigger)}: {outcome_of(trigger)}; harm {harm_of(trigger)}"
        lines += _indented(f"{trigger.outcome.upper()}: {brief}", width)
    return lines + _rest_of(ranked[_TRIGGERS + _OTHERS :], width)


def _titled(title: str, measures: Iterable[Measure]) -> str:
    """The head of a table with what stands behind its figures."""
    behind = runs_behind(measures)
    return f"{title} ({behind})" if behind else title


def _figures(triggers: Iterable[TriggerResult]) -> list[Measure]:
    return [m for t in triggers for c in t.clients for m in (c.before, c.during, c.after)]


def _trigger(trigger: TriggerResult, width: int) -> list[str]:
    told = [outcome_of(trigger), *_sums_up(trigger)]
    if not trigger.objective_met:
        told += [f"{name} {value}" for name, value in work_of(trigger)]
    name = f"{trigger_name(trigger)}: {clean(trigger.says)}"
    outcome = f"{trigger.outcome.upper()}: {'; '.join(told)}"
    return [*wrap(name, width), *_indented(outcome, width)]


def _sums_up(trigger: TriggerResult) -> tuple[str, str]:
    return f"harm {harm_of(trigger)}", f"objective {objective_of(trigger)}"


def _indented(text: str, width: int) -> list[str]:
    """A paragraph set off by two blanks, its further lines by four."""
    first, *rest = wrap(text, width - 4)
    return [f"  {first}", *(f"    {line}" for line in rest)]


def _clients(trigger: TriggerResult) -> list[tuple[str, ...]]:
    """The clients that lose most; one is enough where the objective is met."""
    worst = sorted(trigger.clients, key=lambda c: (c.after.value, c.during.value))
    shown = worst[: 1 if trigger.objective_met else _CLIENTS]
    names = [clean(client.client) for client in shown]
    if len(shown) < len(worst):
        names[-1] += f" ({len(shown)} of {len(worst)})"
    return [
        (name, figure(c.before), figure(c.during), figure(c.after), figure(c.eventual))
        for name, c in zip(names, shown, strict=True)
    ]


def _rest_of(triggers: Sequence[TriggerResult], width: int) -> list[str]:
    if not triggers:
        return []
    outcomes = [trigger.outcome for trigger in triggers]
    counted = ", ".join(f"{outcomes.count(o)} {o}" for o in dict.fromkeys(outcomes))
    return _indented(f"and {plural(len(triggers), 'more trigger')}: {counted}", width)


def _way_out(report: CheckReport, width: int) -> list[str]:
    trigger = next((t for t in triggers_worst_first(report.triggers) if t.actions), None)
    if trigger is None:
        return []
    rows = [
        (action_name(a), action_outcome(a), figure(a.goodput)) for a in trigger.actions[:_ACTIONS]
    ]
    title = f"GETTING OUT of {clean(trigger.trigger)}"
    head = (title, "outcome", "in time then")
    table = Columns(head, rows, width=width)
    return [*_laid(table, rows), *_more(len(trigger.actions) - _ACTIONS, "action", width)]


def _cures(report: CheckReport, width: int) -> list[str]:
    """What cures, with its price; what does not, by name. If nothing does, the best of the rest."""
    ranked = cures_best_first(report.cures)
    told = [cure for cure in ranked if cure.cures] or ranked
    rows = [_cure(cure) for cure in told[:_CURES]]
    title = _titled("CURES", [cure.goodput_during for cure in told[:_CURES]])
    lines: list[str] = []
    if rows:
        head = (title, "cures", "in time during", "back after", "costs")
        lines += _laid(Columns(head, rows, width=width), rows)
        lines += _more(len(told) - _CURES, "cure", width)
        lines += _in_what_is_open(told[:_CURES], width)
        lines += _to_write(told[0], width) if told[0].cures else []
    elif report.skipped:
        lines += ["CURES"]
    failing = [f"{clean(c.cure)} ({cure_verdict(c)})" for c in ranked if c not in told]
    lines += hang("  too little", some(failing), width, _LABEL + 2) if failing else []
    return lines + (
        hang("  skipped", some(report.skipped), width, _LABEL + 2) if report.skipped else []
    )


def _cure(cure: Cure) -> tuple[str, ...]:
    back = "-" if cure.recovered_after is None else figure(cure.recovered_after)
    during = figure(cure.goodput_during)
    return clean(cure.cure), cure_verdict(cure), during, back, clean(cure.cost)


def _in_what_is_open(cures: Sequence[Cure], width: int) -> list[str]:
    """What `yes in 87%` is a share of, and how sure it is."""
    found = [f"{clean(c.cure)} in {figure(c.holds_in)}" for c in cures if c.holds_in is not None]
    if not found:
        return []
    runs = next(plural(c.holds_in.runs, "sample") for c in cures if c.holds_in is not None)
    told = f"{'; '.join(found)} of what the file leaves open ({runs})"
    return hang("  cures", told, width, _LABEL + 2)


def _to_write(cure: Cure, width: int) -> list[str]:
    """What to put into the file for the first cure."""
    yaml = [line for line in cure.yaml.split("\n") if line.strip()]
    if not yaml:
        return []
    lines = hang("  write", f"in {clean(cure.where)}:", width, _LABEL + 2)
    for line in yaml[:_YAML]:
        lines += hang("", clean(line), width, _LABEL + 4)
    return lines + _more(len(yaml) - _YAML, "line", width)


def _audit(report: CheckReport, width: int) -> list[str]:
    ranked = audit_worst_first(report.audit)
    if not ranked:
        return []
    severities = [found.severity for found in ranked]
    counted = ", ".join(plural(severities.count(s), s) for s in dict.fromkeys(severities))
    shown = f"; the first {_AUDIT}" if len(ranked) > _AUDIT else ""
    lines = hang("AUDIT", f"{counted}, found in the file alone{shown}:", width, _LABEL)
    for found in ranked[:_AUDIT]:
        told = f"{clean(found.where)}: {sentence(found.says)} {sentence(found.fix)}"
        lines += hang(f"  {found.severity}", told, width, _LABEL)
    return lines


def _made(report: CheckReport, width: int) -> list[str]:
    """The small print: what is not known, what was assumed, and how to do it again."""
    spent = f"took {report.cpu_seconds:,.1f}s of CPU time"
    made = f"tidegate {clean(report.version)}, exit code {report.exit_code}"
    return [
        *_unknowns(report, width),
        *_notes("disagree", report.disagreements, width),
        *_notes("assumed", report.assumptions, width),
        *hang("seeds", f"{seeds_in_short(report.seeds)}; {spent}; {made}", width, _LABEL),
        f"{'repeat':<{_LABEL}}{clean(report.repeat)}",
    ]


def _unknowns(report: CheckReport, width: int) -> list[str]:
    lines: list[str] = []
    if report.holds_in is not None:
        runs = plural(report.holds_in.runs, "sample")
        told = f"in {figure(report.holds_in)} of what the file leaves open ({runs})"
        lines += hang("holds", told, width, _LABEL)
    ranked = sorted(report.unknowns, key=lambda unknown: -unknown.decides)
    for unknown in ranked[:_UNKNOWNS]:
        span = f"{clean(unknown.path)} ({clean(unknown.low)}..{clean(unknown.high)})"
        told = f"{span} decides {share(unknown.decides)} of it. {sentence(unknown.says)}"
        lines += hang("not known", told.rstrip(), width, _LABEL)
    return lines + _more(len(ranked) - _UNKNOWNS, "unknown", width)


def _notes(label: str, notes: Sequence[str], width: int) -> list[str]:
    if not notes:
        return []
    told = "; ".join(clean(note) for note in notes[:_NOTES])
    more = f"; and {len(notes) - _NOTES} more" if len(notes) > _NOTES else ""
    return hang(label, told + more, width, _LABEL)


def _laid(table: Columns, rows: Iterable[Sequence[str]]) -> list[str]:
    return [*table.head(), *(line for row in rows for line in table.row(row))]


def _more(count: int, noun: str, width: int) -> list[str]:
    """`and 12 more findings`: what this screen leaves to the JSON and the HTML report."""
    return hang("", f"and {plural(count, f'more {noun}')}", width, 2) if count > 0 else []


_PARTS: Final[tuple[Callable[[CheckReport, int], list[str]], ...]] = (
    _verdict,
    _why,
    lanes_text,
    _services,
    _triggers,
    _way_out,
    _cures,
    _audit,
    _made,
)
