"""A coroutine function that is asked again while its answer is awaited, told in instants."""

import asyncio
import gc

import pytest

import tidegate
from tidegate import AttemptTimeout, CircuitOpen, DeadlineExceeded, Outcome, Verdict
from tidegate.runtime import aio_hedged
from tidegate.runtime.context import ambient
from tidegate.runtime.registry import _forget
from tidegate.settings.policies import Backoff, Breaker, Budget, Hedge, Limit
from tidegate.testing import ManualClock, after, run, scripted
from tidegate.units import SECOND


@pytest.fixture(autouse=True)
def forgotten():
    _forget()
    yield
    assert not aio_hedged._stopping, "a task that lost is still held"
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
    given = {"hedge": 1.0, "budget": Budget(ratio=2.0), "limit": Limit(max=9), "attempts": 1}
    return tidegate.guard("d", **given | settings)


def test_an_answer_in_time_is_the_only_one():
    async def main():
        guard = d()
        stub = scripted(after(0.5, "fine"))
        assert await guard.acall(stub.acall, 7, key="k") == "fine"
        assert stub.sent[0][1:] == ((7,), {"key": "k"})
        return counts(guard)

    assert run(main()) == {"started": 1, "ok": 1, "success": 1}


@pytest.mark.parametrize(("first", "second", "at"), [(5.0, 0.5, 1.5), (1.2, 9.0, 1.2)])
def test_the_first_answer_wins_and_the_other_is_cancelled(first, second, at):
    clock = ManualClock()
    seen = []

    async def one_of(waits):
        wait = waits.pop(0)
        try:
            await asyncio.sleep(wait)
        except asyncio.CancelledError:
            seen.append(("cancelled", clock.seconds))
            raise
        return wait

    async def main():
        guard = d()
        assert await guard.acall(one_of, [first, second]) == min(first, second)
        assert clock.seconds == at
        await asyncio.sleep(0)
        assert seen == [("cancelled", at)]
        return counts(guard)

    expected = {"started": 1, "ok": 1, "retries": 1, "success": 1, "ignored": 1}
    assert run(main(), clock) == expected


def test_one_that_fails_leaves_it_to_the_other():
    async def main():
        guard = d()
        stub = scripted(after(1.5, ConnectionError), after(3.0, "fine"))
        assert await guard.acall(stub.acall) == "fine"
        assert stub.instants == [0, 1.0]
        return counts(guard)

    expected = {"started": 1, "ok": 1, "retries": 1, "success": 1, "failure": 1}
    assert run(main()) == expected


def test_when_all_have_failed_it_is_tried_again_and_hedged_again():
    async def main():
        guard = d(
            attempts=2, budget=Budget(ratio=9.0), backoff=Backoff(base=2 * SECOND, jitter="none")
        )
        stub = scripted(
            after(1.5, ConnectionError("first")),
            after(1.0, ConnectionError("second")),
            after(5.0, ConnectionError("third")),
            after(0.5, "fine"),
        )
        assert await guard.acall(stub.acall) == "fine"
        assert stub.instants == [0, 1.0, 4.0, 5.0]
        return counts(guard)

    assert run(main()) == {
        "started": 1, "ok": 1, "retries": 3, "success": 1, "failure": 2, "ignored": 1,
    }  # fmt: skip


def test_the_last_error_is_raised_as_it_was():
    async def main():
        guard = d()
        late = ConnectionError("second")
        stub = scripted(after(1.5, ConnectionError("first")), after(3.0, late))
        with pytest.raises(ConnectionError) as raised:
            await guard.acall(stub.acall)
        assert raised.value is late
        return counts(guard)

    assert run(main()) == {"started": 1, "failed": 1, "retries": 1, "failure": 2}


def test_each_attempt_has_its_own_time():
    clock = ManualClock()

    async def main():
        guard = d(timeout=3.0)
        with pytest.raises(AttemptTimeout, match="d: no answer within 3 s") as late:
            await guard.acall(scripted(after(60.0, "late"), after(60.0, "late")).acall)
        assert isinstance(late.value.__cause__, TimeoutError)
        return counts(guard)

    assert run(main(), clock) == {"started": 1, "failed": 1, "retries": 1, "timeout": 2}
    assert clock.seconds == 4.0


