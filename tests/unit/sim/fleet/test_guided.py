"""A fleet that is led: it waits, rises gently, lets go at once, and gives nothing up."""

from random import Random

import pytest

from tidegate.settings.spool import Gate, Lane, Turns
from tidegate.sim.fleet.guided import Guided
from tidegate.sim.fleet.run import Ran, run
from tidegate.sim.fleet.sink import STEP, STEP_S, Case, Sink
from tidegate.units import SECOND

CASE = Case(live=1e6, backlog=60e6, capacity=2e6, collapsed=1e6, collectors=4)
GATE = Gate(hold=10 * SECOND, jitter=2 * SECOND)
LED = Lane(to="file:out", gate=GATE, turns=Turns(through="nats://127.0.0.1:4222", leases=2))
ALONE = Lane(to="file:out", gate=GATE)
SLOTS = Lane(
    to="file:out",
    gate=GATE,
    turns=Turns(through="slots", members=4, leases=2, slice=20 * SECOND),
)

pytestmark = pytest.mark.slow  # minutes of a fleet's life: half a second each


def drained(lane: Lane, case: Case = CASE) -> tuple[Ran, Guided]:
    fleet = Guided(case, lane, 1)
    return run(case, fleet, seed=1, most_s=900, watched_s=60), fleet


@pytest.mark.parametrize("lane", [LED, ALONE, SLOTS], ids=["turns", "alone", "slots"])
def test_it_gives_all_of_it_back_and_harms_nobody(lane: Lane) -> None:
    ran, fleet = drained(lane)
    assert ran.drained_s is not None
    assert 60 + 10 < ran.drained_s < 400  # the least possible, and the gate before it
    assert ran.peak <= 2.05
    assert (ran.lost, ran.late, ran.resent) == (0, 0, 0)
    assert fleet.left == 0


def test_it_begins_when_the_gate_has_held_and_rises_from_little() -> None:
    ran, _ = drained(LED)
    begun = next(second for second, sent in zip(ran.seconds, ran.sent, strict=True) if sent > 1.001)
    assert 10 <= begun <= 20
    assert all(
        sent < 1.1 for second, sent in zip(ran.seconds, ran.sent, strict=True) if second < begun + 4
    )


def test_the_same_seed_is_the_same_run() -> None:
    assert drained(LED)[0] == drained(LED)[0]


def test_when_a_broker_is_lost_the_replay_stops_and_begins_anew() -> None:
    case = CASE._replace(backlog=200e6, lost=(60.0, 90.0))
    ran, fleet = drained(LED, case)
    stopped = [
        sent
        for second, sent in zip(ran.seconds, ran.sent, strict=True)
        if 71 <= second < 100  # five seconds until it shows, and five until all have looked
    ]
    assert stopped
    assert all(sent < 1.001 for sent in stopped)
    assert ran.drained_s is not None
    assert fleet.closest is not None
    assert fleet.closest >= SECOND


def test_what_a_sick_sink_does_not_take_joins_the_backlog() -> None:
    case = CASE._replace(capacity=0.5e6, collapsed=0.25e6, backlog=0.0)
    fleet, sink = Guided(case, ALONE, 1), Sink(case, Random(1))
    for step in range(round(60 / STEP_S)):
        sent = fleet.send(step * STEP, sink)
        sink.step(sent.live + sent.replay)
        fleet.on_sent(step * STEP, sent, sink)
    assert fleet.lost == 0
    # At most half of a minute was taken; all the rest waits.
    assert 30e6 <= fleet.left <= 60e6
