"""Which coordinator an address means, and what is said of one that means none."""

import sys
from pathlib import Path

import pytest

from tidegate.errors import SettingsError
from tidegate.settings.spool import Turns
from tidegate.spooler.coordinators.alone import Alone
from tidegate.spooler.coordinators.choose import open_coordinator
from tidegate.spooler.coordinators.on_server import OnServer


def test_without_an_address_one_is_alone_and_with_slots_nobody_is_asked() -> None:
    assert isinstance(open_coordinator(Turns(), "events", "one", Path()), Alone)
    slots = Turns(through="slots", members=20)
    assert isinstance(open_coordinator(slots, "events", "one", Path()), Alone)


@pytest.mark.parametrize(
    ("url", "needs"),
    [
        ("nats://127.0.0.1:4222,127.0.0.1:4223?replicas=3&bucket=ours", "nats"),
        ("valkey://127.0.0.1/0", "valkey"),
        ("rediss://user:hunter2@127.0.0.1:6380/1", "valkey"),
        ("postgresql://user:hunter2@127.0.0.1/db?passfile=x", "psycopg"),
        ("postgres://127.0.0.1/db", "psycopg"),
    ],
)
def test_an_address_names_a_server_that_is_not_asked_yet(url: str, needs: str) -> None:
    pytest.importorskip(needs)
    assert isinstance(open_coordinator(Turns(through=url), "events", "one", Path()), OnServer)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("natts://127.0.0.1", "did you mean 'nats'"),
        ("hunter2@127.0.0.1", "expected nats://, valkey://, postgresql:// or the word slots"),
        ("Slots", "or the word slots"),
        ("nats://user:hunter2@127.0.0.1", "no user or password in the address"),
        ("nats://127.0.0.1:4222?creds=none.creds", "cannot read none.creds: No such file"),
        ("nats://127.0.0.1:4222/events", "expected nats://HOST:PORT"),
        ("nats://127.0.0.1:4222?replicas=2", "expected 1, 3 or 5 replicas"),
        ("nats://127.0.0.1:4222?replica=3", "did you mean 'replicas'"),
        ("valkey://:hunter2@127.0.0.1:port/0", "expected valkey://HOST:PORT/0"),
        ("postgresql://u:hunter2@127.0.0.1/db?hunter2", "expected postgresql://USER@HOST"),
    ],
)
def test_a_wrong_address_is_refused_in_a_sentence_without_a_secret(url: str, says: str) -> None:
    with pytest.raises(SettingsError) as refused:
        open_coordinator(Turns(through=url), "events", "one", Path())
    assert says in str(refused.value)
    assert str(refused.value).startswith("turns.through: ")
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [("nats", "nats", "nats"), ("valkey", "valkey", "valkey"), ("postgres", "psycopg", "postgres")],
)
def test_a_package_that_is_missing_is_named_with_its_extra(
    module: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(sys.modules):
        if name.split(".")[0] == package or name == f"tidegate.spooler.coordinators.{module}":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "tidegate.spooler.nats_client", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    url = {"postgres": "postgresql"}.get(module, module) + "://127.0.0.1:1"
    with pytest.raises(ModuleNotFoundError, match=rf"tidegate\[{extra}\]"):
        open_coordinator(Turns(through=url), "events", "one", Path())
