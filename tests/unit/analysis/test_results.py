"""What runs say about a trigger, an action, a cure: figures by hand from seconds by hand."""

from typing import Any

import msgspec
import pytest
from made_runs import client, made_run, of, service, stuck
from systems import store

from tidegate.analysis.cures import Candidate
from tidegate.analysis.graph import Graph
from tidegate.analysis.rating import Rating
from tidegate.analysis.results import (
    action_result,
    common_outcome,
    goodput,
    rated_cure,
    simulated_cure,
    trigger_result,
)
from tidegate.analysis.runs import ClientRun, Run
from tidegate.findings import TriggerResult
from tidegate.settings.system import Call, Client, Journey, Service, System, Time, Trigger
from tidegate.units import MILLISECOND, SECOND

CURE = Candidate(
    "a budget", {("clients", "shoppers", "calls", "buy"): {"attempts": 1}}, "some", store()
)


def result(
    *runs: Run, without: list[Run] | None = None, system: System | None = None, **more: Any
) -> TriggerResult:
    """The stall of the store, as these runs show it."""
    system = system or store()
    settings: dict[str, Any] = {"assumed": False, "divisor": 1, "fluid": None} | more
    trigger = settings.pop("trigger", system.triggers["stall"])
    return trigger_result(
        Graph(system),
        system,
        "stall",
        trigger,
        runs=runs,
        without=list(runs) if without is None else without,
        **settings,
    )


def with_a_page(need: float) -> System:
    """Readers of whose pages a share needs the store, beside the shoppers, who all do."""
    page = Service(time=Time(mean=MILLISECOND), calls={"look": Call(to="store", per_request=need)})
    return msgspec.structs.replace(
        store(),
        clients={**store().clients, "readers": Client(rate=100, calls={"page": Call()})},
        services={**store().services, "page": page},
        journeys={"read a page": Journey(client="readers")},
    )


def read(during: int, outcome: str = "recovers") -> Run:
    clients = {"shoppers": client(100, 0, 100), "readers": client(100, during, 100)}
    after = {"shoppers": 5.0, "readers": 0.0}
    return made_run(clients=clients, recovered_after=after, outcome=outcome)


# The outcome.


def test_the_outcome_is_that_of_most_runs_and_of_two_as_common_the_worse() -> None:
    assert common_outcome([made_run(), made_run(), stuck()]) == "recovers"
    assert common_outcome([made_run(), stuck()]) == "sticks"
    seen = result(made_run(), made_run(), stuck(), made_run())
    assert (seen.outcome, seen.confidence.value, seen.confidence.runs) == ("recovers", 0.75, 4)


def test_it_stays_if_it_sticks_or_swings() -> None:
    assert result(stuck()).stays
    assert result(made_run(outcome="oscillates", recovered_after={"shoppers": None})).stays
    assert not result(made_run()).stays
    assert not result(made_run(outcome="slow to drain")).stays


def test_the_objective_is_missed_if_one_run_misses_it() -> None:
    at_the_end = made_run(recovered_after={"shoppers": 60.0})
    assert result(made_run(), at_the_end).objective_met
    later = made_run(recovered_after={"shoppers": 61.0})
    assert not result(made_run(), made_run(), later).objective_met
    assert not result(made_run(), stuck(), made_run()).objective_met


def test_the_way_back_is_told_of_the_runs_that_ended_like_most() -> None:
    slow = made_run(recovered_after={"shoppers": 15.0})
    back = result(made_run(), slow, stuck()).recovered_after
    assert back is not None
    assert (back.value, back.low, back.high, back.runs, back.unit) == (10.0, 5.0, 15.0, 2, "s")
    assert result(stuck()).recovered_after is None
    drained = result(made_run(outcome="slow to drain", finishes_after=300.0))
    assert drained.recovered_after is None
    assert drained.finishes_at is not None
    assert drained.finishes_at.value == 300.0


# The harm.


