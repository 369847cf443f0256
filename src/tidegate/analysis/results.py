"""What do the runs under one trigger say, as findings?

Pure functions from runs to the records of the report. Counts of a copy at 1/n of the size are
multiplied by n, so that every figure is the original's.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tidegate.analysis.assumed import in_words
from tidegate.analysis.cures import Candidate
from tidegate.analysis.graph import Graph
from tidegate.analysis.outcome import SEVERITY
from tidegate.analysis.rating import Rating, is_bad
from tidegate.analysis.runs import ClientRun, Run
from tidegate.analysis.statistics import confidence, measure
from tidegate.findings import (
    ActionResult,
    ClientGoodput,
    Cure,
    Fall,
    Measure,
    Outcome,
    Timeline,
    TriggerResult,
)
from tidegate.settings.system import System, Trigger
from tidegate.units import SECOND

__all__ = [
    "action_result",
    "common_outcome",
    "goodput",
    "hit_service",
    "rated_cure",
    "simulated_cure",
    "trigger_result",
]

_Share = Callable[[ClientRun, int, int], float]
_Window = Callable[[Run], tuple[int, int]]

_AFTER: Final = 30  # seconds at the end of what is known that count as "after"


def common_outcome(runs: Sequence[Run]) -> Outcome:
    """The outcome of most runs; of two equally common ones the worse."""
    counts = Counter(run.outcome for run in runs)
    return max(counts, key=lambda outcome: (counts[outcome], SEVERITY[outcome]))


def goodput(client: ClientRun, first: int, last: int) -> float:
    """Share of the requests that came in these seconds and were answered in time."""
    offered = sum(client.offered[first:last])
    return sum(client.good[first:last]) / offered if offered else 1.0


def _eventual(client: ClientRun, first: int, last: int) -> float:
    offered = sum(client.offered[first:last])
    return sum(client.eventual[first:last]) / offered if offered else 1.0


def trigger_result(
    graph: Graph,
    system: System,
    name: str,
    trigger: Trigger,
    *,
    assumed: bool,
    divisor: int,
    runs: Sequence[Run],
    without: Sequence[Run],
    fluid: Outcome | None,
) -> TriggerResult:
    """Everything about one trigger: `runs` with the system as it is, `without` with no retries."""
    outcome = common_outcome(runs)
    same = [run for run in runs if run.outcome == outcome]
    hit = hit_service(system, trigger)
    harm = measure((_harm(run) * divisor for run in runs), "requests")
    bare = measure((_harm(run) * divisor for run in without), "requests")
    within = system.objective.within / SECOND
    back = [after for run in same if (after := _recovery(run)) is not None]
    finish = [run.finishes_after for run in same if run.finishes_after is not None]
    return TriggerResult(
        trigger=name,
        says=in_words(trigger),
        assumed=assumed,
        outcome=outcome,
        confidence=confidence(len(same), len(runs)),
        recovered_after=measure(back, "s") if back and outcome == "recovers" else None,
        finishes_at=measure(finish, "s") if finish and outcome == "slow to drain" else None,
        harm=harm,
        harm_without=bare,
        harm_ratio=_ratio(runs, without),
        attempts_per_action=measure((_amplification(run, hit) for run in runs), "x"),
        wasted=measure((_wasted(run, hit) for run in runs), "share"),
        clients=[_client(client, runs) for client in system.clients],
        falls=_falls(graph, hit, trigger, runs),
        stays=outcome in {"sticks", "oscillates"},
        objective_met=all(
            (after := _recovery(run)) is not None and after <= within for run in runs
        ),
        fluid=fluid,
        timeline=_timeline(same[0], hit, divisor, endless=trigger.for_ is None),
        duplicated=_duplicated(system, runs, divisor),
    )


def _ratio(runs: Sequence[Run], without: Sequence[Run]) -> float | None:
    """Harm divided by the harm under the same luck without retries; None if that is nothing."""
    luck = {run.spec_seed for run in without}
    bare = sum(_harm(run) for run in without)
    return sum(_harm(run) for run in runs if run.spec_seed in luck) / bare if bare >= 1 else None


def action_result(names: Sequence[str], runs: Sequence[Run]) -> ActionResult:
    """What the actions did from the stuck state."""
    outcome = common_outcome(runs)
    back = [after for run in runs if (after := _recovery(run)) is not None]
    good = measure((_worst_after(run) for run in runs), "share")
    alone = "alone" if len(names) == 1 else "together"
    return ActionResult(
        actions=list(names),
        outcome=outcome,
        goodput=good,
        recovered_after=measure(back, "s") if back else None,
        says=f"{' + '.join(names)}: {outcome} ({alone})",
    )


def simulated_cure(
    candidate: Candidate, outcomes: Mapping[str, Rating], trigger: str, runs: Sequence[Run]
) -> Cure:
    """A cure as several runs of `trigger` showed it; other triggers as the fluid rated them."""
    outcome = common_outcome(runs)
    back = [after for run in runs if (after := _recovery(run)) is not None]
    during = (
        min(goodput(client, run.start, run.end) for client in run.clients.values()) for run in runs
    )
    late = back and max(back) > candidate.system.objective.within / SECOND
    others = [rating.outcome for name, rating in outcomes.items() if name != trigger]
    return _cure(
        candidate,
        {name: rating.outcome for name, rating in outcomes.items()} | {trigger: outcome},
        cures=not late and not any(map(is_bad, [outcome, *others])),
        during=measure(during, "share"),
        recovered=measure(back, "s") if back else None,
        confirmed=True,
    )


def rated_cure(candidate: Candidate, outcomes: Mapping[str, Rating], trigger: str) -> Cure:
    """A cure as the fluid sees it."""
    rating = outcomes[trigger]
    late = (rating.recovered_after or 0) > candidate.system.objective.within / SECOND
    return _cure(
        candidate,
        {name: rating.outcome for name, rating in outcomes.items()},
        cures=not late and not any(is_bad(rating.outcome) for rating in outcomes.values()),
        during=rating.during_measure(),
        recovered=rating.recovery_measure(),
        confirmed=False,
    )


def _cure(
    candidate: Candidate,
    by_trigger: dict[str, Outcome],
    *,
    cures: bool,
    during: Measure,
    recovered: Measure | None,
    confirmed: bool,
) -> Cure:
    return Cure(
        cure=candidate.name,
        yaml=candidate.yaml,
        where=candidate.where,
        by_trigger=by_trigger,
        cures=cures,
        goodput_during=during,
        recovered_after=recovered,
        cost=candidate.cost,
        confirmed=confirmed,
        says=f"{candidate.name}: {', '.join(f'{name} {o}' for name, o in by_trigger.items())}",
    )


def _recovery(run: Run) -> float | None:
    """When the last client was well again; None if one never was."""
    times = list(run.recovered_after.values())
    known = [time for time in times if time is not None]
    return max(known, default=0.0) if len(known) == len(times) else None


def _worst_after(run: Run) -> float:
    return min(goodput(client, *_after(run)) for client in run.clients.values())


def _after(run: Run) -> tuple[int, int]:
    """The last half minute whose requests' fate is known."""
    last = max(run.end + 1, run.known)
    return max(run.end, last - _AFTER), last


