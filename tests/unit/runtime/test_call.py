"""What both drivers do with a call that does not succeed at once, told in instants."""

import asyncio
from contextvars import copy_context

import pytest

import tidegate
from tidegate import CircuitOpen, DeadlineExceeded, Outcome, Verdict
from tidegate.runtime.registry import _forget
from tidegate.settings.policies import Backoff, Limit
from tidegate.testing import VirtualLoop, after, instant, refusing, scripted
from tidegate.units import SECOND


class Drive:
    """Makes calls in virtual time, by one of the two drivers."""

    def __init__(self, clock, make):
        self.clock = clock
        self.make = make

    def __call__(self, guard, *steps):
        stub = scripted(*steps)
        self.sent = stub.sent
        self.instants = stub.instants
        try:
            return self.make(guard, stub)
        finally:
            self.instants = stub.instants


@pytest.fixture(params=["blocking", "aio"])
def drive(request):
    _forget()
    with instant() as clock:
        if request.param == "blocking":
            yield Drive(clock, lambda guard, stub: guard.call(stub.call))
        else:
            with asyncio.Runner(loop_factory=lambda: VirtualLoop(clock)) as runner:
                yield Drive(
                    clock,
                    lambda guard, stub: runner.run(guard.acall(stub.acall), context=copy_context()),
                )
    _forget()


def counts(guard):
    seen = guard.snapshot()
    assert seen.pending == 0
    assert sum(seen.outcomes.values()) == seen.attempts
    assert not seen.inflight
    names = ("started", "ok", "failed", "rejected", "fallback", "retries")
    shown = {name: getattr(seen, name) for name in names} | seen.outcomes
    return {name: number for name, number in shown.items() if number}


def second_wait(**settings):
    """A guard that waits a second before each retry."""
    backoff = Backoff(base=SECOND, factor=1.0, jitter="none")
    return tidegate.guard("d", backoff=backoff, budget=None, **settings)


def notes(error):
    return getattr(error, "__notes__", [])


def test_a_success_is_given_as_it_is(drive):
    guard = tidegate.guard("d")
    answer = object()
    assert drive(guard, answer) is answer
    assert counts(guard) == {"started": 1, "ok": 1, "success": 1}


def test_a_failure_is_tried_again_after_its_wait(drive):
    guard = second_wait(attempts=3)
    assert drive(guard, ConnectionError, after(0.5, ConnectionError), "fine") == "fine"
    assert drive.instants == [0, 1.0, 2.5]
    assert counts(guard) == {"started": 1, "ok": 1, "retries": 2, "success": 1, "failure": 2}


def test_the_last_exception_is_raised_as_it_is_with_a_note(drive):
    guard = second_wait(attempts=2)
    mine = ConnectionError("mine")
    with pytest.raises(ConnectionError) as raised:
        drive(guard, ConnectionError("first"), mine)
    assert raised.value is mine
    assert notes(mine) == ["tidegate: d: tried 2 times, no more: all attempts are used"]
    assert counts(guard) == {"started": 1, "failed": 1, "retries": 1, "failure": 2}


def test_an_exception_that_is_raised_again_and_again_does_not_grow(drive):
    guard = second_wait(attempts=2)
    mine = ConnectionError("mine")
    for _ in range(3):
        with pytest.raises(ConnectionError):
            drive(guard, mine, mine)
    assert len(notes(mine)) == 1


@pytest.mark.parametrize(
    ("error", "outcome"), [(TypeError, "ignored"), (KeyboardInterrupt, "ignored")]
)
def test_what_says_nothing_is_not_tried_again(drive, error, outcome):
    guard = second_wait(attempts=3)
    with pytest.raises(error) as raised:
        drive(guard, error)
    assert notes(raised.value) == []
    assert counts(guard) == {"started": 1, "failed": 1, outcome: 1}


def test_a_call_that_must_not_be_done_twice_is_repeated_only_if_it_was_refused(drive):
    class OverloadedError(Exception):
        status = 503

    guard = second_wait(attempts=3, idempotent=False)
    with pytest.raises(ConnectionError) as raised:
        drive(guard, ConnectionError)
    assert notes(raised.value) == ["tidegate: d: tried once, no more: this is not to be repeated"]
    assert drive(guard, OverloadedError, "fine") == "fine"


def test_an_expected_exception_is_an_answer(drive):
    guard = second_wait(attempts=3).options(expected=(LookupError,))
    with pytest.raises(KeyError):
        drive(guard, KeyError)
    assert counts(guard) == {"started": 1, "ok": 1, "success": 1}


