"""The transports of httpx2 and httpx, each against a real server: same behaviour, same tests."""

import asyncio
import time
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import httpx
import httpx2
import pytest
from scripted_server import Say, ScriptedServer, scripted_server

import tidegate
from tidegate.adapters import httpx as httpx_adapter
from tidegate.adapters import httpx2 as httpx2_adapter
from tidegate.runtime import registry
from tidegate.settings.policies import Breaker, Budget

pytestmark = pytest.mark.slow  # a server is started for each test, and time is real

LIBRARIES = {"httpx2": (httpx2, httpx2_adapter), "httpx": (httpx, httpx_adapter)}
QUICK = {"backoff": 0.001, "timeout": 5.0, "breaker": None, "limit": None}

Ask = Callable[..., Any]


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with scripted_server() as running:
        yield running
    registry._forget()


@pytest.fixture(params=[f"{library} {kind}" for library in LIBRARIES for kind in ("sync", "async")])
def ask(request: pytest.FixtureRequest) -> Ask:
    """Send one request with a client of its own; the answer is its response, body and all."""
    library, kind = request.param.split()
    client, adapter = LIBRARIES[library]
    return _sync(client, adapter) if kind == "sync" else _async(client, adapter)


def _sync(library: ModuleType, adapter: ModuleType) -> Ask:
    def ask(method: str, url: str, guard: Any = None, **keywords: Any) -> Any:
        with library.Client(transport=adapter.Transport(guard)) as client:
            return client.request(method, url, **keywords)

    return ask


def _async(library: ModuleType, adapter: ModuleType) -> Ask:
    def ask(method: str, url: str, guard: Any = None, **keywords: Any) -> Any:
        async def main() -> Any:
            async with library.AsyncClient(transport=adapter.AsyncTransport(guard)) as client:
                return await client.request(method, url, **keywords)

        return asyncio.run(main())

    return ask


def counted(name: str) -> Any:
    return tidegate.snapshots()[name]


def test_a_get_is_repeated_after_a_failure(server: ScriptedServer, ask: Ask) -> None:
    server.will(500)
    tidegate.guard(server.url, **QUICK)
    response = ask("GET", server.url + "/orders")
    assert (response.status_code, response.text) == (200, "fine")
    assert [asked.path for asked in server.asked] == ["/orders", "/orders"]
    seen = counted(server.url)
    assert (seen.ok, seen.retries, seen.outcomes["failure"]) == (1, 1, 1)


def test_a_post_is_repeated_after_a_refusal_only(server: ScriptedServer, ask: Ask) -> None:
    tidegate.guard(server.url, **QUICK)
    server.will(503)
    assert ask("POST", server.url, content=b"order").status_code == 200
    assert [asked.body for asked in server.asked] == [b"order", b"order"]
    server.will(500)
    assert ask("POST", server.url, content=b"order").status_code == 500
    assert len(server.asked) == 3


def test_a_key_or_a_word_makes_a_post_repeatable(server: ScriptedServer, ask: Ask) -> None:
    tidegate.guard(server.url, **QUICK, budget=Budget(ratio=10.0))
    server.will(500)
    assert ask("POST", server.url, headers={"Idempotency-Key": "7"}).status_code == 200
    server.will(500)
    said = {"tidegate": {"idempotent": True}}
    assert ask("POST", server.url, extensions=said).status_code == 200
    server.will(500)
    said = {"tidegate": {"idempotent": False}}
    assert ask("GET", server.url, extensions=said).status_code == 500
    assert len(server.asked) == 5


def test_a_body_that_streams_is_sent_once(server: ScriptedServer) -> None:
    tidegate.guard(server.url, **QUICK)
    server.will(503)
    for library, adapter in LIBRARIES.values():
        server.asked.clear()
        response = _sync(library, adapter)("PUT", server.url, content=iter([b"a", b"b"]))
        assert [asked.body for asked in server.asked] == [b"ab"]
        assert response.status_code == 503
        server.will(503)


def test_the_last_response_is_given_whole(server: ScriptedServer, ask: Ask) -> None:
    """Its body has been read before the wait, and is there all the same."""
    tidegate.guard(server.url, **QUICK)
    server.will(Say(503, b"not now"), Say(503, b"still not"))
    response = ask("GET", server.url)
    assert (response.status_code, response.text) == (503, "still not")


def test_a_wait_longer_than_anybody_has_patience_for(server: ScriptedServer, ask: Ask) -> None:
    tidegate.guard(server.url, **QUICK)
    server.will(Say(429, b"slowly", {"Retry-After": "3600"}))
    response = ask("GET", server.url)
    assert (response.status_code, response.text) == (429, "slowly")
    assert len(server.asked) == 1


def test_what_is_missing_is_an_answer(server: ScriptedServer, ask: Ask) -> None:
    tidegate.guard(server.url, **QUICK)
    server.will(404)
    assert ask("GET", server.url).status_code == 404
    assert counted(server.url).ok == 1


def test_an_open_circuit_sends_nothing(server: ScriptedServer, ask: Ask) -> None:
    quick = QUICK | {"breaker": Breaker(volume=1), "attempts": 1}
    tidegate.guard(server.url, **quick)
    server.will(500)
    ask("GET", server.url)
    with pytest.raises(tidegate.CircuitOpen):
        ask("GET", server.url)
    assert len(server.asked) == 1


