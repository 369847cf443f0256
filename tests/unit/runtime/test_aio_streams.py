"""An async stream: tried again before its first item, given up when an item takes too long."""

import asyncio
import inspect
from contextlib import asynccontextmanager, suppress

import pytest

import tidegate
from tidegate import AttemptTimeout, DeadlineExceeded
from tidegate.runtime.registry import _forget
from tidegate.testing import ManualClock, refusing, run


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


def licences(**settings):
    return tidegate.guard("licences", limit=1, budget=None, **settings)


def source(*streams):
    """An async generator function that fails and dawdles by script, one script a stream."""
    scripts = iter(streams)

    async def items():
        items.begun += 1
        try:
            for step in next(scripts):
                items.left.append(tidegate.remaining())
                if isinstance(step, float):
                    await asyncio.sleep(step)
                elif isinstance(step, type):
                    raise step
                else:
                    yield step
        finally:
            items.closed += 1

    items.begun = items.closed = 0
    items.left = []
    return items


async def all_of(stream):
    return [item async for item in stream]


def test_every_item_in_order():
    async def main():
        guard = licences()
        guarded = guard(source([1, 2, 3], []))
        assert inspect.isasyncgenfunction(guarded)
        stream = guarded()
        assert guard.snapshot().started == 0  # not before the first item is asked for
        assert await anext(stream) == 1
        assert guard.snapshot().inflight == 1
        assert await all_of(stream) == [2, 3]
        assert await all_of(guarded()) == []
        return counts(guard)

    assert run(main()) == {"started": 2, "ok": 2, "success": 2}


def test_before_the_first_item_it_is_tried_again():
    async def main():
        guard = licences(attempts=3, timeout=1.0)
        items = source([ConnectionError], [60.0], [1, 2])
        assert await all_of(guard(items)()) == [1, 2]
        assert items.begun == items.closed == 3
        return counts(guard)

    assert run(main()) == {
        "started": 1, "ok": 1, "retries": 2, "success": 1, "failure": 1, "timeout": 1,
    }  # fmt: skip


def test_after_the_first_item_nothing_is_repeated_and_no_fallback_answers():
    async def main():
        guard = licences(attempts=3, fallback=source([9]))
        items = source([1, ConnectionError], [1, 2, 3])
        stream = guard(items)()
        assert await anext(stream) == 1
        with pytest.raises(ConnectionError):
            await anext(stream)
        assert items.begun == 1
        return counts(guard)

    assert run(main()) == {"started": 1, "failed": 1, "failure": 1}


def test_a_fallback_answers_for_a_stream_that_never_began():
    async def main():
        guard = licences(attempts=1, fallback=source([8, 9], []))
        assert await all_of(guard(source([ConnectionError]))()) == [8, 9]
        with refusing(guard):
            assert await all_of(guard(source())()) == []
        return counts(guard)

    assert run(main()) == {"started": 2, "fallback": 2, "failure": 1}


def test_a_refusal_is_raised_by_the_first_item():
    async def main():
        guard = licences()
        with refusing(guard), pytest.raises(tidegate.Held):
            await anext(guard(source())())
        return counts(guard)

    assert run(main()) == {"started": 1, "rejected": 1}


def test_an_item_that_takes_too_long_is_given_up_at_its_instant():
    clock = ManualClock()

    async def main():
        guard = licences(timeout=2.0)
        items = source([1, 60.0, 2])
        stream = guard(items)()
        assert await anext(stream) == 1
        with pytest.raises(AttemptTimeout, match="no answer within 2 s") as late:
            await anext(stream)
        assert isinstance(late.value.__cause__, asyncio.CancelledError)
        assert asyncio.current_task().cancelling() == 0
        assert items.closed == 1
        return counts(guard)

    assert run(main(), clock) == {"started": 1, "failed": 1, "timeout": 1}
    assert clock.seconds == 2.0


@pytest.mark.parametrize("script", [["late", 1], [1, "late", 2], [1, "late"]])
def test_a_source_that_will_not_be_cancelled_is_too_slow_all_the_same(script):
    async def stubborn():
        for step in script:
            if step == "late":
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(60)
            else:
                yield step

    async def main():
        guard = licences(timeout=2.0)
        assert await all_of(guard(stubborn)()) == [step for step in script if step != "late"]
        assert asyncio.current_task().cancelling() == 0
        return counts(guard)

    assert run(main()) == {"started": 1, "ok": 1, "timeout": 1}


