"""What is live goes first, what was left behind is a backlog, and nothing is on both sides."""

import asyncio

from memory_keep import MemoryKeep

from tidegate.spooler.record import Batch, Record
from tidegate.spooler.shelf import Shelf
from tidegate.testing import ManualClock

RECORD = Record(b"x" * 100)


def keep_of(count: int) -> MemoryKeep:
    keep = MemoryKeep(ManualClock())
    asyncio.run(keep.append([RECORD] * count))
    return keep


def numbers(batch: Batch | None) -> list[int]:
    return [] if batch is None else list(range(batch.first, batch.last + 1))


def test_what_waits_at_the_start_is_backlog_if_it_is_more_than_a_little() -> None:
    shelf = Shelf(keep_of(50), batch=1000, in_order=False)
    assert (shelf.border, shelf.backlog, shelf.waiting) == (50, 5000, 0)
    shelf = Shelf(keep_of(10), batch=1000, in_order=False)
    assert (shelf.border, shelf.backlog, shelf.waiting) == (0, 0, 1000)


def test_after_an_outage_all_that_has_gathered_is_backlog_and_new_records_are_live() -> None:
    keep = keep_of(5)
    shelf = Shelf(keep, batch=1000, in_order=False)
    asyncio.run(keep.append([RECORD] * 45))
    shelf.on_well(0.0)
    asyncio.run(keep.append([RECORD] * 3))
    assert numbers(asyncio.run(shelf.next_live())) == [51, 52, 53]
    assert numbers(asyncio.run(shelf.next_backlog(500))) == [1, 2, 3, 4, 5]


def test_a_second_of_live_records_is_no_backlog() -> None:
    keep = keep_of(0)
    shelf = Shelf(keep, batch=10**6, in_order=False)
    asyncio.run(keep.append([RECORD] * 200))
    shelf.measure()
    shelf.on_well(25_000.0)
    assert shelf.backlog == 0
    shelf.on_well(5_000.0)
    assert shelf.backlog == 20_000


def test_a_canary_is_one_record() -> None:
    shelf = Shelf(keep_of(50), batch=10**6, in_order=False)
    assert numbers(asyncio.run(shelf.next_live(canary=True))) == [1]


def test_hardly_a_batch_stays_live() -> None:
    keep = keep_of(5)
    shelf = Shelf(keep, batch=1000, in_order=False)
    shelf.on_well(0.0)
    assert numbers(asyncio.run(shelf.next_live())) == [1, 2, 3, 4, 5]


def test_kept_in_order_new_records_join_the_backlog() -> None:
    keep = keep_of(50)
    shelf = Shelf(keep, batch=1000, in_order=True)
    asyncio.run(keep.append([RECORD] * 3))
    shelf.on_grown()
    assert (shelf.backlog, shelf.waiting) == (5300, 0)


def test_a_batch_is_bounded_but_always_one_record() -> None:
    shelf = Shelf(keep_of(50), batch=1000, in_order=False)
    assert len(numbers(asyncio.run(shelf.next_backlog(10**9)))) == 10
    assert numbers(asyncio.run(shelf.next_backlog(1))) == [1]


def test_what_cannot_be_read_does_not_hide_what_is_behind_it() -> None:
    """As a log does with a damaged block: it counts it as lost and answers that there is none."""

    class Damaged(MemoryKeep):
        async def read(self, after: int, *, upto: int | None, max_bytes: int) -> Batch | None:
            if after < 5:
                await self.delivered(after + 1, 5, fence=0)
                return None
            return await super().read(after, upto=upto, max_bytes=max_bytes)

    keep = Damaged(ManualClock())
    asyncio.run(keep.append([RECORD] * 8))
    shelf = Shelf(keep, batch=10_000, in_order=False)
    assert numbers(asyncio.run(shelf.next_live())) == [6, 7, 8]


def test_a_suspect_is_sent_alone() -> None:
    shelf = Shelf(keep_of(4), batch=1000, in_order=False)
    shelf.bisection.on_refused(0, 1, 4, "no")
    assert numbers(asyncio.run(shelf.next_live())) == [1, 2]
