"""What is asked of the server, and what is believed of its answers."""

import json
import sys
from typing import Any, Self

import pytest

from tidegate.errors import InputError
from tidegate.runtime.shared.store import (
    Answer,
    Command,
    Counts,
    StoreAwayError,
    ValkeyStore,
    open_store,
)
from tidegate.units import MILLISECOND, SECOND

COUNTS = Counts(100, 10_000_000, 7, 50)
HOLD = Command(77, True, "moved", "ada", 1.5)


class Server:
    """A server in a dictionary, with the five commands that we use; it can be away."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.left: dict[str, int] = {}
        self.away = ""
        self.trips = 0
        self.asked: list[tuple[Any, ...]] = []

    def pipeline(self, *, transaction: bool) -> "Server":
        assert not transaction
        return self

    def __enter__(self) -> Self:
        self.asked = []
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def hset(self, *given: Any) -> None:
        self.asked.append(("hset", *given))

    def expire(self, *given: Any) -> None:
        self.asked.append(("expire", *given))

    def hgetall(self, *given: Any) -> None:
        self.asked.append(("hgetall", *given))

    def get(self, key: str) -> Any:
        self.asked.append(("get", key))
        if self.away:
            raise ConnectionError(self.away)
        return self.values.get(key)

    def pttl(self, *given: Any) -> None:
        self.asked.append(("pttl", *given))

    def execute(self) -> list[Any]:
        self._trip()
        return [self._done(*asked) for asked in self.asked]

    def set(self, key: str, value: str, *, px: int | None) -> None:
        self._trip()
        self.values[key] = value.encode()
        self.left[key] = -1 if px is None else px

    def _trip(self) -> None:
        self.trips += 1
        if self.away:
            raise ConnectionError(self.away)

    def _done(self, what: str, key: str, *more: Any) -> Any:
        if what == "hset":
            self.values.setdefault(key, {})[more[0].encode()] = more[1].encode()
        elif what == "expire":
            self.left[key] = more[0] * 1_000
        elif what == "pttl":
            return self.left.get(key, -2)
        else:
            return self.values.get(key, {} if what == "hgetall" else None)
        return None


def store(server: Server) -> ValkeyStore:
    return ValkeyStore(server, (ConnectionError,))


def test_hosts_find_each_other_s_counts() -> None:
    server = Server()
    assert store(server).exchange("a", {"x": COUNTS}) == {"x": Answer({"a": COUNTS}, None, None)}
    more = COUNTS._replace(requests=200)
    answer = store(server).exchange("b", {"x": more, "y": COUNTS})
    assert answer["x"].hosts == {"a": COUNTS, "b": more}
    assert answer["y"].hosts == {"b": COUNTS}
    assert server.trips == 2  # one for all guards of a host


def test_a_command_is_found_with_its_time_to_live() -> None:
    server = Server()
    store(server).send("x", HOLD, 90 * SECOND)
    answer = store(server).exchange("b", {"x": COUNTS})["x"]
    assert (answer.command, answer.left) == (HOLD, 90 * SECOND)
    store(server).send("x", HOLD._replace(held=False), None)
    answer = store(server).exchange("b", {"x": COUNTS})["x"]
    assert (answer.command, answer.left) == (HOLD._replace(held=False), None)
    assert store(server).last("x") == HOLD._replace(held=False)
    assert store(server).last("y") is None
    store(server).send("x", HOLD, 1)  # of a nanosecond a millisecond is left
    assert store(server).exchange("b", {"x": COUNTS})["x"].left == MILLISECOND


def test_a_server_that_is_away_is_said_in_one_line() -> None:
    server = Server()
    server.away = "no\nroute  to host" + "!" * 300
    with pytest.raises(StoreAwayError, match=r"^no route to host!{1,200}$"):
        store(server).exchange("a", {"x": COUNTS})
    with pytest.raises(StoreAwayError):
        store(server).send("x", HOLD, None)
    with pytest.raises(StoreAwayError):
        store(server).last("x")
    server.away = " "
    with pytest.raises(StoreAwayError, match=r"^ConnectionError$"):
        store(server).exchange("a", {"x": COUNTS})


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"{}",
        b"[1, 2, 3]",
        b"[1, 2, 3, -1]",
        b"[1, 2, 3, 1.5]",
        b"[1, 2, 3, true]",
        b'[1, 2, 3, "4"]',
        b"[1, 2, 3, 4611686018427387904]",
        b"\xff",
        None,
    ],
)
def test_counts_that_make_no_sense_are_passed_over(text: bytes | None) -> None:
    server = Server()
    server.values["tidegate:counts:x"] = {b"evil": text, b"good": json.dumps(COUNTS).encode()}
    assert store(server).exchange("a", {"x": COUNTS})["x"].hosts == {"a": COUNTS, "good": COUNTS}


@pytest.mark.parametrize(
    "change",
    [
        {"number": 0},
        {"number": True},
        {"number": 1 << 62},
        {"held": 1},
        {"reason": ""},
        {"reason": "a\x1b[2J"},
        {"reason": "x" * 201},
        {"author": 5},
        {"since_wall": -1},
        {"since_wall": "now"},
    ],
)
def test_a_command_that_makes_no_sense_is_none(change: dict[str, Any]) -> None:
    server = Server()
    server.values["tidegate:command:x"] = json.dumps(HOLD._replace(**change)).encode()
    assert store(server).exchange("a", {"x": COUNTS})["x"].command is None


def test_answers_of_another_kind_are_nothing() -> None:
    server = Server()
    server.values |= {"tidegate:counts:x": [1], "tidegate:command:x": -5}
    server._done = lambda what, key, *_: server.values.get(key)  # type: ignore[method-assign]
    assert store(server).exchange("a", {"x": COUNTS})["x"] == Answer({}, None, None)


def test_an_address_is_checked_before_it_is_asked_and_never_shown() -> None:
    pytest.importorskip("valkey")
    assert isinstance(open_store("valkey://:secret@127.0.0.1:1/0"), ValkeyStore)
    with pytest.raises(InputError, match="valkey://host:port/0") as caught:
        open_store("http://:secret@127.0.0.1:1")
    assert "secret" not in str(caught.value)


def test_without_the_package_it_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "valkey", None)
    with pytest.raises(InputError, match=r"of valkey: pip install 'tidegate\[valkey\]'"):
        open_store("valkey://127.0.0.1")
