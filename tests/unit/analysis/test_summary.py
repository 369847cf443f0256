"""The verdict in a word, a sentence and an exit code."""

from typing import Any

import msgspec
import pytest
from made_runs import client, made_run, of, stuck
from systems import stall, store

from tidegate.analysis.check import Check
from tidegate.analysis.graph import Graph
from tidegate.analysis.results import trigger_result
from tidegate.analysis.runs import Run, Runner
from tidegate.findings import Measure
from tidegate.settings.system import Call, Client, Service, System, Trigger
from tidegate.units import SECOND

CALM = store(rate=20.0)  # four attempts of 20/s are less than 200/s


def checked(
    *runs: Run, system: System = CALM, assumed: bool = False, trigger: Any = None, **more: Any
) -> Check:
    """A check whose one trigger was seen to end so."""
    check = Check(system, source="s.yaml", repeat="tidegate check s.yaml", runner=Runner(1), **more)
    check.rest = [made_run(clients={name: client(100, 100, 100) for name in system.clients})]
    if runs:
        seen = trigger_result(
            Graph(system),
            system,
            "stall",
            trigger or stall(10 * SECOND),
            assumed=assumed,
            divisor=1,
            runs=runs,
            without=runs,
            fluid=runs[0].outcome,
        )
        check.triggers.append(seen)
        check.runs["stall"] = list(runs)
    return check


def told(check: Check) -> tuple[str, int]:
    report = check.report()
    return report.verdict, report.exit_code


UNHARMED = of((100, 100, 100), outcome="unharmed", recovered_after={"shoppers": 0.0})
LATE = made_run(recovered_after={"shoppers": 61.0})
DRAINS = made_run(outcome="slow to drain", recovered_after={"shoppers": None}, finishes_after=700.0)
SWINGS = msgspec.structs.replace(stuck(), outcome="oscillates")


def test_nothing_that_harms_is_stable() -> None:
    assert told(checked(UNHARMED)) == ("stable", 0)
    assert checked(UNHARMED).report().says == "nothing that was tried harms anybody for long"


def test_what_comes_back_in_time_is_stable_and_says_so() -> None:
    assert told(checked(made_run())) == ("stable", 0)
    assert checked(made_run()).report().says == (
        "after stall (store frozen for 10s) it comes back by itself"
    )


@pytest.mark.parametrize(
    ("run", "says"),
    [
        (stuck(), "stall (store frozen for 10s) keeps shoppers down, also after it is over"),
        (SWINGS, "stall (store frozen for 10s) keeps shoppers swinging, also after it is over"),
        (DRAINS, "stall (store frozen for 10s) leaves a backlog that drains, but slowly"),
        (
            LATE,
            "after stall (store frozen for 10s) it comes back, later than the objective allows",
        ),
    ],
)
def test_a_named_trigger_fails_the_check_and_an_assumed_one_warns(run: Run, says: str) -> None:
    assert told(checked(run)) == ("fails", 1)
    assert checked(run).report().says == says
    assert told(checked(run, assumed=True)) == ("vulnerable", 0)
    assert told(checked(run, assumed=True, fail_on_vulnerable=True)) == ("vulnerable", 1)


def test_a_trigger_without_an_end_lasts_until_somebody_acts() -> None:
    endless = Trigger(service="store", freeze=True)
    report = checked(stuck(), trigger=endless).report()
    assert report.says == (
        "stall (store frozen until somebody acts) keeps shoppers down, until somebody acts"
    )


def test_a_load_above_what_it_comes_back_from_is_vulnerable_whatever_was_tried() -> None:
    assert told(checked(UNHARMED, system=store())) == ("vulnerable", 0)
    assert told(checked(UNHARMED, system=store(), fail_on_vulnerable=True)) == ("vulnerable", 1)


def test_goodput_at_half_of_the_objective_without_a_trigger_is_a_collapse() -> None:
    check = checked(UNHARMED)
    check.rest = [of((100, 100, 100)), of((100, 100, 0))]
    assert told(check) == ("collapses by itself", 1)
    assert "without any trigger" in check.report().says
    check.rest = [of((100, 100, 50))]  # the objective asks for 95 %
    assert told(check)[0] == "stable"
    check.rest = [of((0, 0, 100))]  # its last minute is judged
    assert told(check)[0] == "stable"


def test_who_is_not_well_before_a_trigger_is_not_said_to_be_kept_down_by_it() -> None:
    check = checked(stuck())
    check.rest = [of((90, 90, 90)), of((94, 94, 94))]
    assert told(check) == ("fails", 1)
    assert check.report().says == (
        "today's load keeps shoppers below the objective, without any trigger"
    )
    check.rest = [of((90, 90, 90)), of((95, 95, 95))]
    assert "keeps shoppers down" in check.report().says


