"""Requests that go away must not take connections with them: the pool of httpx 0.28 lets them.

First the fault itself, so that the cure is seen to cure it: a request that is cancelled in the tick
in which it is given a connection leaves that connection counted as used.
"""

import asyncio
import gc
import random
import warnings
from collections.abc import Iterator
from typing import Any

import httpx
import httpx2
import pytest
from scripted_server import Say, ScriptedServer, scripted_server

import tidegate
from tidegate.adapters import httpx2 as httpx2_adapter
from tidegate.adapters.httpx import AsyncTransport, LeakyPoolWarning, Transport, _Places
from tidegate.runtime import registry
from tidegate.settings.policies import Budget

pytestmark = pytest.mark.slow  # a server is started for each test, and time is real

CONNECTIONS = 4
ONCE = {"attempts": 1, "breaker": None, "limit": None}


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with scripted_server() as running:
        yield running
    registry._forget()


def pooled() -> tidegate.Guard:
    """The guard of all these tests: one attempt, unless a test has said otherwise before."""
    known = "pooled" in tidegate.snapshots()
    return tidegate.guard("pooled") if known else tidegate.guard("pooled", **ONCE)


def transport(connections: int, *, safe: bool) -> AsyncTransport:
    guard = pooled()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeakyPoolWarning)
        return AsyncTransport(guard, connections=connections, safe=safe)


async def cancelled_as_it_is_served(url: str, *, safe: bool) -> int:
    """Of two requests for one connection, the second goes away as its turn comes."""
    async with httpx.AsyncClient(transport=transport(1, safe=safe)) as client:
        async with client.stream("GET", url) as first:
            second = asyncio.create_task(client.get(url))
            for _ in range(50):
                await asyncio.sleep(0)  # until it waits
            await first.aread()
            second.cancel()
        await asyncio.wait([second])
        try:
            return (await client.get(url, timeout=httpx.Timeout(5.0, pool=0.3))).status_code
        except httpx.PoolTimeout:
            return 0


def closing() -> Say:
    return Say(headers={"Connection": "close"})  # so that the next one needs a new connection


def test_httpx_alone_loses_the_connection(server: ScriptedServer) -> None:
    server.otherwise = closing()
    assert asyncio.run(cancelled_as_it_is_served(server.url, safe=False)) == 0


def test_the_safe_mode_does_not(server: ScriptedServer) -> None:
    server.otherwise = closing()
    assert asyncio.run(cancelled_as_it_is_served(server.url, safe=True)) == 200
    assert len(server.asked) == 2, "what was cancelled before it had a place was not sent"


async def turns(*, cancelled: int) -> list[str]:
    """Three wait for one place; one of them goes away, as the place is given or before."""
    places = _Places(1)
    await places.acquire()
    served: list[str] = []

    async def caller(name: str) -> None:
        await places.acquire()
        served.append(name)
        places.release()

    waiting = [asyncio.create_task(caller(name)) for name in ("first", "second", "third")]
    for _ in range(3):
        await asyncio.sleep(0)
    if cancelled == 2:
        places.release()  # to the third, which is cancelled in the same tick
        waiting[2].cancel()
    else:
        waiting[cancelled].cancel()
        places.release()
    await asyncio.wait(waiting)
    assert not places.locked(), "a place is lost"
    return served


@pytest.mark.parametrize(
    ("cancelled", "served"), [(0, ["third", "second"]), (1, ["third", "first"])]
)
def test_the_newest_has_the_next_place(cancelled: int, served: list[str]) -> None:
    assert asyncio.run(turns(cancelled=cancelled)) == served


def test_a_place_given_to_whoever_goes_away_goes_on() -> None:
    assert asyncio.run(turns(cancelled=2)) == ["second", "first"]


async def storm(url: str, cancel: Any, client: Any) -> tuple[int, int]:
    """Many callers with little patience for few connections; then single calls."""
    luck = random.Random(7)
    ended = 0
    async with client:

        async def caller() -> None:
            nonlocal ended
            for _ in range(15):
                await cancel(luck.uniform(0.0, 0.04), client.get(url))
                ended += 1

        await asyncio.gather(*(caller() for _ in range(3 * CONNECTIONS)))
        left = [(await client.get(url)).status_code for _ in range(2 * CONNECTIONS)]
    return ended, left.count(200)


async def by_a_timeout(seconds: float, call: Any) -> None:
    try:
        async with asyncio.timeout(seconds):
            await call
    except (TimeoutError, httpx.TimeoutException, httpx2.TimeoutException):
        pass


async def by_a_deadline(seconds: float, call: Any) -> None:
    try:
        with tidegate.deadline(seconds + 0.001):
            await call
    except (tidegate.DeadlineExceeded, httpx.TimeoutException, httpx2.TimeoutException):
        pass


def with_httpx() -> Any:
    return httpx.AsyncClient(transport=transport(CONNECTIONS, safe=True))


