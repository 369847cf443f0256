"""A ledger in memory, in instants; the law of all is in tests/properties/test_coordinators.py."""

import asyncio

from virtual_seconds import told

from tidegate.core.leases import Leases
from tidegate.spooler.coordinators.alone import Alone
from tidegate.spooler.coordinators.coordinator import Budget, Report
from tidegate.units import SECOND

TTL = 10 * SECOND


def test_who_is_alone_has_every_lease_at_once() -> None:
    async def story() -> None:
        alone = Alone("one")
        assert [await alone.take(slot, TTL) for slot in range(4)] == [1, 2, 3, 4]

    told(story)


def test_a_lease_ends_at_its_instant_and_not_before() -> None:
    async def story() -> None:
        leases = Leases()
        one, other = Alone("one", leases), Alone("other", leases)
        fence = await one.take(0, TTL)
        assert fence is not None
        await asyncio.sleep(9.999)
        assert await other.take(0, TTL) is None
        assert await one.renew(0, fence, TTL)
        await asyncio.sleep(10)
        assert not await one.renew(0, fence, TTL)
        later = await other.take(0, TTL)
        assert (later or 0) > fence

    told(story)


def test_who_closes_gives_back_what_is_still_its_own() -> None:
    async def story() -> None:
        leases = Leases()
        one, other = Alone("one", leases), Alone("other", leases)
        await one.take(0, TTL)
        await one.take(1, SECOND)
        await asyncio.sleep(1)
        assert await other.take(1, TTL) is not None
        await one.close()
        assert await other.take(0, TTL) is not None
        assert await one.take(1, TTL) is None  # the other's stayed

    told(story)


def test_the_budget_of_a_leader_who_was_replaced_is_refused() -> None:
    async def story() -> None:
        leases = Leases()
        one, other = Alone("one", leases), Alone("other", leases)
        old = await one.take(0, SECOND) or 0
        assert await one.publish(Budget(1, 5e6, old))
        await asyncio.sleep(1)
        new = await other.take(0, SECOND) or 0
        assert not await one.publish(Budget(2, 9e6, old))
        assert await other.budget() == Budget(1, 5e6, old)
        assert await other.publish(Budget(2, 1e6, new))
        assert await one.budget() == Budget(2, 1e6, new)

    told(story)


def test_a_report_that_is_not_made_again_is_forgotten_after_a_minute() -> None:
    async def story() -> None:
        leases = Leases()
        one, other = Alone("one", leases), Alone("other", leases)
        await one.report(Report("one", 10, 5, 1.0))
        await asyncio.sleep(30)
        await other.report(Report("other", 20, 6, 2.0))
        assert {report.collector for report in await one.reports()} == {"one", "other"}
        await asyncio.sleep(30)
        assert await one.reports() == [Report("other", 20, 6, 2.0)]

    told(story)
