"""How is a report handed on to somebody who was not there?

As one HTML file that needs nothing else (`page`): verdict first, then why, then what was tried.
Every chart stands beside its table.
"""

from collections.abc import Sequence

from tidegate.findings import (
    AuditFinding,
    CheckReport,
    Cure,
    JourneyDependencies,
    Loop,
    Measure,
    ServiceFacts,
    TriggerResult,
    UnknownEffect,
)
from tidegate.report import blocks, charts, page
from tidegate.report.blocks import Cell
from tidegate.report.figures import (
    figure,
    number,
    plural,
    rate,
    runs_behind,
    seeds_in_short,
    sentence,
    share,
)
from tidegate.report.lanes import lanes_section, of_spool_alone
from tidegate.report.markup import Markup, el, join, lines
from tidegate.report.words import (
    action_name,
    action_outcome,
    audit_worst_first,
    cure_verdict,
    cures_best_first,
    harm_of,
    modelled,
    objective_of,
    outcome_of,
    services_worst_first,
    three_numbers,
    trigger_name,
    triggers_worst_first,
    who_falls,
    work_of,
)

__all__ = ["render"]


def render(report: CheckReport) -> str:
    """The page, ended by a newline."""
    sections = [section for part in _PARTS if (section := part(report)) is not None]
    return page.document(
        f"{report.verdict}: {report.source} (tidegate check)",
        el("a", "Skip to what was found", href=f"#{sections[0][0]}", class_="skip"),
        _header(report),
        el("main", *(el("section", *content, id=key) for key, content in sections)),
    )


def _header(report: CheckReport) -> Markup:
    stopped = "It was interrupted: this is what was known by then." if report.interrupted else None
    return el(
        "header",
        el("p", "tidegate check of ", el("strong", report.source), class_="muted"),
        el("h1", blocks.badge(report.verdict), " ", report.says),
        None
        if stopped is None
        else el("p", blocks.badge("vulnerable", "interrupted"), " ", stopped),
        el("p", blocks.badge("vulnerable", "too thin"), " ", sentence("; ".join(report.thin)))
        if report.thin
        else None,
        el("p", modelled(report), class_="muted"),
    )


Section = tuple[str, Sequence[str | None]]


def _why(report: CheckReport) -> Section | None:
    if of_spool_alone(report):
        return None
    labels = ("Harm, against the same without retries", "Falls and need not", "Stays down")
    cards = [
        el(
            "div",
            el("dt", label),
            el("dd", el("strong", headline.short, class_="big"), el("p", headline.long)),
        )
        for label, headline in zip(labels, three_numbers(report), strict=True)
    ]
    return "why", (el("dl", *cards, class_="cards"), *_path(report.binding, report.loop))


def _path(binding: str | None, loop: Loop | None) -> list[Markup]:
    """The binding service and the loop, hop by hop."""
    service = binding or "none: no service limits what is asked today"
    told = [el("h2", "Why"), el("p", "Binding service: ", el("strong", service))]
    if loop is None:
        return [*told, el("p", "No path multiplies attempts.")]
    hops = [
        el(
            "li",
            el("span", hop.caller, class_="name"),
            el("span", f"calls {hop.call} ({plural(hop.attempts, 'attempt')})", class_="muted"),
            el("span", hop.callee, class_="name"),
            el("strong", f"{number(hop.cumulative)} per user action"),
        )
        for hop in loop.hops
    ]
    total = f"{number(loop.attempts_per_action)} attempts (computed)"
    return [
        *told,
        el(
            "p",
            f"One action of {loop.client} can make ",
            el("strong", total),
            ". ",
            sentence(loop.says),
        ),
        el("ol", *hops, class_="path"),
    ]


def _services(report: CheckReport) -> Section | None:
    if not report.services:
        return None
    ranked = services_worst_first(report.services, report.binding)
    table = blocks.table(
        "Under today's load (computed). Advertised capacity is what it serves in health; hidden"
        " capacity is the load below which it heals by itself. Once down it comes back at today's"
        " load only with more than so many times its advertised capacity.",
        (
            "service",
            "load",
            "in use",
            "advertised",
            "hidden",
            "attempts per request",
            "capacity to come back",
            "state",
        ),
        [_service(facts) for facts in ranked],
        numbers=range(1, 7),
    )
    curve = report.hysteresis
    chart = None if curve is None else charts.hysteresis(curve, key="hysteresis")
    return "services", (el("h2", "Services"), table, chart)


