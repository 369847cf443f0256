"""Which sentences do the text and the page share?

The three numbers that every verdict leads with, what became of a trigger, and the order in which
things are told: the worst first. Analysis decides what is true; this module only says it.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from tidegate.findings import (
    ActionResult,
    AuditFinding,
    CheckReport,
    Cure,
    Fall,
    JourneyDependencies,
    Measure,
    Outcome,
    ServiceFacts,
    TriggerResult,
)
from tidegate.report.figures import clean, figure, number, plural, share, some

__all__ = [
    "Headline",
    "action_name",
    "action_outcome",
    "audit_worst_first",
    "cure_verdict",
    "cures_best_first",
    "harm_of",
    "modelled",
    "needs_of",
    "objective_of",
    "outcome_of",
    "services_worst_first",
    "thin_in_short",
    "three_numbers",
    "trigger_name",
    "triggers_worst_first",
    "who_falls",
    "work_of",
]

_WORST: Final[tuple[Outcome, ...]] = (
    "sticks",
    "oscillates",
    "slow to drain",
    "recovers",
    "unharmed",
)
_STATES: Final = ("overloaded", "vulnerable", "stable", "no limit")
_SEVERITIES: Final = ("error", "warning", "note")


class Headline(NamedTuple):
    """One of the three numbers: what is asked, the answer in a word, and what stands behind it."""

    label: str
    short: str
    long: str


def modelled(report: CheckReport) -> str:
    """What kind of figures these are. Said once, above all of them."""
    if not report.triggers and not report.lanes:
        return f"Computed from {clean(report.source)}: no trigger was simulated."
    return (
        f"Modelled from {clean(report.source)}: simulated unless marked, (lowest..highest) of the"
        " runs."
    )


def thin_in_short(report: CheckReport) -> str:
    """What too little was seen of to judge by: the first two, and how many more."""
    more = f"; and {len(report.thin) - 2} more" if len(report.thin) > 2 else ""
    return "; ".join(clean(said) for said in report.thin[:2]) + more


def three_numbers(report: CheckReport) -> tuple[Headline, Headline, Headline]:
    """What the trigger costs against what it must cost; who falls that need not; does it stay."""
    return _harm(report), _falls(report), _stays(report)


def _harm(report: CheckReport) -> Headline:
    label = "harm"
    if not report.triggers:
        return Headline(label, "not known", "no trigger was tried")
    worst = max(report.triggers, key=lambda t: (t.harm_ratio or 0.0, t.harm.value))
    if report.harm_ratio is not None:
        return Headline(label, f"{number(report.harm_ratio)}x", _failing_in(worst))
    harmed = [t for t in report.triggers if t.harm.value > 0]
    if not harmed:
        return Headline(label, "none", f"no request fails in {_all_of(report)}")
    return Headline(label, "all of it", _failing_in(max(harmed, key=lambda t: t.harm.value)))


def _failing_in(trigger: TriggerResult) -> str:
    return (
        f"{figure(trigger.harm, unit='')} requests fail in {clean(trigger.trigger)},"
        f" {figure(trigger.harm_without, unit='')} without retries"
    )


def _all_of(report: CheckReport) -> str:
    count = len(report.triggers)
    return "the one trigger tried" if count == 1 else f"any of {count:,} triggers"


def _falls(report: CheckReport) -> Headline:
    label = "falls too"
    if not report.triggers and not report.falls:
        return Headline(label, "not known", "no trigger was tried")
    if not report.falls:
        return Headline(label, "nobody", "who fails needs what was hit")
    told = list(
        dict.fromkeys(who_falls(f) for t in triggers_worst_first(report.triggers) for f in t.falls)
    )
    more = f"; and {len(told) - 2} more" if len(told) > 2 else ""
    return Headline(label, some(report.falls), "; ".join(told[:2]) + more)


def who_falls(fall: Fall) -> str:
    """How far somebody falls, against how many of their requests need what was hit."""
    who = f"{fall.journey} ({fall.client})" if fall.journey else fall.client
    need = "no request needs" if fall.needed == 0 else f"only {share(fall.needed)} need"
    return f"{clean(who)}: {figure(fall.goodput)} answered in time; {need} what was hit"


def _stays(report: CheckReport) -> Headline:
    label = "stays down"
    staying = [t for t in report.triggers if t.trigger in report.stays]
    if report.verdict == "collapses by itself":
        return Headline(label, "yes", "it goes down under today's load, without any trigger")
    if staying:
        told = some([t.trigger for t in staying])
        return Headline(label, "yes", f"after {told}, {_how_sure(staying[0].confidence)}")
    if report.stays:
        return Headline(label, "yes", f"after {some(report.stays)}")
    if not report.triggers:
        return Headline(label, "not known", "no trigger was tried")
    unsettled = [t.trigger for t in report.triggers if t.outcome == "oscillates"]
    if unsettled:
        return Headline(label, "no", f"but it does not settle after {some(unsettled)}")
    return Headline(label, "no", f"it comes back after {_all_of(report)}{_slowest(report)}")


def _slowest(report: CheckReport) -> str:
    """How long the longest way back takes, of those that end."""
    ends = [(m, t) for t in report.triggers for m in (t.finishes_at or t.recovered_after,) if m]
    if not ends:
        return ""
    longest, trigger = max(ends, key=lambda item: item[0].value)
    return f", at the latest {figure(longest)} after the end of {clean(trigger.trigger)}"


def _how_sure(confidence: Measure) -> str:
    of = f" of {plural(confidence.runs, 'run')}" if confidence.runs else ""
    return f"in {figure(confidence)}{of}"


def trigger_name(trigger: TriggerResult) -> str:
    """Its name, and whether the file names it or we assumed it."""
    return f"{clean(trigger.trigger)}{' (assumed)' if trigger.assumed else ''}"


def outcome_of(trigger: TriggerResult) -> str:
    """What became of it and how sure that is; the outcome's own word stands before this."""
    told = {
        "recovers": _back("back", trigger.recovered_after),
        "slow to drain": _back("done", trigger.finishes_at),
        "sticks": "stays down",
        "oscillates": "comes and goes",
        "unharmed": "nobody notices",
    }[trigger.outcome]
    return f"{told} {_how_sure(trigger.confidence)}"


