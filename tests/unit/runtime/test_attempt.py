"""A block that may not start does not, is judged by how it ends, and gives its permit back."""

import asyncio

import pytest

import tidegate
from tidegate import AttemptTimeout, DeadlineExceeded, LimitExceeded, Outcome
from tidegate.runtime.registry import _forget
from tidegate.testing import ManualClock, instant, refusing, run


@pytest.fixture(autouse=True)
def clock():
    _forget()
    with instant() as still:
        yield still
    _forget()


def counts(guard):
    seen = guard.snapshot()
    assert seen.pending == 0
    assert sum(seen.outcomes.values()) == seen.attempts
    return {k: n for k, n in seen._asdict().items() if k in CALLS and n} | {
        k: n for k, n in seen.outcomes.items() if n
    }


CALLS = ("started", "ok", "failed", "rejected", "fallback")


def test_a_good_block_is_a_success():
    guard = tidegate.guard("b", limit=1)
    with guard.attempt() as attempt:
        assert guard.snapshot().inflight == 1
        assert attempt.remaining() == 10.0
    assert guard.snapshot().inflight == 0
    assert counts(guard) == {"started": 1, "ok": 1, "success": 1}


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(ConnectionError, "failure"), (TimeoutError, "timeout"), (KeyboardInterrupt, "ignored")],
)
def test_a_block_that_raises_is_judged_and_not_repeated(error, outcome):
    guard = tidegate.guard("b", attempts=5, fallback=lambda: "not for blocks")
    with pytest.raises(error) as raised, guard.attempt():
        raise error
    assert counts(guard) == {"started": 1, "failed": 1, outcome: 1}
    assert not hasattr(raised.value, "__notes__")
    assert guard.snapshot().retries == 0


def test_a_block_that_may_not_start_does_not():
    guard = tidegate.guard("b", fallback=lambda: "not for blocks")
    with refusing(guard), pytest.raises(tidegate.Held), guard.attempt():
        raise AssertionError("the block ran")
    assert counts(guard) == {"started": 1, "rejected": 1}


def test_no_more_blocks_at_once_than_the_limit():
    guard = tidegate.guard("b", limit=1)
    with guard.attempt(), pytest.raises(LimitExceeded), guard.attempt():
        raise AssertionError("the block ran")
    with guard.attempt():
        pass


def answered_and_choked_on(guard):
    with guard.attempt() as attempt:
        attempt.record(Outcome.SUCCESS)
        raise ValueError("not JSON")


def test_what_is_recorded_counts_where_nothing_is_raised_and_against_what_is():
    guard = tidegate.guard("b")
    with guard.attempt() as attempt:
        attempt.record(Outcome.FAILURE)
        attempt.record(Outcome.OVERLOADED)
    with pytest.raises(ValueError, match="not JSON"):
        answered_and_choked_on(guard)
    seen = counts(guard)
    assert seen == {"started": 2, "ok": 1, "failed": 1, "overloaded": 1, "success": 1}
    with pytest.raises(tidegate.SettingsError, match=r"one of tidegate\.Outcome"):
        attempt.record(503)


def test_the_block_inherits_its_own_end_and_what_is_around_gets_its_own_back(clock):
    guard = tidegate.guard("b", timeout=2.0)
    with tidegate.deadline(5.0), guard.attempt() as attempt:
        clock.advance(0.5)
        assert tidegate.remaining() == attempt.remaining() == 1.5
    assert tidegate.remaining() is None
    with tidegate.deadline(1.0), guard.attempt() as attempt:
        assert attempt.remaining() == 1.0


def test_a_plain_block_that_ends_late_counts_as_too_slow(clock):
    guard = tidegate.guard("b", timeout=2.0)
    with guard.attempt() as attempt:
        clock.advance(2.5)
        assert attempt.remaining() == 0
    assert counts(guard) == {"started": 1, "ok": 1, "timeout": 1}
    with pytest.raises(DeadlineExceeded), tidegate.deadline(1.0), guard.attempt():
        clock.advance(1.5)
    assert counts(guard) == {"started": 2, "ok": 1, "failed": 1, "timeout": 2}


