"""A batch over HTTP is taken, refused for good, or to be tried again; what it was stays unsaid."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from tidegate.core.health import flaw
from tidegate.core.outcome import Outcome
from tidegate.spooler.record import Batch, Record
from tidegate.spooler.sinks.http import BATCH_TYPE, HttpSink, batch_bytes, read_batch
from tidegate.spooler.sinks.sink import DELIVERED, Sent
from tidegate.units import SECOND

BATCH = Batch(7, [Record(b'{"a": 1}', key=b"k"), Record(b"two")])
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def served(handler: Handler, use: Callable[[str], Awaitable[Sent]]) -> Sent:
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        return await use(f"http://127.0.0.1:{runner.addresses[0][1]}/in")
    finally:
        await runner.cleanup()


def answer(status: int, **headers: str) -> tuple[Sent, list[web.Request], list[bytes]]:
    seen: list[web.Request] = []
    bodies: list[bytes] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(request)
        bodies.append(await request.read())
        return web.Response(status=status, headers=headers)

    async def use(url: str) -> Sent:
        sink = HttpSink(url, sender="web-1/events", agent="tidegate-live")
        try:
            return await sink.send(BATCH, 5 * SECOND)
        finally:
            await sink.close()

    return asyncio.run(served(handler, use)), seen, bodies


def test_a_batch_goes_as_json_lines_under_its_id() -> None:
    sent, seen, bodies = answer(202)
    assert sent == DELIVERED
    assert bodies == [b'{"a": 1}\ntwo\n']
    assert seen[0].headers["Idempotency-Key"] == "web-1/events/7-8"
    assert seen[0].headers["User-Agent"] == "tidegate-live"


@pytest.mark.parametrize(
    ("status", "outcome", "poison"),
    [
        (400, Outcome.FAILURE, True),
        (413, Outcome.FAILURE, True),
        (422, Outcome.FAILURE, True),
        (401, Outcome.FAILURE, False),
        (404, Outcome.FAILURE, False),
        (302, Outcome.FAILURE, False),
        (500, Outcome.FAILURE, False),
        (429, Outcome.OVERLOADED, False),
        (503, Outcome.OVERLOADED, False),
        (504, Outcome.TIMEOUT, False),
    ],
)
def test_a_status_says_whether_it_is_the_batch_or_the_sink(
    status: int, outcome: Outcome, poison: bool
) -> None:
    sent, seen, _ = answer(status)
    assert (sent.outcome, sent.poison, len(seen)) == (outcome, poison, 1)
    assert sent.why == f"answered {status}"


def test_it_waits_as_long_as_it_is_told() -> None:
    sent, _, _ = answer(503, **{"Retry-After": "30"})
    assert sent.retry_after == 30 * SECOND


def test_nobody_there_is_a_failure_without_an_address() -> None:
    async def use() -> Sent:
        sink = HttpSink("http://127.0.0.1:1/in", sender="s", agent="a")
        assert flaw(await sink.health(SECOND), brokers=1) is not None
        sent = await sink.send(BATCH, SECOND)
        await sink.close()
        return sent

    sent = asyncio.run(use())
    assert sent.outcome is Outcome.FAILURE
    assert "127.0.0.1" not in sent.why


def test_the_token_is_read_for_each_batch_and_goes_nowhere_else(tmp_path: Path) -> None:
    token = tmp_path / "token"
    seen: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(request.headers.get("Authorization", ""))
        return web.Response(status=500)

    async def use(url: str) -> Sent:
        sink = HttpSink(url, sender="s", agent="a", token_file=token)
        token.write_text("one\n")
        await sink.send(BATCH, 5 * SECOND)
        token.write_text("two\n")
        sent = await sink.send(BATCH, 5 * SECOND)
        token.unlink()
        lost = await sink.send(BATCH, 5 * SECOND)
        assert lost.outcome is Outcome.FAILURE
        await sink.close()
        return sent

    sent = asyncio.run(served(handler, use))
    assert seen == ["Bearer one", "Bearer two"]
    assert "two" not in sent.why


def test_a_record_of_two_lines_is_refused_unless_it_goes_to_a_spool() -> None:
    bodies: list[tuple[str, bytes]] = []

    async def handler(request: web.Request) -> web.Response:
        bodies.append((request.content_type, await request.read()))
        return web.Response(status=202)

    async def use(url: str) -> Sent:
        batch = Batch(1, [Record(b"a\nb", key=b"k")])
        lines, raw = (HttpSink(url, sender="s", agent="a", raw=raw) for raw in (False, True))
        assert (await lines.send(batch, 5 * SECOND)).poison
        sent = await raw.send(batch, 5 * SECOND)
        await lines.close()
        await raw.close()
        return sent

    assert asyncio.run(served(handler, use)) == DELIVERED
    assert [(kind, read_batch(body)) for kind, body in bodies] == [(BATCH_TYPE, [(b"k", b"a\nb")])]


@given(st.lists(st.builds(Record, st.binary(), st.binary())))
def test_a_batch_comes_back_as_it_was(records: list[Record]) -> None:
    assert read_batch(batch_bytes(records)) == [(r.key, r.value) for r in records]


@given(st.binary(max_size=200))
def test_bytes_are_a_batch_or_refused_in_one_sentence(data: bytes) -> None:
    said = ""
    try:
        read_batch(data)
    except ValueError as refused:
        said = str(refused)
    assert not said or said.startswith("expected a MessagePack array of [key, value]: ")


def test_what_is_no_batch_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a MessagePack array"):
        read_batch(b"{}")