def with_httpx2() -> Any:
    """Whose pool needs no safe mode."""
    pool = httpx2.AsyncHTTPTransport(limits=httpx2.Limits(max_connections=CONNECTIONS))
    guard = pooled()
    return httpx2.AsyncClient(transport=httpx2_adapter.AsyncTransport(guard, wrapped=pool))


@pytest.mark.parametrize("client", [with_httpx, with_httpx2])
@pytest.mark.parametrize("cancel", [by_a_timeout, by_a_deadline])
def test_the_pool_outlives_a_storm_of_cancellations(
    server: ScriptedServer, cancel: Any, client: Any
) -> None:
    server.otherwise = Say(after=0.02)
    assert asyncio.run(storm(server.url, cancel, client())) == (180, 2 * CONNECTIONS)
    seen = tidegate.snapshots()["pooled"]
    assert seen.pending == 0
    assert seen.ok < 180, "nobody was ever cancelled: this storm was none"


@pytest.mark.parametrize("client", [with_httpx, with_httpx2])
def test_whoever_goes_away_between_two_attempts_leaves_no_response_open(
    server: ScriptedServer, client: Any
) -> None:
    """The first one's body is too long to be read, and is not read: nobody wants it any more."""
    refusal = Say(503, b"long" * 50, {"Retry-After": "5"}, trickle=0.001)
    server.otherwise = refusal
    tidegate.guard("pooled", attempts=2, breaker=None, limit=None, budget=Budget(ratio=10.0))

    async def main() -> int:
        async with client() as asking:
            for _ in range(CONNECTIONS + 1):
                await by_a_timeout(0.1, asking.get(server.url))
            server.otherwise = Say()
            return int((await asking.get(server.url)).status_code)

    assert asyncio.run(main()) == 200


def test_whoever_is_left_alone_ends_and_closes(server: ScriptedServer) -> None:
    """A request that has been sent goes on when its caller has gone, and gives its place back."""
    server.will(Say(after=0.2))

    async def main() -> int:
        async with httpx.AsyncClient(transport=transport(1, safe=True)) as client:
            await by_a_timeout(0.1, client.get(server.url))
            return (await client.get(server.url)).status_code  # waits for the place

    assert asyncio.run(main()) == 200


def test_whoever_is_left_alone_fails_in_silence(server: ScriptedServer) -> None:
    server.will(Say(vanish=True, after=0.2))
    told: list[Any] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        async with httpx.AsyncClient(transport=transport(1, safe=True)) as client:
            await by_a_timeout(0.1, client.get(server.url))
            await client.get(server.url)  # waits for the place
        gc.collect()

    asyncio.run(main())
    assert told == []


def test_closing_the_client_ends_what_is_left_alone(server: ScriptedServer) -> None:
    server.will(Say(after=30))

    async def main() -> None:
        async with httpx.AsyncClient(transport=transport(1, safe=True), timeout=60) as client:
            await by_a_timeout(0.1, client.get(server.url))

    asyncio.run(main())


def test_waiting_for_a_place_can_time_out(server: ScriptedServer) -> None:
    async def main() -> None:
        async with httpx.AsyncClient(transport=transport(1, safe=True)) as client:
            async with client.stream("GET", server.url) as held:
                with pytest.raises(httpx.PoolTimeout):
                    await client.get(server.url, timeout=httpx.Timeout(5.0, pool=0.05))
                await held.aread()
            await client.get(server.url)

    asyncio.run(main())
    with httpx.Client(transport=Transport(tidegate.guard("pooled"), connections=1)) as client:
        with client.stream("GET", server.url) as held:
            with pytest.raises(httpx.PoolTimeout):
                client.get(server.url, timeout=httpx.Timeout(5.0, pool=0.05))
            held.read()
        client.get(server.url)


def test_what_was_never_on_a_connection_holds_no_place() -> None:
    """As from a cache: its body is there already, and nobody will close it."""
    answers = httpx.MockTransport(lambda request: httpx.Response(200, content=b"cached"))

    async def main() -> None:
        guarded = AsyncTransport(tidegate.guard("cached"), wrapped=answers, connections=1)
        async with httpx.AsyncClient(transport=guarded) as client:
            for _ in range(3):
                assert (await client.get("http://shop.example")).text == "cached"

    try:
        asyncio.run(main())
        blocking = Transport(tidegate.guard("cached"), wrapped=answers, connections=1)
        with httpx.Client(transport=blocking) as client:
            for _ in range(3):
                assert client.get("http://shop.example").text == "cached"
    finally:
        registry._forget()


def test_whoever_leaves_the_safe_mode_is_warned() -> None:
    with pytest.warns(LeakyPoolWarning, match="loses connections"):
        AsyncTransport(safe=False)


@pytest.mark.parametrize("kind", [AsyncTransport, Transport])
@pytest.mark.parametrize("connections", [0, -1, 2.5, "4", True])
def test_a_pool_has_one_connection_or_more(kind: Any, connections: Any) -> None:
    with pytest.raises(tidegate.SettingsError, match="connections: expected a whole number from 1"):
        kind(connections=connections)
