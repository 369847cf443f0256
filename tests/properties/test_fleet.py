"""Whatever the sink and the settings: a led fleet keeps to its cap, and to what its gates say."""

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tidegate.settings.spool import Gate, Lane, Pace, Turns
from tidegate.sim.fleet.guided import Guided
from tidegate.sim.fleet.sink import STEP, STEP_S, Case, Sink
from tidegate.sim.rng import Streams
from tidegate.units import SECOND

pytestmark = pytest.mark.slow  # four minutes of a fleet's life in each example

LIVE = 1e6
WAYS = (
    Turns(through="nats://127.0.0.1:4222", leases=2),
    Turns(through="slots", members=4, leases=2, slice=20 * SECOND),
    Turns(),
)


@settings(max_examples=10, phases=[Phase.generate])  # to shrink would take minutes
@given(
    st.floats(0.5, 6),
    st.floats(0.2, 1),
    st.floats(0, 1),
    st.sampled_from(WAYS),
    st.floats(0.2, 3),
    st.integers(20, 200),
    st.integers(0, 1000),
)
def test_it_keeps_to_its_cap_gives_up_nothing_and_stops_with_its_gate(
    capacity: float, sick: float, health: float, turns: Turns, cap: float, lost: int, seed: int
) -> None:
    case = Case(
        live=LIVE,
        backlog=100 * LIVE,
        capacity=capacity * LIVE,
        collapsed=capacity * sick * LIVE,
        collectors=4,
        health=health,
        lost=(float(lost), lost + 30.0),
    )
    gate = Gate(hold=10 * SECOND, jitter=5 * SECOND)
    fleet = Guided(case, Lane(to="file:out", gate=gate, pace=Pace(cap=cap), turns=turns), seed)
    sink = Sink(case, Streams(seed).stream("sink"))
    replayed: list[float] = []
    for step in range(round(240 / STEP_S)):
        sent = fleet.send(step * STEP, sink)
        sink.step(sent.live + sent.replay)
        fleet.on_sent(step * STEP, sent, sink)
        replayed.append(sent.replay)
        assert 0 <= sent.live <= LIVE * STEP_S * 1.001
        assert fleet.left >= 0
    # Half a minute's mean: within it no share can be saved up for more than a second. Slots go by
    # the names: all four may have the same, and then each thinks that it shares it with one.
    most = cap * (2.0 if turns.through == "slots" else 1.0)
    for first in range(0, len(replayed), 120):
        assert sum(replayed[first : first + 120]) <= 1.1 * most * LIVE * 30
    assert fleet.lost == 0
    assert fleet.closest is None or fleet.closest >= 10 * SECOND
