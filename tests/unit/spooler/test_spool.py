"""Lanes of one process share a disk and a name; each has its own log, and none takes another's."""

import asyncio
import shutil
from pathlib import Path

import msgspec
import pytest

from tidegate.errors import SettingsError, SpoolError
from tidegate.settings.spool import Lane
from tidegate.settings.spool import Spool as Settings
from tidegate.spooler.door.keeper import Accepted
from tidegate.spooler.record import Record
from tidegate.spooler.shelf import Shelf
from tidegate.spooler.spool import Spool
from tidegate.spooler.status import SpoolStatus


def settings(**lanes: Lane) -> Settings:
    return Settings(lanes=lanes, collector="here")


def test_each_lane_goes_to_its_own_sink_and_the_status_has_them_all(tmp_path: Path) -> None:
    async def main() -> SpoolStatus:
        async with Spool(settings(a=Lane(to="file:a"), b=Lane(to="file:b")), tmp_path) as spool:
            assert tuple(spool.lanes) == ("a", "b")
            assert isinstance(await spool.accept("a", [Record(b"1")]), Accepted)
            await spool.accept("b", [Record(b"2"), Record(b"3")])
            assert spool.refuses("a") is None
            spool.hold("b", "a test")
            assert spool.status().lanes[1].state == "hold"
            spool.release("b")
            await asyncio.sleep(0)
            return spool.status()

    status = asyncio.run(main())
    assert (tmp_path / "a").read_text() == "1\n"
    assert sorted((tmp_path / "spool").iterdir()) == [tmp_path / "spool/a", tmp_path / "spool/b"]
    assert [lane.accepted for lane in status.lanes] == [1, 2]
    assert status.collector == "here"
    assert msgspec.json.decode(msgspec.json.encode(status), type=SpoolStatus) == status


def test_a_lane_that_cannot_be_opened_leaves_none_open(tmp_path: Path) -> None:
    wrong = settings(a=Lane(to="file:a"), b=Lane(to="fiel:b"))
    right = settings(a=Lane(to="file:a"))

    async def main() -> None:
        with pytest.raises(SettingsError, match=r"spool\.lanes\.b\.to: .*did you mean 'file'"):
            await Spool(wrong, tmp_path).__aenter__()
        async with Spool(right, tmp_path) as spool:
            await spool.accept("a", [Record(b"1")])

    asyncio.run(main())
    assert (tmp_path / "a").read_text() == "1\n"


def test_a_directory_that_is_gone_takes_nothing_and_kills_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with Spool(settings(a=Lane(to="file:a")), tmp_path, linger_s=0.0) as spool:
            shutil.rmtree(tmp_path / "spool")
            with pytest.raises(SpoolError, match="cannot write to"):
                await spool.accept("a", [Record(b"1")])
            assert spool.status().lanes[0].disk_free == 0

    asyncio.run(main())


def test_a_lane_that_dies_of_a_bug_says_so_and_what_it_died_of_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    died: list[bool] = []

    async def main() -> None:
        async with Spool(settings(a=Lane(to="file:a")), tmp_path, linger_s=0.0) as spool:
            spool.died = lambda: died.append(True)
            while not died:
                await asyncio.sleep(0)

    monkeypatch.setattr(Shelf, "next_live", lambda self, **_: 1 / 0)
    with pytest.raises(ExceptionGroup) as raised:
        asyncio.run(main())
    assert raised.group_contains(ZeroDivisionError)


def test_the_share_of_a_lane_is_not_for_others(tmp_path: Path) -> None:
    lanes = settings(a=Lane(to="file:a", share=0.5), b=Lane(to="file:b"))

    async def main() -> None:
        async with Spool(lanes, tmp_path) as spool:
            room = [spool._lanes[name].bounds.snapshot(0).room for name in ("a", "b")]
            total = spool._lanes["a"].keep.space().total
            assert room[0] > 0
            assert room[1] <= max(0, room[0] - int(0.4 * total))

    asyncio.run(main())
