"""What is asked in which order, and what is concluded: of runs by hand, then of real ones."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_runs import made_run, stuck
from systems import stall, store

from tidegate.analysis import check as module
from tidegate.analysis.check import Check, choices, without_retries
from tidegate.analysis.cures import candidates, with_call
from tidegate.analysis.rating import Rating
from tidegate.analysis.runs import Run, Runner, Spec, execute
from tidegate.findings import CheckReport
from tidegate.settings.load import loads
from tidegate.settings.policies import Backoff, Budget, Hedge
from tidegate.settings.system import Action, Service, System, Time, Trigger
from tidegate.units import MILLISECOND, SECOND

WAYS_OUT = {
    "no retries": Action(call="buy", attempts=1),
    "half the load": Action(client="shoppers", load=0.5),
    "empty the queue": Action(service="store", flush=True),
}


class ByHand(Runner):
    """Answers for runs and ratings as the test says, and remembers what was asked."""

    def __init__(
        self,
        run: Callable[[Spec], Run] = lambda _: made_run(),
        rating: Callable[[Any], Rating] = lambda _: Rating("recovers", {"shoppers": 0.5}, 5.0),
    ) -> None:
        super().__init__(1)
        self.run, self.rating = run, rating
        self.asked: list[tuple[str, list[Any]]] = []

    def map(self, specs: Sequence[Spec], what: str) -> list[Run]:
        self.asked.append((what, list(specs)))
        return [msgspec.structs.replace(self.run(spec), spec_seed=spec.seed) for spec in specs]

    def choices(self, specs: Sequence[Spec], what: str) -> list[list[Run]]:
        self.asked.append((what, list(specs)))
        return [[self.run(spec) for _ in spec.choices] for spec in specs]

    def each(self, call: Any, specs: Sequence[Any], what: str) -> list[Any]:
        self.asked.append((what, list(specs)))
        return [self.rating(case) for case in specs]

    def seeds(self, what: str) -> list[int]:
        return [spec.seed for name, specs in self.asked if name == what for spec in specs]


def check(system: Any, runner: Runner | None = None, **more: Any) -> CheckReport:
    runner = runner or ByHand()
    return Check(system, source="s.yaml", repeat="again", runner=runner, **more).run()


def sticks_with_retries(spec: Spec) -> Run:
    """Stuck, unless nothing is tried twice or within a budget."""
    call = spec.system.clients["shoppers"].calls["buy"]
    if spec.trigger is None or call.tries == 1 or call.budget is not None:
        return made_run()
    return stuck()


# How often a trigger is run.


def test_four_of_four_settle_it() -> None:
    runner = ByHand()
    report = check(store(), runner, seed=10)
    assert runner.seeds("left alone") == [10, 11]
    assert runner.seeds("stall") == [10, 11, 12, 13]
    assert runner.seeds("stall without retries") == [10, 11]  # the same luck
    assert report.seeds == [10, 11, 12, 13]


def test_what_is_not_settled_is_run_twelve_times() -> None:
    runner = ByHand(lambda spec: stuck() if spec.trigger and spec.seed % 2 else made_run())
    report = check(store(), runner)
    assert runner.seeds("stall") == list(range(1, 13))
    assert (report.triggers[0].confidence.value, report.triggers[0].confidence.runs) == (0.5, 12)


def test_one_other_end_in_four_is_settled_by_four_more() -> None:
    runner = ByHand(lambda spec: stuck() if spec.trigger and spec.seed == 3 else made_run())
    check(store(), runner)
    assert len(runner.seeds("stall")) == 8  # seven of eight


def test_where_nothing_is_tried_twice_there_is_nothing_to_compare() -> None:
    runner = ByHand()
    report = check(store(attempts=1), runner)
    assert runner.seeds("stall without retries") == []
    assert report.harm_ratio == 1.0


def test_without_retries_every_call_is_tried_once_and_all_else_stays() -> None:
    system = store(budget=Budget())
    assert without_retries(system) == store(budget=Budget(), attempts=1)
    hedged = store(hedge=Hedge(after=SECOND), attempts=1)
    assert without_retries(hedged) == store(attempts=1)


# Assumed triggers.


def test_a_file_without_triggers_is_tried_with_assumed_ones() -> None:
    report = check(store(triggers={}), ByHand(sticks_with_retries))
    assert [t.trigger for t in report.triggers] == [
        "freeze store",
        "half of store",
        "twice the shoppers",
    ]
    assert all(t.assumed for t in report.triggers)
    assert (report.verdict, report.exit_code) == ("vulnerable", 0)


# Ways out.


def test_each_way_out_alone_each_pair_and_all_together() -> None:
    system = msgspec.structs.replace(store(), actions=WAYS_OUT)
    runner = ByHand(sticks_with_retries)
    (trigger,) = check(system, runner, seed=5).triggers
    assert [action.actions for action in trigger.actions] == [
        ["no retries"],
        ["half the load"],
        ["empty the queue"],
        ["no retries", "half the load"],
        ["no retries", "empty the queue"],
        ["half the load", "empty the queue"],
        ["no retries", "half the load", "empty the queue"],
    ]
    assert runner.seeds("ways out of stall") == [5, 6]


def test_nobody_needs_a_way_out_of_what_heals() -> None:
    (trigger,) = check(msgspec.structs.replace(store(), actions=WAYS_OUT)).triggers
    assert trigger.actions == []


def test_of_two_numbers_for_the_same_thing_only_one_is_taken() -> None:
    less, least = (Action(client="shoppers", load=load) for load in (0.5, 0.1))
    assert choices({"less": less, "least": least}) == (("less",), ("least",))
    flush = Action(service="store", flush=True)
    assert choices({"less": less, "flush": flush}) == (("less",), ("flush",), ("less", "flush"))
    assert choices({"less": less}) == (("less",),)


# Cures.


def bad_unless_budget(case: Any) -> Rating:
    call = case.system.clients["shoppers"].calls["buy"]
    bad = call.tries > 1 and call.budget is None
    return Rating("sticks" if bad else "recovers", {"shoppers": 0.1}, None if bad else 5.0)


def test_a_healthy_system_is_offered_no_cure() -> None:
    assert check(store()).cures == []


def test_cures_are_rated_and_the_best_are_simulated() -> None:
    runner = ByHand(sticks_with_retries, bad_unless_budget)
    report = check(store(), runner)
    rated = dict(runner.asked)["rating cures"]
    checked = Check(store(), source="", repeat="", runner=runner)
    assert checked.loop is not None
    assert [case.system for case in rated] == [
        c.system for c in candidates(store(), checked.loop, "store")
    ]
    assert [cure.confirmed for cure in report.cures].count(True) == 3
    assert [cure.cure for cure in report.cures[:2]] == ["retry budget of 10 %", "no retries"]
    assert [cure.cures for cure in report.cures[:3]] == [True, True, False]
    (backoff,) = (cure for cure in report.cures if cure.cure == "jittered backoff alone")
    assert not backoff.cures
    assert runner.seeds("no retries") == [5, 6]  # new luck: the trigger had 1 to 4


def test_a_late_recovery_wants_a_cure_too() -> None:
    late = made_run(recovered_after={"shoppers": 61.0})
    assert check(store(), ByHand(lambda spec: late if spec.trigger else made_run())).cures


def test_what_the_fluid_and_the_simulation_see_differently_is_said() -> None:
    rating = Rating("sticks", {"shoppers": 0.1}, None)
    report = check(store(), ByHand(sticks_with_retries, lambda _: rating))
    assert (
        "retry budget of 10 %: sticks in the fluid, recovers in the simulation"
        in report.disagreements
    )


def test_cures_beyond_the_most_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CURES", 3)
    report = check(store(), ByHand(sticks_with_retries, bad_unless_budget))
    assert len(report.cures) == 3
    assert "circuit breaker in front of store: beyond 3 cures" in report.skipped


# Without any path that multiplies.


def served_by(workers: int) -> Callable[[Any], Rating]:
    """What the fluid says if the store needs so many workers, and nothing else helps."""

    def rating(case: Any) -> Rating:
        good = case.system.services["store"].workers >= workers
        return Rating("recovers" if good else "sticks", {"shoppers": 0.1}, 5.0 if good else None)

    return rating


def runs_by(workers: int) -> Callable[[Spec], Run]:
    """The same of a simulation."""

    def run(spec: Spec) -> Run:
        short = (spec.system.services["store"].workers or 0) < workers
        return stuck() if spec.trigger and short else made_run()

    return run


def test_what_no_policy_cures_is_told_the_least_capacity_that_does() -> None:
    report = check(store(attempts=1), ByHand(runs_by(12), served_by(12)))
    assert report.loop is None
    first, *others = report.cures
    assert (first.cure, first.cures, first.confirmed) == ("1.5x the capacity of store", True, True)
    assert first.yaml == "services: {store: {workers: 12}}"
    assert "12 workers instead of 8 a replica" in first.cost
    assert not any(cure.cures for cure in others)
    assert "queue of 50 at store" in {cure.cure for cure in others}


def test_a_capacity_that_the_simulation_finds_too_little_is_followed_by_the_next() -> None:
    report = check(store(attempts=1), ByHand(runs_by(16), served_by(12)))
    found = {cure.cure: cure.cures for cure in report.cures if "capacity" in cure.cure}
    assert found == {"1.5x the capacity of store": False, "2x the capacity of store": True}


def test_what_no_capacity_cures_either_is_said() -> None:
    report = check(store(attempts=1), ByHand(runs_by(1000), served_by(1000)))
    assert not any(cure.cures for cure in report.cures)
    assert "more capacity: 16x the capacity of store is too little, too" in report.skipped


def test_where_a_policy_cures_nobody_is_told_to_buy_capacity() -> None:
    runner = ByHand(sticks_with_retries, bad_unless_budget)
    assert not any("capacity" in cure.cure for cure in check(store(), runner).cures)


def test_a_surge_is_cured_at_the_service_that_it_presses_hardest() -> None:
    surge = {"twice": Trigger(client="shoppers", load=2.0)}
    report = check(store(attempts=1, triggers=surge), ByHand(runs_by(12), served_by(12)))
    assert report.binding is None
    assert report.cures[0].cure == "1.5x the capacity of store"


# What the file leaves open.

OPEN = """\
tidegate: 1
clients:
  shoppers: {rate: 140/s, calls: {buy: {to: store, timeout: 500ms, attempts: 4}}}
