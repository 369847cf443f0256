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
    "Dependency",
    "Fall",
    "Hop",
    "Hysteresis",
    "JourneyDependencies",
    "LanePlan",
    "LaneResult",
    "LaneWay",
    "Loop",
    "Measure",
    "Removal",
    "ServiceFacts",
    "Timeline",
    "TriggerResult",
    "UnknownEffect",
]

Outcome = Literal["recovers", "slow to drain", "sticks", "oscillates", "unharmed"]
Verdict = Literal["not judged", "stable", "vulnerable", "fails", "collapses by itself"]
ServiceState = Literal["stable", "vulnerable", "overloaded", "no limit"]
Severity = Literal["error", "warning", "note"]


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """A figure with its unit, its range over the runs, and how it was got.

    `unit` is `share` (of one), `s`, `/s`, `x`, or a noun in the plural as `requests`. `how` is
    `simulated` (runs > 0), `measured` (live), `fluid` or `computed` (a closed form: no spread).
    """

    value: float
    low: float
    high: float
    unit: str
    runs: int = 0
    how: Literal["simulated", "measured", "fluid", "computed", "assumed", "stated"] = "computed"


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
    (Bronson et al., HotOS'21 section 3). `escape` is the capacity, as a multiple of `advertised`,
    above which a collapsed service comes back at today's load: all attempts of that load while all
    of them fail, which is more than it takes to serve it. None where it has no limit of its own.
    """

    service: str
    load: float
    utilisation: float | None
    advertised: float | None
    hidden: float | None
    escape: float | None = None
    amplification: float
    state: ServiceState


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
    `recovered_after` and `finishes_at` (of one that is slow to drain) count from its end.
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
    """One change that was tried, what it does to each trigger, and what it costs in health.

    `holds_in` is the share of what the file leaves open in which it cures the worst trigger; None
    where nothing is open, or where it was not asked.
    """

    cure: str
    yaml: str
    where: str
    by_trigger: dict[str, Outcome]
    cures: bool
    goodput_during: Measure
    recovered_after: Measure | None
    cost: str
    confirmed: bool
    holds_in: Measure | None = None
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
    """One thing the static audit found: no capacity and no simulation was needed to see it.

    `where` is the path in the system file; `fix` says what to do and `yaml` is what does it, to be
    merged into the file.
    """

    rule: str
    severity: Severity
    where: str
    says: str
    fix: str
    yaml: str = ""


class Dependency(msgspec.Struct, frozen=True, kw_only=True):
    """One service that a journey reaches: `calls` requests at it for one request of the journey.

    `asks` is the share of the journey's requests that call it at all, `needs` the share that fails
    without it.
    """

    service: str
    calls: float
    asks: float
    needs: float


class Removal(msgspec.Struct, frozen=True, kw_only=True):
    """What a journey gains when one required call may fail, or is gone.

    Of its requests, the share `needs` fails today without `service`; `needs_then` is what is left.
    """

    call: str
    where: str
    service: str
    needs: float
    needs_then: float
    says: str


class JourneyDependencies(msgspec.Struct, frozen=True, kw_only=True):
    """What a journey depends on, most needed first, and what losing each dependency would give."""

    journey: str
    client: str
    services: list[Dependency]
    removals: list[Removal]


class LaneWay(msgspec.Struct, frozen=True, kw_only=True):
    """One way in which a fleet could replay a lane's backlog, and what comes of it.

    Rates are multiples of what is sent live. `peak` is the most that was sent in a second, and
    `peak_of_capacity` that by what the sink could take. `lost` and `late` (not taken at the first
    try) are shares of the live records of the hour that begins when the sink is back. `drained`
    and `of_limit` (how many times the least possible) are None if the backlog is never gone. The
    lists are one run of seed `seed`: what was sent, and what the sink could take.
    """

    way: str
    configured: bool
    peak: Measure
    peak_of_capacity: Measure
    lost: Measure
    late: Measure
    drained: Measure | None
    of_limit: Measure | None
    p99: Measure
    overload: Measure
    resent: Measure
    holds: bool
    seconds: list[float]
    sent: list[float]
    capacity: list[float]
    seed: int


class LanePlan(msgspec.Struct, frozen=True, kw_only=True):
    """What can be known of a replay without any luck.

    `backlog` is of the whole fleet, `needs` what each collector must be able to keep, both in
    bytes. `limit` is the least possible time to the end, `likely` that of a replay behind a gate,
    at the lane's pace and in turns of which `turns` at a time would use the sink; None if there is
    no end. `spare` is what the sink takes without one of its brokers, as a multiple of what is
    sent live: at 1x and below, no time can be promised. `kept_for` is how long an outage may be
    until a collector's bound is met, None if it has none in bytes. `too_old` is the share of the
    backlog that is older than the lane keeps it before its turn comes.
    """

    backlog: Measure
    limit: Measure | None
    likely: Measure | None
    spare: Measure
    needs: Measure
    kept_for: Measure | None
    too_old: Measure
    turns: int
    says: list[str]


class LaneResult(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of one lane of a spool when its sink is back."""

    lane: str
    where: str
    verdict: Verdict
    says: str
    plan: LanePlan
    ways: list[LaneWay]
    fix: str
    yaml: str
    assumptions: list[str]


class CheckReport(msgspec.Struct, frozen=True, kw_only=True):
    """The whole answer of `tidegate check`, in the order in which it is read."""

    format: Literal["tidegate.check/1"] = "tidegate.check/1"
    version: str
    source: str
    verdict: Verdict
    says: str
    thin: list[str] = []
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
    journeys: list[JourneyDependencies] = []
    lanes: list[LaneResult] = []
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