def test_the_worst_trigger_gives_the_sentence_and_the_ratio() -> None:
    triggers = {"stall": stall(10 * SECOND), "outage": stall(60 * SECOND)}
    check = checked(made_run(), system=store(rate=20.0, triggers=triggers))
    worse = msgspec.structs.replace(
        checked(stuck()).triggers[0], trigger="outage", harm_ratio=3.0, harm=_requests(5)
    )
    check.triggers.insert(0, worse)
    report = check.report()
    assert report.says.startswith("outage ")
    assert (report.harm_ratio, report.stays) == (3.0, ["outage"])


def _requests(count: float) -> Measure:
    return Measure(value=count, low=count, high=count, unit="requests", runs=1, how="simulated")


def test_more_than_three_that_are_down_are_counted() -> None:
    crowd = {f"c{n}": Client(rate=1.0, calls={f"b{n}": Call(to="store")}) for n in range(4)}
    system = System(
        clients=crowd, services={"store": Service()}, triggers={"stall": stall(10 * SECOND)}
    )
    run = stuck()
    down = msgspec.structs.replace(
        run,
        clients={name: client(100, 0, 0) for name in crowd},
        recovered_after=dict.fromkeys(crowd),
    )
    assert "keeps 4 clients down" in checked(down, system=system).report().says


def test_an_interrupted_check_never_exits_with_0() -> None:
    for check, code in ((checked(UNHARMED), 130), (checked(), 130), (checked(stuck()), 1)):
        check.interrupted = True
        report = check.report()
        assert (report.exit_code, report.interrupted) == (code, True)


@pytest.mark.parametrize("system", [CALM, store()])
def test_what_was_stopped_before_any_trigger_was_tried_is_not_judged(system: System) -> None:
    before = checked(system=system)
    before.interrupted = True
    report = before.report()
    assert (report.verdict, report.exit_code) == ("not judged", 130)
    assert report.says == (
        "left alone it does not fall; stopped before any trigger was tried to its end"
    )
    before.rest = []
    assert before.report().verdict == "not judged"
    assert before.report().says == "nothing was simulated yet: stopped before the first run"
    before.rest = [of((100, 100, 0))]
    assert told(before) == ("collapses by itself", 1)


def test_what_too_little_was_seen_of_is_never_stable() -> None:
    thin = checked(UNHARMED, thin=["users: 1 request seen"], judged=False)
    report = thin.report()
    assert (report.verdict, report.exit_code) == ("not judged", 0)
    assert report.says == "too little was seen to say whether it is stable"
    assert report.thin == ["users: 1 request seen"]
    asked = checked(UNHARMED, thin=["x"], judged=False, fail_on_vulnerable=True)
    assert told(asked) == ("not judged", 1)
    assert told(checked(stuck(), thin=["x"], judged=False)) == ("fails", 1)
    assert told(checked(UNHARMED, thin=["admins: 2 requests seen"])) == ("stable", 0)


def test_a_verdict_that_holds_in_a_part_of_what_is_open_says_so() -> None:
    check = checked(UNHARMED)
    check.holds_in = Measure(value=0.75, low=0.5, high=0.9, unit="share", runs=8)
    assert check.report().says.endswith("; so it ends in 75% of what the file leaves open")
    check.holds_in = Measure(value=1.0, low=0.7, high=1.0, unit="share", runs=8)
    assert "leaves open" not in check.report().says


def test_a_fluid_that_ends_otherwise_is_said() -> None:
    check = checked(stuck())
    check.triggers[0] = msgspec.structs.replace(check.triggers[0], fluid="recovers")
    check.disagreements.append("and a cure")
    assert check.report().disagreements == [
        "stall: recovers in the fluid, sticks in the simulation",
        "and a cure",
    ]
    check.triggers[0] = msgspec.structs.replace(check.triggers[0], fluid="oscillates")
    assert check.report().disagreements == ["and a cure"]  # both are bad


def test_what_was_assumed_is_said() -> None:
    check = checked(UNHARMED, system=store(rate=20.0, triggers={}), notes=["read from traces"])
    check.triggers[0] = msgspec.structs.replace(check.triggers[0], trigger="freeze store")
    assert check.report().assumptions == [
        "read from traces",
        "the file names no trigger: those tried are assumed",
        "triggers begin at 30 s, once the system has settled",
    ]


def test_seeds_are_those_of_the_runs() -> None:
    check = checked(*(msgspec.structs.replace(UNHARMED, spec_seed=seed) for seed in (8, 7)))
    assert check.report().seeds == [7, 8]


def test_hysteresis_is_that_of_the_binding_service() -> None:
    assert checked(UNHARMED).report().hysteresis is None  # nothing binds
    curve = checked(UNHARMED, system=store()).report().hysteresis
    assert curve is not None
    assert (curve.service, curve.today, curve.hidden) == ("store", 140.0, 50.0)
    assert checked(UNHARMED, system=store(timeout=None)).report().hysteresis is None
