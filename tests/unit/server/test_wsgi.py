"""The WSGI shedder: a place is held until the answer is closed, and a thread waits no longer."""

import threading
from collections.abc import Iterable, Iterator
from typing import Any
from wsgiref.util import FileWrapper, setup_testing_defaults
from wsgiref.validate import validator

import pytest

from tidegate.errors import SettingsError
from tidegate.runtime import clock
from tidegate.runtime.context import ambient, remaining
from tidegate.server.wsgi import LoadShedder, by_address, by_header
from tidegate.units import SECOND


class Hands:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.instant = 1_000 * SECOND

    def now(self) -> int:
        return self.instant


@pytest.fixture(autouse=True)
def hands() -> Iterator[Hands]:
    made = Hands()
    before = clock.use(made)  # type: ignore[arg-type]
    yield made
    clock.use(before)


class Answer:
    def __init__(self) -> None:
        self.status = ""
        self.headers: dict[str, str] = {}
        self.body: Iterable[bytes] = ()

    def __call__(self, status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
        self.status, self.headers = status, dict(headers)
        return lambda _: None

    @property
    def code(self) -> int:
        return int(self.status[:3])

    def close(self) -> None:
        if hasattr(self.body, "close"):
            self.body.close()


def ask(app: Any, path: str = "/", **environ: Any) -> Answer:
    """Send a request; its answer is neither read nor closed yet."""
    given: dict[str, Any] = {"PATH_INFO": path, "REMOTE_ADDR": "10.0.0.1", "SCRIPT_NAME": ""}
    given |= environ
    setup_testing_defaults(given)
    answer = Answer()
    answer.body = app(given, answer)
    return answer


def until_one_waits(shedder: LoadShedder, thread: threading.Thread) -> None:
    for _ in range(6000):
        if shedder.snapshot().door.waiting:
            return
        thread.join(0.01)
    raise AssertionError("nobody waits")


def streaming(environ: Any, start_response: Any) -> Iterator[bytes]:
    start_response("200 OK", [("Content-Type", "text/plain")])
    return (piece for piece in (b"a", b"b"))


def whole(environ: Any, start_response: Any) -> list[bytes]:
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"ab"]


def test_a_place_is_held_until_the_answer_is_closed() -> None:
    shedder = LoadShedder(streaming, limit=1)
    first = ask(shedder)
    refused = ask(shedder)
    assert refused.code == 503
    assert 1 <= int(refused.headers["Retry-After"]) <= 4
    assert refused.headers["Content-Length"] == str(len(b"".join(refused.body)))
    assert b"".join(first.body) == b"ab"
    first.close()
    first.close()  # twice is once
    assert ask(shedder).code == 200 or shedder.snapshot().door.inside == 1
    assert shedder.snapshot().refused == {"limit": 1}
    assert shedder.snapshot().door.done[0] == 1


def test_an_answer_that_is_all_there_is_done_at_once_and_handed_on_as_it_is() -> None:
    shedder = LoadShedder(whole, limit=1)
    assert ask(shedder).body == [b"ab"]
    assert ask(shedder).code == 200
    assert shedder.snapshot().door.done == (2, 0, 0, 0, 0)


def test_a_file_reaches_the_server_that_can_send_it_by_itself(tmp_path: Any) -> None:
    (tmp_path / "file").write_bytes(b"x")

    def app(environ: Any, start_response: Any) -> Any:
        start_response("200 OK", [])
        return environ["wsgi.file_wrapper"]((tmp_path / "file").open("rb"))

    shedder = LoadShedder(app, limit=1)
    answer = ask(shedder, **{"wsgi.file_wrapper": FileWrapper})
    assert isinstance(answer.body, FileWrapper)
    assert shedder.snapshot().door.inside == 0
    answer.close()


@pytest.mark.parametrize("app", [streaming, whole])
def test_it_keeps_to_the_standard(app: Any) -> None:
    shedder = validator(LoadShedder(validator(app), limit=1))
    answer = ask(shedder, QUERY_STRING="")
    assert b"".join(answer.body) == b"ab"
    answer.close()


@pytest.mark.parametrize("when", ["at once", "half-way"])
def test_an_error_frees_the_place_and_is_the_application_s_own(when: str) -> None:
    def app(environ: Any, start_response: Any) -> Iterator[bytes]:
        if when == "at once":
            raise ZeroDivisionError

        def pieces() -> Iterator[bytes]:
            yield b"a"
            raise ZeroDivisionError

        return pieces()

    shedder = LoadShedder(app, limit=1)

    def whole_exchange() -> None:
        answer = ask(shedder)
        try:
            list(answer.body)
        finally:
            answer.close()

    with pytest.raises(ZeroDivisionError):
        whole_exchange()
    assert shedder.snapshot().door.done == (0, 1, 0, 0, 0)
    assert shedder.snapshot().door.inside == 0


def test_health_checks_and_what_is_off_pass() -> None:
    busy = LoadShedder(streaming, limit=1)
    ask(busy)
    assert ask(busy, "/healthz").code == 200
    off = LoadShedder(streaming, limit=1, mode="off")
    assert [ask(off).code for _ in range(2)] == [200, 200]


