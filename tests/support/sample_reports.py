"""Reports as `tidegate check` would give them, for every test that renders one.

The figures of `marketplace` follow its own arithmetic (600/s of shoppers, 500/s of readers of whom
30 % check a licence, 100 workers of 50 ms, three attempts at the edge times two at the tracker);
they were not simulated and are no claim.
"""

import math
from typing import Any

from tidegate.findings import (
    ActionResult,
    AuditFinding,
    CheckReport,
    ClientGoodput,
    Cure,
    Dependency,
    Fall,
    Hop,
    Hysteresis,
    JourneyDependencies,
    Loop,
    Measure,
    Removal,
    ServiceFacts,
    Timeline,
    TriggerResult,
    UnknownEffect,
)

RUNS = 20


def measure(value: float, low: float, high: float, unit: str, **more: Any) -> Measure:
    return Measure(
        value=value, low=low, high=high, unit=unit, **{"runs": RUNS, "how": "simulated"} | more
    )


def part(value: float, low: float, high: float) -> Measure:
    return measure(value, low, high, "share")


def took(value: float, low: float, high: float) -> Measure:
    return measure(value, low, high, "s")


def count(value: float, low: float, high: float, unit: str = "requests") -> Measure:
    return measure(value, low, high, unit)


def client(name: str, during: float, after: float, eventual: float) -> ClientGoodput:
    def about(value: float) -> Measure:
        room = 0.2 * min(value, 1 - value)
        return part(value, value - room, value + room)

    return ClientGoodput(
        client=name,
        before=part(0.9984, 0.9978, 0.9989),
        during=about(during),
        after=about(after),
        eventual=about(eventual),
    )


def storm(*, stuck: bool = True, length: int = 1500, seed: int = 7) -> Timeline:
    """Goodput that falls at 300 s and stays down, or comes back after 900 s."""
    seconds = [float(second) for second in range(length)]
    down = [s >= 312 and (stuck or s < 930) for s in range(length)]
    sway = [1 + 0.04 * math.sin(s / 9) for s in range(length)]
    return Timeline(
        seconds=seconds,
        offered=[1100 * sway[s] for s in range(length)],
        goodput=[(131 if down[s] else 1095) * sway[s] for s in range(length)],
        attempts=[(2890 if down[s] else 750 + 500) * sway[s] for s in range(length)],
        start=300.0,
        end=900.0,
        seed=seed,
    )


def migration() -> TriggerResult:
    return TriggerResult(
        trigger="migration",
        says="marketplace serves 4x slower for 10min",
        assumed=False,
        outcome="sticks",
        confidence=part(1.0, 0.839, 1.0),
        recovered_after=None,
        finishes_at=None,
        harm=count(581_300, 574_200, 588_900),
        harm_without=count(174_400, 171_000, 178_100),
        harm_ratio=3.33,
        attempts_per_action=count(4.1, 4.0, 4.2, "attempts per action"),
        wasted=part(0.78, 0.76, 0.80),
        clients=[client("readers", 0.064, 0.031, 0.12), client("shoppers", 0.17, 0.19, 0.41)],
        falls=[
            Fall(
                client="readers",
                journey="open a page",
                goodput=part(0.064, 0.051, 0.075),
                needed=0.3,
                says="tracker workers wait for licence checks, so pages without one wait too",
            )
        ],
        stays=True,
        objective_met=False,
        fluid="sticks",
        timeline=storm(),
        actions=[
            ActionResult(
                actions=["roll back"],
                outcome="sticks",
                goodput=part(0.11, 0.09, 0.13),
                recovered_after=None,
                says="the retries alone keep it full",
            ),
            ActionResult(
                actions=["roll back", "open licences"],
                outcome="recovers",
                goodput=part(0.997, 0.995, 0.999),
                recovered_after=took(41, 36, 55),
                says="frees the tracker; the rest drains",
            ),
            ActionResult(
                actions=["double marketplace"],
                outcome="recovers",
                goodput=part(0.996, 0.994, 0.998),
                recovered_after=took(74, 66, 90),
                says="4,000/s are more than the 2,700/s of the storm",
            ),
        ],
        duplicated=count(1_020_000, 998_000, 1_044_000),
    )


