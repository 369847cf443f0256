"""The door in memory and in virtual time: what it takes, what it refuses, and when."""

import asyncio
import gzip
import json
import logging
from random import Random
from typing import Any

import pytest
from asgi_client import Exchange, ask
from fake_keeper import FakeKeeper
from virtual_seconds import told

from tidegate.errors import SpoolError
from tidegate.settings import spool as settings
from tidegate.spooler.door.app import Door
from tidegate.spooler.door.keeper import Refused
from tidegate.spooler.door.token import Token
from tidegate.spooler.record import Record
from tidegate.spooler.sinks.http import BATCH_TYPE, batch_bytes
from tidegate.spooler.status import SpoolStatus
from tidegate.units import SECOND

LINES = {"content-type": "application/x-ndjson"}
TOKEN = "0123456789abcdef"


def door(keeper: FakeKeeper, token: Token | None = None, **keywords: Any) -> Door:
    return Door(keeper, settings.Door(**keywords), token=token, rng=Random(1))


async def post(
    opened: Door, body: bytes = b"1\n2\n", path: str = "/v1/events", **headers: str
) -> Exchange:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await ask(opened.app, path, "POST", {**LINES, **named}, body=(body,))


def test_records_are_kept_and_told_so() -> None:
    async def story() -> None:
        keeper = FakeKeeper()
        opened = door(keeper)
        first = await post(opened)
        assert first.status == 202
        assert json.loads(first.body) == {
            "lane": "events",
            "accepted": 2,
            "first": 1,
            "durable": "disk",
        }
        assert first.headers["content-type"] == "application/json"
        await post(opened, gzip.compress(b'{"a": 1}'), content_encoding="gzip", tidegate_key="k")
        assert keeper.kept["events"][2] == Record(b'{"a": 1}', b"k")
        raw = batch_bytes([Record(b"\n", b"key")])
        last = await post(opened, raw, path="/v1/clicks", content_type=BATCH_TYPE)
        assert json.loads(last.body)["first"] == 1
        assert keeper.kept["clicks"] == [Record(b"\n", b"key")]
        assert opened.answers == {202: 3}
        assert opened.inside == 0

    told(story)


def test_a_request_that_comes_again_with_its_name_is_kept_once() -> None:
    async def story() -> None:
        keeper = FakeKeeper()
        opened = door(keeper)
        first = await post(opened, b"1\n2\n", idempotency_key="here/events/1-2")
        again = await post(opened, b"1\n2\n", idempotency_key="here/events/1-2")
        assert (again.status, again.body) == (202, first.body)
        assert keeper.values() == [b"1", b"2"]
        for body, headers in (
            (b"1\n3\n", {"idempotency_key": "here/events/1-2"}),  # counted anew after a lost disk
            (b"1\n2\n", {"idempotency_key": "here/events/1-2", "tidegate_key": "k"}),
            (b"1\n2\n", {}),
            (b"1\n2\n", {}),
        ):
            await post(opened, body, **headers)
        assert len(keeper.values()) == 10

    told(story)


def test_what_was_refused_is_kept_when_it_comes_again() -> None:
    async def story() -> None:
        keeper = FakeKeeper()
        opened = door(keeper)
        keeper.late = Refused("full", SECOND)
        assert (await post(opened, idempotency_key="a")).status == 503
        keeper.late = None
        assert (await post(opened, idempotency_key="a")).status == 202
        assert keeper.values() == [b"1", b"2"]

    told(story)


@pytest.mark.parametrize(
    ("body", "headers", "status", "said"),
    [
        (b"1\nx", {}, 400, "line 2: expected JSON: invalid character (byte 0)"),
        (b"", {}, 400, "the body has no record"),
        (b"1", {"content_type": "text/csv"}, 415, "expected the content-type application/json, "),
        (
            b"1",
            {"content_encoding": "br"},
            415,
            "expected the content-encoding gzip or none, found 'br'",
        ),
        (b"plain words", {"content_encoding": "gzip"}, 400, "the body is not gzip"),
        (b"1", {"content_length": "2001"}, 413, "the body is larger than 2kB"),
        (b"1", {"content_length": "-1"}, 400, "expected a content-length in digits"),
        (b"1" * 2001, {}, 413, "the body is larger than 2kB"),
        (b"1" * 1001, {}, 413, "line 1 is larger than 1kB"),
        (
            gzip.compress(b"1" * 2001, mtime=0),
            {"content_encoding": "gzip"},
            413,
            "unpacked, the body is",
        ),
    ],
)
def test_what_will_not_do_is_said_in_a_sentence_and_nothing_is_kept(
    body: bytes, headers: dict[str, str], status: int, said: str
) -> None:
    async def story() -> None:
        keeper = FakeKeeper()
        opened = door(keeper, body=2000, record=1000)
        answer = await post(opened, body, **headers)
        assert answer.status == status
        assert answer.body.decode().startswith(said)
        assert answer.body.decode().count("\n") == 1
        assert keeper.requests == opened.inside == 0
        assert opened.answers == {status: 1}

    told(story)


