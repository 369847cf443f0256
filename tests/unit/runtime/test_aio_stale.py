"""The same as `test_stale`, of tasks: what is different is who can be cancelled."""

import asyncio

import pytest

import tidegate
from tidegate import DeadlineExceeded
from tidegate.runtime.registry import _forget
from tidegate.testing import ManualClock, after, refusing, run, scripted


@pytest.fixture(autouse=True)
def forgotten():
    _forget()
    yield
    _forget()


def counts(guard):
    seen = guard.snapshot()
    assert seen.pending == 0
    assert sum(seen.outcomes.values()) == seen.attempts
    names = ("started", "ok", "failed", "rejected", "fallback", "shared")
    shown = {name: getattr(seen, name) for name in names} | seen.outcomes
    return {name: number for name, number in shown.items() if number}


def prices(**settings):
    return tidegate.guard("prices", attempts=1, breaker=None, **settings)


def test_an_error_and_a_refusal_are_answered_by_what_was_last_said():
    async def main():
        guard = prices()
        ask = guard.stale(60.0)(scripted("new", ConnectionError).acall)
        assert await ask() == "new"
        await asyncio.sleep(10)
        with tidegate.degradation() as seen:
            assert await ask() == "new"
        assert seen.age("prices") == 10.0
        with refusing(guard):
            assert await ask() == "new"
        await asyncio.sleep(60)
        with refusing(guard), pytest.raises(tidegate.Held):
            await ask()
        return counts(guard)

    assert run(main()) == {
        "started": 4, "ok": 1, "rejected": 1, "fallback": 2, "success": 1, "failure": 1,
    }  # fmt: skip


def test_whoever_asks_the_same_waits_for_the_answer():
    async def main():
        guard = prices()
        stub = scripted(after(1.0, "new"), after(1.0, ConnectionError), after(1.0, "newer"))
        ask = guard.stale(60.0)(stub.acall)
        assert await asyncio.gather(*[ask() for _ in range(5)]) == ["new"] * 5
        assert len(stub.sent) == 1
        with tidegate.degradation() as seen:
            assert await asyncio.gather(*[ask() for _ in range(5)]) == ["new"] * 5
        assert seen.age("prices") == 1.0  # from when it was answered to when it was missed
        assert await ask() == "newer"
        return counts(guard)

    assert run(main()) == {
        "started": 11, "ok": 6, "fallback": 5, "shared": 8, "success": 2, "failure": 1,
    }  # fmt: skip


def test_other_arguments_wait_for_nobody():
    async def main():
        stub = scripted(after(1.0, "a"), after(1.0, "b"))
        ask = prices().stale(60.0)(stub.acall)
        return await asyncio.gather(ask(1), ask(2))

    clock = ManualClock()
    assert run(main(), clock) == ["a", "b"]
    assert clock.seconds == 1.0


def test_a_call_that_was_cancelled_speaks_for_nobody_else():
    async def main():
        stub = scripted(after(5.0, "never"), after(1.0, "new"))
        ask = prices().stale(60.0)(stub.acall)
        first, *others = [asyncio.create_task(ask()) for _ in range(3)]
        await asyncio.sleep(1)
        first.cancel()
        assert await asyncio.gather(*others) == ["new", "new"]
        assert first.cancelled()
        return stub.instants

    assert run(main()) == [0, 1.0]


def test_one_of_those_who_wait_may_go():
    async def main():
        stub = scripted(after(5.0, "new"))
        ask = prices().stale(60.0)(stub.acall)
        first, second, third = [asyncio.create_task(ask()) for _ in range(3)]
        await asyncio.sleep(1)
        second.cancel()
        assert await asyncio.gather(first, third) == ["new", "new"]

    run(main())


def test_who_has_less_time_speaks_for_nobody_else_and_waits_no_longer_than_it_has():
    async def hurried(ask, seconds):
        with tidegate.deadline(seconds):
            return await ask()

    async def main():
        stub = scripted(after(5.0, "never"), after(5.0, "new"))
        ask = prices().stale(60.0)(stub.acall)
        first = asyncio.create_task(hurried(ask, 1.0))
        others = [asyncio.create_task(hurried(ask, s)) for s in (0.5, 60.0)]
        ends = await asyncio.gather(first, *others, return_exceptions=True)
        assert [type(end) for end in ends] == [DeadlineExceeded, DeadlineExceeded, str]
        return stub.instants

    assert run(main()) == [0, 1.0]


def test_a_call_that_hangs_is_taken_over():
    async def main():
        stub = scripted(after(25.0, "late"), after(1.0, "new"))
        ask = prices(timeout=None).stale(60.0)(stub.acall)
        hanging = asyncio.create_task(ask())
        await asyncio.sleep(0)
        assert await ask() == "new"
        assert stub.instants == [0, 10.0]  # nobody waits for longer than ten seconds
        assert await hanging == "late"

    run(main())


def test_observed_every_call_is_for_itself():
    async def main():
        stub = scripted(after(1.0, "a"), after(1.0, "b"))
        ask = prices().options(mode="observe").stale(60.0)(stub.acall)
        return await asyncio.gather(ask(), ask())

    assert run(main()) == ["a", "b"]