def half() -> TriggerResult:
    return TriggerResult(
        trigger="half of marketplace",
        says="marketplace loses half of its workers for 60s",
        assumed=True,
        outcome="recovers",
        confidence=part(0.95, 0.764, 0.991),
        recovered_after=took(8, 5, 13),
        finishes_at=None,
        harm=count(310, 190, 460),
        harm_without=count(290, 180, 420),
        harm_ratio=1.07,
        attempts_per_action=count(1.1, 1.05, 1.2, "attempts per action"),
        wasted=part(0.02, 0.01, 0.04),
        clients=[client("readers", 0.991, 0.999, 0.9995), client("shoppers", 0.985, 0.999, 0.999)],
        falls=[],
        stays=False,
        objective_met=True,
        fluid="recovers",
        timeline=storm(stuck=False, length=1300),
    )


def cures() -> list[Cure]:
    return [
        Cure(
            cure="retry budget 10% on market",
            yaml="budget: 10%\nbackoff: 100ms",
            where="services.edge.calls.market",
            by_trigger={"migration": "recovers", "half of marketplace": "recovers"},
            cures=True,
            goodput_during=part(0.58, 0.56, 0.60),
            recovered_after=took(9, 6, 14),
            cost="no request lost in health (20 runs)",
            confirmed=True,
            says="2,700/s of attempts become 825/s, fewer than marketplace serves",
        ),
        Cure(
            cure="breaker on licences, which becomes optional",
            yaml="breaker: 50%\noptional: true\ntimeout: 1s",
            where="services.tracker.calls.licences",
            by_trigger={"migration": "recovers", "half of marketplace": "recovers"},
            cures=True,
            goodput_during=part(0.83, 0.81, 0.85),
            recovered_after=took(21, 17, 30),
            cost="31% (29..33%) of pages unchecked while it is open",
            confirmed=True,
            says="pages no longer wait for licences",
        ),
        Cure(
            cure="backoff 100ms on market",
            yaml="backoff: 100ms",
            where="services.edge.calls.market",
            by_trigger={"migration": "sticks", "half of marketplace": "recovers"},
            cures=False,
            goodput_during=part(0.13, 0.11, 0.15),
            recovered_after=None,
            cost="up to 300ms for a request that fails twice",
            confirmed=False,
            says="spreads the storm and does not shrink it",
        ),
    ]


def loop() -> Loop:
    return Loop(
        client="readers",
        hops=[
            Hop(caller="readers", call="pages", callee="tracker", attempts=1, cumulative=1),
            Hop(caller="tracker", call="licences", callee="edge", attempts=2, cumulative=2),
            Hop(caller="edge", call="market", callee="marketplace", attempts=3, cumulative=6),
        ],
        attempts_per_action=6,
        says="A timeout at edge is tried again while the first try is still being worked on.",
    )


def services() -> list[ServiceFacts]:
    return [
        ServiceFacts(
            service="tracker",
            load=500,
            utilisation=0.1075,
            advertised=4650,
            hidden=312,
            escape=0.11,
            amplification=1,
            state="vulnerable",
        ),
        ServiceFacts(
            service="edge",
            load=750,
            utilisation=None,
            advertised=None,
            hidden=None,
            escape=None,
            amplification=2,
            state="no limit",
        ),
        ServiceFacts(
            service="marketplace",
            load=750,
            utilisation=0.375,
            advertised=2000,
            hidden=556,
            escape=2.25,
            amplification=6,
            state="vulnerable",
        ),
    ]