def test_harm_is_what_fails_of_what_came_beyond_what_fails_anyway() -> None:
    assert result(of((100, 0, 100))).harm.value == 1000  # ten seconds of a hundred
    assert result(of((100, 75, 100))).harm.value == 250
    assert result(of((90, 0, 90))).harm.value == 900  # a tenth failed before
    assert result(of((90, 100, 90))).harm.value == 0  # fewer than before is no negative harm


def test_a_copy_at_a_fifth_is_told_in_figures_of_the_original() -> None:
    told = result(of((100, 75, 100)), divisor=5)
    assert told.harm.value == told.harm_without.value == 1250
    assert told.timeline is not None
    assert (told.timeline.offered[0], told.timeline.goodput[35]) == (500.0, 375.0)
    assert told.timeline.attempts[35] == 2000.0


def test_harm_is_divided_by_the_harm_of_the_same_luck_without_retries() -> None:
    with_them = [of((100, 0, 100), spec_seed=1), of((100, 50, 100), spec_seed=2)]
    without = [of((100, 75, 100), spec_seed=1)]
    told = result(*with_them, without=without)
    assert (told.harm.value, told.harm_without.value) == (750.0, 250.0)
    assert told.harm_ratio == 4.0  # 1000 of seed 1, without seed 2, over 250


def test_there_is_no_ratio_where_nothing_fails_without() -> None:
    assert result(of((100, 0, 100)), without=[of((100, 100, 100))]).harm_ratio is None


def test_a_retry_that_helps_is_credited() -> None:
    told = result(of((100, 99, 100)), without=[of((100, 90, 100))])
    assert told.harm_ratio == pytest.approx(0.1)


# The clients.


def test_goodput_is_a_share_of_what_came_and_all_is_well_where_nobody_came() -> None:
    assert goodput(client(100, 50, 0), 0, 30) == 1.0
    assert goodput(client(100, 50, 0), 20, 40) == 0.75
    assert goodput(ClientRun([0], [0], [0]), 0, 1) == 1.0


def test_each_client_is_told_before_during_after_and_in_the_end() -> None:
    run = made_run(clients={"shoppers": client(98, 10, 60, late=30)})
    (told,) = result(run).clients
    assert [told.before.value, told.during.value, told.after.value] == [0.98, 0.1, 0.6]
    assert told.eventual.value == 0.4


def test_what_is_too_young_to_judge_is_not_counted() -> None:
    # The last ten seconds have no answer yet: `after` is the half minute before them.
    good = [100] * 60 + [80] * 30 + [0] * 10
    young = made_run(clients={"shoppers": ClientRun([100] * 100, good, good)}, known=90)
    assert result(young).clients[0].after.value == 0.8


# Who falls.


def test_who_needs_what_was_hit_does_not_fall_needlessly() -> None:
    assert result(made_run()).falls == []


def test_a_client_falls_when_served_less_than_what_never_needs_it() -> None:
    # Three pages in ten need the store; seven could open, and the objective asks for 95 % of them.
    system = with_a_page(0.3)
    (fall,) = result(read(66), system=system).falls
    assert (fall.client, fall.journey, fall.needed) == ("readers", "read a page", 0.3)
    assert fall.goodput.value == 0.66
    assert result(read(67), system=system).falls == []


def test_whoever_needs_nothing_of_it_falls_by_any_harm() -> None:
    (fall,) = result(read(94), system=with_a_page(0.0)).falls
    assert fall.needed == 0.0


def test_a_clients_own_surge_is_its_own_fault() -> None:
    surge = Trigger(client="readers", load=3.0, for_=10 * SECOND)
    assert result(read(10), system=with_a_page(0.3), trigger=surge).falls == []


# The storm.


def test_attempts_are_counted_at_what_was_hit_for_each_request_offered() -> None:
    assert result(made_run()).attempts_per_action.value == 4.0
    twice = made_run(services={"store": service(100, 400, 100), "other": service(1, 9, 1)})
    assert result(twice).attempts_per_action.value == 4.0
    surge = Trigger(client="shoppers", load=1.0, for_=10 * SECOND)
    assert result(twice, trigger=surge).attempts_per_action.value == 9.0  # nothing was hit: all


