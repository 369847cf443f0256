"""The token service of February 2024: what it takes to serve, and what it takes to come back.

Four nodes of 100 requests a second, 300/s to serve, 440/s for ten minutes. Long ways back are left
to the fluid and the drain law; what fits into seconds is simulated at a tenth of the size as well.
"""

from functools import cache
from pathlib import Path

import msgspec
import pytest

from tidegate.analysis.cures import with_call
from tidegate.analysis.fluid import Change, Line, series
from tidegate.analysis.fluid import Run as Flow
from tidegate.analysis.fluid import run as flow
from tidegate.analysis.graph import Graph
from tidegate.analysis.results import goodput
from tidegate.analysis.runs import Run, Spec, execute
from tidegate.analysis.scale import scaled
from tidegate.analysis.theory import capacity_to_escape, drain_time
from tidegate.settings.load import load
from tidegate.settings.policies import Budget, Full, Queue
from tidegate.settings.system import Action, System
from tidegate.sim.world import World
from tidegate.units import SECOND

pytestmark = pytest.mark.slow  # ten minutes of surge each: about a second

EXAMPLE = Path(__file__).parents[2] / "examples" / "token-service.yaml"
TENTH = 10
NODE, NODES, LOAD, SURGE, TIMEOUT, ATTEMPTS = 100.0, 4, 300.0, 440.0, 10.0, 4
START, END, HALF_AN_HOUR = 60.0, 660.0, 1800.0
STEP = 0.1
APPS = Line(timeout=TIMEOUT, attempts=ATTEMPTS, gaps=(((1.0, 1.0),),))


@cache
def tokens() -> System:
    return load(EXAMPLE).system()


def changed(**at_service: object) -> System:
    service = msgspec.structs.replace(tokens().services["tokens"], **at_service)
    return msgspec.structs.replace(tokens(), services={"tokens": service})


def calls_changed(system: System, **settings: object) -> System:
    return with_call(with_call(system, "app token", **settings), "rule token", **settings)


def suffer(system: System, seed: int = 1) -> Run:
    return execute(Spec(system=system, trigger="growth", seed=seed, divisor=TENTH))


def surge(line: Line, minutes_after: float, *nodes: Change) -> Flow:
    """The fluid of the surge; `nodes` are changes of the number of nodes."""
    seconds = END + 60 * minutes_after
    offered = series(LOAD, seconds, STEP, Change(START, END - START, SURGE / LOAD))
    return flow(line, offered, series(NODES * NODE, seconds, STEP, *nodes), dt=STEP)


def minutes_to_escape(nodes: int, watch: float) -> float:
    """After how many minutes so many nodes, there 30 min after the surge, are back in time."""
    added = END + HALF_AN_HOUR
    run = surge(APPS, 30 + watch, Change(added, factor=nodes / NODES))
    return (run.back_at(0.95, added) - added) / 60


def test_the_file_says_what_the_fluid_is_told() -> None:
    facts = Graph(tokens()).facts()[0]
    assert (facts.advertised, facts.load) == (NODES * NODE, LOAD)
    assert facts.amplification == ATTEMPTS
    growth = tokens().triggers["growth"]
    assert growth.load is not None
    assert LOAD + (growth.load - 1) * (tokens().clients["apps"].rate or 0) == SURGE


def test_without_retries_it_answers_again_210_seconds_after_the_surge() -> None:
    run = surge(msgspec.structs.replace(APPS, attempts=1), 10)
    assert run.share(START + 120, END) == 0
    assert run.back_at(0.95, END) - END == pytest.approx(210, abs=1)


def test_without_retries_it_comes_back_in_the_simulation_too() -> None:
    # Counted by arrival, so ten seconds earlier. The backlog of 2,400 is known to 220 (the square
    # root of what came and went), which takes 22 s to drain: five seeds leave 10.
    after = [
        run.recovered_after["apps"] or 0.0
        for run in (suffer(calls_changed(tokens(), attempts=1), seed) for seed in range(1, 6))
    ]
    assert sum(after) / len(after) == pytest.approx(200, abs=30)


def test_with_retries_it_never_does_though_three_nodes_would_carry_the_load() -> None:
    assert LOAD <= 3 * NODE
    run = surge(APPS, 120)
    assert run.share(END) == 0
    assert run.backlog[round((END + HALF_AN_HOUR) / STEP)] == pytest.approx(2.10e6, rel=0.01)
    assert run.rate(END + 60) == pytest.approx(LOAD * ATTEMPTS)


