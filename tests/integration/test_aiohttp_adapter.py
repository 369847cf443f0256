"""The middleware of aiohttp against a real server."""

import asyncio
import io
from collections.abc import Coroutine, Iterator
from typing import Any

import aiohttp
import pytest
from scripted_server import Say, ScriptedServer, scripted_server

import tidegate
from tidegate.adapters.aiohttp import Middleware
from tidegate.runtime import registry
from tidegate.settings.policies import Breaker, Budget

pytestmark = pytest.mark.slow  # a server is started for each test, and time is real

QUICK: dict[str, Any] = {"backoff": 0.001, "timeout": 5.0, "breaker": None, "limit": None}


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with scripted_server() as running:
        yield running
    registry._forget()


async def ask(url: str, method: str = "GET", **keywords: Any) -> tuple[int, str]:
    async with (
        aiohttp.ClientSession(middlewares=(Middleware(),)) as session,
        session.request(method, url, **keywords) as response,
    ):
        return response.status, await response.text()


def run(main: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(main)


def test_a_get_is_repeated_and_a_post_after_a_refusal_only(server: ScriptedServer) -> None:
    tidegate.guard(server.url, **QUICK, budget=Budget(ratio=10.0))
    server.will(500, 200, 503, 200, 500)
    assert run(ask(server.url)) == (200, "fine")
    assert run(ask(server.url, "POST", data=b"order"))[0] == 200
    assert run(ask(server.url, "POST", data=b"order"))[0] == 500
    assert [asked.method for asked in server.asked] == ["GET", "GET", "POST", "POST", "POST"]
    assert server.asked[2].body == server.asked[3].body == b"order"


def test_a_word_or_a_key_makes_a_post_repeatable(server: ScriptedServer) -> None:
    tidegate.guard(server.url, **QUICK, budget=Budget(ratio=10.0))
    server.will(500, 200, 500, 200)
    run(ask(server.url, "POST", json={}, headers={"Idempotency-Key": "7"}))
    run(ask(server.url, "POST", json={}, middlewares=(Middleware(idempotent=True),)))
    assert len(server.asked) == 4


def test_a_file_is_sent_once(server: ScriptedServer) -> None:
    tidegate.guard(server.url, **QUICK)
    server.will(503)
    assert run(ask(server.url, "PUT", data=io.BytesIO(b"once")))[0] == 503
    assert [asked.body for asked in server.asked] == [b"once"]


def test_the_last_response_is_given_whole_read_or_streamed(server: ScriptedServer) -> None:
    tidegate.guard(server.url, **QUICK, budget=Budget(ratio=10.0))
    server.otherwise = Say(503, b"not now")

    async def streamed() -> bytes:
        async with (
            aiohttp.ClientSession(middlewares=(Middleware(),)) as session,
            session.get(server.url) as response,
        ):
            return b"".join([chunk async for chunk in response.content.iter_any()])

    assert run(ask(server.url)) == (503, "not now")
    assert run(streamed()) == b"not now"


def test_a_response_that_waited_for_another_gives_its_connection_back(
    server: ScriptedServer,
) -> None:
    """Else one connection would be held by the first attempt and wanted by the second."""
    tidegate.guard(server.url, **QUICK)
    server.will(Say(503, b"long", trickle=0.001), 200)

    async def main() -> int:
        connector = aiohttp.TCPConnector(limit=1)
        async with (
            aiohttp.ClientSession(connector=connector, middlewares=(Middleware(),)) as session,
            session.get(server.url) as response,
        ):
            return response.status

    assert run(main()) == 200


def test_an_attempt_that_is_too_slow(server: ScriptedServer) -> None:
    tidegate.guard(server.url, **(QUICK | {"timeout": 0.1, "attempts": 1}))
    server.will(Say(after=5.0))
    with pytest.raises(tidegate.AttemptTimeout):
        run(ask(server.url))
    assert tidegate.snapshots()[server.url].outcomes["timeout"] == 1


def test_nothing_goes_on_past_the_deadline(server: ScriptedServer) -> None:
    tidegate.guard(server.url, **QUICK)
    server.otherwise = Say(after=5.0)
    with tidegate.deadline(0.2), pytest.raises(tidegate.DeadlineExceeded):
        run(ask(server.url))
    assert len(server.asked) <= 1, "a busy machine may not even send the first"


def test_headers_say_what_remains_and_how_deep(server: ScriptedServer) -> None:
    tidegate.guard(server.url, **QUICK, propagate=True)
    server.will(500)
    with tidegate.deadline(3.0):
        run(ask(server.url))
    first, second = (asked.headers for asked in server.asked)
    assert 0 < int(first["tidegate-remaining-ms"]) <= 3000
    assert "tidegate-retry-depth" not in first
    assert second["tidegate-retry-depth"] == "1"


def test_an_open_circuit_sends_nothing(server: ScriptedServer) -> None:
    tidegate.guard(server.url, **(QUICK | {"breaker": Breaker(volume=1), "attempts": 1}))
    server.will(Say(vanish=True))
    with pytest.raises(aiohttp.ClientError):
        run(ask(server.url, "POST"))
    with pytest.raises(tidegate.CircuitOpen):
        run(ask(server.url))
    assert len(server.asked) == 1


def test_the_session_repeats_nothing_by_itself(server: ScriptedServer) -> None:
    """It would, on kept connections: from the second request on, it is told not to."""
    tidegate.guard(server.url, **QUICK)

    async def main() -> None:
        async with aiohttp.ClientSession(middlewares=(Middleware(),)) as session:
            async with session.get(server.url):
                pass
            server.otherwise = Say(vanish=True)
            with pytest.raises(aiohttp.ServerDisconnectedError) as gone:
                await session.get(server.url)
            assert "tried 2 times" in gone.value.__notes__[0]

    run(main())
    assert len(server.asked) == 1 + 2


def test_the_pool_outlives_a_storm_of_deadlines(server: ScriptedServer) -> None:
    server.otherwise = Say(after=0.02)
    tidegate.guard(server.url, attempts=1, breaker=None, limit=None)

    async def main() -> int:
        connector = aiohttp.TCPConnector(limit=4)
        middlewares = (Middleware(),)
        async with aiohttp.ClientSession(connector=connector, middlewares=middlewares) as session:

            async def caller(patience: float) -> None:
                for _ in range(10):
                    try:
                        with tidegate.deadline(patience):
                            async with session.get(server.url):
                                pass
                    except tidegate.DeadlineExceeded:
                        pass

            await asyncio.gather(*(caller(0.003 * (n + 1)) for n in range(12)))
            left = 0
            for _ in range(8):
                async with session.get(server.url) as response:
                    left += response.status == 200
            return left

    assert run(main()) == 8
    assert tidegate.snapshots()[server.url].pending == 0