def test_an_attempt_that_is_too_slow(server: ScriptedServer, ask: Ask) -> None:
    tidegate.guard(server.url, **(QUICK | {"timeout": 0.1, "attempts": 1}))
    server.will(Say(after=5.0))
    with pytest.raises(tidegate.AttemptTimeout):
        ask("GET", server.url)
    assert counted(server.url).outcomes["timeout"] == 1


def test_a_slow_attempt_is_followed_by_another(server: ScriptedServer, ask: Ask) -> None:
    tidegate.guard(server.url, **(QUICK | {"timeout": 1.0}))
    server.will(Say(after=30.0))
    assert ask("GET", server.url).text == "fine"
    seen = counted(server.url)
    assert (seen.ok, seen.outcomes["timeout"], len(server.asked)) == (1, 1, 2)


def test_the_client_s_own_timeout_stays_its_own(server: ScriptedServer, ask: Ask) -> None:
    tidegate.guard(server.url, **(QUICK | {"attempts": 1}))
    server.will(Say(after=5.0))
    with pytest.raises((httpx.TimeoutException, httpx2.TimeoutException)):
        ask("GET", server.url, timeout=0.1)
    assert counted(server.url).outcomes["timeout"] == 1


def test_nothing_goes_on_past_the_deadline(server: ScriptedServer, ask: Ask) -> None:
    tidegate.guard(server.url, **QUICK)
    server.otherwise = Say(after=5.0)
    with tidegate.deadline(0.2), pytest.raises(tidegate.DeadlineExceeded):
        ask("GET", server.url)
    assert len(server.asked) <= 1, "a busy machine may not even send the first"


def test_a_body_is_not_read_on_past_the_deadline(server: ScriptedServer, ask: Ask) -> None:
    tidegate.guard(server.url, **QUICK)
    server.will(Say(body=b"x" * 500, trickle=0.01))
    with tidegate.deadline(0.3), pytest.raises(tidegate.DeadlineExceeded):
        ask("GET", server.url)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_body_is_read_for_as_long_as_one_likes(server: ScriptedServer, library: str) -> None:
    """An attempt ends at the headers, and so does its timeout."""
    client, adapter = LIBRARIES[library]
    tidegate.guard(server.url, **(QUICK | {"timeout": 0.5}))
    server.otherwise = Say(body=b"x" * 80, trickle=0.01)

    async def main() -> None:
        async with (
            client.AsyncClient(transport=adapter.AsyncTransport()) as asking,
            asking.stream("GET", server.url) as response,
        ):
            await asyncio.sleep(0.6)
            assert await response.aread() == b"x" * 80

    asyncio.run(main())
    with (
        client.Client(transport=adapter.Transport()) as asking,
        asking.stream("GET", server.url) as response,
    ):
        time.sleep(0.6)
        assert response.read() == b"x" * 80


def test_headers_say_what_remains_and_how_deep(server: ScriptedServer, ask: Ask) -> None:
    tidegate.guard(server.url, **QUICK, propagate=True)
    server.will(500)
    with tidegate.deadline(3.0), tidegate.criticality("sheddable"):
        ask("GET", server.url)
    first, second = (asked.headers for asked in server.asked)
    assert 0 < int(first["tidegate-remaining-ms"]) <= 3000
    assert first["tidegate-criticality"] == second["tidegate-criticality"] == "sheddable"
    assert "tidegate-retry-depth" not in first
    assert second["tidegate-retry-depth"] == "1"


def test_a_stranger_is_told_nothing(server: ScriptedServer, ask: Ask) -> None:
    with tidegate.deadline(3.0):
        ask("GET", server.url)
    assert not any(name.startswith("tidegate") for name in server.asked[0].headers)


def test_one_guard_for_everything_or_one_by_name(server: ScriptedServer, ask: Ask) -> None:
    ask("GET", server.url, tidegate.guard("shop", **QUICK))
    assert counted("shop").ok == 1
    ask("GET", server.url, extensions={"tidegate": {"guard": "orders"}})
    assert counted("orders").ok == 1
    ask("GET", server.url, lambda origin: tidegate.guard("of " + origin))
    assert counted("of " + server.url).ok == 1
    assert server.url not in tidegate.snapshots()


def test_a_fallback_answers_with_a_response(server: ScriptedServer) -> None:
    for library, adapter in LIBRARIES.values():
        registry._forget()
        server.will(500)

        def stale(request: Any, library: ModuleType = library) -> Any:
            return library.Response(200, text=f"as of yesterday: {request.url.path}")

        guard = tidegate.guard("rates", **(QUICK | {"attempts": 1}), fallback=stale)
        response = _sync(library, adapter)("GET", server.url + "/eur", guard)
        assert response.text == "as of yesterday: /eur"


def test_who_only_observes_changes_nothing(server: ScriptedServer, ask: Ask) -> None:
    server.will(500)
    guard = tidegate.guard("watched", mode="observe")
    with tidegate.deadline(60):
        assert ask("GET", server.url, guard).status_code == 500
    assert len(server.asked) == 1
    assert counted("watched").failed == 1


def test_an_unknown_option_is_refused(server: ScriptedServer, ask: Ask) -> None:
    with pytest.raises(tidegate.SettingsError, match="did you mean 'idempotent'"):
        ask("GET", server.url, extensions={"tidegate": {"idempotant": True}})
    with pytest.raises(tidegate.SettingsError, match="True or False"):
        ask("GET", server.url, extensions={"tidegate": {"idempotent": "yes"}})
    assert not server.asked