def test_nothing_starts_after_the_deadline(clock):
    guard = tidegate.guard("b")
    with tidegate.deadline(1.0):
        clock.advance(1.0)
        with pytest.raises(DeadlineExceeded) as late, guard.attempt():
            raise AssertionError("the block ran")
    assert not late.value.sent
    assert counts(guard) == {"started": 1, "rejected": 1}


def test_an_attempt_is_one_block():
    attempt = tidegate.guard("b").attempt()
    with attempt:
        pass
    with pytest.raises(RuntimeError, match="an attempt is one block"), attempt:
        pass


def test_observed_it_is_never_in_the_way_and_off_it_is_not_even_counted():
    guard = tidegate.guard("b", mode="observe")
    with refusing(guard), guard.attempt() as attempt:
        attempt.record(Outcome.OVERLOADED)
    with pytest.raises(ConnectionError), guard.attempt():
        raise ConnectionError
    assert counts(guard) == {"started": 2, "failed": 2, "overloaded": 1, "failure": 1}
    assert guard.snapshot().would_refuse == {"held": 1}
    with guard.options(mode="off").attempt() as attempt:
        assert attempt.remaining() is None
    assert guard.snapshot().started == 2


# The same, in a task.


def test_an_async_block_that_takes_too_long_is_given_up_at_its_instant():
    clock = ManualClock()

    async def work(guard):
        async with guard.attempt() as attempt:
            attempt.record(Outcome.SUCCESS)  # nobody argues with time
            await asyncio.sleep(60)

    async def main():
        guard = tidegate.guard("b", timeout=2.0)
        with pytest.raises(AttemptTimeout) as late:
            await work(guard)
        assert isinstance(late.value.__cause__, asyncio.CancelledError)
        assert asyncio.current_task().cancelling() == 0
        return counts(guard)

    assert run(main(), clock) == {"started": 1, "failed": 1, "timeout": 1}
    assert clock.seconds == 2.0


def test_async_blocks_are_counted_as_plain_ones_are():
    async def main():
        guard = tidegate.guard("b", limit=1)
        async with guard.attempt() as attempt:
            assert attempt.remaining() == 10.0
        with pytest.raises(ConnectionError):
            async with guard.attempt():
                raise ConnectionError
        async with guard.attempt() as attempt:
            attempt.record(Outcome.OVERLOADED)
        with refusing(guard), pytest.raises(tidegate.Held):
            async with guard.attempt():
                raise AssertionError("the block ran")
        return counts(guard)

    assert run(main()) == {
        "started": 4, "ok": 1, "failed": 2, "rejected": 1,
        "success": 1, "failure": 1, "overloaded": 1,
    }  # fmt: skip


def test_a_deadline_shorter_than_the_timeout_cuts_the_block():
    clock = ManualClock()

    async def main():
        guard = tidegate.guard("b", timeout=2.0)
        with pytest.raises(DeadlineExceeded) as late, tidegate.deadline(0.5):
            async with guard.attempt():
                await asyncio.sleep(60)
        assert late.value.sent
        await asyncio.sleep(60)  # its timer does not cut what comes after
        return counts(guard)

    assert run(main(), clock) == {"started": 1, "failed": 1, "timeout": 1}
    assert clock.seconds == 60.5


def test_a_user_who_leaves_says_nothing_and_frees_the_place():
    async def main():
        guard = tidegate.guard("b", limit=1)

        async def work():
            async with guard.attempt():
                await asyncio.sleep(5)

        task = asyncio.create_task(work())
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(1)
        assert guard.snapshot().inflight == 0
        return counts(guard)

    assert run(main()) == {"started": 1, "failed": 1, "ignored": 1}


def test_an_observed_async_block_goes_through():
    async def main():
        guard = tidegate.guard("b", mode="observe", timeout=1.0)
        with refusing(guard):
            async with guard.attempt():
                await asyncio.sleep(5)
        return counts(guard)

    assert run(main()) == {"started": 1, "ok": 1, "success": 1}
