"""A rate that many processes count together, without anybody waiting for the count."""

import logging
import os
from typing import Any

import pytest

from tidegate.errors import SettingsError
from tidegate.server.shared_rate import EVERY, WINDOW_S, SharedRate
from tidegate.units import SECOND


class Store:
    """A window that never moves, in place of one on the network."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.away = False
        self.asked = 0

    def hit(self, item: Any, *identifiers: str, cost: int = 1) -> bool:
        self.asked += 1
        if self.away:
            raise ConnectionError
        (client,) = identifiers
        if self.counts.get(client, 0) + cost > item.amount:
            return False
        self.counts[client] = self.counts.get(client, 0) + cost
        return True

    def get_window_stats(self, item: Any, *identifiers: str) -> tuple[float, int]:
        return 0.0, 0  # long ago: the wall clock and ours have nothing to do with each other


def process(store: Store, rate: float = 1.0, **own: int) -> SharedRate:
    made = SharedRate(rate, "memory://", counter=store, **({"burst": 100} | own))
    made._process = os.getpid()  # no thread: the test is the thread
    return made


def test_what_one_process_let_in_counts_for_the_other() -> None:
    store = Store()
    here, there = process(store), process(store)
    assert [here.try_acquire(0, "a") for _ in range(9)] == [True] * 9
    here.exchange(EVERY)
    assert [there.try_acquire(EVERY, "a") for _ in range(3)] == [True] * 3  # nobody has told it yet
    there.exchange(2 * EVERY)
    assert not there.try_acquire(2 * EVERY, "a")
    assert there.try_acquire(2 * EVERY, "b")
    assert there.retry_after(2 * EVERY, "a") == EVERY
    assert there.snapshot(0).refused == 1


def test_who_was_refused_may_ask_again_when_the_window_has_moved() -> None:
    store = Store()
    rate = process(store)
    for _ in range(11):
        rate.try_acquire(0, "a")
    rate.exchange(0)
    assert store.counts == {"a": 10}  # one cannot tell more than the whole window
    rate.try_acquire(0, "a")
    rate.exchange(0)
    assert not rate.try_acquire(EVERY - 1, "a")
    assert rate.try_acquire(EVERY, "a")
    rate.exchange(EVERY)
    rate.exchange(WINDOW_S * SECOND)
    assert rate._refused_until == {}


def test_a_process_s_own_table_holds_without_a_store(caplog: pytest.LogCaptureFixture) -> None:
    store = Store()
    store.away = True
    rate = process(store, burst=2)
    with caplog.at_level(logging.WARNING):
        assert [rate.try_acquire(0, "a") for _ in range(3)] == [True, True, False]
        for now in range(0, 10 * SECOND, EVERY):
            rate.try_acquire(now, "b")
            rate.exchange(now)
    assert 2 <= store.asked <= 6  # left in peace, and for longer each time
    assert len(caplog.records) == 1  # told once, and not at each try
    store.away = False
    rate.try_acquire(100 * SECOND, "b")
    rate.exchange(100 * SECOND)
    assert store.counts["b"] == 1


def test_what_is_to_be_told_has_an_end() -> None:
    rate = process(Store(), clients=10)
    for client in range(1000):
        rate.try_acquire(0, client)
    assert len(rate._let_in) == 10


def test_a_child_of_a_fork_has_a_lock_of_its_own() -> None:
    rate = process(Store())
    held = rate._lock
    assert held.acquire()
    rate.after_fork()
    assert rate.try_acquire(0, "a")


@pytest.mark.parametrize("store", ["nowhere://127.0.0.1", "valkey:/x"])
def test_what_is_no_store_is_said_at_once(store: str) -> None:
    with pytest.raises(SettingsError, match="store"):
        SharedRate(1.0, store)


def test_a_rate_is_a_rate() -> None:
    with pytest.raises(SettingsError, match="rate"):
        SharedRate(0, "memory://")
