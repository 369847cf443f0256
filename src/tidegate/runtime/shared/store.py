"""What do hosts leave for each other on a server, and how is it asked?

Two things for each guard, under names of our own. A hash `tidegate:counts:<guard>` in which each
host has a field with its sums, and a value `tidegate:command:<guard>`: the latest hold or release.
A hold that ends by itself is left with that much time to live, counted by the server: hosts need
not agree on what time it is.

Valkey and Redis both do. One round trip asks for all guards of a process.
"""

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Protocol, final

from tidegate.errors import InputError, missing_extra
from tidegate.units import MILLISECOND, Duration

__all__ = ["Answer", "Command", "Counts", "Store", "StoreAwayError", "ValkeyStore", "open_store"]

_TIMEOUT_S: Final = 1.0  # to connect, and for an answer: nobody waits for it but our own thread
_COUNTS: Final = "tidegate:counts:"
_COMMAND: Final = "tidegate:command:"
_COUNTS_KEPT_S: Final = 3600  # of a guard that no host has
_HOSTS_MAX: Final = 10_000  # of one guard that are read
_TEXT_MAX: Final = 200
_COUNT_MAX: Final = 1 << 62


class StoreAwayError(Exception):
    """The server did not answer, or not with what was asked. The message says what happened."""


class Counts(NamedTuple):
    """What one host has counted for one guard since its table was made, in all its processes."""

    requests: int
    deposited: int
    retried: int
    recent: int


class Command(NamedTuple):
    """Hold or release, as one host tells the others. `number` tells it from all others."""

    number: int
    held: bool
    reason: str
    author: str
    since_wall: float


class Answer(NamedTuple):
    """What the server has for a guard: counts by host, the last command, and its time to live."""

    hosts: dict[str, Counts]
    command: Command | None
    left: Duration | None


class Store(Protocol):
    """A server that hosts share. Every method may raise StoreAwayError."""

    def exchange(self, host: str, told: Mapping[str, Counts]) -> dict[str, Answer]:
        """Leave what this host has counted for each guard; what the server has for each."""
        ...

    def send(self, name: str, command: Command, duration: Duration | None) -> None:
        """Leave a command for a guard; it is forgotten after `duration`."""
        ...

    def last(self, name: str) -> Command | None:
        """The last command for a guard, unless it is forgotten."""
        ...


@final
class ValkeyStore:
    """A Valkey or Redis server, by the client of the `valkey` package."""

    __slots__ = ("_client", "_errors")

    def __init__(self, client: Any, errors: tuple[type[Exception], ...]) -> None:
        self._client: Final = client
        self._errors: Final = errors

    def exchange(self, host: str, told: Mapping[str, Counts]) -> dict[str, Answer]:
        """Leave what this host has counted for each guard; what the server has for each."""
        try:
            with self._client.pipeline(transaction=False) as asked:
                for name, counts in told.items():
                    asked.hset(_COUNTS + name, host, json.dumps(counts))
                    asked.expire(_COUNTS + name, _COUNTS_KEPT_S)
                    asked.hgetall(_COUNTS + name)
                    asked.get(_COMMAND + name)
                    asked.pttl(_COMMAND + name)
                answers = asked.execute()
        except self._errors as error:
            raise StoreAwayError(_said(error)) from None
        return {
            name: _answer(*answers[5 * number + 2 : 5 * number + 5])
            for number, name in enumerate(told)
        }

    def send(self, name: str, command: Command, duration: Duration | None) -> None:
        """Leave a command for a guard; it is forgotten after `duration`."""
        left = None if duration is None else max(1, duration // MILLISECOND)
        try:
            self._client.set(_COMMAND + name, json.dumps(command), px=left)
        except self._errors as error:
            raise StoreAwayError(_said(error)) from None

    def last(self, name: str) -> Command | None:
        """The last command for a guard, unless it is forgotten."""
        try:
            return _command(self._client.get(_COMMAND + name))
        except self._errors as error:
            raise StoreAwayError(_said(error)) from None


def open_store(url: str) -> ValkeyStore:
    """The server at `valkey://host:port/0`. It is not asked yet. Raises InputError."""
    try:
        import valkey
        from valkey.backoff import NoBackoff
        from valkey.retry import Retry
    except ModuleNotFoundError as error:
        raise InputError(str(missing_extra(error, "valkey", "to share with other hosts"))) from None
    try:
        client = valkey.Valkey.from_url(
            url,
            socket_timeout=_TIMEOUT_S,
            socket_connect_timeout=_TIMEOUT_S,
            retry=Retry(NoBackoff(), 0),
        )
    except ValueError:  # which would quote the address, and with it a password
        raise InputError("the address of the server is to be as valkey://host:port/0") from None
    return ValkeyStore(client, (valkey.ValkeyError, OSError))


def _said(error: Exception) -> str:
    return " ".join(str(error).split())[:_TEXT_MAX] or type(error).__name__


# What comes back was written by other hosts, perhaps of another version: nothing is taken on trust.


def _answer(hosts: object, command: object, left: object) -> Answer:
    counts: dict[str, Counts] = {}
    if isinstance(hosts, dict):
        for host, text in list(hosts.items())[:_HOSTS_MAX]:
            seen = _counts(text)
            if seen is not None and isinstance(host, bytes):
                counts[host.decode("utf-8", "replace")] = seen
    time = left * MILLISECOND if isinstance(left, int) and left > 0 else None
    return Answer(counts, _command(command), time)


def _counts(text: object) -> Counts | None:
    values = _decoded(text)
    if len(values) != len(Counts._fields):
        return None
    fine = all(type(value) is int and 0 <= value < _COUNT_MAX for value in values)
    return Counts(*values) if fine else None


def _command(text: object) -> Command | None:
    values = _decoded(text)
    if len(values) != len(Command._fields):
        return None
    number, held, reason, author, since = values
    fine = (
        type(number) is int
        and 0 < number < _COUNT_MAX
        and type(held) is bool
        and all(
            isinstance(w, str) and w.isprintable() and 0 < len(w) <= _TEXT_MAX
            for w in (reason, author)
        )
        and isinstance(since, int | float)
        and 0 <= since < 1e11
    )
    return Command(number, held, reason, author, float(since)) if fine else None


def _decoded(text: object) -> list[Any]:
    if not isinstance(text, bytes):
        return []
    try:
        values = json.loads(text)
    except ValueError:
        return []
    return values if isinstance(values, list) else []