def test_first_item_and_idle_have_limits_of_their_own():
    clock = ManualClock()

    async def main():
        guard = licences(timeout=2.0, attempts=1)
        items = source([4.0, 1, 0.5, 2], [1, 1.5, 2])
        stream = guard.stream(first_item=5.0, idle=1.0)(items)
        assert await all_of(stream()) == [1, 2]
        assert items.left[:3] == [5.0, 1.0, 1.0]
        with pytest.raises(AttemptTimeout, match="no answer within 1 s"):
            await all_of(stream())
        return counts(guard)

    assert run(main(), clock) == {"started": 2, "ok": 1, "failed": 1, "success": 1, "timeout": 1}
    assert clock.seconds == 5.5


def test_a_slow_consumer_is_nobody_s_fault():
    async def main():
        guard = licences(timeout=2.0)
        async for _ in guard(source([1, 1.5, 2, 1.5, 3]))():
            await asyncio.sleep(60)
        return counts(guard)

    assert run(main()) == {"started": 1, "ok": 1, "success": 1}


def test_a_deadline_cuts_the_item_and_what_comes_after_it():
    clock = ManualClock()

    async def main():
        guard = licences(timeout=2.0)
        with tidegate.deadline(1.0):
            stream = guard(source([1, 60.0]))()
            assert await anext(stream) == 1
            with pytest.raises(DeadlineExceeded):
                await anext(stream)
        assert clock.seconds == 1.0
        items = source([1, 2])
        with tidegate.deadline(1.0):
            stream = guard(items)()
            assert await anext(stream) == 1
        await asyncio.sleep(2.0)
        with pytest.raises(DeadlineExceeded):
            await anext(stream)
        assert items.closed == 1
        return counts(guard)

    assert run(main(), clock) == {"started": 2, "failed": 2, "timeout": 2}


def test_a_consumer_who_stops_early_has_had_what_they_wanted():
    async def main():
        guard = licences()
        items = source([1, 2, 3])
        stream = guard(items)()
        assert await anext(stream) == 1
        await stream.aclose()
        assert items.closed == 1
        return counts(guard)

    assert run(main()) == {"started": 1, "ok": 1, "success": 1}


@pytest.mark.parametrize("script", [[60.0, 1], [1, 60.0]])
def test_a_consumer_who_is_cancelled_says_nothing_and_frees_the_place(script):
    async def main():
        guard = licences(timeout=None)
        task = asyncio.create_task(all_of(guard(source(script))()))
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(1)
        return counts(guard)

    assert run(main()) == {"started": 1, "failed": 1, "ignored": 1}


def test_a_consumer_who_is_cancelled_between_attempts_ends_the_call():
    async def main():
        guard = licences(attempts=2, backoff=10.0)
        items = source([ConnectionError], [1])
        task = asyncio.create_task(all_of(guard(items)()))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert items.begun == 1
        return counts(guard)

    assert run(main()) == {"started": 1, "failed": 1, "failure": 1}


def test_what_is_sent_and_thrown_in_reaches_the_source():
    async def main():
        guard = licences()

        @guard
        async def echo():
            said = yield "ready"
            while True:
                try:
                    said = yield said
                except KeyError:
                    said = "caught"

        stream = echo()
        heard = [await anext(stream), await stream.asend(1), await stream.athrow(KeyError)]
        await stream.aclose()
        return heard, counts(guard)

    heard, counted = run(main())
    assert heard == ["ready", 1, "caught"]
    assert counted == {"started": 1, "ok": 1, "success": 1}


@pytest.mark.parametrize("mode", ["enforce", "observe"])
def test_an_error_of_the_consumer_says_nothing_against_the_dependency(mode):
    async def failing_block(block):
        async with block():
            raise KeyError("the consumer's own")

    async def main():
        guard = licences().options(mode=mode)

        @asynccontextmanager
        @guard
        async def session():
            yield "open"

        with pytest.raises(KeyError):
            await failing_block(session)
        async with session() as state:
            assert state == "open"
        return counts(guard)

    assert run(main()) == {"started": 2, "ok": 2, "success": 2}


def test_observed_it_is_never_in_the_way():
    async def main():
        guard = licences().options(mode="observe")
        with refusing(guard):
            assert await all_of(guard(source([1, 60.0, 2]))()) == [1, 2]
        assert await all_of(guard(source([]))()) == []
        with pytest.raises(ConnectionError):
            await all_of(guard(source([1, ConnectionError]))())
        stream = guard(source([1, 2]))()
        assert await anext(stream) == 1
        await stream.aclose()
        return counts(guard)

    assert run(main()) == {"started": 4, "ok": 3, "failed": 1, "success": 3, "failure": 1}