def audit() -> list[AuditFinding]:
    return [
        AuditFinding(
            rule="optional-dependency-holds-workers",
            severity="warning",
            where="services.tracker.calls.licences",
            says="30% of pages wait up to 20s for a check that takes 50ms in health",
            fix="Set timeout to 1s, or make the call optional.",
        ),
        AuditFinding(
            rule="retries-multiply",
            severity="error",
            where="services.edge.calls.market",
            says="3 attempts here times 2 at tracker make 6 for one page",
            fix="Retry in one place only, or give the retries a budget.",
        ),
        AuditFinding(
            rule="no-backoff",
            severity="warning",
            where="services.edge.calls.market",
            says="a retry starts at once, when the callee is most busy",
            fix="Add backoff: 100ms.",
            yaml="services: {edge: {calls: {market: {backoff: 100ms}}}}",
        ),
        AuditFinding(
            rule="unbounded-queue",
            severity="note",
            where="services.marketplace.queue",
            says="no bound is written, so a wait has none either",
            fix="Add queue: 100.",
        ),
    ]


def journeys() -> list[JourneyDependencies]:
    return [
        JourneyDependencies(
            journey="open a page",
            client="readers",
            services=[
                Dependency(service="tracker", calls=1, asks=1, needs=1),
                Dependency(service="edge", calls=0.3, asks=0.3, needs=0.3),
                Dependency(service="marketplace", calls=0.3, asks=0.3, needs=0.3),
            ],
            removals=[
                Removal(
                    call="licences",
                    where="services.tracker.calls.licences",
                    service="marketplace",
                    needs=0.3,
                    needs_then=0,
                    says="if licences may fail, no page needs marketplace",
                )
            ],
        )
    ]


def curve() -> Hysteresis:
    return Hysteresis(
        service="marketplace",
        load=[float(load) for load in range(0, 2401, 100)],
        healthy=[1.0 if load <= 1900 else None for load in range(0, 2401, 100)],
        collapsed=[
            None if load < 600 else max(0.0, 0.6 - load / 4000) for load in range(0, 2401, 100)
        ],
        today=750,
        hidden=556,
        tips_at=1940,
    )


def marketplace() -> CheckReport:
    """The founding case: one slow step of an upgrade takes the issue tracker down, and it stays."""
    return CheckReport(
        version="0.1.0",
        source="marketplace.yaml",
        verdict="fails",
        says="10min of a marketplace that is 4x slower take down the readers of tracker too,"
        " and it does not come back when the upgrade step is over.",
        harm_ratio=3.33,
        falls=["open a page (readers)"],
        stays=["migration"],
        binding="marketplace",
        loop=loop(),
        services=services(),
        triggers=[half(), migration()],
        cures=cures(),
        skipped=[],
        audit=audit(),
        journeys=journeys(),
        hysteresis=curve(),
        unknowns=[
            UnknownEffect(
                path="clients.shoppers.rate",
                low="400/s",
                high="800/s",
                decides=0.71,
                says="Measure that first: below 450/s it comes back.",
            )
        ],
        holds_in=Measure(value=0.87, low=0.81, high=0.92, unit="share", runs=150, how="simulated"),
        assumptions=["shoppers: 600/s is not stated by the report", "time: exponential"],
        disagreements=[],
        seeds=list(range(1, RUNS + 1)),
        repeat="tidegate check marketplace.yaml --seed 1 --runs 20",
        cpu_seconds=24.31,
        exit_code=1,
    )


def stable() -> CheckReport:
    """Nothing to shout: every trigger is outlived, no loop, no finding."""
    return CheckReport(
        version="0.1.0",
        source="shop.yaml",
        verdict="stable",
        says="Every trigger is over when it is over.",
        harm_ratio=1.07,
        falls=[],
        stays=[],
        binding=None,
        loop=None,
        services=[
            ServiceFacts(
                service="shop",
                load=200,
                utilisation=0.4,
                advertised=500,
                hidden=500,
                escape=0.4,
                amplification=1,
                state="stable",
            )
        ],
        triggers=[half()],
        cures=[],
        skipped=[],
        audit=[],
        hysteresis=None,
        unknowns=[],
        holds_in=None,
        assumptions=[],
        disagreements=[],
        seeds=[1, 2, 3, 9],
        repeat="tidegate check shop.yaml",
        cpu_seconds=3.0,
        exit_code=0,
    )