def test_a_timeout_of_the_function_itself_is_its_own_error():
    async def main():
        guard = d(timeout=3.0)
        with pytest.raises(TimeoutError, match="mine") as raised:
            await guard.acall(scripted(TimeoutError("mine")).acall)
        assert type(raised.value) is TimeoutError

    run(main())


def test_one_that_will_not_be_cancelled_is_too_slow():
    async def stubborn():
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "not me"

    async def main():
        guard = d(timeout=0.5)
        with pytest.raises(AttemptTimeout):
            await guard.acall(stubborn)
        return counts(guard)

    assert run(main()) == {"started": 1, "failed": 1, "timeout": 1}


def test_a_deadline_ends_all():
    clock = ManualClock()

    async def main():
        guard = d()
        with tidegate.deadline(2.0), pytest.raises(DeadlineExceeded) as late:
            await guard.acall(scripted(after(60.0, "late"), after(60.0, "late")).acall)
        assert late.value.sent
        return counts(guard)

    assert run(main(), clock) == {"started": 1, "failed": 1, "retries": 1, "timeout": 2}
    assert clock.seconds == 2.0


def test_without_a_token_it_waits_for_the_one_that_is_out():
    async def main():
        guard = d(budget=Budget(ratio=0.0))
        stub = scripted(after(5.0, "fine"))
        assert await guard.acall(stub.acall) == "fine"
        return counts(guard)

    assert run(main()) == {"started": 1, "ok": 1, "success": 1}


@pytest.mark.parametrize(("ratio", "sent"), [(0.0, 1), (2.0, 2)])
def test_the_outermost_budget_pays(ratio, sent):
    async def main():
        # With a deadline of its own, it hands down who pays with every attempt.
        outer = tidegate.guard("outer", attempts=2, budget=Budget(ratio=ratio), deadline=60.0)
        inner = d()
        stub = scripted(after(5.0, "fine"), after(9.0, "other"))

        async def within():
            return await inner.acall(stub.acall)

        assert await outer.acall(within) == "fine"
        return len(stub.sent)

    assert run(main()) == sent


def test_a_first_attempt_that_is_refused_sends_nothing():
    async def main():
        guard = d(breaker=Breaker(volume=1), backoff=None)
        with pytest.raises(ConnectionError):
            await guard.acall(scripted(ConnectionError).acall)
        with pytest.raises(CircuitOpen):
            await guard.acall(scripted().acall)
        return counts(guard)

    assert run(main()) == {"started": 2, "failed": 1, "rejected": 1, "failure": 1}


def test_listeners_hear_of_a_circuit_that_opens_and_closes():
    heard = []

    async def main():
        guard = d(breaker=Breaker(volume=1, open_for=SECOND, probes=1, ramp=0))
        guard.listen(lambda name, change: heard.append((name, change.after)))
        with pytest.raises(ConnectionError):
            await guard.acall(scripted(ConnectionError).acall)
        await asyncio.sleep(1.5)
        assert await guard.acall(scripted("fine").acall) == "fine"

    run(main())
    assert heard == [("d", "open"), ("d", "half-open"), ("d", "closed")]


def test_a_fallback_answers_when_all_have_failed():
    async def main():
        guard = d().options(fallback=lambda: "instead")
        assert await guard.acall(scripted(ConnectionError).acall) == "instead"
        return counts(guard)

    assert run(main()) == {"started": 1, "fallback": 1, "failure": 1}


def test_a_judge_may_say_no_to_one_answer_and_yes_to_the_other():
    def judge(answer):
        return Verdict(Outcome.OVERLOADED) if answer == "busy" else None

    async def main():
        guard = d().options(judge=judge)
        stub = scripted(after(1.5, "busy"), after(1.5, "fine"))
        assert await guard.acall(stub.acall) == "fine"
        return counts(guard)

    expected = {"started": 1, "ok": 1, "retries": 1, "success": 1, "overloaded": 1}
    assert run(main()) == expected


