"""A lane that fills while its sink is away: what its clients are told, and what becomes of it."""

import asyncio
import json
from pathlib import Path
from random import Random

import pytest
from asgi_client import ask

from tidegate.settings import spool as settings
from tidegate.settings.policies import Breaker
from tidegate.spooler.door.app import Door
from tidegate.spooler.spool import Spool
from tidegate.units import MILLISECOND, SECOND

PATIENCE_S = 20.0
HEADERS = {"content-type": "application/x-ndjson"}
GATE = settings.Gate(hold=500 * MILLISECOND, jitter=0, look=100 * MILLISECOND, stale=SECOND)


def spooled(sink: Path) -> settings.Spool:
    lane = settings.Lane(
        to=f"file:{sink}",
        batch=20_000,
        bounds=settings.Bounds(bytes=300_000, free=0.0),
        breaker=Breaker(volume=2, open_for=100 * MILLISECOND, ramp=0),
        gate=GATE,
        pace=settings.Pace(start=1.0, least=10_000_000),
    )
    return settings.Spool(lanes={"events": lane}, collector="here")


@pytest.mark.slow  # a breaker's pauses and a gate's looks, in real time
def test_a_full_lane_refuses_until_its_sink_is_back_and_loses_nothing(tmp_path: Path) -> None:
    sink = tmp_path / "gone" / "out.jsonl"
    accepted: list[int] = []

    async def post(door: Door, numbers: range) -> int | None:
        body = b"".join(b'{"n":%d,"pad":"%s"}\n' % (n, b"x" * 900) for n in numbers)
        answer = await ask(door.app, "/v1/events", "POST", HEADERS, body=(body,))
        if answer.status == 202:
            accepted.extend(numbers)
        else:
            assert answer.status == 503
            assert 1 <= int(answer.headers["retry-after"]) <= 300
            assert answer.body == b"full: it keeps its 300kB\n"
        return answer.status

    async def story() -> None:
        async with Spool(spooled(sink), tmp_path) as spool:
            door = Door(spool, settings.Door(), token=None, rng=Random(1))
            statuses = [await post(door, range(n, n + 20)) for n in range(0, 600, 20)]
            taken = statuses.count(202)
            assert taken in {15, 16}  # of 18.6 kB each, with frames or not yet, into 300 kB
            assert set(statuses[taken:]) == {503}
            assert (await ask(door.app, "/readyz/events")).status == 503
            assert (await ask(door.app, "/livez")).status == 200
            (lane,) = spool.status().lanes
            assert lane.full
            assert (lane.accepted, lane.delivered) == (20 * taken, 0)
            sink.parent.mkdir()
            while spool.status().lanes[0].backlog_records:
                await asyncio.sleep(0.05)  # as somebody who watches it
            while await post(door, range(1000, 1020)) != 202:
                await asyncio.sleep(0.01)  # until it has looked again
            assert (await ask(door.app, "/readyz/events")).status == 200

    asyncio.run(asyncio.wait_for(story(), PATIENCE_S))
    found = [json.loads(line)["n"] for line in sink.read_text().splitlines()]
    assert sorted(set(found)) == accepted