def _service(facts: ServiceFacts) -> tuple[Cell, ...]:
    return (
        facts.service,
        rate(facts.load),
        "no limit" if facts.utilisation is None else share(facts.utilisation),
        "no limit" if facts.advertised is None else rate(facts.advertised),
        "no limit" if facts.hidden is None else rate(facts.hidden),
        number(facts.amplification),
        "no limit" if facts.escape is None else f"{number(facts.escape)}x",
        blocks.badge(facts.state),
    )


def _journeys(report: CheckReport) -> Section | None:
    if not report.journeys:
        return None
    return "journeys", (el("h2", "What people need"), *(_journey(j) for j in report.journeys))


def _journey(journey: JourneyDependencies) -> Markup:
    table = blocks.table(
        "Of its requests (computed): how many call the service, and how many fail without it.",
        ("service", "calls per request", "call it", "fail without it"),
        [(d.service, number(d.calls), share(d.asks), share(d.needs)) for d in journey.services],
        numbers=range(1, 4),
    )
    removals = (
        el("li", el("code", removal.where), ": ", removal.says) for removal in journey.removals
    )
    return el(
        "article",
        el("h3", journey.journey, " ", el("span", f"({journey.client})", class_="muted")),
        table,
        el("ul", *removals) if journey.removals else None,
    )


def _triggers(report: CheckReport) -> Section | None:
    if of_spool_alone(report):
        return None
    ranked = triggers_worst_first(report.triggers)
    if not ranked:
        return "triggers", (el("h2", "Triggers"), el("p", "None was tried."))
    articles = (_trigger(trigger, f"trigger-{i}") for i, trigger in enumerate(ranked, 1))
    return "triggers", (el("h2", "Triggers"), *articles)


def _trigger(trigger: TriggerResult, key: str) -> Markup:
    run = trigger.timeline
    return el(
        "article",
        el("h3", blocks.badge(trigger.outcome), " ", trigger_name(trigger), id=f"{key}-name"),
        el("p", trigger.says, ": ", el("strong", outcome_of(trigger)), "."),
        blocks.facts(_costs(trigger)),
        _clients(trigger),
        _falls(trigger),
        None if run is None else charts.timeline(run, key=f"{key}-run", of=trigger.trigger),
        _actions(trigger),
        id=key,
        aria_labelledby=f"{key}-name",
    )


def _costs(trigger: TriggerResult) -> list[tuple[str, Cell]]:
    told = f": {figure(trigger.harm)} fail while it lasts, "
    told += f"{figure(trigger.harm_without)} without any retry"
    behind = runs_behind([trigger.harm, trigger.harm_without])
    told += f"; {behind}" if behind else ""
    facts: list[tuple[str, Cell]] = [
        ("harm", join([el("strong", harm_of(trigger)), told])),
        ("objective", objective_of(trigger)),
        *work_of(trigger),
    ]
    return facts if trigger.fluid is None else [*facts, ("the fluid model says", trigger.fluid)]


def _clients(trigger: TriggerResult) -> Markup | None:
    if not trigger.clients:
        return None
    worst = sorted(trigger.clients, key=lambda c: (c.after.value, c.during.value))
    rows = [
        (c.client, figure(c.before), figure(c.during), figure(c.after), figure(c.eventual))
        for c in worst
    ]
    behind = runs_behind(c.during for c in worst)
    return blocks.table(
        f"Requests answered in time ({behind}); in the end counts also what a client's own later"
        " attempts brought.",
        ("client", "before", "during", "after", "in the end"),
        rows,
    )


def _falls(trigger: TriggerResult) -> Markup | None:
    if not trigger.falls:
        return None
    falling = (el("li", f"{who_falls(fall)}. ", sentence(fall.says)) for fall in trigger.falls)
    return join([el("h4", "Falls and need not"), el("ul", *falling)])


def _actions(trigger: TriggerResult) -> Markup | None:
    if not trigger.actions:
        return None
    rows = [(action_name(a), action_outcome(a), figure(a.goodput), a.says) for a in trigger.actions]
    behind = runs_behind(a.goodput for a in trigger.actions)
    table = blocks.table(
        f"Tried from the state in which it is stuck ({behind}).",
        ("action", "outcome", "answered in time then", "why"),
        rows,
    )
    return join([el("h4", "Getting out"), table])


