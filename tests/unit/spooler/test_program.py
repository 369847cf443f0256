"""A program keeps records with three lines, in the notation of the file."""

import asyncio
import json
from pathlib import Path

import pytest

import tidegate
from tidegate.errors import SettingsError, SpoolError, SpoolFull


def test_what_is_put_is_delivered_by_the_end_of_the_block(tmp_path: Path) -> None:
    async def main() -> None:
        async with tidegate.spool(
            "events", to=f"file:{tmp_path}/out", directory=tmp_path / "spool"
        ) as events:
            kept = await events.put({"user": 7})
            assert (kept.first, kept.durable) == (1, "disk")
            await events.put_many(["text", b"bytes", [1, 2]])
            assert events.status().accepted == 4

    asyncio.run(main())
    assert (tmp_path / "out").read_text() == '{"user":7}\ntext\nbytes\n[1,2]\n'


def test_what_the_sink_does_not_take_goes_the_next_time(tmp_path: Path) -> None:
    async def main(to: Path) -> None:
        async with tidegate.spool(
            "events", to=f"file:{to}/out", directory=tmp_path / "spool", linger=0.1
        ) as events:
            await events.put("kept")

    asyncio.run(main(tmp_path / "gone"))
    (tmp_path / "there").mkdir()
    asyncio.run(main(tmp_path / "there"))
    assert (tmp_path / "there" / "out").read_text() == "kept\nkept\n"


def test_a_lane_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "spool.yaml"
    file.write_text("tidegate: 1\nspool: {lanes: {events: {to: 'file:out'}}}\n")

    async def main() -> None:
        async with tidegate.spool("events", file=file) as events:
            await events.put("x")

    asyncio.run(main())
    assert (tmp_path / "out").read_text() == "x\n"


def test_a_full_lane_says_when_to_come_again(tmp_path: Path) -> None:
    async def main() -> SpoolFull:
        async with tidegate.spool(
            "events",
            to=f"file:{tmp_path}/gone/out",
            directory=tmp_path / "spool",
            bounds={"records": 2},
            linger=0.0,
        ) as events:
            events.hold("a test")
            await events.put_many(["a", "b"])
            with pytest.raises(SpoolFull, match="it keeps its 2 records") as refused:
                await events.put("c")
            return refused.value

    wait = asyncio.run(main()).retry_after
    assert wait is not None
    assert 1 <= wait <= 300


def test_two_processes_do_not_share_a_log(tmp_path: Path) -> None:
    async def main() -> None:
        to, directory = f"file:{tmp_path}/out", tmp_path / "spool"
        async with tidegate.spool("events", to=to, directory=directory):
            with pytest.raises(SpoolError, match="another process"):
                async with tidegate.spool("events", to=to, directory=directory):
                    pass

    asyncio.run(main())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "expected where records go"),
        ({"to": "file:out", "bounds": "50"}, r"bounds.*write 50B"),
        ({"to": "file:out", "pacee": "fast"}, "did you mean 'pace'"),
        ({"to": "file:out", "pace": "at_once"}, "for simulations"),
        ({"to": "fiel:out"}, "did you mean 'file'"),
        ({"to": "file:out", "bounds": object()}, "expected a value as in the file"),
        ({"file": "spool.yaml", "pace": "fast"}, "leave pace out"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_sentence(
    options: dict[str, str], says: str, tmp_path: Path
) -> None:
    async def main() -> None:
        async with tidegate.spool("events", directory=tmp_path, **options):
            pass

    with pytest.raises(SettingsError, match=says):
        asyncio.run(main())


def test_a_lane_that_the_file_does_not_have_is_named_with_the_nearest(tmp_path: Path) -> None:
    file = tmp_path / "spool.yaml"
    file.write_text("tidegate: 1\nspool: {lanes: {events: {to: 'file:out'}}}\n")
    with pytest.raises(SettingsError, match="has no lane 'event'; did you mean 'events'"):
        tidegate.spool("event", file=file)


def test_any_value_that_json_has_is_written_as_json(tmp_path: Path) -> None:
    values = [{"a": [1, None, True]}, 1.5, [], {"ü": "ß"}]

    async def main() -> None:
        async with tidegate.spool(
            "events", to=f"file:{tmp_path}/out", directory=tmp_path / "spool"
        ) as events:
            await events.put_many(values)

    asyncio.run(main())
    assert [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()] == values