def test_what_can_be_refused_before_the_body_is_read_is() -> None:
    async def story() -> None:
        keeper = FakeKeeper()
        keeper.refused["clicks"] = Refused("full: it keeps its 1MB", 90 * SECOND)
        opened = door(keeper, body=2000, record=1000)
        for path, headers, status in (
            ("/v1/evnts", {}, 404),
            ("/v1/clicks", {}, 503),
            ("/v1/events", {"content-type": "text/csv"}, 415),
            ("/v1/events", {"content-length": "2001"}, 413),
        ):
            asked = Exchange(path, "POST", {**LINES, **headers}, body=(b"1",))
            await asked.start(opened.app)
            assert asked.status == status
            assert asked.reads == 0

    told(story)


def test_a_full_lane_says_when_to_come_again() -> None:
    async def story() -> None:
        keeper = FakeKeeper()
        opened = door(keeper)
        keeper.refused["events"] = Refused("full: its disk takes no more", 90 * SECOND + 1)
        full = await post(opened)
        assert (full.status, full.headers["retry-after"]) == (503, "91")
        assert full.body == b"full: its disk takes no more\n"
        del keeper.refused["events"]
        keeper.late = Refused("full: it keeps its 1MB", 1)  # it has filled meanwhile
        assert (await post(opened)).headers["retry-after"] == "1"
        keeper.late = Refused("more records than it may keep, 10", None)
        never = await post(opened)
        assert (never.status, "retry-after" in never.headers) == (413, False)
        keeper.late = SpoolError("the spool is closing")
        closing = await post(opened)
        assert (closing.status, closing.body) == (503, b"the spool is closing\n")
        assert 1 <= int(closing.headers["retry-after"]) <= 4

    told(story)


def test_a_lane_or_a_path_that_is_not_there_is_told_with_the_nearest() -> None:
    async def story() -> None:
        opened = door(FakeKeeper())
        lane = await post(opened, path="/v1/evnts")
        assert lane.body == b"there is no lane 'evnts'; did you mean 'events'?\n"
        assert (await ask(opened.app, "/v2/events", "POST")).status == 404
        assert b"known: /v1/LANE" in (await ask(opened.app, "/v2/events", "POST")).body
        wrong = await ask(opened.app, "/v1/events")
        assert (wrong.status, wrong.headers["allow"]) == (405, "POST")
        assert wrong.body == b"expected POST here, found GET\n"

    told(story)


def test_a_token_is_wanted_for_all_but_health(tmp_path: Any) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    file.chmod(0o600)

    async def story() -> None:
        keeper = FakeKeeper()
        opened = door(keeper, Token(file, 0))
        for path, method in (
            ("/v1/events", "POST"),
            ("/v1/unknown", "POST"),
            ("/status", "GET"),
            ("/metrics", "GET"),
            ("/hold/events", "POST"),
            ("/release/events", "POST"),
        ):
            for given in ({}, {"authorization": "Bearer 0123456789abcdee"}):
                refused = await ask(opened.app, path, method, {**LINES, **given}, body=(b"1",))
                assert refused.status == 401
                assert refused.headers["www-authenticate"] == "Bearer"
        assert not keeper.requests
        assert not keeper.held
        assert (await post(opened, authorization=f"Bearer {TOKEN}")).status == 202
        for path in ("/livez", "/readyz", "/readyz/events"):
            assert (await ask(opened.app, path)).status == 200

    told(story)


def test_a_client_has_its_rate_of_records_and_not_of_requests() -> None:
    async def story() -> None:
        keeper = FakeKeeper()
        opened = door(keeper, rate=10.0)
        assert (await post(opened, b"1\n" * 50)).status == 202
        early = await post(opened)
        assert (early.status, early.headers["retry-after"]) == (429, "5")
        assert early.body == b"this client may send 10 records a second\n"
        other = await ask(opened.app, "/v1/events", "POST", LINES, address="10.0.0.2", body=(b"1",))
        assert other.status == 202
        await asyncio.sleep(4.9)
        assert (await post(opened)).status == 429
        await asyncio.sleep(0.2)
        assert (await post(opened)).status == 202

    told(story)


def test_bodies_inside_are_bounded_together() -> None:
    async def story() -> None:
        keeper = FakeKeeper(takes_s=1.0)
        opened = door(keeper, body=10_000, record=10_000, inflight=30_000)
        inside = [Exchange("/v1/events", "POST", LINES, body=(b"8" * 9000,)) for _ in range(4)]
        tasks = [exchange.start(opened.app) for exchange in inside]
        await asyncio.sleep(0.5)
        assert [exchange.status for exchange in inside] == [None, None, 503, 503]
        assert 1 <= int(inside[2].headers["retry-after"]) <= 4
        assert opened.inside <= 30_000
        await asyncio.gather(*tasks)
        assert [exchange.status for exchange in inside] == [202, 202, 503, 503]
        assert opened.inside == 0
        assert (await post(opened)).status == 202

    told(story)