def _back(told: str, after: Measure | None) -> str:
    return "comes back by itself" if after is None else f"{told} {figure(after)} after its end"


def harm_of(trigger: TriggerResult) -> str:
    """The harm as a multiple of what the same trigger does when nothing is retried."""
    if trigger.harm.value <= 0:
        return "none"
    return "all from retries" if trigger.harm_ratio is None else f"{number(trigger.harm_ratio)}x"


def work_of(trigger: TriggerResult) -> list[tuple[str, str]]:
    """What the storm is made of: attempts, work for nobody, work done twice."""
    told = [
        ("attempts per action", figure(trigger.attempts_per_action, unit="")),
        ("wasted", figure(trigger.wasted)),
    ]
    if trigger.duplicated is not None and trigger.duplicated.value > 0:
        told.append(("done twice", figure(trigger.duplicated)))
    return told


def needs_of(journey: JourneyDependencies) -> str:
    """`tracker 100%, edge 30%`: what fails with each service, most needed first."""
    needed = [d for d in journey.services if d.needs > 0]
    return ", ".join(f"{clean(d.service)} {share(d.needs)}" for d in needed) or "nothing"


def objective_of(trigger: TriggerResult) -> str:
    """Whether every client was served well enough again in time."""
    return "met" if trigger.objective_met else "missed"


def action_outcome(action: ActionResult) -> str:
    """What one action did from the stuck state."""
    if action.outcome == "sticks":
        return "still stuck"
    after = action.recovered_after
    return action.outcome if after is None else f"{action.outcome} in {figure(after)}"


def action_name(action: ActionResult) -> str:
    """`roll back + open licences`: what is done together."""
    return " + ".join(clean(name) for name in action.actions)


def cure_verdict(cure: Cure) -> str:
    """`yes`, or how many of the triggers it heals; `maybe` until further runs have confirmed it.

    `yes in 87%` of what the file leaves open, where it leaves something open.
    """
    if cure.cures:
        told = "yes" if cure.confirmed else "maybe"
        return told if cure.holds_in is None else f"{told} in {share(cure.holds_in.value, 0)}"
    healed = sum(outcome in ("recovers", "unharmed") for outcome in cure.by_trigger.values())
    return f"{healed} of {len(cure.by_trigger)}"


def triggers_worst_first(triggers: Sequence[TriggerResult]) -> list[TriggerResult]:
    """By outcome; those that the file names before those that we assumed."""
    return sorted(triggers, key=lambda t: (_WORST.index(t.outcome), t.objective_met, t.assumed))


def cures_best_first(cures: Sequence[Cure]) -> list[Cure]:
    """What cures before what helps; else in the order in which analysis ranked them."""
    return sorted(cures, key=lambda cure: (not cure.cures, not cure.confirmed))


def services_worst_first(
    services: Sequence[ServiceFacts], binding: str | None
) -> list[ServiceFacts]:
    """The binding service, then by state, then by utilisation."""
    return sorted(
        services,
        key=lambda s: (s.service != binding, _STATES.index(s.state), -(s.utilisation or 0.0)),
    )


def audit_worst_first(audit: Sequence[AuditFinding]) -> list[AuditFinding]:
    """Errors, warnings, notes; what can be done twice before all, else as they were found."""
    return sorted(
        audit,
        key=lambda finding: (
            _SEVERITIES.index(finding.severity),
            finding.rule != "effects-repeated",
        ),
    )
