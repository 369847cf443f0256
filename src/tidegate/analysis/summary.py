"""What is the verdict, in a word and in a sentence?

The word follows from the triggers: `collapses by itself` needs none; `fails` if one that the file
names sticks, oscillates or misses the objective; `vulnerable` if only an assumed one does, or if
the load is above what some service comes back from; else `stable`. Only the first two make the exit
code 1, and `vulnerable` when it is asked to. What was interrupted before any trigger was tried is
`not judged`, whatever arithmetic says; without a finding it exits as any interrupted command, with
130. `not judged` is also what would be stable, were there enough traces to say so; as nothing rules
out that it is vulnerable, it counts as that where it is asked.
"""

from typing import TYPE_CHECKING, Final

from tidegate.analysis.audit import audit
from tidegate.analysis.journeys import dependencies
from tidegate.analysis.outcome import SEVERITY
from tidegate.analysis.rating import is_bad
from tidegate.analysis.results import goodput
from tidegate.analysis.theory import Station, hysteresis
from tidegate.findings import CheckReport, Hysteresis, TriggerResult, Verdict
from tidegate.units import SECOND

if TYPE_CHECKING:
    from tidegate.analysis.check import Check

__all__ = ["report"]

_INTERRUPTED: Final = 130  # what a shell says of a command that Ctrl-C has ended
_BADNESS: Final[dict[Verdict, int]] = {
    "stable": 0,
    "not judged": 1,
    "vulnerable": 2,
    "fails": 3,
    "collapses by itself": 4,
}
_LAST: Final = 60  # seconds at the end of a run without a trigger that are judged


def report(check: "Check", *, version: str) -> CheckReport:
    """The whole report from what the check knows."""
    verdict, says = _judged(check)
    worst = _worst(check.triggers)
    return CheckReport(
        version=version,
        source=check.source,
        verdict=verdict,
        says=says,
        thin=list(check.thin),
        harm_ratio=worst.harm_ratio if worst else None,
        falls=sorted({fall.client for t in check.triggers for fall in t.falls}),
        stays=[t.trigger for t in check.triggers if t.stays],
        binding=check.binding,
        loop=check.loop,
        services=check.graph.facts(),
        triggers=check.triggers,
        cures=check.cures,
        skipped=check.skipped,
        audit=audit(check.system),
        journeys=dependencies(check.system),
        lanes=check.lanes,
        hysteresis=_hysteresis(check),
        unknowns=check.unknowns,
        holds_in=check.holds_in,
        assumptions=_assumptions(check),
        disagreements=_disagreements(check),
        seeds=_seeds(check),
        repeat=check.repeat,
        cpu_seconds=check.runner.cpu_seconds,
        interrupted=check.interrupted,
        exit_code=_exit_code(check, verdict),
    )


def _exit_code(check: "Check", verdict: Verdict) -> int:
    """A finding stays one, whatever else would have come; but no news of a part is no good news."""
    if verdict in {"collapses by itself", "fails"}:
        return 1
    if check.interrupted and verdict == "not judged":
        return _INTERRUPTED
    if verdict in {"vulnerable", "not judged"} and check.fail_on_vulnerable:
        return 1
    return _INTERRUPTED if check.interrupted else 0


def _judged(check: "Check") -> tuple[Verdict, str]:
    """The worst of the services and of the lanes has the word, and the sentence."""
    lane = max(check.lanes, key=lambda lane: _BADNESS[lane.verdict], default=None)
    if check.system.services or check.system.spool is None:
        verdict = _verdict(check)
        if lane is None or _BADNESS[lane.verdict] <= _BADNESS[verdict]:
            says = _sentence(check, verdict, _worst(check.triggers))
            return verdict, says + _where(check, verdict)
    if lane is not None:
        return lane.verdict, f"{lane.lane}: {lane.says}"
    if check.interrupted:
        return "not judged", "stopped before any replay was tried to its end"
    return "not judged", "no lane of the spool says of which fleet it is one; write its `fleet`"


def _worst(triggers: list[TriggerResult]) -> TriggerResult | None:
    return max(triggers, key=lambda t: (SEVERITY[t.outcome], t.harm.value), default=None)


def _verdict(check: "Check") -> Verdict:
    if _falls_alone(check):
        return "collapses by itself"
    if check.interrupted and not check.triggers:
        return "not judged"
    bad = [t for t in check.triggers if t.stays or not t.objective_met]
    if any(not t.assumed for t in bad):
        return "fails"
    states = {facts.state for facts in check.graph.facts()}
    if bad or states & {"vulnerable", "overloaded"}:
        return "vulnerable"
    return "stable" if check.judged else "not judged"