def test_what_is_classified_is_what_was_said(drive):
    def classify(error):
        return Outcome.IGNORED if isinstance(error, ConnectionError) else None

    guard = second_wait(attempts=2).options(classify=classify)
    with pytest.raises(ConnectionError):
        drive(guard, ConnectionError)
    assert drive(guard, OSError, "fine") == "fine"


def test_a_result_may_say_no_and_is_given_all_the_same_in_the_end(drive):
    def judge(status):
        return Verdict(Outcome.OVERLOADED, retry_after=3 * SECOND) if status == 503 else None

    guard = second_wait(attempts=2).options(judge=judge)
    assert drive(guard, 503, 200) == 200
    assert drive.instants == [0, 3.0]
    assert drive(guard, 503, 503) == 503
    assert counts(guard) == {
        "started": 2, "ok": 1, "failed": 1, "retries": 2, "success": 1, "overloaded": 3,
    }  # fmt: skip


def test_no_retry_is_sent_after_the_deadline(drive):
    guard = second_wait(attempts=5, deadline=2.5)
    with pytest.raises(ConnectionError) as raised:
        drive(guard, *[ConnectionError] * 5)
    assert drive.instants == [0, 1.0, 2.0]
    assert notes(raised.value) == ["tidegate: d: tried 3 times, no more: the deadline would pass"]


def test_nothing_is_sent_for_a_deadline_that_has_passed(drive):
    guard = tidegate.guard("d", fallback=lambda: "instead")
    with tidegate.deadline(1.0):
        drive.clock.advance(1.0)
        with pytest.raises(DeadlineExceeded) as late:
            drive(tidegate.guard("d"))
        assert drive(guard) == "instead"
    assert not late.value.sent
    assert counts(guard) == {"started": 2, "rejected": 1, "fallback": 1}


def test_without_a_token_there_is_no_retry(drive):
    guard = tidegate.guard("d", attempts=2, backoff=None, budget=0.0)
    with pytest.raises(ConnectionError) as raised:
        drive(guard, ConnectionError)
    assert notes(raised.value) == ["tidegate: d: tried once, no more: the retry budget is spent"]
    assert guard.snapshot().refused == {"budget": 1}


def test_a_retry_that_the_circuit_refuses_ends_the_call(drive):
    guard = tidegate.guard("d", attempts=30, backoff=None, budget=None)
    with pytest.raises(ConnectionError) as raised:
        drive(guard, *[ConnectionError] * 20)
    assert notes(raised.value) == ["tidegate: d: tried 20 times, no more: its circuit is open"]
    with pytest.raises(CircuitOpen) as refused:
        drive(guard)
    assert 0 < refused.value.retry_after <= 5
    assert guard.snapshot().refused == {"circuit_open": 2}


def test_a_fallback_answers_for_a_failure_and_for_a_refusal_with_the_same_arguments(drive):
    guard = second_wait(attempts=2).options(fallback=lambda: "instead")
    assert drive(guard, ConnectionError, ConnectionError) == "instead"
    with refusing(guard):
        assert drive(guard) == "instead"
    assert counts(guard) == {"started": 2, "fallback": 2, "retries": 1, "failure": 2}


def test_a_fallback_does_not_hide_what_says_nothing_about_the_dependency(drive):
    guard = second_wait(attempts=2).options(fallback=lambda: "instead")
    with pytest.raises(TypeError):
        drive(guard, TypeError)


def test_an_error_of_the_fallback_is_raised(drive):
    def broken():
        raise LookupError("nothing in the cache")

    guard = second_wait(attempts=1).options(fallback=broken)
    with pytest.raises(LookupError):
        drive(guard, ConnectionError)
    assert counts(guard) == {"started": 1, "fallback": 1, "failure": 1}


def test_a_limit_is_given_back_however_a_call_ends(drive):
    guard = second_wait(attempts=1, limit=Limit(max=1))
    for step in (ConnectionError, KeyboardInterrupt, TypeError, TimeoutError):
        with pytest.raises(step):
            drive(guard, step)
    assert drive(guard, "fine") == "fine"
    assert counts(guard)["ok"] == 1


def test_a_guard_further_in_that_refuses_is_not_asked_again_by_one_further_out(drive):
    inner = tidegate.guard("inner")
    guard = second_wait(attempts=5)
    refusal = CircuitOpen("inner", "its circuit is open", 1.0)
    with pytest.raises(CircuitOpen) as raised:
        drive(guard, refusal)
    assert raised.value is refusal
    assert counts(guard) == {"started": 1, "failed": 1, "ignored": 1}
    assert inner.snapshot().started == 0