def test_a_packed_body_counts_unpacked() -> None:
    async def story() -> None:
        keeper = FakeKeeper(takes_s=1.0)
        opened = door(keeper, body=10_000, record=10_000, inflight=30_000)
        packed = gzip.compress(b"8" * 9000)
        headers = {**LINES, "content-encoding": "gzip"}
        inside = [Exchange("/v1/events", "POST", headers, body=(packed,)) for _ in range(3)]
        tasks = [exchange.start(opened.app) for exchange in inside]
        await asyncio.sleep(0.5)
        assert 2 * 9000 < opened.inside <= 30_000
        await asyncio.gather(*tasks)
        assert [exchange.status for exchange in inside] == [202, 202, 503]
        assert opened.inside == 0

    told(story)


def test_who_stops_sending_is_let_go_and_who_is_slow_is_not() -> None:
    async def story() -> None:
        keeper = FakeKeeper()
        opened = door(keeper, timeout=10 * SECOND)

        async def send(gaps: list[float]) -> Exchange:
            exchange = Exchange("/v1/events", "POST", LINES)
            left = [*gaps, 0.0]

            async def receive() -> dict[str, Any]:
                await asyncio.sleep(left.pop(0))
                return {"type": "http.request", "body": b"1\n", "more_body": bool(left)}

            await opened.app(exchange.scope, receive, exchange.send)
            return exchange

        assert (await send([9.0, 9.0, 9.0])).status == 202
        stopped = await send([1.0, 11.0])
        assert (stopped.status, stopped.body) == (408, b"nothing came for 10s\n")
        assert keeper.values() == [b"1"] * 4
        assert opened.inside == 0

    told(story)


@pytest.mark.parametrize("after", [0, 1, 3])
def test_who_leaves_before_the_end_has_sent_nothing(after: int) -> None:
    async def story() -> None:
        keeper = FakeKeeper()
        opened = door(keeper)
        exchange = Exchange("/v1/events", "POST", LINES, body=tuple(b"%d\n" % n for n in range(9)))
        del exchange._body[after:]
        exchange.leave() if not after else None
        task = exchange.start(opened.app)
        await asyncio.sleep(1)
        exchange.leave()
        await task
        assert keeper.requests == opened.inside == 0

    told(story)


def test_health_is_of_the_process_and_of_its_lanes() -> None:
    async def story() -> None:
        keeper = FakeKeeper()
        opened = door(keeper)

        async def answers() -> list[int | None]:
            paths = ("/livez", "/readyz", "/readyz/events", "/readyz/clicks", "/readyz/other")
            return [(await ask(opened.app, path)).status for path in paths]

        assert await answers() == [200, 200, 200, 200, 404]
        keeper.refused["events"] = Refused("full", SECOND)
        assert await answers() == [200, 200, 503, 200, 404]
        keeper.refused["clicks"] = Refused("full", SECOND)
        assert await answers() == [200, 503, 503, 503, 404]
        assert opened.answers == {}

    told(story)


def test_it_shows_the_status_in_two_ways() -> None:
    async def story() -> None:
        opened = door(FakeKeeper())
        await post(opened, b"no record")
        status = await ask(opened.app, "/status")
        import msgspec

        seen = msgspec.json.decode(status.body, type=SpoolStatus)
        assert [lane.name for lane in seen.lanes] == ["events", "clicks"]
        assert (seen.answers, seen.inside_bytes) == ({"400": 1}, 0)
        metrics = await ask(opened.app, "/metrics")
        assert metrics.headers["content-type"].startswith("text/plain; version=")
        assert b'tidegate_spool_accepted_total{lane="clicks"}' in metrics.body

    told(story)


def test_a_lane_is_held_and_released() -> None:
    async def story() -> None:
        keeper = FakeKeeper()
        opened = door(keeper)
        for query in ("", "reason=", "reason=%20", "reason=a%0Ab", "reason=" + "x" * 201):
            refused = await ask(opened.app, "/hold/events", "POST", query=query)
            assert refused.status == 400
        held = await ask(opened.app, "/hold/events", "POST", query="reason=broker%207%20is%20new")
        assert (held.status, held.body) == (200, b"events is held\n")
        assert keeper.held == {"events": "broker 7 is new"}
        assert (await ask(opened.app, "/hold/evnts", "POST", query="reason=x")).status == 404
        assert (await ask(opened.app, "/release/events", "POST")).body == b"events goes on\n"
        assert not keeper.held

    told(story)


def test_nothing_that_was_sent_is_logged_or_sent_back(caplog: pytest.LogCaptureFixture) -> None:
    secret = b"hunter2"

    async def story() -> None:
        opened = door(FakeKeeper(), body=2000, record=1000, rate=1.0)
        for kind in ("application/json", "application/x-ndjson", BATCH_TYPE, "text/hunter1"):
            for body in (secret, b'"%s"' % (secret * 200), b'["%s"}' % secret, secret * 400):
                answer = await post(opened, body, content_type=kind, tidegate_key="hunter2")
                assert secret not in answer.body

    with caplog.at_level(logging.DEBUG):
        told(story)
    assert "hunter2" not in caplog.text