def _before(run: Run) -> tuple[int, int]:
    return max(0, run.start - _AFTER), run.start


def _during(run: Run) -> tuple[int, int]:
    return run.start, run.end


def _harm(run: Run) -> float:
    """Requests that came during the trigger and failed, beyond what fails without it."""
    total = 0.0
    for client in run.clients.values():
        before = 1 - goodput(client, *_before(run))
        offered = sum(client.offered[run.start : run.end])
        failed = offered - sum(client.good[run.start : run.end])
        total += max(0.0, failed - before * offered)
    return total


def hit_service(system: System, trigger: Trigger) -> str | None:
    """The service that a trigger is at, or that the call goes to; None for one at a client."""
    if trigger.service is not None:
        return trigger.service
    if trigger.call is not None:
        for _, _, calls in system.callers():
            if trigger.call in calls:
                return system.target_of(trigger.call, calls[trigger.call])
    return None


def _amplification(run: Run, hit: str | None) -> float:
    """Attempts at the service that was hit, for each that its load would make in health.

    For a client's own surge, the largest such factor of any service.
    """
    factors = []
    for name, service in run.services.items():
        if hit is not None and name != hit:
            continue
        before = sum(service.arrived[slice(*_before(run))])
        during = sum(service.arrived[run.start : run.end])
        offered_before = _offered(run, *_before(run))
        offered = _offered(run, run.start, run.end)
        if before and offered and offered_before:
            factors.append((during / offered) / (before / offered_before))
    return max(factors, default=1.0)


