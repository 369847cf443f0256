"""Can this system storm, who falls that need not, what cures it, and how do we get out?

The cheap questions come first: arithmetic on the graph and the static audit need no capacity and no
chance. Then each trigger is simulated with the system as it is and without its amplifier, until the
verdict is settled; what is stuck is tried with the actions that the file names; and the cures of
the worst trigger are rated and the best confirmed. An interrupted check reports what it knows.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Final, TypeAlias

import msgspec

from tidegate._version import __version__
from tidegate.analysis import summary
from tidegate.analysis.assumed import assumed_triggers
from tidegate.analysis.capacity import more_capacity
from tidegate.analysis.cures import (
    MAX_CURES,
    Candidate,
    both,
    candidates,
    changed,
    fences,
    with_call,
)
from tidegate.analysis.graph import Graph
from tidegate.analysis.loop import binding_service, pressures, sustaining_loop
from tidegate.analysis.outcome import SEVERITY
from tidegate.analysis.rating import Case, Rating, ends_well, is_bad, rate
from tidegate.analysis.results import (
    action_result,
    common_outcome,
    hit_service,
    rated_cure,
    simulated_cure,
    trigger_result,
)
from tidegate.analysis.runs import Run, Runner, Spec
from tidegate.analysis.scale import choose_scale
from tidegate.analysis.spool import check_spool
from tidegate.analysis.statistics import settled
from tidegate.analysis.uncertainty import effects, holding
from tidegate.findings import (
    CheckReport,
    Cure,
    LaneResult,
    Measure,
    TriggerResult,
    UnknownEffect,
)
from tidegate.settings.dump import Changes
from tidegate.settings.load import Draft
from tidegate.settings.system import Action, System, Trigger, protected
from tidegate.settings.unknowns import Path, sample
from tidegate.units import SECOND, Duration

_Rated: TypeAlias = tuple[Candidate, dict[str, Rating]]

__all__ = ["Check", "choices"]

RUNS_MAX: Final = 12
"""Runs of one trigger at most; a verdict not settled by then is shown with its share."""

_BATCH: Final = 4  # four of four is settled at 95 % (Wilson's lower end is 0.51)
_WITHOUT: Final = 2  # runs without the amplifier: a mean, no verdict
_TRIES: Final = 2  # runs of each choice of actions: one for each core of a small machine
_CONFIRM: Final = 2  # runs that confirm a cure, beside the fluid that found it
_RATED_TRIGGERS: Final = 5  # bad triggers under which every cure is rated, the worst first
_CONFIRMED: Final = 3  # cures that are confirmed
_ATTEMPTS_A_RUN: Final = 400_000  # above it a smaller copy is simulated
_AROUND: Final = 150  # seconds before and after a trigger that are simulated as well
_VARIED: Final = 3  # cures that are put to every draw of the open numbers
_DRAWS: Final = 48  # of the open numbers: shares are known to within a seventh (Wilson, 95 %)
_REST: Final = 300 * SECOND  # so long the system is left alone, to see whether it falls by itself


class Check:
    """One check of one system. `run` may be interrupted; `report` says what is known.

    `notes` and `thin` say what is to be known of where the system is from: `thin`, what too little
    was seen of. Without `judged` that is all of it, and the verdict is never that it is stable.
    """

    def __init__(
        self,
        draft: Draft | System,
        *,
        source: str,
        repeat: str,
        runner: Runner,
        seed: int = 1,
        fail_on_vulnerable: bool = False,
        notes: Sequence[str] = (),
        thin: Sequence[str] = (),
        judged: bool = True,
    ) -> None:
        self.draft: Final = draft if isinstance(draft, Draft) else None
        self.system: Final = protected(draft if isinstance(draft, System) else draft.system())
        self.source: Final = source
        self.repeat: Final = repeat
        self.seed: Final = seed
        self.fail_on_vulnerable: Final = fail_on_vulnerable
        self.notes: Final = tuple(notes)
        self.thin: Final = tuple(thin)
        self.judged: Final = judged
        self.graph: Final = Graph(self.system)
        self.binding: Final = binding_service(self.graph)
        self.loop: Final = sustaining_loop(self.graph, self.binding) if self.binding else None
        self.assumed: Final = bool(self.system.services) and not self.system.triggers
        self.skipped: Final[list[str]] = []
        self.rest: list[Run] = []
        self.triggers: Final[list[TriggerResult]] = []
        self.cures: Final[list[Cure]] = []
        self.lanes: Final[list[LaneResult]] = []
        self.unknowns: list[UnknownEffect] = []
        self.holds_in: Measure | None = None
        self.disagreements: Final[list[str]] = []
        self.interrupted = False
        self.runner: Final = runner
        self._named: Final = self._with_triggers()
        self.runs: Final[dict[str, list[Run]]] = {}
        self._divisors: Final[dict[str | None, int]] = {}
        self._changes: Final[dict[str, Changes]] = {}

    def run(self) -> CheckReport:
        """Everything, in order; Ctrl-C ends it early with what is known."""
        try:
            if self.system.spool is not None:
                self.lanes.extend(check_spool(self.system.spool, self.runner, self.seed))
            if self.system.services:
                self._services()
        except KeyboardInterrupt:
            self.interrupted = True
            self.runner.close()
        return self.report()

    def report(self) -> CheckReport:
        """What is known so far."""
        return summary.report(self, version=__version__)

    # Private parts.

    def _services(self) -> None:
        self._at_rest()
        for name, trigger in self._named.triggers.items():
            self._one_trigger(name, trigger)
        self._try_actions()
        self._try_cures()
        self._vary_unknowns()

    def _with_triggers(self) -> System:
        if not self.assumed:
            return self.system
        triggers, left = assumed_triggers(self.graph)
        self.skipped.extend(f"{name}: not among the hardest pressed" for name in left)
        return msgspec.structs.replace(self.system, triggers=triggers)

    def divisor(self, trigger: str | None) -> int:
        """The scale at which a trigger is simulated: so that a run stays a matter of seconds."""
        if trigger not in self._divisors:
            said = self._named.triggers[trigger] if trigger else None
            length = said.for_ if said is not None and said.for_ is not None else _REST
            graph = self.graph if said is None else Graph(_suffering(self._named, said))
            self._divisors[trigger] = _divisor(self._named, graph, length)
        return self._divisors[trigger]

    def _specs(self, system: System, trigger: str | None, count: int, **more: object) -> list[Spec]:
        first = len(self.runs.get(trigger or "", ()))
        return [
            Spec(
                system=system,
                trigger=trigger,
                seed=self.seed + first + i,
                divisor=self.divisor(trigger),
                **more,  # type: ignore[arg-type]
            )
            for i in range(count)
        ]

    def _at_rest(self) -> None:
        specs = self._specs(self._named, None, 2, hold=_REST)
        self.rest = self.runner.map(specs, "left alone")

    def _one_trigger(self, name: str, trigger: Trigger) -> None:
        runs: list[Run] = self.runs.setdefault(name, [])
        while len(runs) < RUNS_MAX:
            runs += self.runner.map(self._specs(self._named, name, _BATCH), name)
            same = sum(run.outcome == common_outcome(runs) for run in runs)
            if settled(same, len(runs)):
                break
        calm = without_retries(self._named)
        without = []
        if calm != self._named:
            specs = [
                msgspec.structs.replace(spec, seed=run.spec_seed, watch_drain=False)
                for spec, run in zip(
                    self._specs(calm, name, _WITHOUT), runs[:_WITHOUT], strict=True
                )
            ]
            without = self.runner.map(specs, f"{name} without retries")
        self.triggers.append(
            trigger_result(
                self.graph,
                self._named,
                name,
                trigger,
                assumed=self.assumed,
                divisor=self.divisor(name),
                runs=runs,
                without=without or runs,
                fluid=rate(Case(self._named, name)).outcome,
            )
        )

    def _try_actions(self) -> None:
        """Each action alone and all together, from the state that each stuck trigger leaves."""
        actions = self._named.actions
        for index, result in enumerate(self.triggers):
            if not actions or SEVERITY[result.outcome] < SEVERITY["slow to drain"]:
                continue
            chosen = choices(actions)
            specs = [
                msgspec.structs.replace(spec, seed=self.seed + i, choices=chosen)
                for i, spec in enumerate(self._specs(self._named, result.trigger, _TRIES))
            ]
            by_seed = self.runner.choices(specs, f"ways out of {result.trigger}")
            tried = [
                action_result(choice, [runs[i] for runs in by_seed])
                for i, choice in enumerate(chosen)
            ]
            self.triggers[index] = msgspec.structs.replace(result, actions=tried)

    def _try_cures(self) -> None:
        """Rate every cure of the bad triggers by the fluid, and simulate the best."""
        names = [t.trigger for t in self._bad()[:_RATED_TRIGGERS]]
        service = self._to_keep(names)
        if service is None:
            return
        made = candidates(self._named, self.loop, service)
        self.skipped.extend(f"{c.name}: beyond {MAX_CURES} cures" for c in made[MAX_CURES:])
        rated = self._rated(names, made[:MAX_CURES])
        rated = sorted([*self._with_a_fence(names, rated), *rated], key=_promise)
        self._changes.update((candidate.name, candidate.changes) for candidate, _ in rated)
        for rank, (candidate, ratings) in enumerate(rated):
            if rank < _CONFIRMED:
                self._confirm(names[0], candidate, ratings)
            else:
                self.cures.append(rated_cure(candidate, ratings, names[0]))
        if not any(cure.cures for cure in self.cures):
            self._try_capacity(names)
        self.cures.sort(key=_widest)

    def _to_keep(self, triggers: Sequence[str]) -> str | None:
        """The service that the cures are to keep up; None if nothing is bad, or none has a limit.

        The one that the loop keeps down, else the one that the worst trigger hits, or that is
        pressed hardest under it.
        """
        if not triggers or self.loop is not None:
            return self.binding if triggers else None
        worst = self._named.triggers[triggers[0]]
        return hit_service(self._named, worst) or self._pressed(worst)

    def _pressed(self, trigger: Trigger) -> str | None:
        pressure = pressures(Graph(_suffering(self._named, trigger)))
        return max(pressure, key=pressure.__getitem__, default=None)

    def _try_capacity(self, triggers: Sequence[str]) -> None:
        """Where no policy cures: the least capacity that does, of the service that is short."""
        worst = self._named.triggers[triggers[0]]
        hit = hit_service(self._named, worst)
        made = list(more_capacity(self._named, hit)) if hit is not None else []
        pressed = self._pressed(worst)
        if not made and pressed is not None:
            hit, made = pressed, list(more_capacity(self._named, pressed))
        if not made:
            return
        within = self.system.objective.within
        enough = {
            candidate.name: (candidate, ratings)
            for candidate, ratings in self._rated(triggers, made)
            if all(ends_well(rating, within) for rating in ratings.values())
        }
        least_first = [enough[candidate.name] for candidate in made if candidate.name in enough]
        for candidate, ratings in least_first[:_CONFIRMED]:
            self._changes[candidate.name] = candidate.changes
            self._confirm(triggers[0], candidate, ratings)
            if self.cures[-1].cures:
                return
        if not enough:
            self.skipped.append(f"more capacity: {made[-1].name} is too little, too")

    def _bad(self) -> list[TriggerResult]:
        """The triggers that want a cure, the worst first."""
        bad = [t for t in self.triggers if is_bad(t.outcome)]
        bad = bad or [t for t in self.triggers if not t.objective_met]
        return sorted(bad, key=lambda t: (-SEVERITY[t.outcome], -t.harm.value))

    def _rated(self, triggers: Sequence[str], made: Sequence[Candidate]) -> list[_Rated]:
        """Each with what the fluid says of it under each trigger, the most promising first."""
        cases = [Case(c.system, trigger) for c in made for trigger in triggers]
        ratings = self.runner.each(rate, cases, "rating cures")
        width = len(triggers)
        rows = [ratings[i * width : (i + 1) * width] for i in range(len(made))]
        rated = [
            (candidate, dict(zip(triggers, row, strict=True)))
            for candidate, row in zip(made, rows, strict=True)
        ]
        return sorted(rated, key=_promise)

    def _with_a_fence(self, triggers: Sequence[str], rated: Sequence[_Rated]) -> list[_Rated]:
        """Where somebody falls that need not: the best cure of the loop with the best fence."""
        falling = {fall.client for t in self.triggers for fall in t.falls}
        loop_cures = [candidate for candidate, _ in rated if not candidate.fences]
        if not falling or not loop_cures or self.binding is None:
            return []
        made = [both(loop_cures[0], fence) for fence in fences(loop_cures[0].system, self.binding)]
        return self._rated(triggers, [candidate for candidate in made if candidate.fences])[:1]

    def _confirm(self, trigger: str, candidate: Candidate, ratings: dict[str, Rating]) -> None:
        specs = self._specs(candidate.system, trigger, _CONFIRM)
        runs = self.runner.map(specs, candidate.name)
        cure = simulated_cure(candidate, ratings, trigger, runs)
        self.cures.append(cure)
        said, seen = ratings[trigger].outcome, cure.by_trigger[trigger]
        if is_bad(said) != is_bad(seen):
            self.disagreements.append(
                f"{candidate.name}: {said} in the fluid, {seen} in the simulation"
            )

    def _vary_unknowns(self) -> None:
        """Put each draw of what the file leaves open to the fluid, under the worst trigger."""
        if self.draft is None or not self.draft.unknowns or not self.triggers:
            return
        worst = max(self.triggers, key=lambda t: (SEVERITY[t.outcome], t.harm.value))
        draws = sample(self.draft.unknowns, _DRAWS, self.seed)
        cases = [
            Case(
                msgspec.structs.replace(
                    protected(self.draft.system(draw)), triggers=self._named.triggers
                ),
                worst.trigger,
            )
            for draw in draws
        ]
        bad = [is_bad(found.outcome) for found in self.runner.each(rate, cases, "unknowns")]
        self.holds_in = holding(bad, is_bad(worst.outcome))
        self.unknowns = effects(self.draft.unknowns, draws, bad)
        self._vary_cures([case.system for case in cases])

    def _vary_cures(self, drawn: Sequence[System]) -> None:
        """Put the best cures to each draw: what cures the middle may be too little elsewhere."""
        bad = self._bad()
        tried = [cure for cure in self.cures if cure.cures][:_VARIED]
        cases = [
            Case(changed(system, self._changes[cure.cure]), bad[0].trigger)
            for cure in tried
            for system in drawn
        ]
        ratings = self.runner.each(rate, cases, "cures of what is open")
        for place, cure in enumerate(tried):
            seen = ratings[place * len(drawn) : (place + 1) * len(drawn)]
            within = self.system.objective.within
            failing = [not ends_well(rating, within) for rating in seen]
            held = msgspec.structs.replace(holding(failing, verdict_is_bad=False), how="fluid")
            self.cures[self.cures.index(cure)] = msgspec.structs.replace(cure, holds_in=held)
        self.cures.sort(key=_widest)


def _widest(cure: Cure) -> tuple[bool, bool, float]:
    """What cures before what does not, the confirmed first, and what holds in most of the draws."""
    return not cure.cures, not cure.confirmed, -cure.holds_in.value if cure.holds_in else 0.0


def _promise(rated: _Rated) -> tuple[int, float]:
    """What sorts first is worth a simulation; of equals the gentler, which is made first."""
    ratings = rated[1].values()
    served = sum(sum(r.clients.values()) / len(r.clients) for r in ratings) / len(ratings)
    return max(SEVERITY[rating.outcome] for rating in ratings), -round(served, 2)


def _divisor(system: System, graph: Graph, length: Duration) -> int:
    attempts = sum(graph.worst.values()) * (length / SECOND + _AROUND)
    return choose_scale(system, attempts / _ATTEMPTS_A_RUN)


def _suffering(system: System, trigger: Trigger) -> System:
    """The system with as many requests and calls as `trigger` makes of them, if that is more."""
    if trigger.call is not None and (trigger.per_request or 0) > 1:
        return with_call(system, trigger.call, per_request=trigger.per_request)
    client = system.clients.get(trigger.client or "")
    if trigger.client is None or client is None or client.rate is None:
        return system
    more = msgspec.structs.replace(client, rate=client.rate * max(1.0, trigger.load or 1.0))
    return msgspec.structs.replace(system, clients={**system.clients, trigger.client: more})


def without_retries(system: System) -> System:
    """The same system in which nothing is tried or asked for twice: without the amplifier."""
    retrying: dict[Path, dict[str, int | None]] = {
        (section, caller, "calls", name): {"attempts": 1} | ({"hedge": None} if call.hedge else {})
        for section, caller, calls in system.callers()
        for name, call in calls.items()
        if call.tries > 1 or call.hedge is not None
    }
    return changed(system, retrying)


def choices(actions: Mapping[str, Action]) -> tuple[tuple[str, ...], ...]:
    """Each alone, each pair, all together; not those of which one would undo the other."""
    return tuple(
        names
        for size in sorted({1, 2, len(actions)})
        for names in combinations(actions, size)
        if not any(_same(actions[a], actions[b]) for a, b in combinations(names, 2))
    )


def _same(one: Action, other: Action) -> bool:
    """Whether both set the same number of the same target, so that only the later would count."""
    if (one.service, one.client, one.call) != (other.service, other.client, other.call):
        return False
    numbers = ("capacity", "load", "rate_limit", "attempts")
    return any(getattr(one, n) is not None and getattr(other, n) is not None for n in numbers)
