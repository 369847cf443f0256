"""A lane delivers what it has accepted, whatever its sink does meanwhile; in virtual time."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from random import Random

import pytest
from memory_keep import MemoryKeep, ScriptedSink

from tidegate.core.health import Health
from tidegate.core.lane import LaneState
from tidegate.core.outcome import Outcome
from tidegate.settings import spool as settings
from tidegate.spooler.bell import Bell
from tidegate.spooler.coordinators.alone import Alone
from tidegate.spooler.courier import Sinks
from tidegate.spooler.door.keeper import Refused
from tidegate.spooler.lane import Lane
from tidegate.spooler.record import Batch, Record
from tidegate.spooler.sinks.sink import Sent
from tidegate.testing import ManualClock, run
from tidegate.units import MINUTE, SECOND

DOWN = Sent(Outcome.FAILURE, "it is down")
GATE = settings.Gate(hold=10 * SECOND, jitter=0)


class Rig:
    """A lane, what it keeps, and its sinks."""

    def __init__(self, clock: ManualClock, **changes: object) -> None:
        self.clock = clock
        self.keep = MemoryKeep(clock)
        self.live, self.replay = ScriptedSink(), ScriptedSink()
        options = {"to": "file:x", "batch": 10_000, "gate": GATE, **changes}
        self.lane = Lane(
            "events",
            settings.Lane(**options),  # type: ignore[arg-type]
            keep=self.keep,
            sinks=Sinks(self.live, self.replay),
            coordinator=Alone("here"),
            collector="here",
            rng=Random(1),
            bell=Bell(),
            wall=clock.now,
        )

    @property
    def now(self) -> int:
        return self.clock.now()

    def state(self) -> LaneState:
        return self.lane.replay.state(self.now)

    def fail(self) -> None:
        self.live.answer = self.replay.answer = lambda batch: DOWN
        self.live.health_now = self.replay.health_now = Health((), ("a",))

    def heal(self) -> None:
        well = ScriptedSink()
        for sink in (self.live, self.replay):
            sink.answer, sink.health_now = well.answer, well.health_now

    async def feed(self, count: int, *, rate: float = 10.0) -> None:
        for _ in range(count):
            await self.lane.accept([Record(b"x" * 1000)])
            await asyncio.sleep(1 / rate)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.lane.run())
        try:
            yield
        finally:
            self.lane.stop()
            await task
            await self.lane.close()


def in_virtual_time(story: Callable[[Rig], Awaitable[None]], **changes: object) -> Rig:
    clock = ManualClock()
    rigs: list[Rig] = []

    async def main() -> None:
        rig = Rig(clock, **changes)
        rigs.append(rig)
        async with rig.running():
            await story(rig)

    run(main(), clock)
    return rigs[0]


def test_in_peace_records_go_as_they_come() -> None:
    async def story(rig: Rig) -> None:
        await rig.feed(50)
        await asyncio.sleep(1)
        assert rig.state() is LaneState.DIRECT

    rig = in_virtual_time(story)
    assert rig.live.got == list(range(1, 51))
    assert rig.replay.got == []
    assert rig.keep.pending == ()
    assert rig.lane.tally.delivered == rig.lane.accepted == 50
    assert rig.live.closed and rig.replay.closed and rig.keep.closed  # noqa: PT018


def test_a_narrow_bound_does_not_fill_between_two_looks() -> None:
    async def story(rig: Rig) -> None:
        await rig.feed(200, rate=50)  # ten times the bound, and hardly any of it waits

    rig = in_virtual_time(story, bounds=settings.Bounds(bytes=20_000))
    assert (rig.lane.accepted, rig.lane.refused) == (200, 0)


def test_what_has_expired_is_no_suspect_any_more() -> None:
    async def story(rig: Rig) -> None:
        poison = Sent(Outcome.FAILURE, "malformed", poison=True)
        rig.live.answer = lambda batch: poison
        await rig.feed(20)
        assert rig.lane.shelf.bisection.snapshot().suspects
        await asyncio.sleep(120)
        assert rig.keep.pending == ()
        assert rig.lane.shelf.bisection.snapshot().suspects == 0

    rig = in_virtual_time(story, bounds=settings.Bounds(age=MINUTE))
    assert rig.keep.aside == []


def test_while_the_sink_is_down_records_are_kept_and_accepted() -> None:
    async def story(rig: Rig) -> None:
        await rig.feed(10)
        rig.fail()
        await rig.feed(300)
        assert rig.state() is LaneState.SPILL

    rig = in_virtual_time(story)
    assert rig.lane.accepted == 310
    assert sum(last - first + 1 for first, last in rig.keep.pending) == 310 - len(rig.live.got)
    assert len(rig.live.offered) < 30  # it does not knock all the time


def test_in_an_outage_nothing_is_read_for_each_record_that_comes_in() -> None:
    reads: list[int] = []

    async def story(rig: Rig) -> None:
        rig.fail()
        read = rig.keep.read

        async def counted(after: int, *, upto: int | None, max_bytes: int) -> Batch | None:
            reads.append(after)
            return await read(after, upto=upto, max_bytes=max_bytes)

        rig.keep.read = counted  # type: ignore[method-assign]
        await rig.feed(1000, rate=100)

    rig = in_virtual_time(story)
    assert rig.lane.accepted == 1000
    assert len(reads) < 30


def test_after_an_outage_new_records_go_first_and_the_backlog_waits_for_the_gate() -> None:
    async def story(rig: Rig) -> None:
        await rig.feed(100)
        rig.fail()
        await rig.feed(600)
        rig.heal()
        healed = rig.now / SECOND
        await rig.feed(400)
        before = [at for at, _ in rig.replay.offered if healed <= at < healed + 10]
        assert before == []
        assert rig.lane.tally.replayed > 0
        await rig.feed(2000)

    rig = in_virtual_time(story)
    assert sorted(set(rig.live.got) | set(rig.replay.got)) == list(range(1, 3101))
    assert rig.replay.got == sorted(rig.replay.got)
    assert rig.keep.pending == ()


def test_the_first_that_goes_after_an_outage_is_one_record_and_no_burst_follows() -> None:
    """Twenty collectors that each began with a batch of 1 MB were a burst of 24 times the live
    rate at a broker that had just come back.
    """

    async def story(rig: Rig) -> None:
        rig.fail()
        await rig.feed(600)
        rig.heal()
        healed = rig.now / SECOND
        await rig.feed(100)
        sent = [batch for at, batch in rig.live.offered if at >= healed]
        assert len(sent[0].records) == 1
        assert max(len(batch.records) for batch in sent) <= 20

    in_virtual_time(story, batch=10**6)


def test_with_order_kept_nothing_overtakes() -> None:
    async def story(rig: Rig) -> None:
        await rig.feed(100)
        rig.fail()
        await rig.feed(300)
        rig.heal()
        await rig.feed(3000)
        rig.lane.stop()

    rig = in_virtual_time(story, order="kept")
    got = set(rig.live.got) | set(rig.replay.got)
    arrived = sorted(
        (at, number)
        for sink in (rig.live, rig.replay)
        for at, batch in sink.offered
        for number in range(batch.first, batch.last + 1)
        if number in got
    )
    last = 0
    for _, number in arrived:
        assert number <= last + 1
        last = max(last, number)
    assert last >= 3300


def test_with_order_kept_a_sink_that_fails_again_is_left_alone() -> None:
    async def story(rig: Rig) -> None:
        rig.fail()
        await rig.feed(300)
        rig.heal()
        await rig.feed(20)
        assert rig.keep.pending
        rig.fail()
        offered = len(rig.replay.offered)
        await rig.feed(300)
        assert rig.state() is LaneState.SPILL
        assert len(rig.replay.offered) - offered < 30

    in_virtual_time(story, order="kept")


def test_a_record_that_the_sink_will_never_take_is_set_aside_and_the_rest_is_delivered() -> None:
    def refuses(batch: Batch) -> Sent | None:
        bad = any(record.value == b"bad" for record in batch.records)
        return Sent(Outcome.FAILURE, "answered 400", poison=True) if bad else None

    async def story(rig: Rig) -> None:
        rig.live.answer = rig.replay.answer = refuses
        await rig.lane.accept([Record(b"good")] * 20 + [Record(b"bad")] + [Record(b"good")] * 20)
        await rig.feed(900, rate=1)

    rig = in_virtual_time(story)
    assert rig.keep.aside == [21]
    assert sorted(rig.live.got + rig.replay.got) == [n for n in range(1, 942) if n != 21]


def test_a_sink_that_refuses_everything_loses_nothing() -> None:
    async def story(rig: Rig) -> None:
        rig.live.answer = rig.replay.answer = lambda batch: Sent(
            Outcome.FAILURE, "answered 400", poison=True
        )
        await rig.feed(600, rate=1)

    rig = in_virtual_time(story)
    assert rig.keep.aside == []
    assert sum(last - first + 1 for first, last in rig.keep.pending) == 600


def test_held_nothing_leaves_and_released_it_goes_on() -> None:
    async def story(rig: Rig) -> None:
        await rig.feed(10)
        await asyncio.sleep(1)
        rig.lane.hold("moving the broker")
        offered = len(rig.live.offered)
        await rig.feed(100)
        assert rig.state() is LaneState.HOLD
        assert "moving the broker" in rig.lane.replay.why(rig.now)
        assert len(rig.live.offered) == offered
        rig.lane.release()
        await rig.feed(1000)
        await asyncio.sleep(100)

    rig = in_virtual_time(story)
    assert sorted(rig.live.got + rig.replay.got) == list(range(1, 1111))
    assert len(rig.replay.got) >= 80  # all but a batch or two went through the gate


def test_a_full_lane_refuses_says_when_to_come_again_and_takes_records_when_there_is_room() -> None:
    async def story(rig: Rig) -> None:
        rig.fail()
        await rig.feed(30)
        await asyncio.sleep(2)
        full = rig.lane.refuses()
        assert full is not None
        assert full.retry_after is not None
        assert SECOND <= full.retry_after <= 300 * SECOND
        assert isinstance(await rig.lane.accept([Record(b"y")]), Refused)
        rig.heal()
        await asyncio.sleep(300)
        assert rig.lane.refuses() is None
        await rig.feed(10)
        await asyncio.sleep(5)

    rig = in_virtual_time(story, bounds=settings.Bounds(bytes=10_000, free=0.0))
    assert rig.lane.refused > 0
    assert len(set(rig.live.got + rig.replay.got)) == rig.lane.accepted


def test_what_is_too_old_is_dropped_and_counted() -> None:
    async def story(rig: Rig) -> None:
        rig.fail()
        await rig.feed(10)
        await asyncio.sleep(200)

    rig = in_virtual_time(story, bounds=settings.Bounds(age=60 * SECOND))
    assert rig.keep.lost == {"expired": 10}


@pytest.mark.parametrize("seed", range(5))
def test_nothing_accepted_is_lost_whatever_the_sink_answers(seed: int) -> None:
    rng = Random(seed)

    def answer(batch: Batch) -> Sent | None:
        kinds = (Outcome.FAILURE, Outcome.TIMEOUT, Outcome.OVERLOADED)
        return Sent(rng.choice(kinds), "no luck") if rng.random() < 0.3 else None

    async def story(rig: Rig) -> None:
        rig.live.answer = rig.replay.answer = answer
        await rig.feed(1000)
        rig.heal()
        await rig.feed(1000)
        await asyncio.sleep(600)

    rig = in_virtual_time(story)
    assert set(rig.live.got) | set(rig.replay.got) == set(range(1, 2001))
    assert rig.keep.pending == ()
