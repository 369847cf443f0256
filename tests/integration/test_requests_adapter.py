"""The adapter of requests against a real server."""

import io
from collections.abc import Iterator
from typing import Any

import pytest
import requests
from scripted_server import Say, ScriptedServer, scripted_server
from urllib3.util import Timeout

import tidegate
from tidegate.adapters.requests import Adapter
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
def session() -> Iterator[requests.Session]:
    with requests.Session() as session:
        session.mount("http://", Adapter())
        yield session


def test_a_get_is_repeated_and_a_post_after_a_refusal_only(
    server: ScriptedServer, session: requests.Session
) -> None:
    tidegate.guard(server.url, **QUICK, budget=Budget(ratio=10.0))
    server.will(500, 200, 503, 200, 500)
    assert session.get(server.url).text == "fine"
    assert session.post(server.url, data="order").status_code == 200
    assert session.post(server.url, data="order").status_code == 500
    assert [asked.method for asked in server.asked] == ["GET", "GET", "POST", "POST", "POST"]
    assert server.asked[2].body == server.asked[3].body == b"order"


def test_a_word_or_a_key_makes_a_post_repeatable(
    server: ScriptedServer, session: requests.Session
) -> None:
    tidegate.guard(server.url, **QUICK, budget=Budget(ratio=10.0))
    server.will(500, 200, 500, 200)
    session.post(server.url, headers={"Idempotency-Key": "7"})
    session.mount("http://", Adapter(idempotent=True))
    session.post(server.url)
    assert len(server.asked) == 4


def test_a_file_is_sent_once(server: ScriptedServer, session: requests.Session) -> None:
    tidegate.guard(server.url, **QUICK)
    server.will(503)
    assert session.put(server.url, data=io.BytesIO(b"once")).status_code == 503
    assert [asked.body for asked in server.asked] == [b"once"]


def test_the_last_response_is_given_whole_streamed_or_not(
    server: ScriptedServer, session: requests.Session
) -> None:
    tidegate.guard(server.url, **QUICK, budget=Budget(ratio=10.0))
    server.will(Say(503, b"not now"), Say(503, b"still not"), Say(503, b"no"), Say(503, b"never"))
    assert session.get(server.url).text == "still not"
    with session.get(server.url, stream=True) as streamed:
        assert b"".join(streamed.iter_content(2)) == b"never"


def test_an_attempt_that_is_too_slow_before_or_in_its_body(
    server: ScriptedServer, session: requests.Session
) -> None:
    tidegate.guard(server.url, **(QUICK | {"timeout": 0.1, "attempts": 1}))
    server.will(Say(after=5.0), Say(body=b"x" * 9, trickle=1.0))
    for _ in range(2):
        with pytest.raises(tidegate.AttemptTimeout):
            session.get(server.url)
    assert tidegate.snapshots()[server.url].outcomes["timeout"] == 2


@pytest.mark.parametrize("timeout", [0.1, (0.5, 0.1), Timeout(0.1), Timeout(connect=1, read=0.1)])
def test_the_user_s_own_timeout_stays_their_own(
    server: ScriptedServer, session: requests.Session, timeout: Any
) -> None:
    tidegate.guard(server.url, **(QUICK | {"attempts": 1}))
    server.will(Say(after=5.0), Say(body=b"x" * 9, trickle=1.0))
    for _ in range(2):
        with pytest.raises(requests.Timeout):
            session.get(server.url, timeout=timeout)
    assert tidegate.snapshots()[server.url].outcomes["timeout"] == 2


def test_nothing_goes_on_past_the_deadline(
    server: ScriptedServer, session: requests.Session
) -> None:
    tidegate.guard(server.url, **QUICK)
    server.otherwise = Say(after=5.0)
    with tidegate.deadline(0.2), pytest.raises(tidegate.DeadlineExceeded):
        session.get(server.url, timeout=(1.0, 60.0))
    assert len(server.asked) <= 1, "a busy machine may not even send the first"


def test_headers_say_what_remains_and_how_deep(
    server: ScriptedServer, session: requests.Session
) -> None:
    tidegate.guard(server.url, **QUICK, propagate=True)
    server.will(500)
    with tidegate.deadline(3.0):
        session.get(server.url)
    first, second = (asked.headers for asked in server.asked)
    assert 0 < int(first["tidegate-remaining-ms"]) <= 3000
    assert "tidegate-retry-depth" not in first
    assert second["tidegate-retry-depth"] == "1"


def test_what_cannot_be_reached_is_a_failure(session: requests.Session) -> None:
    with scripted_server() as gone:
        url = gone.url
    tidegate.guard(url, **(QUICK | {"breaker": Breaker(volume=1), "attempts": 1}))
    try:
        with pytest.raises(requests.ConnectionError):
            session.get(url)
        with pytest.raises(tidegate.CircuitOpen):
            session.get(url)
    finally:
        registry._forget()


def test_a_fallback_is_given_the_request_and_closes_what_was_answered(
    server: ScriptedServer,
) -> None:
    def stale(request: requests.PreparedRequest) -> requests.Response:
        response = requests.Response()
        response.status_code, response._content = 200, b"yesterday's"
        response.request, response.url = request, request.url or ""
        return response

    server.will(500)
    guard = tidegate.guard("rates", **(QUICK | {"attempts": 1}), fallback=stale)
    with requests.Session() as session:
        session.mount("http://", Adapter(guard))
        assert session.get(server.url).text == "yesterday's"


def test_a_name_and_a_password_in_the_url_are_no_part_of_the_guard_s_name(
    server: ScriptedServer, session: requests.Session
) -> None:
    session.get(server.url.replace("http://", "http://me:secret@"))
    assert list(tidegate.snapshots()) == [server.url]


def test_two_layers_of_retries_are_refused() -> None:
    with pytest.raises(tidegate.SettingsError, match="retries are the guard's"):
        Adapter(max_retries=3)
