"""Calls that were out when their loop was closed kept their places; threads with loops collided."""

import asyncio
import gc
import sys
import threading
from collections.abc import Iterator

import pytest

import tidegate
from tidegate.runtime import timers
from tidegate.runtime.clock import current
from tidegate.runtime.registry import _forget
from tidegate.units import SECOND


@pytest.fixture(autouse=True)
def clock() -> Iterator[None]:
    _forget()
    yield
    _forget()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_their_places_come_back_when_another_loop_asks() -> None:
    licences = tidegate.guard("licences", limit=3)

    @licences
    async def hang() -> None:
        await asyncio.get_running_loop().create_future()

    @licences
    async def ask() -> int | None:
        gc.collect()
        return licences.snapshot().inflight

    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)
    for _ in range(2):
        loop.create_task(hang())  # noqa: RUF006 - it is to be lost
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    assert licences.snapshot().inflight == 2
    assert asyncio.run(ask()) == 1  # itself


def test_many_threads_may_make_their_loops_at_once() -> None:
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for timeout in range(1, 200):
                loop = asyncio.new_event_loop()
                timers.line_of(loop, timeout * SECOND, current())
                loop.close()
        except BaseException as error:  # noqa: BLE001 - told by the assertion
            errors.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert errors == []
