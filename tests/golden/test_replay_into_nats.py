"""Two collectors give a backlog back to three real servers, of which one dies, then freeze.

A follower is killed while they replay: the gate closes, and opens when the follower is in step
again. The coordinator is killed: the replay stops within a lease. All three servers freeze: what
was sent then is sent again. In the end every record that was accepted is stored, and once.
"""

import asyncio
import base64
import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from nats_cluster import NatsMissingError, NatsServer, one_server, three_servers

from tidegate.runtime.clock import current
from tidegate.settings import spool as settings
from tidegate.spooler.door.keeper import Accepted
from tidegate.spooler.lane import Lane
from tidegate.spooler.record import Record
from tidegate.spooler.spool import Spool
from tidegate.units import MILLISECOND, SECOND

pytest.importorskip("nats")

from nats.aio.client import Client

from tidegate.spooler.sinks.nats import NatsSink

pytestmark = pytest.mark.golden  # a minute and a half of real time

TTL = 3 * SECOND
HOLD = 3 * SECOND
PATIENCE_S = 60.0
NAMES = ("c1", "c2")


class Drill:
    """The servers, the collectors, and what has been seen of them."""

    def __init__(self, sink: list[NatsServer], turns: NatsServer, folder: Path) -> None:
        self.sink = sink
        self.turns = turns
        addresses = ",".join(server.address for server in sink)
        lane = settings.Lane(
            to=f"nats://{addresses}/events?stream=E",
            durable="never",  # the disk is not what is tried here
            batch=20_000,
            timeout=SECOND,
            gate=settings.Gate(hold=HOLD, jitter=0, look=500 * MILLISECOND, stale=5 * SECOND),
            pace=settings.Pace(start=0.1, step=0.3, cap=6),
            turns=settings.Turns(
                through=f"nats://{turns.address}", leases=1, ttl=TTL, slice=5 * SECOND
            ),
        )
        self.spools = [
            Spool(settings.Spool(lanes={"events": lane}, collector=name, directory=name), folder)
            for name in NAMES
        ]
        self.accepted = dict.fromkeys(NAMES, 0)
        self.holders: set[str] = set()
        self.began = time.monotonic()
        self.told: list[str] = []

    @property
    def lanes(self) -> list[Lane]:
        return [spool._lanes["events"] for spool in self.spools]

    @property
    def replayed(self) -> int:
        return sum(lane.tally.replayed for lane in self.lanes)

    @property
    def backlog(self) -> int:
        return sum(lane.shelf.backlog for lane in self.lanes)

    @property
    def replaying(self) -> list[str]:
        now = current().now()
        states = zip(NAMES, self.lanes, strict=True)
        return [name for name, lane in states if lane.replay.state(now) in {"ramp", "cruise"}]

    @property
    def holding(self) -> list[str]:
        now = current().now()
        lanes = zip(NAMES, self.lanes, strict=True)
        return [name for name, lane in lanes if lane.replay.member.slot(now) is not None]

    @property
    def gates_open(self) -> list[bool]:
        now = current().now()
        return [lane.replay.gate.is_open(now) for lane in self.lanes]

    def say(self, what: str) -> None:
        self.told.append(f"{time.monotonic() - self.began:6.1f} s  {what}")

    async def put(self, count: int) -> None:
        for name, spool in zip(NAMES, self.spools, strict=True):
            answer = await spool.accept("events", [Record(b"x" * 1000) for _ in range(count)])
            assert isinstance(answer, Accepted)
            self.accepted[name] += count

    async def feed(self) -> None:
        while True:
            await self.put(10)
            await asyncio.sleep(0.1)

    async def watch(self) -> None:
        """One lease, so one holder at most, at any time."""
        while True:
            holding = self.holding
            assert len(holding) <= 1, holding
            self.holders |= set(holding)
            await asyncio.sleep(0.01)

    async def until(self, done: Callable[[], object]) -> float:
        began = time.monotonic()
        async with asyncio.timeout(PATIENCE_S):
            while not done():
                await asyncio.sleep(0.05)
        return time.monotonic() - began


@pytest.fixture
def drill(tmp_path: Path) -> Iterator[Drill]:
    try:
        with three_servers(tmp_path / "sink") as sink, one_server(tmp_path / "turns") as turns:
            yield Drill(sink, turns, tmp_path)
    except NatsMissingError as missing:
        pytest.skip(str(missing))


async def leader_of(drill: Drill) -> str:
    look = NatsSink(drill.lanes[0].settings.to, sender="tests", agent="tests", base=Path())
    try:
        while True:
            views = (await look.health(SECOND)).views
            leaders = {part.leader for view in views for part in view.partitions}
            if len(leaders) == 1 and None not in leaders:
                return str(leaders.pop())
            await asyncio.sleep(0.2)
    finally:
        await look.close()