def test_with_retries_it_sticks_in_the_simulation_too() -> None:
    run = suffer(tokens())
    assert run.outcome == "sticks"
    assert goodput(run.clients["apps"], run.end, run.known) == 0


def test_twelve_nodes_are_not_enough_to_escape() -> None:
    needed = capacity_to_escape(2.10e6, LOAD, TIMEOUT, ATTEMPTS)
    assert needed == 12 * NODE
    assert Graph(tokens()).facts()[0].escape == needed / (NODES * NODE)
    assert minutes_to_escape(12, 240) == float("inf")


@pytest.mark.parametrize(("nodes", "minutes"), [(13, 349), (16, 87), (24, 29)])
def test_more_nodes_escape_by_the_drain_law(nodes: int, minutes: float) -> None:
    backlog = surge(APPS, 30).backlog[-1]
    law = drain_time(backlog, LOAD, nodes * NODE, TIMEOUT, ATTEMPTS) / 60
    assert law == pytest.approx(minutes, rel=0.01)
    assert minutes_to_escape(nodes, 1.1 * minutes) == pytest.approx(minutes, rel=0.01)


def after_half_an_hour(nodes: int, minutes: int) -> list[float]:
    """The goodput of each minute after nodes are added, simulated at a tenth."""
    system = scaled(tokens(), TENTH)
    added = round(END + HALF_AN_HOUR)
    world = World(system, seed=1, horizon=(added + 60 * minutes + 60) * SECOND)
    world.plan("growth", system.triggers["growth"], round(START) * SECOND)
    world.run(added * SECOND)
    world.act("more nodes", Action(service="tokens", capacity=nodes / NODES))
    world.run((added + 60 * minutes + 15) * SECOND)
    tally = world.clients["apps"].tally
    starts = range(added, added + 60 * minutes, 60)
    return [sum(tally.good[s : s + 60]) / sum(tally.offered[s : s + 60]) for s in starts]


def test_24_nodes_are_back_within_half_an_hour_in_the_simulation_too() -> None:
    by_minute = after_half_an_hour(24, 33)
    assert max(by_minute[:25]) == 0
    assert min(by_minute[-2:]) > 0.99


def test_12_nodes_are_not_back_in_the_simulation_either() -> None:
    assert max(after_half_an_hour(12, 30)) == 0


@pytest.mark.parametrize("full", ["refuse", "silence"])
def test_a_second_of_work_as_the_bound_of_the_queue_is_enough(full: Full) -> None:
    run = surge(msgspec.structs.replace(APPS, places=NODES * NODE, full=full), 5)
    assert run.share(START + 60, END) == pytest.approx(NODES * NODE / SURGE, abs=0.01)
    assert run.share(END + 60) > 0.999


def test_with_such_a_queue_it_copes_in_the_simulation_too() -> None:
    run = suffer(changed(queue=Queue(limit=round(NODE))))
    assert goodput(run.clients["apps"], run.start, run.end) == pytest.approx(0.91, abs=0.03)
    assert run.outcome == "recovers"
    assert goodput(run.clients["apps"], run.end + 5, run.known) > 0.99


def test_dropping_what_can_no_longer_finish_in_time_is_enough_where_callers_say_it() -> None:
    # The fluid, which knows no service time, loses nothing but the surplus. A worker gives an
    # exponential time its mean: what takes longer is late all the same, and its time is lost.
    assert surge(msgspec.structs.replace(APPS, abandoned="cancel"), 5).share(
        START + 60, END
    ) == pytest.approx(NODES * NODE / SURGE, abs=0.01)
    run = suffer(calls_changed(changed(queue=Queue(late=True)), propagate=True))
    assert goodput(run.clients["apps"], run.start, run.end) == pytest.approx(0.70, abs=0.06)
    assert run.outcome == "recovers"
    assert goodput(run.clients["apps"], run.end + 60, run.known) > 0.95


def test_dropping_only_what_is_too_late_already_is_not() -> None:
    assert suffer(changed(abandoned="skip")).outcome == "sticks"


def test_a_retry_budget_escapes_ten_minutes_after() -> None:
    run = surge(msgspec.structs.replace(APPS, budget=0.1, saved=100.0), 20)
    assert (run.back_at(0.95, END) - END) / 60 == pytest.approx(10.1, abs=0.3)


def test_a_retry_budget_escapes_in_the_simulation_too() -> None:
    run = suffer(calls_changed(tokens(), budget=Budget()))
    assert run.outcome == "recovers"
    assert run.recovered_after["apps"] == pytest.approx(600, abs=120)