def test_observing_refuses_nobody() -> None:
    shedder = LoadShedder(streaming, limit=1, queue=1, mode="observe")
    assert [ask(shedder).code for _ in range(3)] == [200] * 3
    assert shedder.snapshot().door.inside == 1
    assert shedder.snapshot().door.waiting == 0
    assert shedder.snapshot().would_wait == 2
    busy = LoadShedder(streaming, limit=1, mode="observe")
    assert [ask(busy).code for _ in range(3)] == [200] * 3
    assert busy.snapshot().refused == {"limit": 2}
    full = LoadShedder(streaming, limit=1, mode="observe", client=by_address, client_rate=1.0)
    assert [ask(full).code for _ in range(3)] == [200] * 3
    assert full.snapshot().refused == {"rate": 2}


def test_who_waits_is_served_when_a_place_is_free() -> None:
    shedder = LoadShedder(streaming, limit=1, queue=1, wait=3600)
    first = ask(shedder)
    found: list[Answer] = []
    thread = threading.Thread(target=lambda: found.append(ask(shedder)))
    thread.start()
    until_one_waits(shedder, thread)
    first.close()
    thread.join(30)
    assert [answer.code for answer in found] == [200]
    assert shedder.snapshot().door.inside == 1


def test_who_has_waited_too_long_is_refused(hands: Hands) -> None:
    shedder = LoadShedder(streaming, limit=1, queue=1, wait=0.001)
    ask(shedder)
    found: list[Answer] = []
    thread = threading.Thread(target=lambda: found.append(ask(shedder)))
    thread.start()
    until_one_waits(shedder, thread)
    hands.instant += SECOND
    thread.join(30)
    assert [answer.code for answer in found] == [503]
    assert shedder.snapshot().refused == {"waited": 1}


def test_a_trusted_caller_s_headers_hold_while_the_answer_is_made(hands: Hands) -> None:
    seen: list[Any] = []

    def app(environ: Any, start_response: Any) -> Iterator[bytes]:
        start_response("200 OK", [])
        seen.append((remaining(), ambient().said, ambient().depth))

        def pieces() -> Iterator[bytes]:
            seen.append((remaining(), ambient().said, ambient().depth))
            yield b""

        return pieces()

    shedder = LoadShedder(app, trusted=["10.0.0.0/8"])
    said = {
        "HTTP_TIDEGATE_REMAINING_MS": "2000",
        "HTTP_TIDEGATE_CRITICALITY": "critical",
        "HTTP_X_ENVOY_ATTEMPT_COUNT": "2",
    }
    answer = ask(shedder, **said)
    assert list(answer.body) == [b""]
    hands.instant += 3 * SECOND
    answer.close()
    assert seen == [(2.0, 0, 1)] * 2
    assert ambient().said is None
    assert shedder.snapshot().late == 1
    assert shedder.snapshot().door.done == (0, 0, 1, 0, 0)
    seen.clear()
    ask(shedder, **said, REMOTE_ADDR="192.168.0.1").close()
    assert seen == [(None, None, 0)]


def test_a_deadline_that_has_passed_is_not_worked_for() -> None:
    shedder = LoadShedder(whole, trusted="*")
    answer = ask(shedder, HTTP_TIDEGATE_REMAINING_MS="0", REQUEST_METHOD="HEAD")
    assert answer.status == "504 Gateway Timeout"
    assert "Retry-After" not in answer.headers
    assert answer.body == []


def test_each_client_has_its_rate() -> None:
    shedder = LoadShedder(whole, client=by_header("X-Api-Key"), client_rate=0.1)
    answers = [ask(shedder, HTTP_X_API_KEY=key) for key in "aab"]
    assert [answer.code for answer in answers] == [200, 429, 200]
    assert int(answers[1].headers["Retry-After"]) >= 10
    assert by_header("X-Api-Key")({}) is None
    assert by_address({"REMOTE_ADDR": ""}) is None


def test_many_threads_leave_an_empty_house(hands: Hands) -> None:
    shedder = LoadShedder(streaming, limit=3, queue=2, wait=3600, client=by_address)
    start = threading.Barrier(8)
    codes: list[int] = []

    def work(number: int) -> None:
        start.wait(30)
        for _ in range(50):
            answer = ask(shedder, REMOTE_ADDR=f"10.0.0.{number % 3}")
            list(answer.body)
            answer.close()
            codes.append(answer.code)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    found = shedder.snapshot()
    assert len(codes) == 400
    assert (found.door.inside, found.door.waiting) == (0, 0)
    assert codes.count(200) == found.door.done[0]
    assert codes.count(200) + sum(found.refused.values()) == 400


def test_settings_that_make_no_sense_are_refused() -> None:
    for wrong in ({"limits": 1}, {"mode": "no"}, {"client_rate": 0}):
        with pytest.raises(SettingsError):
            LoadShedder(whole, **wrong)  # type: ignore[arg-type]
