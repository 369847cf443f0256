"""A fleet whose collectors ask a server over a bad network: whatever it does, one has each lease.

Each collector goes by its own belief (`Turn.holds`), which is what a replay goes by. Between two
collectors nothing is shared but the server's records.
"""

import asyncio
from contextlib import suppress
from random import Random

import pytest
from flaky_store import FlakyStore, Records
from virtual_seconds import told

from tidegate.core.errands import Errand, Look, Publish, Release, Renew, Say, Take
from tidegate.core.leases import Answer
from tidegate.core.member import Member
from tidegate.runtime.clock import current
from tidegate.settings.spool import Lane, Turns
from tidegate.spooler.coordinators.coordinator import Coordinator, CoordinatorLost
from tidegate.spooler.coordinators.on_server import OnServer
from tidegate.units import SECOND

TTL = 3 * SECOND
LEASES = 2
LANE = Lane(to="file:x", turns=Turns(through="nats://x", leases=LEASES, ttl=TTL, slice=8 * SECOND))


class Collector:
    """A member of the fleet with a backlog that never ends."""

    def __init__(self, name: str, records: Records, luck: Random, trouble: float) -> None:
        self.name = name
        self.member = Member(LANE, Random(luck.getrandbits(32)), name)
        self.coordinator = OnServer(FlakyStore(records, luck, trouble=trouble), name)
        self.luck = luck

    async def live(self) -> None:
        while True:
            now = current().now()
            self.member.on_backlog(now, 10**9, 1)
            errand = self.member.errand(now, wants=True)
            if errand is None:
                await asyncio.sleep(0.05)
            else:
                await self.run(errand)
            if self.luck.random() < 0.002:
                await asyncio.sleep(self.luck.uniform(0, 10))  # frozen: it asks nothing

    async def run(self, errand: Errand) -> None:
        try:
            answer = await ask(self.coordinator, errand)
        except CoordinatorLost:
            self.member.on_lost(current().now())
        else:
            self.member.on_errand(current().now(), errand, answer)


async def ask(coordinator: Coordinator, errand: Errand) -> Answer:
    match errand:
        case Take(_, slot, ttl):
            return await coordinator.take(slot, ttl)
        case Renew(_, slot, fence, ttl):
            return await coordinator.renew(slot, fence, ttl)
        case Release(_, slot, fence):
            await coordinator.release(slot, fence)
        case Say(_, report):
            await coordinator.report(report)
        case Look():
            return await coordinator.reports(), await coordinator.budget()
        case Publish(_, budget):
            return await coordinator.publish(budget)
    return None


class Watch:
    """Looks every ten milliseconds at who believes to hold what."""

    def __init__(self, fleet: list[Collector]) -> None:
        self.fleet = fleet
        self.had: set[str] = set()
        self.holding = 0

    def look(self) -> None:
        now = current().now()
        holders: dict[int, str] = {}
        for one in self.fleet:
            slot = one.member.slot(now)
            if slot is not None:
                other = holders.setdefault(slot, one.name)
                assert other == one.name, f"{other} and {one.name} hold {slot} at {now / SECOND} s"
                self.had.add(one.name)
        self.holding = len(holders)

    async def go_on(self, seconds: float) -> None:
        end = current().now() + int(seconds * SECOND)
        while current().now() < end:
            self.look()
            await asyncio.sleep(0.01)


@pytest.mark.slow  # ten fleets of five for three minutes each
@pytest.mark.parametrize("luck", range(10))
def test_one_at_a_time_and_everybody_in_the_end(luck: int) -> None:
    async def story() -> None:
        drawn, records = Random(luck), Records()
        trouble = drawn.choice([0.0, 0.02, 0.1])
        fleet = [Collector(f"c{n}", records, drawn, trouble) for n in range(5)]
        tasks = [asyncio.create_task(one.live()) for one in fleet]
        watch = Watch(fleet)
        await watch.go_on(120)
        assert watch.had == {one.name for one in fleet}

        records.silent = True  # the coordinator is killed
        await watch.go_on(TTL / SECOND)
        assert watch.holding == 0  # every replay has stopped within a lease
        await watch.go_on(20)
        assert watch.holding == 0
        records.silent = False
        await watch.go_on(40)
        assert watch.holding > 0
        for task in tasks:
            assert not task.done(), task
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    told(story)