services:
  store: {workers: 8, time: 10ms..40ms, queue: 100..200}
triggers:
  stall: {service: store, freeze: true, for: 10s}
"""


def test_the_verdict_holds_where_the_draws_agree_and_a_threshold_decides() -> None:
    def slow_is_bad(case: Any) -> Rating:
        bad = case.system.services["store"].time.average > 20 * MILLISECOND  # the middle
        return Rating("sticks" if bad else "recovers", {"shoppers": 0.1}, None if bad else 5.0)

    report = check(loads(OPEN), ByHand(sticks_with_retries, slow_is_bad))
    assert report.holds_in is not None
    assert (report.holds_in.value, report.holds_in.runs) == (0.5, 48)
    time, queue = report.unknowns
    assert (time.path, time.decides) == ("services.store.time", 1.0)
    assert "high values" in time.says
    assert queue.decides < 0.5


def test_a_cure_of_the_middle_says_in_how_many_draws_it_cures() -> None:
    def budget_is_not_enough_for_slow_ones(case: Any) -> Rating:
        good = bad_unless_budget(case).outcome == "recovers"
        good &= case.system.services["store"].time.average < 26 * MILLISECOND
        return Rating("recovers" if good else "sticks", {"shoppers": 0.1}, 5.0 if good else None)

    report = check(loads(OPEN), ByHand(sticks_with_retries, budget_is_not_enough_for_slow_ones))
    budget = next(cure for cure in report.cures if cure.cure == "retry budget of 10 %")
    assert budget.cures
    assert budget.holds_in is not None
    below = math.log(26 / 10) / math.log(40 / 10)  # drawn evenly over the logarithm
    assert budget.holds_in.value == pytest.approx(below, abs=1.5 / 48)
    assert (budget.holds_in.runs, budget.holds_in.how) == (48, "fluid")
    assert all(cure.holds_in is None for cure in report.cures if not cure.cures)


def test_a_cure_that_comes_back_too_late_is_none_in_that_draw() -> None:
    def late_where_slow(case: Any) -> Rating:
        rating = bad_unless_budget(case)
        slow = case.system.services["store"].time.average > 26 * MILLISECOND
        return rating._replace(recovered_after=61.0) if slow else rating

    report = check(loads(OPEN), ByHand(sticks_with_retries, late_where_slow))
    assert report.cures[0].holds_in is not None
    assert 0.5 < report.cures[0].holds_in.value < 0.8


def test_a_file_that_leaves_nothing_open_holds_as_it_is() -> None:
    report = check(loads(OPEN.replace("10ms..", "").replace("100..", "")))
    assert (report.holds_in, report.unknowns) == (None, [])
    known = loads(OPEN.replace("10ms..", "").replace("100..", ""))
    report = check(known, ByHand(sticks_with_retries, bad_unless_budget))
    assert {cure.holds_in for cure in report.cures} == {None}


# Interrupted.


def test_an_interrupt_keeps_what_was_known_before() -> None:
    def interrupted(spec: Spec) -> Run:
        if spec.trigger == "second":
            raise KeyboardInterrupt
        return sticks_with_retries(spec)

    system = store(triggers={"first": stall(10 * SECOND), "second": stall(SECOND)})
    report = check(system, ByHand(interrupted))
    assert report.interrupted
    assert [t.trigger for t in report.triggers] == ["first"]
    assert (report.verdict, report.exit_code, report.cures) == ("fails", 1, [])


# The controls: what must never be said.


def ends(system: System, seed: int = 1) -> str:
    return execute(Spec(system=system, trigger="stall", seed=seed, watch_drain=True)).outcome


stalls = st.integers(1, 15)
seeds = st.integers(0, 1000)


@pytest.mark.slow  # a quarter of a second for each of twenty storms
@settings(max_examples=20)
@given(st.floats(20, 160), stalls, st.integers(300, 2000), seeds)
def test_one_attempt_never_collapses(rate: float, length: int, timeout: int, seed: int) -> None:
    system = store(
        rate=rate,
        attempts=1,
        timeout=timeout * MILLISECOND,
        triggers={"stall": stall(length * SECOND)},
    )
    assert ends(system, seed) in {"unharmed", "recovers", "slow to drain"}


@pytest.mark.slow  # as above
@settings(max_examples=20)
@given(st.floats(0.0, 1.0), st.floats(0.2, 0.9), st.integers(2, 10), stalls, seeds)
def test_a_budget_that_fits_the_capacity_never_collapses(
    ratio: float, use: float, attempts: int, length: int, seed: int
) -> None:
    system = store(
        rate=200 * use / (1 + ratio),
        attempts=attempts,
        budget=Budget(ratio=ratio),
        triggers={"stall": stall(length * SECOND)},
    )
    assert ends(system, seed) in {"unharmed", "recovers", "slow to drain"}


@pytest.mark.slow  # a whole check of real runs: half a second
@pytest.mark.parametrize("call", [{"attempts": 1}, {"budget": Budget(), "backoff": Backoff()}])
def test_nothing_is_shouted_about_a_system_at_a_fifth_of_its_capacity(call: Any) -> None:
    service = store().services["store"]
    queue = msgspec.structs.replace(service.queue, limit=50)
    system = store(rate=40.0, triggers={}, attempts=call.pop("attempts", 2), **call)
    system = msgspec.structs.replace(
        system, services={"store": msgspec.structs.replace(service, queue=queue)}
    )
    report = check(system, Runner(1))
    assert (report.verdict, report.exit_code) == ("stable", 0)
    assert [found for found in report.audit if found.severity != "note"] == []
    assert (report.cures, report.stays, report.disagreements) == ([], [], [])
    assert all(t.objective_met for t in report.triggers)


def flaky(**call: Any) -> System:
    """One answer in ten fails, each by itself, and three quarters of the capacity are spare."""
    service = Service(workers=8, time=Time(mean=40 * MILLISECOND), errors=0.1)
    system = store(rate=50.0, **({"attempts": 3} | call))
    return msgspec.structs.replace(system, services={"store": service})


@pytest.mark.slow  # a whole check of real runs: half a second
def test_a_retry_that_helps_is_credited_and_not_taken_away() -> None:
    with_it, without = (
        execute(Spec(system=s, trigger=None, seed=1, hold=60 * SECOND)).clients["shoppers"]
        for s in (flaky(), flaky(attempts=1))
    )
    assert sum(with_it.eventual) > 1.08 * sum(without.eventual)
    report = check(flaky(), Runner(1))
    assert report.verdict == "stable"
    (told,) = report.triggers[0].clients
    assert told.before.value > 0.99
    assert report.cures == []
    assert [found.rule for found in report.audit if "attempts: 1" in found.yaml] == []


def test_to_take_a_retry_away_that_helps_has_its_price() -> None:
    stormy = with_call(flaky(), "buy", attempts=4)
    stormy = msgspec.structs.replace(
        stormy, clients={"shoppers": msgspec.structs.replace(stormy.clients["shoppers"], rate=140)}
    )
    report = check(stormy, ByHand(sticks_with_retries, bad_unless_budget))
    (cure,) = (cure for cure in report.cures if cure.cure == "no retries")
    assert cure.cost == "10% of shoppers would fail that a retry mends in health (computed)"
