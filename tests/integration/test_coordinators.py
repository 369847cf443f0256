"""Leases on real servers, which are frozen, killed and begun again.

The law itself is tried in virtual time (tests/properties/test_coordinators.py); here it is whether
each kind of server keeps records as that needs it, and what its loss looks like.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random
from typing import NamedTuple, Protocol

import pytest
from lease_servers import ServerMissingError, postgres_server, valkey_server
from nats_cluster import NatsMissingError, NatsServer, one_server, three_servers
from ports import free_port
from turn_witness import Watched, Witness

from tidegate.settings.spool import Turns
from tidegate.spooler.coordinators.choose import open_coordinator
from tidegate.spooler.coordinators.coordinator import (
    Budget,
    Coordinator,
    CoordinatorLost,
    Report,
)
from tidegate.units import MILLISECOND, SECOND

pytestmark = pytest.mark.slow  # servers are started, and time is real

TTL = SECOND
LONG = 600 * SECOND  # where nothing is to end by itself, however slow the machine is
PATIENCE_S = 30.0


class Stoppable(Protocol):
    def start(self) -> None: ...
    def kill(self) -> None: ...
    def freeze(self) -> None: ...
    def thaw(self) -> None: ...


class Place(NamedTuple):
    """A server, and how collectors of a fleet join each other there."""

    server: Stoppable
    url: str

    def join(self, who: str, fleet: str = "events") -> Coordinator:
        return open_coordinator(Turns(through=self.url), fleet, who, Path())


@pytest.fixture(params=["nats", "valkey", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    kind = request.param
    with ExitStack() as stack:
        try:
            if kind == "nats":
                nats = stack.enter_context(one_server(tmp_path))
                yield Place(nats, f"nats://{nats.address}")
            elif kind == "valkey":
                valkey = stack.enter_context(valkey_server(tmp_path / "valkey"))
                yield Place(valkey, f"valkey://127.0.0.1:{valkey.port}")
            else:
                postgres = stack.enter_context(postgres_server())
                url = f"postgresql://postgres@127.0.0.1:{postgres.port}/postgres"
                yield Place(postgres, url)
        except (NatsMissingError, ServerMissingError) as missing:
            pytest.skip(str(missing))


def told(story: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await story()

    asyncio.run(main())


async def until(done: Callable[[], Awaitable[bool]]) -> None:
    """Wait for what comes by itself; a coordinator that is away for now has not done it."""
    while True:
        with suppress(CoordinatorLost):
            if await done():
                return
        await asyncio.sleep(0.05)


async def live(collector: Watched, luck: Random) -> None:
    """Take what can be had, keep it for a while, then give it back or forget it."""
    for _ in range(25):
        await asyncio.sleep(luck.uniform(0, 0.15))
        slot = luck.randrange(2)
        if slot not in collector.held:
            await collector.take(slot, TTL)
        elif luck.random() < 0.7:
            await collector.renew(slot, TTL)
        elif luck.random() < 0.7:
            await collector.release(slot)
        else:
            del collector.held[slot]


def test_collectors_beside_each_other_never_hold_one_lease_together(place: Place) -> None:
    async def story() -> None:
        seen = Witness()
        fleet = [Watched(f"c{n}", place.join(f"c{n}"), seen) for n in range(4)]
        await asyncio.gather(*(live(who, Random(n)) for n, who in enumerate(fleet)))
        assert seen.taken > 2
        for who in fleet:
            await who.coordinator.close()

    told(story)


def test_a_dead_holders_lease_is_taken_over_under_a_later_fence(place: Place) -> None:
    async def story() -> None:
        one, other = place.join("one"), place.join("other")
        fence = await one.take(0, TTL) or 0
        assert fence > 0

        async def taken_over() -> bool:
            later = await other.take(0, TTL)
            assert later is None or later > fence
            return later is not None

        await until(taken_over)
        assert not await one.renew(0, fence, TTL)
        assert await one.take(1, LONG) is not None
        assert await other.take(1, TTL) is None
        await one.close()
        assert await other.take(1, TTL) is not None  # given back by who closed
        await other.close()

    told(story)


def test_only_the_latest_leader_says_the_budget(place: Place) -> None:
    async def story() -> None:
        one, other = place.join("one"), place.join("other")
        assert await one.budget() is None
        old = await one.take(0, LONG) or 0
        assert await one.publish(Budget(1, 5e6, old))
        assert await other.budget() == Budget(1, 5e6, old)
        await one.release(0, old)
        new = await other.take(0, LONG) or 0
        assert not await one.publish(Budget(2, 9e6, old))
        assert await other.publish(Budget(2, 1e6, new))
        assert await one.budget() == Budget(2, 1e6, new)
        for who in (one, other):
            await who.close()

    told(story)


def test_collectors_hear_of_each_other_and_fleets_do_not(place: Place) -> None:
    async def story() -> None:
        one, stranger = place.join("one"), place.join("one", fleet="other events, with a {brace}.*")
        await one.report(Report("one", 10, 5, 1.0))
        await stranger.report(Report("one", 99, 9, 9.0))
        late = place.join("late")

        async def heard() -> bool:
            return await late.reports() == [Report("one", 10, 5, 1.0)]

        await until(heard)
        assert await one.take(0, TTL) is not None
        assert await stranger.take(0, TTL) is not None
        for who in (one, stranger, late):
            await who.close()

    told(story)


@pytest.mark.parametrize("how", ["killed", "frozen"])
def test_a_server_that_is_away_is_lost_and_then_found(place: Place, how: str) -> None:
    async def story() -> None:
        one, other = place.join("one"), place.join("other")
        fence = await one.take(0, LONG) or 0
        assert await other.take(0, TTL) is None
        (place.server.kill if how == "killed" else place.server.freeze)()
        for call in (one.renew(0, fence, TTL), other.reports()):
            with pytest.raises(CoordinatorLost):
                await call
        (place.server.start if how == "killed" else place.server.thaw)()

        async def renewed() -> bool:
            return await one.renew(0, fence, LONG)

        await until(renewed)  # what was held is held, also over a restart
        assert await other.take(0, TTL) is None
        await one.release(0, fence)
        assert (await other.take(0, TTL) or 0) > fence
        for who in (one, other):
            await who.close()

    told(story)


@pytest.mark.parametrize(
    "url",
    [
        "nats://127.0.0.1:{port}",
        "valkey://somebody:hunter2@127.0.0.1:{port}/0",
        "postgresql://somebody:hunter2@127.0.0.1:{port}/somewhere",
    ],
)
def test_nobody_at_the_address_is_told_without_the_password(url: str) -> None:
    async def story() -> None:
        coordinator = open_coordinator(
            Turns(through=url.format(port=free_port())), "events", "one", Path()
        )
        with pytest.raises(CoordinatorLost) as lost:
            await coordinator.take(0, 100 * MILLISECOND)
        assert "127.0.0.1" in str(lost.value)
        assert "hunter2" not in str(lost.value)
        assert lost.value.__cause__ is None
        await coordinator.close()

    told(story)


def test_a_lease_outlives_the_server_that_kept_it(tmp_path: Path) -> None:
    """Three replicas, of which the leader is killed: the same fence goes on, nobody else begins."""

    async def leader(servers: list[NatsServer]) -> NatsServer:
        client = Client()
        await client.connect(f"nats://{servers[0].address}")
        answer = await client.request("$JS.API.STREAM.INFO.KV_tidegate", b"", timeout=5)
        await client.close()
        name = json.loads(answer.data)["cluster"]["leader"]
        return next(server for server in servers if server.name == name)

    async def story(servers: list[NatsServer]) -> None:
        url = "nats://" + ",".join(server.address for server in servers)
        one, other = (
            open_coordinator(Turns(through=url), "events", who, Path()) for who in ("one", "other")
        )
        fences: list[int] = []

        async def taken() -> bool:
            fence = await one.take(0, LONG)
            fences.extend([fence] if fence else [])
            return fence is not None

        await until(taken)  # the servers have yet to elect one that makes the bucket
        (await leader(servers)).kill()

        async def renewed() -> bool:
            return await one.renew(0, fences[0], LONG)

        await until(renewed)

        async def asked() -> bool:
            assert await other.take(0, SECOND) is None
            return True

        await until(asked)
        for who in (one, other):
            await who.close()

    pytest.importorskip("nats")
    from nats.aio.client import Client

    try:
        with three_servers(tmp_path) as servers:
            told(lambda: story(servers))
    except NatsMissingError as missing:
        pytest.skip(str(missing))