def test_a_trigger_on_a_call_hits_its_callee() -> None:
    slow = Trigger(call="buy", latency=SECOND, for_=10 * SECOND)
    both = made_run(services={"store": service(100, 200, 100), "other": service(1, 9, 1)})
    assert result(both, trigger=slow).attempts_per_action.value == 2.0


def test_work_for_nobody_is_a_share_of_what_was_finished() -> None:
    run = made_run(services={"store": service(100, 100, 100, late=25)})
    assert result(run).wasted.value == 0.25
    assert result(made_run(services={"store": service(0, 0, 0)})).wasted.value == 0.0


def test_repeated_effects_are_told_of_calls_that_must_not_be_repeated() -> None:
    assert result(made_run(repeated={"buy": 7})).duplicated is None
    told = result(made_run(repeated={"buy": 7}), system=store(idempotent=False), divisor=2)
    assert told.duplicated is not None
    assert (told.duplicated.value, told.duplicated.unit) == (14.0, "repeated effects")


def test_the_timeline_is_a_run_that_ended_like_most() -> None:
    told = result(made_run(), stuck(spec_seed=2), stuck(spec_seed=3)).timeline
    assert told is not None
    assert (told.seed, told.start, told.end) == (2, 30.0, 40.0)
    assert len(told.seconds) == len(told.goodput) == 100
    endless = Trigger(service="store", freeze=True)
    assert (told := result(stuck(), trigger=endless).timeline) is not None
    assert told.end is None


# Ways out, cures.


def test_an_action_is_told_with_the_client_that_fares_worst() -> None:
    clients = {"shoppers": client(100, 0, 100), "readers": client(100, 0, 40)}
    after = {"shoppers": 5.0, "readers": None}
    told = action_result(["a", "b"], [made_run(clients=clients, recovered_after=after)])
    assert (told.goodput.value, told.recovered_after) == (0.4, None)
    assert told.says == "a + b: recovers (together)"
    assert action_result(["a"], [made_run()]).says == "a: recovers (alone)"


def rating(outcome: Any = "recovers", after: float | None = 5.0) -> Rating:
    return Rating(outcome, {"shoppers": 0.5, "readers": 0.25}, after)


def test_a_cure_cures_if_it_comes_back_in_time_under_every_bad_trigger() -> None:
    fine = {"stall": rating("sticks", None), "surge": rating()}
    cure = simulated_cure(CURE, fine, "stall", [made_run(), made_run()])
    assert (cure.cures, cure.confirmed) == (True, True)
    assert cure.by_trigger == {"stall": "recovers", "surge": "recovers"}  # as seen, not as rated
    assert (cure.where, cure.cost) == ("clients.shoppers.calls.buy", "some")
    late = made_run(recovered_after={"shoppers": 61.0})
    assert not simulated_cure(CURE, fine, "stall", [made_run(), late]).cures
    worse = {"stall": rating(), "surge": rating("sticks", None)}
    assert not simulated_cure(CURE, worse, "stall", [made_run(), made_run()]).cures
    assert not simulated_cure(CURE, fine, "stall", [stuck(), stuck()]).cures


def test_a_cure_that_is_only_rated_says_so() -> None:
    cure = rated_cure(CURE, {"stall": rating()}, "stall")
    assert (cure.cures, cure.confirmed) == (True, False)
    assert (cure.goodput_during.value, cure.goodput_during.how) == (0.25, "fluid")
    assert not rated_cure(CURE, {"stall": rating(after=61.0)}, "stall").cures
    assert not rated_cure(CURE, {"stall": rating("sticks", None)}, "stall").cures
    stays = rated_cure(CURE, {"stall": rating(), "surge": rating("oscillates", None)}, "stall")
    assert not stays.cures
