"""Leases on a server, in instants: who waits how long for whom, and what a lost answer costs."""

import asyncio
from random import Random

import pytest
from flaky_store import FlakyStore, Records
from virtual_seconds import told

from tidegate.runtime.clock import current
from tidegate.spooler.coordinators.coordinator import Budget, CoordinatorLost, Report
from tidegate.spooler.coordinators.on_server import ANSWER_WITHIN_S, OnServer
from tidegate.spooler.coordinators.store import Entry
from tidegate.units import SECOND

TTL = 10 * SECOND


class Plain(FlakyStore):
    """The same store with a network that is never late, and silent when it is told to be."""

    def __init__(self, records: Records) -> None:
        super().__init__(records, Random(0))
        self.silent = False
        self.deaf = False  # it does what it is asked, and does not say so

    async def write(self, key: str, value: bytes, version: int) -> int | None:
        written = await super().write(key, value, version)
        if self.deaf:
            self.deaf = False
            raise CoordinatorLost("the test's server has hung up")
        return written

    async def _way(self) -> None:
        if self.silent:
            await asyncio.sleep(3600)


def pair() -> tuple[OnServer, OnServer, Plain]:
    records = Records()
    store = Plain(records)
    return OnServer(store, "one"), OnServer(Plain(records), "other"), store


def test_a_lease_of_a_dead_holder_falls_to_who_has_looked_for_its_length() -> None:
    async def story() -> None:
        one, other, _ = pair()
        fence = await one.take(0, TTL)
        assert await other.take(0, TTL) is None
        await asyncio.sleep(10)
        assert await other.take(0, TTL) is None  # its clock might be the faster one
        await asyncio.sleep(0.1)
        assert (await other.take(0, TTL) or 0) > (fence or 0)

    told(story)


def test_who_comes_late_looks_for_a_whole_lease() -> None:
    async def story() -> None:
        one, other, _ = pair()
        await one.take(0, TTL)
        await asyncio.sleep(60)
        assert await other.take(0, TTL) is None
        await asyncio.sleep(10.1)
        assert await other.take(0, TTL) is not None

    told(story)


def test_a_renewal_begins_the_wait_anew() -> None:
    async def story() -> None:
        one, other, _ = pair()
        fence = await one.take(0, TTL) or 0
        assert await other.take(0, TTL) is None
        for _ in range(10):
            await asyncio.sleep(3)
            assert await one.renew(0, fence, TTL)
            assert await other.take(0, TTL) is None

    told(story)


def test_a_holder_that_is_late_has_lost_its_lease_though_nobody_took_it() -> None:
    async def story() -> None:
        one, other, _ = pair()
        fence = await one.take(0, TTL) or 0
        await asyncio.sleep(10)
        assert not await one.renew(0, fence, TTL)
        assert await other.take(0, TTL) is None
        assert (await one.take(0, TTL) or 0) > fence  # its own: it knows that nobody has it

    told(story)


def test_what_is_given_back_is_free_at_once() -> None:
    async def story() -> None:
        one, other, _ = pair()
        fence = await one.take(0, TTL) or 0
        await one.take(1, TTL)
        await one.release(0, fence)
        assert (await other.take(0, TTL) or 0) > fence
        await one.release(0, fence)  # nothing of the other's
        assert await one.take(0, TTL) is None
        again = await one.take(1, TTL) or 0
        assert not await one.renew(1, again - 1, TTL)
        await one.close()
        assert await other.take(1, TTL) is not None

    told(story)


def test_a_renewal_whose_answer_is_lost_is_found_by_the_next() -> None:
    async def story() -> None:
        one, _, store = pair()
        fence = await one.take(0, TTL) or 0
        store.deaf = True
        with pytest.raises(CoordinatorLost):
            await one.renew(0, fence, TTL)
        assert await one.renew(0, fence, TTL)

    told(story)


def test_a_lease_whose_answer_is_lost_is_taken_anew_under_a_later_fence() -> None:
    async def story() -> None:
        one, other, store = pair()
        store.deaf = True
        with pytest.raises(CoordinatorLost):
            await one.take(0, TTL)
        assert await other.take(0, TTL) is None
        lost = store.records.entries["lease.0"].version
        assert (await one.take(0, TTL) or 0) > lost

    told(story)


def test_a_server_that_is_silent_is_lost_within_two_seconds_at_every_call() -> None:
    async def story() -> None:
        one, _, store = pair()
        fence = await one.take(0, 60 * SECOND) or 0
        store.silent = True
        for call in (
            lambda: one.take(1, TTL),
            lambda: one.renew(0, fence, TTL),
            lambda: one.report(Report("one", 1, 1, 1.0)),
            one.reports,
            lambda: one.publish(Budget(1, 1.0, fence)),
            one.budget,
            lambda: one.release(0, fence),
        ):
            asked = current().now()
            with pytest.raises(CoordinatorLost, match="the test's server has not answered"):
                await call()
            assert current().now() - asked <= ANSWER_WITHIN_S * SECOND + 1
        await one.close()

    told(story)


def test_the_budget_of_a_leader_who_was_replaced_is_refused() -> None:
    async def story() -> None:
        one, other, _ = pair()
        old = await one.take(0, TTL) or 0
        assert await one.publish(Budget(1, 5e6, old))
        await one.release(0, old)
        new = await other.take(0, TTL) or 0
        assert not await one.publish(Budget(2, 9e6, old))
        assert await other.budget() == Budget(1, 5e6, old)
        assert await other.publish(Budget(2, 1e6, new))
        assert await one.budget() == Budget(2, 1e6, new)

    told(story)


def test_no_budget_and_no_reports_before_anybody_has_spoken() -> None:
    async def story() -> None:
        one, other, _ = pair()
        assert await one.budget() is None
        assert await one.reports() == []
        await one.report(Report("one", 10, 5, 1.0))
        assert await other.reports() == [Report("one", 10, 5, 1.0)]
        await asyncio.sleep(60)
        assert await other.reports() == []

    told(story)


def test_what_another_program_has_put_there_loses_the_coordinator() -> None:
    async def story() -> None:
        one, _, store = pair()
        store.records.entries["lease.0"] = Entry(b"{}", 1)
        with pytest.raises(CoordinatorLost, match="not ours"):
            await one.take(0, TTL)
        store.records.words["somebody"] = (b"[1]", 10**18)
        await one.report(Report("one", 1, 1, 1.0))
        assert [report.collector for report in await one.reports()] == ["one"]

    told(story)