def _cures(report: CheckReport) -> Section | None:
    """All that was tried in one table; what cures, with what to write."""
    if not report.cures and not report.skipped:
        return None
    ranked = cures_best_first(report.cures)
    table = blocks.table(
        "Each was tried by itself, against every trigger.",
        ("change", "cures", "answered in time during the trigger", "back after its end", "costs"),
        [_tried(cure) for cure in ranked],
    )
    skipped = el("ul", *(el("li", item) for item in report.skipped))
    return "cures", (
        el("h2", "Cures"),
        table if ranked else None,
        *(_cure(cure) for cure in ranked if cure.cures),
        join([el("h3", "Skipped"), skipped]) if report.skipped else None,
    )


def _tried(cure: Cure) -> tuple[Cell, ...]:
    back = "not" if cure.recovered_after is None else figure(cure.recovered_after)
    return cure.cure, _cured(cure), _with_runs(cure.goodput_during), back, cure.cost


def _cured(cure: Cure) -> Markup:
    verdict = cure_verdict(cure)
    tone = {"yes": "stable", "maybe": "vulnerable"}.get(verdict.split()[0], "no limit")
    return blocks.badge(tone, verdict)


def _cure(cure: Cure) -> Markup:
    doubt = "" if cure.confirmed else " Not confirmed by further runs."
    if cure.holds_in is not None:
        runs = plural(cure.holds_in.runs, "sample")
        doubt += f" It cures in {figure(cure.holds_in)} of what is open ({runs})."
    outcomes = "; ".join(f"{name}: {outcome}" for name, outcome in cure.by_trigger.items())
    return el(
        "article",
        el("h3", _cured(cure), " ", cure.cure),
        el("p", sentence(cure.says), doubt),
        el("p", f"By trigger: {outcomes}.", class_="muted") if outcomes else None,
        el("p", "In ", el("code", cure.where), ":"),
        el("pre", el("code", lines(cure.yaml))),
    )


def _with_runs(measure: Measure) -> str:
    behind = runs_behind([measure]) if measure.runs > 1 else ""
    return f"{figure(measure)}, {behind}" if behind else figure(measure)


def _audit(report: CheckReport) -> Section | None:
    if not report.audit:
        return None
    items = (_finding(found) for found in audit_worst_first(report.audit))
    told = el("p", "Found in the file alone, without any simulation.")
    return "audit", (el("h2", "Audit"), told, el("ul", *items, class_="findings"))


def _finding(found: AuditFinding) -> Markup:
    return el(
        "li",
        el(
            "p",
            blocks.badge(found.severity),
            " ",
            el("code", found.where),
            " ",
            el("em", found.rule),
        ),
        el("p", sentence(found.says), " ", sentence(found.fix)),
        el("pre", el("code", lines(found.yaml))) if found.yaml else None,
    )


def _unknowns(report: CheckReport) -> Section | None:
    if not report.unknowns and report.holds_in is None:
        return None
    holds = report.holds_in
    told = None
    if holds is not None:
        runs = plural(holds.runs, "sample")
        told = el("p", f"The verdict holds in {figure(holds)} of what is open ({runs}).")
    ranked = sorted(report.unknowns, key=lambda unknown: -unknown.decides)
    items = (_unknown(unknown) for unknown in ranked)
    return "unknowns", (el("h2", "What the file leaves open"), told, el("ul", *items))


def _unknown(unknown: UnknownEffect) -> Markup:
    span = f" from {unknown.low} to {unknown.high} decides {share(unknown.decides)}. "
    return el("li", el("code", unknown.path), span, sentence(unknown.says))


def _made(report: CheckReport) -> Section:
    facts = [
        ("seeds", seeds_in_short(report.seeds)),
        ("repeat", el("code", report.repeat)),
        ("took", f"{report.cpu_seconds:,.1f}s of CPU time"),
        ("tidegate", report.version),
        ("exit code", str(report.exit_code)),
    ]
    return "made", (
        el("h2", "How this was made"),
        *blocks.notes("Where the models disagree", report.disagreements),
        *blocks.notes("Assumed", report.assumptions),
        blocks.facts(facts),
    )


_PARTS = (
    _why,
    lanes_section,
    _services,
    _journeys,
    _triggers,
    _cures,
    _audit,
    _unknowns,
    _made,
)
