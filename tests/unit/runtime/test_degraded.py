"""Whoever stands around it sees which answers are second best."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

import tidegate
from tidegate.runtime.degraded import note
from tidegate.runtime.registry import _forget
from tidegate.testing import instant, refusing, scripted


@pytest.fixture(autouse=True)
def clock():
    _forget()
    with instant() as still:
        yield still
    _forget()


def test_nothing_is_degraded_where_everybody_answers():
    guard = tidegate.guard("prices", fallback=lambda: "old")
    with tidegate.degradation() as seen:
        guard.call(scripted("new").call)
    assert not seen
    assert seen.names == ()
    assert seen.age("prices") is None


@pytest.mark.parametrize("options", [{}, {"deadline": 5.0}])  # the flat path, and by the book
def test_a_fallback_is_noted_for_an_error_and_for_a_refusal(options):
    guard = tidegate.guard("prices", attempts=1, **options).options(fallback=lambda: "old")
    with tidegate.degradation() as seen:
        assert guard.call(scripted(ConnectionError).call) == "old"
    assert seen
    assert seen.names == ("prices",)
    with tidegate.degradation() as seen, refusing(guard):
        assert guard.call(scripted().call) == "old"
    assert seen.names == ("prices",)
    assert guard.snapshot().fallback == 2


def test_an_async_fallback_is_noted():
    async def old():
        return "old"

    async def main():
        guard = tidegate.guard("prices", attempts=1, fallback=old)
        with tidegate.degradation() as seen:
            assert await guard.acall(scripted(ConnectionError).acall) == "old"
        return seen.names

    assert asyncio.run(main()) == ("prices",)


def test_names_stand_in_order_and_once_and_the_oldest_age_counts():
    with tidegate.degradation() as seen:
        note("b", 2.0)
        note("a")
        note("b", 5.0)
        note("b", 3.0)
        note("b")
    assert seen.names == ("b", "a")
    assert (seen.age("b"), seen.age("a")) == (5.0, None)


def test_a_block_around_another_sees_both_and_the_inner_its_own():
    with tidegate.degradation() as outer:
        note("a")
        with tidegate.degradation() as inner:
            note("b")
        note("c")
    note("d")
    assert outer.names == ("a", "b", "c")
    assert inner.names == ("b",)


def test_tasks_add_to_it_and_threads_if_they_are_carried():
    async def work(name):
        note(name)

    async def main():
        with tidegate.degradation() as seen:
            await asyncio.gather(work("a"), work("b"))
        return seen.names

    assert asyncio.run(main()) == ("a", "b")
    with ThreadPoolExecutor(1) as pool, tidegate.degradation() as seen:
        pool.submit(note, "bare").result()
        pool.submit(tidegate.carry(note), "carried").result()
    assert seen.names == ("carried",)