def mixed() -> CheckReport:
    """Slow to drain, oscillates, unharmed, unknowns, disagreements, interrupted."""
    base = migration()
    replace = _replace
    return replace(
        marketplace(),
        verdict="vulnerable",
        says="It comes back after every trigger that the file names, but one takes 21 minutes.",
        source="ingest.yaml",
        stays=[],
        falls=[],
        interrupted=True,
        triggers=[
            replace(
                base,
                trigger="backlog",
                says="the broker stops for 2min",
                outcome="slow to drain",
                finishes_at=took(1267, 1190, 1340),
                falls=[],
                actions=[],
                duplicated=None,
                harm_ratio=None,
                harm_without=count(0, 0, 0),
                timeline=storm(stuck=False, length=90),
            ),
            replace(
                base,
                trigger="health checks",
                says="a check fails for 30s and takes its instance out",
                outcome="oscillates",
                confidence=part(0.6, 0.387, 0.781),
                falls=[],
                actions=[],
                timeline=None,
            ),
            replace(
                half(),
                trigger="small dip",
                outcome="unharmed",
                harm=count(0, 0, 0),
                harm_without=count(0, 0, 0),
                harm_ratio=None,
                recovered_after=None,
                timeline=None,
            ),
        ],
        cures=[],
        skipped=["cures: interrupted before they were tried"],
        unknowns=[
            UnknownEffect(
                path=f"services.ingest.calls.call{i}.timeout",
                low="1s",
                high="10s",
                decides=0.6 - 0.1 * i,
                says="",
            )
            for i in range(4)
        ],
        disagreements=["backlog: the fluid model says sticks, 20 of 20 simulated runs drain"],
        exit_code=0,
    )


def empty() -> CheckReport:
    """Every list empty, everything that may be absent absent."""
    return _replace(
        stable(),
        harm_ratio=None,
        services=[],
        triggers=[],
        seeds=[],
    )


def big() -> CheckReport:
    """50 services, 40 triggers, 30 findings, 12 cures."""
    replace = _replace
    base = marketplace()
    return replace(
        base,
        source="fleet.yaml",
        stays=[f"freeze of service{i}" for i in range(12)],
        falls=[f"client{i}" for i in range(8)],
        services=[
            replace(base.services[i % 3], service=f"service{i}", utilisation=i / 50)
            for i in range(50)
        ],
        triggers=[
            replace(
                migration() if i < 12 else half(),
                trigger=f"freeze of service{i}",
                clients=[client(f"client{k}", 0.1 * k, 0.1 * k, 0.1 * k) for k in range(8)],
                timeline=storm(length=400, seed=i),
            )
            for i in range(40)
        ],
        cures=[replace(cure, cure=f"{cure.cure} ({i})") for i in range(4) for cure in cures()],
        audit=[replace(base.audit[i % 4], where=f"services.s{i}") for i in range(30)],
        assumptions=[f"freeze of service{i}: not in the file" for i in range(40)],
        seeds=[seed for seed in range(200) if seed % 7],
    )


HOSTILE = "<script>alert('1')</script>\x1b[31m\u202e\"&\n--\x00"


def hostile() -> CheckReport:
    """Every text of the marketplace replaced by one that wants to be code."""
    return _infected(marketplace())


def _infected(value: Any) -> Any:
    if isinstance(value, str):
        return HOSTILE
    if isinstance(value, list):
        return [_infected(item) for item in value]
    if isinstance(value, dict):
        return {_infected(key): _infected(item) for key, item in value.items()}
    if hasattr(value, "__struct_fields__"):
        kept = {"how", "outcome", "verdict", "severity", "state", "fluid", "format", "by_trigger"}
        fields = {f: getattr(value, f) for f in value.__struct_fields__}
        return type(value)(**{k: v if k in kept else _infected(v) for k, v in fields.items()})
    return value


def _replace(record: Any, **changes: Any) -> Any:
    return type(record)(**{f: getattr(record, f) for f in record.__struct_fields__} | changes)


SAMPLES = {
    "marketplace": marketplace,
    "stable": stable,
    "mixed": mixed,
    "empty": empty,
    "big": big,
    "hostile": hostile,
}
