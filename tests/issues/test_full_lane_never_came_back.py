"""A lane that had filled in an outage stayed full when its sink was well again.

The first record that the sink took made a backlog of all others, and nothing new was accepted for
want of room: so there was no live record left to try the sink with, the circuit never closed, and
a replay waits for that. A lane whose upstream is silent, and one that keeps its order, stayed so
too. Now the backlog itself tries the sink where nothing live waits.
"""

import asyncio
from random import Random

import pytest
from memory_keep import MemoryKeep, ScriptedSink

from tidegate.core.health import Health
from tidegate.core.lane import LaneState
from tidegate.core.outcome import Outcome
from tidegate.settings import spool as settings
from tidegate.settings.policies import Breaker
from tidegate.spooler.bell import Bell
from tidegate.spooler.coordinators.alone import Alone
from tidegate.spooler.courier import Sinks
from tidegate.spooler.lane import Lane
from tidegate.spooler.record import Record
from tidegate.spooler.sinks.sink import Sent
from tidegate.testing import ManualClock, run
from tidegate.units import SECOND

DOWN = Sent(Outcome.FAILURE, "it is down")


@pytest.mark.parametrize("order", ["live", "kept"])
def test_a_lane_that_is_full_drains_when_its_sink_is_well(order: settings.LaneOrder) -> None:
    clock = ManualClock()
    keep, live, replay = MemoryKeep(clock), ScriptedSink(), ScriptedSink()
    lane = Lane(
        "events",
        settings.Lane(
            to="file:x",
            batch=10_000,
            order=order,
            bounds=settings.Bounds(bytes=100_000),
            breaker=Breaker(volume=2, open_for=SECOND),
            gate=settings.Gate(hold=10 * SECOND, jitter=0),
        ),
        keep=keep,
        sinks=Sinks(live, replay),
        coordinator=Alone("here"),
        collector="here",
        rng=Random(1),
        bell=Bell(),
        wall=clock.now,
    )

    async def story() -> None:
        task = asyncio.create_task(lane.run())
        live.answer = replay.answer = lambda batch: DOWN
        live.health_now = replay.health_now = Health((), ("a",))
        for _ in range(200):
            await lane.accept([Record(b"x" * 1000)])
            await asyncio.sleep(0.1)
        assert lane.refuses() is not None
        well = ScriptedSink()
        for sink in (live, replay):
            sink.answer, sink.health_now = well.answer, well.health_now
        await asyncio.sleep(600)  # nothing new comes
        assert keep.pending == ()
        assert lane.refuses() is None
        assert lane.replay.state(clock.now()) is LaneState.DIRECT
        lane.stop()
        await task
        await lane.close()

    run(story(), clock)
    assert sorted({*live.got, *replay.got}) == list(range(1, lane.accepted + 1))
    if order == "kept":
        assert sorted(live.got + replay.got) == [*live.got, *replay.got]