async def stored(server: NatsServer) -> list[str]:
    """The ids of all that the stream holds."""
    client = Client()
    await client.connect(f"nats://{server.address}")

    async def ask(what: str, question: str = "") -> dict[str, object]:
        answer = await client.request(f"$JS.API.STREAM.{what}", question.encode(), timeout=5)
        return dict(json.loads(answer.data))

    try:
        state = (await ask("INFO.E"))["state"]
        assert isinstance(state, dict)
        ids = []
        for number in range(state["first_seq"], state["last_seq"] + 1):
            message = (await ask("MSG.GET.E", json.dumps({"seq": number})))["message"]
            assert isinstance(message, dict)
            headers = base64.b64decode(message["hdrs"]).decode()
            ids.append(headers.partition("Nats-Msg-Id: ")[2].partition("\r")[0])
        return ids
    finally:
        await client.close()


async def story(drill: Drill) -> None:
    """From peace to peace."""
    leader = await leader_once_made(drill)
    await drill.until(lambda: all(drill.gates_open))
    drill.say("the stream is there and the gates are open")
    await leave_behind(drill, 3000)

    follower = next(server for server in drill.sink if server.name != leader)
    follower.kill()
    closed_s = await drill.until(lambda: not any(drill.gates_open))
    drill.say(f"a follower was killed; {closed_s:.1f} s later the gates were closed")
    assert not drill.replaying
    await asyncio.sleep(1)  # a batch may have been on its way
    before = drill.replayed
    await asyncio.sleep(2)
    assert drill.replayed == before
    follower.start()
    back_s = await drill.until(lambda: drill.replayed > before)
    drill.say(f"it was started again; {back_s:.1f} s later the replay went on")
    assert back_s >= HOLD / SECOND

    await leave_behind(drill, 4000)
    drill.turns.kill()
    stopped_s = await drill.until(lambda: not drill.holding and not drill.replaying)
    drill.say(f"the coordinator was killed; {stopped_s:.1f} s later nobody replayed")
    await asyncio.sleep(1)
    before, delivered = drill.replayed, sum(lane.tally.delivered for lane in drill.lanes)
    await asyncio.sleep(2)
    assert drill.replayed == before
    assert sum(lane.tally.delivered for lane in drill.lanes) > delivered  # live goes on
    drill.turns.start()
    again_s = await drill.until(lambda: drill.replayed > before)
    drill.say(f"it was started again; {again_s:.1f} s later the replay went on")

    for server in drill.sink:
        server.freeze()
    await asyncio.sleep(3)
    for server in drill.sink:
        server.thaw()
    drill.say("all servers of the sink were frozen for 3 s")
    drained_s = await drill.until(lambda: not drill.backlog)
    drill.say(f"{drained_s:.1f} s later all was given back")


async def leave_behind(drill: Drill, records: int) -> None:
    """Have that many more wait in each, and see them begin to leave."""
    for lane in drill.lanes:
        lane.hold("a drill")
    await drill.put(records)
    for lane in drill.lanes:
        lane.release()
    waiting = sum(lane.keep.usage().backlog_bytes for lane in drill.lanes)
    drill.say(f"{waiting / 1e6:.1f} MB wait")
    before = drill.replayed
    await drill.until(lambda: drill.replaying and drill.replayed > before + 100)
    drill.say(f"{' and '.join(drill.replaying)} replays")


async def leader_once_made(drill: Drill) -> str:
    await drill.put(1)
    return await leader_of(drill)


def test_a_backlog_is_given_back_gently_and_once(
    drill: Drill, capsys: pytest.CaptureFixture[str]
) -> None:
    async def main() -> None:
        async with drill.spools[0], drill.spools[1]:
            feed, watch = (asyncio.create_task(task()) for task in (drill.feed, drill.watch))
            try:
                await story(drill)
                assert not watch.done(), watch
            finally:
                for task in (feed, watch):
                    task.cancel()
                    with suppress(asyncio.CancelledError):
                        await task
            await drill.until(lambda: not any(lane.keep.pending for lane in drill.lanes))
        ids = await stored(drill.sink[0])
        assert len(ids) == len(set(ids)) == sum(drill.accepted.values())
        logs = {name.rpartition("/")[0] for name in ids}
        assert len(logs) == len(NAMES)
        wanted = {
            f"{log}/{number}"
            for log in logs
            for number in range(1, drill.accepted[log.partition("/")[0]] + 1)
        }
        assert set(ids) == wanted
        assert drill.holders == set(NAMES)
        resent = sum(lane.tally.resent for lane in drill.lanes)
        assert resent > 0
        drill.say(f"{len(ids)} accepted, stored once each; {resent} were sent more than once")

    try:
        asyncio.run(main())
    finally:
        with capsys.disabled():
            print("", *drill.told, sep="\n")