def test_a_user_who_leaves_ends_all_attempts_and_waits_for_their_end():
    ended = []

    async def slow():
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.1)
            ended.append(1)

    async def main():
        guard = d()
        task = asyncio.create_task(guard.acall(slow))
        await asyncio.sleep(1.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended == [1, 1]
        await asyncio.sleep(0.1)
        return counts(guard)

    assert run(main()) == {"started": 1, "failed": 1, "retries": 1, "ignored": 2}


def test_a_user_who_insists_does_not_wait_for_their_end():
    async def slow():
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(5)

    async def main():
        guard = d()
        task = asyncio.create_task(guard.acall(slow))
        await asyncio.sleep(0.5)
        task.cancel()
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(10)
        return counts(guard)

    assert run(main()) == {"started": 1, "failed": 1, "ignored": 1}


def test_a_timeout_further_out_says_that_it_was_too_slow():
    async def main():
        guard = d()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2):
                await guard.acall(scripted(after(60.0, "late"), after(60.0, "late")).acall)
        await asyncio.sleep(0.1)
        return counts(guard)

    assert run(main()) == {"started": 1, "failed": 1, "retries": 1, "timeout": 2}


def test_a_user_who_leaves_between_two_attempts_has_failed_once():
    async def main():
        guard = d(attempts=2, backoff=10.0)
        task = asyncio.create_task(guard.acall(scripted(ConnectionError, "never").acall))
        for _ in range(9):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.1)
        return counts(guard)

    assert run(main()) == {"started": 1, "failed": 1, "failure": 1}


def test_what_cancels_itself_ends_the_call():
    async def suicidal():
        raise asyncio.CancelledError

    async def main():
        guard = d()
        with pytest.raises(asyncio.CancelledError):
            await guard.acall(suicidal)
        return counts(guard)

    assert run(main()) == {"started": 1, "failed": 1, "ignored": 1}


def test_a_coroutine_that_is_closed_gives_its_places_back():
    async def main():
        guard = d()
        call = guard.acall(lambda: asyncio.sleep(60))
        call.send(None)
        await asyncio.sleep(0)
        assert guard.snapshot().inflight == 1
        call.close()
        await asyncio.sleep(0.1)
        return counts(guard)

    assert run(main()) == {"started": 1, "failed": 1, "ignored": 1}


def test_each_attempt_hands_down_its_own_end_and_how_deep_it_is():
    seen = []

    async def looks():
        seen.append((ambient().deadline, ambient().depth))
        await asyncio.sleep(1.5)

    async def main():
        guard = d(timeout=3.0)
        before = ambient()
        await guard.acall(looks)
        assert ambient() == before

    run(main())
    begun = seen[0][0] - 3 * SECOND
    assert seen == [(begun + 3 * SECOND, 0), (begun + 4 * SECOND, 1)]


def test_the_error_of_a_loser_is_nobodys_business():
    complaints = []

    async def fails_late(waits):
        try:
            await asyncio.sleep(waits.pop(0))
        except asyncio.CancelledError:
            raise LookupError("while leaving") from None

    async def main():
        asyncio.get_running_loop().set_exception_handler(lambda _, said: complaints.append(said))
        guard = d()
        await guard.acall(fails_late, [9.0, 0.5])
        await asyncio.sleep(0.1)
        gc.collect()
        return counts(guard)

    expected = {"started": 1, "ok": 1, "retries": 1, "success": 1, "ignored": 1}
    assert run(main()) == expected
    assert not complaints


def test_two_more_may_be_asked_for():
    async def main():
        guard = d(hedge=Hedge(after=SECOND, max=2))
        stub = scripted(after(9.0, 1), after(9.0, 2), after(0.5, 3))
        assert await guard.acall(stub.acall) == 3
        assert stub.instants == [0, 1.0, 2.0]
        return counts(guard)

    assert run(main()) == {"started": 1, "ok": 1, "retries": 2, "success": 1, "ignored": 2}


def test_what_must_not_be_done_twice_is_asked_for_once():
    async def main():
        guard = d(idempotent=False)
        stub = scripted(after(5.0, "done"))
        assert await guard.acall(stub.acall) == "done"

    run(main())


def test_who_only_looks_on_asks_once():
    async def main():
        guard = d().options(mode="observe")
        stub = scripted(after(5.0, "done"))
        assert await guard.acall(stub.acall) == "done"

    run(main())
