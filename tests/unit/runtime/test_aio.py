"""A coroutine function that is guarded: who gave it up, and what that says."""

import asyncio
import inspect
from functools import partial

import pytest

import tidegate
from tidegate import AttemptTimeout, DeadlineExceeded, Outcome, Verdict
from tidegate.runtime.registry import _forget
from tidegate.testing import ManualClock, after, run, scripted


@pytest.fixture(autouse=True)
def forgotten():
    _forget()
    yield
    _forget()


def counts(guard):
    seen = guard.snapshot()
    assert seen.pending == 0
    assert sum(seen.outcomes.values()) == seen.attempts
    assert not seen.inflight
    names = ("started", "ok", "failed", "rejected", "fallback", "retries")
    shown = {name: getattr(seen, name) for name in names} | seen.outcomes
    return {name: number for name, number in shown.items() if number}


def d(**settings):
    return tidegate.guard("d", limit=1, budget=None, **settings)


def test_the_function_is_what_it_was():
    async def main():
        guard = d()

        @guard
        async def price(of: str, *, to: str = "eur") -> str:
            """What it costs."""
            return f"{of} in {to}"

        assert inspect.iscoroutinefunction(price)
        assert (price.__name__, price.__doc__) == ("price", "What it costs.")
        return await price("tea", to="usd")

    assert run(main()) == "tea in usd"


def test_methods_partials_and_callable_objects_are_coroutine_functions():
    class Shop:
        async def price(self, of):
            return 2 * of

        async def __call__(self, of):
            return 3 * of

    async def main():
        guard = d()
        shop = Shop()
        assert await guard(shop.price)(3) == 6
        assert await guard(shop)(3) == 9
        assert await guard(partial(shop.price, 4))() == 8
        assert await guard.acall(lambda: shop.price(5)) == 10  # anything that can be awaited

    run(main())


@pytest.mark.parametrize("options", [{}, {"deadline": 60.0}])  # the flat path, and by the book
def test_an_attempt_that_takes_too_long_is_given_up_at_its_instant(options):
    clock = ManualClock()

    async def main():
        guard = d(timeout=2.0, attempts=1, **options)
        with pytest.raises(AttemptTimeout, match="d: no answer within 2 s") as late:
            await guard.acall(scripted(after(60.0, "late")).acall)
        assert isinstance(late.value.__cause__, asyncio.CancelledError)
        assert asyncio.current_task().cancelling() == 0
        return counts(guard)

    assert run(main(), clock) == {"started": 1, "failed": 1, "timeout": 1}
    assert clock.seconds == 2.0


def test_the_next_attempt_has_a_time_of_its_own():
    async def main():
        guard = d(timeout=2.0, attempts=2, backoff=None)
        stub = scripted(after(60.0, "late"), after(1.5, "fine"))
        assert await guard.acall(stub.acall) == "fine"
        return stub.instants

    assert run(main()) == [0, 2.0]


@pytest.mark.parametrize("deadline", [1.0, 3.0])  # in the first attempt, and in the second
def test_the_last_attempt_is_cut_to_fit_the_deadline(deadline):
    clock = ManualClock()

    async def main():
        guard = d(timeout=2.0, attempts=5, backoff=None)
        with tidegate.deadline(deadline), pytest.raises(DeadlineExceeded) as late:
            await guard.acall(scripted(*[after(60.0, "late")] * 5).acall)
        assert late.value.sent
        return counts(guard)["timeout"]

    assert run(main(), clock) == (1 if deadline == 1.0 else 2)
    assert clock.seconds == deadline


def test_one_that_will_not_be_cancelled_is_too_slow_all_the_same():
    async def stubborn():
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "not me"

    async def main():
        guard = d(timeout=2.0)
        assert await guard.acall(stubborn) == "not me"
        assert asyncio.current_task().cancelling() == 0
        return counts(guard)

    assert run(main()) == {"started": 1, "ok": 1, "timeout": 1}


def test_a_user_who_leaves_says_nothing():
    async def main():
        guard = d()
        task = asyncio.create_task(guard.acall(scripted(after(5.0, "never")).acall))
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.1)
        return counts(guard)

    assert run(main()) == {"started": 1, "failed": 1, "ignored": 1}


def test_a_user_who_leaves_between_two_attempts_has_failed_once():
    async def main():
        guard = d(attempts=2, backoff=10.0)
        task = asyncio.create_task(guard.acall(scripted(ConnectionError, "never").acall))
        for _ in range(3):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return counts(guard)

    assert run(main()) == {"started": 1, "failed": 1, "failure": 1}


@pytest.mark.parametrize("until", [None, 2.0])  # by hand, and by a deadline further out
def test_a_call_that_is_cancelled_never_gives_what_an_earlier_attempt_gave(until):
    def judge(answer):
        return Verdict(Outcome.OVERLOADED) if answer == "503" else None

    async def main():
        guard = d(attempts=2, backoff=None, judge=judge)
        stub = scripted("503", after(5.0, "never"))
        with tidegate.deadline(60.0 if until is None else until):
            task = asyncio.create_task(guard.acall(stub.acall))
            await asyncio.sleep(1)
            if until is None:
                task.cancel()
        with pytest.raises(asyncio.CancelledError if until is None else DeadlineExceeded):
            await task
        assert len(stub.sent) == 2
        await asyncio.sleep(0.1)
        return counts(guard)

    ended = "ignored" if until is None else "timeout"
    assert run(main()) == {"started": 1, "failed": 1, "retries": 1, "overloaded": 1, ended: 1}


def test_a_timeout_further_out_says_that_it_was_too_slow():
    clock = ManualClock()

    async def main():
        guard = d(attempts=5)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await guard.acall(scripted(after(5.0, "late")).acall)
        await asyncio.sleep(0.1)
        return counts(guard)

    assert run(main(), clock) == {"started": 1, "failed": 1, "timeout": 1}


def test_a_group_that_is_ended_by_another_task_says_nothing():
    async def fails():
        await asyncio.sleep(1)
        raise LookupError

    async def main():
        guard = d()

        async def group():
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(guard.acall(scripted(after(5.0, "never")).acall))
                tasks.create_task(fails())

        with pytest.raises(ExceptionGroup):
            await group()
        await asyncio.sleep(0.1)
        return counts(guard)

    assert run(main()) == {"started": 1, "failed": 1, "ignored": 1}


def test_a_coroutine_that_is_closed_gives_its_place_back():
    async def main():
        guard = d(timeout=None)
        call = guard.acall(lambda: asyncio.sleep(60))
        call.send(None)
        assert guard.snapshot().inflight == 1
        call.close()
        return counts(guard)

    assert run(main()) == {"started": 1, "failed": 1, "ignored": 1}


def test_a_fallback_may_be_a_coroutine_function_or_a_plain_one():
    async def old():
        await asyncio.sleep(1)
        return "old"

    async def main():
        guard = d(attempts=1)
        fail = scripted(*[ConnectionError] * 2)
        assert await guard.options(fallback=old).acall(fail.acall) == "old"
        assert await guard.options(fallback=lambda: "plain").acall(fail.acall) == "plain"

    run(main())


def test_one_guard_serves_many_loops_one_after_another():
    guard = d(timeout=2.0, attempts=1)

    async def main():
        with pytest.raises(AttemptTimeout):
            await guard.acall(scripted(after(60.0, "late")).acall)

    for _ in range(3):
        clock = ManualClock()
        run(main(), clock)
        assert clock.seconds == 2.0
