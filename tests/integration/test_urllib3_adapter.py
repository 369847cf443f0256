"""The pool manager of urllib3 against a real server."""

import io
from collections.abc import Iterator
from typing import Any

import pytest
import urllib3
from scripted_server import Say, ScriptedServer, scripted_server
from urllib3.util import Retry, Timeout

import tidegate
from tidegate.adapters.urllib3 import PoolManager
from tidegate.errors import SettingsError
from tidegate.runtime import registry
from tidegate.settings.policies import Breaker, Budget

pytestmark = pytest.mark.slow  # a server is started for each test, and time is real

QUICK: dict[str, Any] = {"backoff": 0.001, "timeout": 5.0, "breaker": None, "limit": None}


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with scripted_server() as running:
        yield running
    registry._forget()


@pytest.fixture
def pool() -> Iterator[PoolManager]:
    with PoolManager() as pool:
        yield pool


def test_a_get_is_repeated_and_a_post_after_a_refusal_only(
    server: ScriptedServer, pool: PoolManager
) -> None:
    tidegate.guard(server.url, **QUICK, budget=Budget(ratio=10.0))
    server.will(500, 200, 503, 200, 500)
    assert pool.request("GET", server.url).data == b"fine"
    assert pool.request("POST", server.url, body="order").status == 200
    assert pool.request("POST", server.url, body="order").status == 500
    assert [asked.method for asked in server.asked] == ["GET", "GET", "POST", "POST", "POST"]
    assert server.asked[2].body == server.asked[3].body == b"order"


def test_a_word_or_a_key_makes_a_post_repeatable(server: ScriptedServer, pool: PoolManager) -> None:
    tidegate.guard(server.url, **QUICK, budget=Budget(ratio=10.0))
    server.will(500, 200, 500, 200)
    pool.request("POST", server.url, headers={"idempotency-key": "7"})
    with PoolManager(idempotent=True) as said:
        said.request("POST", server.url)
    assert len(server.asked) == 4


def test_a_file_is_sent_once(server: ScriptedServer, pool: PoolManager) -> None:
    tidegate.guard(server.url, **QUICK)
    server.will(503)
    assert pool.request("PUT", server.url, body=io.BytesIO(b"once")).status == 503
    assert [asked.body for asked in server.asked] == [b"once"]


@pytest.mark.parametrize("retries", [None, 5, Retry(5, status_forcelist=[503])])
def test_the_retries_of_urllib3_are_not_made_as_well(
    server: ScriptedServer, pool: PoolManager, retries: Any
) -> None:
    tidegate.guard(server.url, **QUICK)
    server.otherwise = Say(503, b"busy", {"Retry-After": "0"})
    assert pool.request("GET", server.url, retries=retries).data == b"busy"
    assert len(server.asked) == 2
    server.otherwise = Say(vanish=True)
    with pytest.raises(urllib3.exceptions.HTTPError):
        pool.request("GET", server.url, retries=retries)
    assert len(server.asked) <= 2 + 2


def test_redirects_are_followed_as_ever_and_told_nothing(
    server: ScriptedServer, pool: PoolManager
) -> None:
    tidegate.guard(server.url, **QUICK, propagate=True)
    with scripted_server() as stranger:
        server.will(Say(302, headers={"Location": stranger.url + "/there"}))
        with tidegate.deadline(5.0):
            assert pool.request("GET", server.url).data == b"fine"
        assert [asked.path for asked in stranger.asked] == ["/there"]
        assert "tidegate-remaining-ms" in server.asked[0].headers
        assert not any(name.startswith("tidegate") for name in stranger.asked[0].headers)
        server.will(Say(302, headers={"Location": stranger.url}))
        assert pool.request("GET", server.url, redirect=False).status == 302
        server.will(Say(302, headers={"Location": stranger.url}))
        assert pool.request("GET", server.url, retries=False).status == 302


def test_an_attempt_that_is_too_slow_before_or_in_its_body(
    server: ScriptedServer, pool: PoolManager
) -> None:
    tidegate.guard(server.url, **(QUICK | {"timeout": 0.1, "attempts": 1}))
    server.will(Say(after=5.0), Say(body=b"x" * 9, trickle=1.0))
    for _ in range(2):
        with pytest.raises(tidegate.AttemptTimeout):
            pool.request("GET", server.url)
    assert tidegate.snapshots()[server.url].outcomes["timeout"] == 2


@pytest.mark.parametrize("timeout", [0.1, Timeout(0.1), Timeout(connect=1, read=0.1)])
def test_the_user_s_own_timeout_stays_their_own(
    server: ScriptedServer, pool: PoolManager, timeout: Any
) -> None:
    tidegate.guard(server.url, **(QUICK | {"attempts": 1}))
    server.will(Say(after=5.0))
    with pytest.raises(urllib3.exceptions.MaxRetryError):
        pool.request("GET", server.url, timeout=timeout)
    assert tidegate.snapshots()[server.url].outcomes["timeout"] == 1


def test_nothing_goes_on_past_the_deadline(server: ScriptedServer, pool: PoolManager) -> None:
    tidegate.guard(server.url, **QUICK)
    server.otherwise = Say(after=5.0)
    with tidegate.deadline(0.2), pytest.raises(tidegate.DeadlineExceeded):
        pool.request("GET", server.url)
    assert len(server.asked) <= 1, "a busy machine may not even send the first"


@pytest.mark.parametrize("retries", [None, False])
def test_what_cannot_be_reached_is_a_failure(pool: PoolManager, retries: Any) -> None:
    with scripted_server() as gone:
        url = gone.url
    tidegate.guard(url, **(QUICK | {"breaker": Breaker(volume=1), "attempts": 1}))
    try:
        with pytest.raises(urllib3.exceptions.HTTPError):
            pool.request("GET", url, retries=retries)
        with pytest.raises(tidegate.CircuitOpen):
            pool.request("GET", url)
        assert tidegate.snapshots()[url].outcomes["failure"] == 1
    finally:
        registry._forget()


def test_a_fallback_is_given_what_was_asked_for(server: ScriptedServer) -> None:
    asked = []

    def stale(request: tuple[str, str]) -> urllib3.HTTPResponse:
        asked.append(request)
        return urllib3.HTTPResponse(b"yesterday's", status=200)

    server.will(500)
    guard = tidegate.guard("rates", **(QUICK | {"attempts": 1}), fallback=stale)
    with PoolManager(guard) as pool:
        assert pool.request("GET", server.url + "/eur").data == b"yesterday's"
    assert asked == [("GET", server.url + "/eur")]


def test_a_stream_is_left_to_its_reader(server: ScriptedServer, pool: PoolManager) -> None:
    tidegate.guard(server.url, **QUICK)
    server.will(Say(503, b"busy"))
    response = pool.request("GET", server.url, preload_content=False)
    assert response.read() == b"fine"
    response.release_conn()


def test_a_slip_of_a_keyword_is_said_at_once() -> None:
    with pytest.raises(SettingsError, match="there is no setting 'gaurd'; did you mean 'guard'"):
        PoolManager(gaurd="shop")
    with pytest.raises(SettingsError, match="idempotent: expected True, False or None"):
        PoolManager(idempotent="yes")  # type: ignore[arg-type]
    PoolManager(num_pools=3, headers={}, timeout=2.0, maxsize=4, block=True, assert_hostname=False)