def _falls_alone(check: "Check") -> bool:
    return any(
        goodput(client, max(0, run.known - _LAST), run.known) < check.system.objective.goodput / 2
        for run in check.rest
        for client in run.clients.values()
    )


def _unwell(check: "Check") -> list[str]:
    """The clients that are below the objective in each run without a trigger, in its last minute.

    What is not well before a trigger cannot be well again after it.
    """
    return [
        name
        for name in check.system.clients
        if check.rest
        and all(
            goodput(run.clients[name], max(0, run.known - _LAST), run.known)
            < check.system.objective.goodput
            for run in check.rest
        )
    ]


def _sentence(check: "Check", verdict: Verdict, worst: TriggerResult | None) -> str:
    if verdict == "collapses by itself":
        return "goodput falls and stays down at today's load, without any trigger"
    if verdict == "not judged" and not check.triggers:
        left = "left alone it does not fall; stopped before any trigger was tried to its end"
        return left if check.rest else "nothing was simulated yet: stopped before the first run"
    unwell = _unwell(check)
    if unwell and worst is not None and not worst.objective_met:
        return f"today's load keeps {_listed(unwell)} below the objective, without any trigger"
    if verdict == "not judged":
        return "too little was seen to say whether it is stable"
    if worst is None or (verdict == "stable" and worst.outcome == "unharmed"):
        return "nothing that was tried harms anybody for long"
    what = f"{worst.trigger} ({worst.says})"
    if worst.stays:
        over = worst.timeline is not None and worst.timeline.end is not None
        until = "also after it is over" if over else "until somebody acts"
        swings = "swinging" if worst.outcome == "oscillates" else "down"
        return f"{what} keeps {_who(check, worst)} {swings}, {until}"
    if worst.outcome == "slow to drain":
        return f"{what} leaves a backlog that drains, but slowly"
    if not worst.objective_met:
        return f"after {what} it comes back, later than the objective allows"
    return f"after {what} it comes back by itself"


def _where(check: "Check", verdict: Verdict) -> str:
    """In what part of what the file leaves open the sentence is true, if not in all of it."""
    held = check.holds_in
    if held is None or held.value >= 1 or verdict == "not judged":
        return ""
    return f"; so it ends in {held.value:.0%} of what the file leaves open"


def _who(check: "Check", worst: TriggerResult) -> str:
    objective = check.system.objective.goodput
    return _listed([c.client for c in worst.clients if c.after.value < objective])


def _listed(clients: list[str]) -> str:
    return " and ".join(clients) if len(clients) <= 3 else f"{len(clients)} clients"


def _hysteresis(check: "Check") -> Hysteresis | None:
    if check.binding is None:
        return None
    service = check.system.services[check.binding]
    graph = check.graph
    waits = [
        call.timeout
        for _, _, calls in check.system.callers()
        for name, call in calls.items()
        if check.system.target_of(name, call) == check.binding and call.timeout is not None
    ]
    if service.workers is None or service.time is None or not waits:
        return None
    station = Station(
        servers=service.workers * service.replicas,
        service=max(service.time.average, 1.0) / SECOND,
        timeout=min(waits) / SECOND,
        attempts=max(1.0, graph.amplification[check.binding]),
    )
    return hysteresis(check.binding, station, today=graph.load[check.binding])


def _assumptions(check: "Check") -> list[str]:
    said = list(check.notes)
    if check.assumed:
        said.append("the file names no trigger: those tried are assumed")
    divisors = sorted({check.divisor(t.trigger) for t in check.triggers} - {1})
    if divisors:
        sizes = ", ".join(f"1/{n}" for n in divisors)
        said.append(f"simulated at {sizes} of its size, with the same ratios")
    starts = sorted({t.timeline.start for t in check.triggers if t.timeline})
    if starts:
        shown = ", ".join(f"{start:g} s" for start in starts)
        said.append(f"triggers begin at {shown}, once the system has settled")
    return said


def _disagreements(check: "Check") -> list[str]:
    """Where the fluid, which has no luck, and the simulation end differently."""
    said = [
        f"{t.trigger}: {t.fluid} in the fluid, {t.outcome} in the simulation"
        for t in check.triggers
        if t.fluid is not None and is_bad(t.fluid) != is_bad(t.outcome)
    ]
    return said + check.disagreements


def _seeds(check: "Check") -> list[int]:
    seeds = {run.spec_seed for runs in check.runs.values() for run in runs}
    lanes = {check.seed + i for lane in check.lanes for i in range(lane.ways[0].peak.runs)}
    return sorted(seeds | lanes)
