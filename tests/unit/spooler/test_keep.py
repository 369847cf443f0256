"""A keep on disk is a log with a committer, and what it keeps is there the next time."""

import asyncio
from pathlib import Path

from tidegate.core.bounds import Cause, Drop
from tidegate.settings.spool import Lane
from tidegate.spooler.keep import DiskKeep
from tidegate.spooler.record import Record

LANE = Lane(to="file:out")


def test_what_is_kept_is_there_the_next_time(tmp_path: Path) -> None:
    async def first() -> None:
        keep = DiskKeep(LANE, tmp_path / "events", tmp_path)
        grown = asyncio.Event()
        keep.tell(grown.set)
        ack = await keep.append([Record(b"a"), Record(b"b"), Record(b"c")])
        assert (ack.first, ack.last, ack.durable) == (1, 3, "disk")
        await grown.wait()
        await keep.delivered(1, 1, fence=7)
        await keep.set_aside(2, 2, "never")
        assert keep.usage().lost == {Cause.QUARANTINED.value: 1}
        assert keep.sync_times() is not None
        await keep.close()

    async def second() -> None:
        keep = DiskKeep(LANE, tmp_path / "events", tmp_path)
        assert (keep.last, keep.pending, keep.recovered, keep.full) == (3, ((3, 3),), "", False)
        batch = await keep.read(0, upto=None, max_bytes=1000)
        assert batch is not None
        assert [record.value for record in batch.records][-1] == b"c"
        assert keep.space().free > 0
        gone = await keep.drop_oldest(Drop(Cause.DROPPED_OLDEST, records=1))
        assert gone.cause is Cause.DROPPED_OLDEST
        await keep.close()

    asyncio.run(first())
    asyncio.run(second())
