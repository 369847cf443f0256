"""A made storm to draw: four runs of eight seconds, with nothing measured in them."""

from typing import Any

from tidegate.findings import Measure, Timeline
from tidegate.lab.findings import How, StormAgreement, StormReport, StormRun, Which


def measure(value: float, unit: str, how: How, by: float = 0.0) -> Measure:
    spread = by if how == "simulated" else 0.0
    runs = 20 if how == "simulated" else 1
    return Measure(
        value=value, low=value - spread, high=value + spread, unit=unit, runs=runs, how=how
    )


def run(client: Which, how: How, **more: Any) -> StormRun:
    guarded = client == "guarded"
    kept = (1.0 if how == "measured" else 0.98) if guarded else 0.04
    goodput = [140.0, 138, 66, 65, *([139.0] * 4 if guarded else [0.0] * 4)]
    attempts = [140.0, 138, 70, 69, *[140.0] * 4] if guarded else [140.0, 138, 500, *[560.0] * 5]
    return StormRun(
        client=client,
        how=how,
        before=measure(139, "/s", how, 4),
        during=measure(67 * kept, "/s", how, 1),
        kept=measure(kept, "share", how, 0.01),
        eventual=measure(67 * kept, "/s", how, 1),
        after=measure(140 if guarded else 0, "/s", how),
        attempts=measure(69 if guarded else 530, "/s", how, 2),
        back_after=measure(1, "s", how) if guarded else None,
        timeline=Timeline(
            seconds=[float(second) for second in range(8)],
            offered=[140.0] * 8,
            goodput=goodput,
            attempts=attempts,
            start=2,
            end=4,
            seed=1,
        ),
        doubt=more.get("doubt", ""),
    )


def report() -> StormReport:
    return StormReport(
        version="1",
        source="storm.yaml",
        says="with a guard all of what market could still do was answered in time",
        trigger="market is 3 times slower for 2s",
        offered=140,
        left=66.7,
        guard="attempts 4, retry budget 10%",
        runs=[
            run("unguarded", "simulated"),
            run("unguarded", "measured"),
            run("guarded", "simulated"),
            run("guarded", "measured"),
        ],
        agreement=[
            StormAgreement(
                client="guarded",
                what="goodput",
                simulated=measure(0.9, "per request", "simulated", 0.05),
                measured=measure(0.95, "per request", "measured"),
                difference=0.95 / 0.9 - 1,
            )
        ],
        seeds=list(range(1, 21)),
        repeat="tidegate lab storm --seed 1",
        took_s=70,
        exit_code=0,
    )
