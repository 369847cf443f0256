"""What can analysis, drill and watch say, and the report render?

These records are the `--json` document of `tidegate check`, version 1. Times are seconds, rates are
per second, shares are parts of one. A `Measure` never stands without its unit, its spread and the
number of runs behind it.
"""

from typing import Literal

import msgspec

__all__ = [
    "ActionResult",
    "AuditFinding",
    "CheckReport",
    "ClientGoodput",
    "Cure",
    "Fall",
    "Hop",
    "Hysteresis",
    "Loop",
    "Measure",
    "ServiceFacts",
    "Timeline",
    "TriggerResult",
    "UnknownEffect",
]

Outcome = Literal["recovers", "slow to drain", "sticks", "oscillates", "unharmed"]
Verdict = Literal["stable", "vulnerable", "fails", "collapses by itself"]
Severity = Literal["error", "warning", "note"]


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """A figure with its unit, its range over the runs, and how it was got.

    `how` is `simulated` (runs > 0), `fluid` or `computed` (a closed form: no spread).
    """

    value: float
    low: float
    high: float
    unit: str
    runs: int = 0
    how: Literal["simulated", "fluid", "computed", "assumed", "stated"] = "computed"


class Hop(msgspec.Struct, frozen=True, kw_only=True):
    """One call on a path: how many attempts at its end one user action can make."""

    caller: str
    call: str
    callee: str
    attempts: int
    cumulative: float


class Loop(msgspec.Struct, frozen=True, kw_only=True):
    """The sustaining loop: the path on which attempts multiply, and where it closes."""

    client: str
    hops: list[Hop]
    attempts_per_action: float
    says: str


class ServiceFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One service under today's load. Capacities are its own requests per second.

    `advertised` is what it serves in health, `hidden` the load below which it heals by itself
    (Bronson et al., HotOS'21 section 3). None where the service has no limit of its own.
    """

    service: str
    load: float
    utilisation: float | None
    advertised: float | None
    hidden: float | None
    amplification: float
    state: Literal["stable", "vulnerable", "overloaded", "no limit"]


class ClientGoodput(msgspec.Struct, frozen=True, kw_only=True):
    """Share of a client's requests answered in time, before, during and after a trigger.

    `eventual` counts as well what succeeded only in a client's own later attempts.
    """

    client: str
    before: Measure
    during: Measure
    after: Measure
    eventual: Measure


class Fall(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who falls and need not: `needed` is the share of their requests that truly needs
    what was hit.
    """

    client: str
    journey: str | None
    goodput: Measure
    needed: float
    says: str


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """Per-second rates of one run: `start` and `end` are the trigger's instants, None if open."""

    seconds: list[float]
    offered: list[float]
    goodput: list[float]
    attempts: list[float]
    start: float
    end: float | None
    seed: int
    client: str | None = None


class ActionResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one action, or several together, did from the stuck state."""

    actions: list[str]
    outcome: Outcome
    goodput: Measure
    recovered_after: Measure | None
    says: str


class TriggerResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one trigger does to the system as it is.

    `harm` is the number of requests that fail while it lasts, `harm_without` the same with every
    retry turned off; `harm_ratio` divides them (None: nothing would have failed without).
    """

    trigger: str
    says: str
    assumed: bool
    outcome: Outcome
    confidence: Measure
    recovered_after: Measure | None
    finishes_at: Measure | None
    harm: Measure
    harm_without: Measure
    harm_ratio: float | None
    attempts_per_action: Measure
    wasted: Measure
    clients: list[ClientGoodput]
    falls: list[Fall]
    stays: bool
    objective_met: bool
    fluid: Outcome | None
    timeline: Timeline | None
    actions: list[ActionResult] = []
    duplicated: Measure | None = None


class Cure(msgspec.Struct, frozen=True, kw_only=True):
    """One change that was tried, what it does to each trigger, and what it costs in health."""

    cure: str
    yaml: str
    where: str
    by_trigger: dict[str, Outcome]
    cures: bool
    goodput_during: Measure
    recovered_after: Measure | None
    cost: str
    confirmed: bool
    says: str


class Hysteresis(msgspec.Struct, frozen=True, kw_only=True):
    """Steady states of one service by offered load: where it works, and where it stays down."""

    service: str
    load: list[float]
    healthy: list[float | None]
    collapsed: list[float | None]
    today: float
    hidden: float | None
    tips_at: float | None
    unit: str = "share of requests answered in time"


class UnknownEffect(msgspec.Struct, frozen=True, kw_only=True):
    """One number that the file leaves open, over which range, and how much it decides."""

    path: str
    low: str
    high: str
    decides: float
    says: str


class AuditFinding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing the static audit found: no capacity and no simulation was needed to see it."""

    rule: str
    severity: Severity
    where: str
    says: str
    fix: str


class CheckReport(msgspec.Struct, frozen=True, kw_only=True):
    """The whole answer of `tidegate check`, in the order in which it is read."""

    format: str = "tidegate.check/1"
    version: str
    source: str
    verdict: Verdict
    says: str
    harm_ratio: float | None
    falls: list[str]
    stays: list[str]
    binding: str | None
    loop: Loop | None
    services: list[ServiceFacts]
    triggers: list[TriggerResult]
    cures: list[Cure]
    skipped: list[str]
    audit: list[AuditFinding]
    hysteresis: Hysteresis | None
    unknowns: list[UnknownEffect]
    holds_in: Measure | None
    assumptions: list[str]
    disagreements: list[str]
    seeds: list[int]
    repeat: str
    cpu_seconds: float
    interrupted: bool = False
    exit_code: int