def _offered(run: Run, first: int, last: int) -> int:
    return sum(sum(client.offered[first:last]) for client in run.clients.values())


def _wasted(run: Run, hit: str | None) -> float:
    """Share of finished work that nobody waited for, at the service that was hit or the worst."""
    shares = [0.0]
    for name, service in run.services.items():
        if hit is None or name == hit:
            served = sum(service.served[run.start : run.stopped])
            if served:
                shares.append(sum(service.late[run.start : run.stopped]) / served)
    return max(shares)


def _client(name: str, runs: Sequence[Run]) -> ClientGoodput:
    def over(share: _Share, window: _Window) -> Measure:
        return measure((share(run.clients[name], *window(run)) for run in runs), "share")

    return ClientGoodput(
        client=name,
        before=over(goodput, _before),
        during=over(goodput, _during),
        after=over(goodput, _after),
        eventual=over(_eventual, _during),
    )


def _falls(graph: Graph, hit: str | None, trigger: Trigger, runs: Sequence[Run]) -> list[Fall]:
    """Clients that did worse than the share of their requests that never needs what was hit."""
    falls = []
    system = graph.system
    needs = {} if hit is None else graph.needs(hit)
    for name in system.clients:
        need = needs.get(name, 1.0)
        if trigger.client == name or need > 0.99:
            continue
        during = measure((goodput(run.clients[name], run.start, run.end) for run in runs), "share")
        could = (1 - need) * system.objective.goodput
        if during.value < could:
            journeys = [j for j, said in system.journeys.items() if said.client == name]
            falls.append(
                Fall(
                    client=name,
                    journey=journeys[0] if journeys else None,
                    goodput=during,
                    needed=need,
                    says=f"{need:.0%} of the requests of {name} need {hit or 'what was hit'};"
                    f" {1 - during.value:.0%} of them fail",
                )
            )
    return falls


def _duplicated(system: System, runs: Sequence[Run], divisor: int) -> Measure | None:
    """Attempts repeated after a timeout of what must not be done twice; None if there is none."""
    calls = [call for _, _, made in system.callers() for call in made.values()]
    if all(call.idempotent for call in calls):
        return None
    return measure((divisor * sum(run.repeated.values()) for run in runs), "repeated effects")


def _timeline(run: Run, hit: str | None, divisor: int, *, endless: bool) -> Timeline:
    """One run second by second; attempts are those at the service that was hit, else at all."""
    services = [run.services[hit]] if hit is not None else list(run.services.values())
    seconds = min(run.stopped, run.known)
    every = range(seconds)
    return Timeline(
        seconds=[float(second) for second in every],
        offered=[
            float(divisor * sum(client.offered[s] for client in run.clients.values()))
            for s in every
        ],
        goodput=[
            float(divisor * sum(client.good[s] for client in run.clients.values())) for s in every
        ],
        attempts=[float(divisor * sum(service.arrived[s] for service in services)) for s in every],
        start=float(run.start),
        end=None if endless else float(run.end),
        seed=run.spec_seed,
    )
