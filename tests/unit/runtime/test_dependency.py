"""The shared state of a dependency: it adds up, and says what changed, outside its lock."""

import logging

import pytest

import tidegate
from tidegate import CircuitOpen, Held, LimitExceeded, RateLimited, Rejected, Throttled
from tidegate.core.outcome import Reason, Transition
from tidegate.runtime.dependency import Dependency
from tidegate.runtime.keywords import call_settings
from tidegate.runtime.registry import _forget
from tidegate.testing import instant, scripted
from tidegate.units import SECOND


@pytest.fixture(autouse=True)
def clock():
    _forget()
    with instant() as still:
        yield still
    _forget()


def dependency(**keywords):
    return Dependency("d", call_settings(keywords))


def change(at, after="open"):
    return Transition(at, "circuit_breaker", "closed", after, "20 of the last 20 calls failed")


@pytest.mark.parametrize(
    ("reason", "error"),
    [
        (Reason.CIRCUIT_OPEN, CircuitOpen),
        (Reason.CIRCUIT_PROBING, CircuitOpen),
        (Reason.HELD, Held),
        (Reason.LIMIT, LimitExceeded),
        (Reason.RATE, RateLimited),
        (Reason.THROTTLED, Throttled),
    ],
)
def test_each_reason_has_its_exception_with_words_and_a_time(reason, error):
    refused = dependency().rejection(reason, SECOND // 2)
    assert type(refused) is error
    assert (refused.dependency, refused.retry_after, refused.sent) == ("d", 0.5, False)
    assert refused.reason
    assert dependency().rejection(reason, None).retry_after is None


def test_every_refusal_is_an_exception_of_its_own():
    one = dependency()
    assert one.rejection(Reason.LIMIT, None) is not one.rejection(Reason.LIMIT, None)


@pytest.mark.parametrize(
    "reason", [r for r in Reason if r.name not in {"SHED", "WAITED", "CLIENT"}]
)
def test_every_reason_of_a_client_has_words(reason):
    assert isinstance(dependency().rejection(reason, None), Rejected)


def test_a_listener_that_fails_is_logged_and_stops_nobody(caplog):
    heard = []

    def fails(name, change):
        raise LookupError("theirs")

    one = dependency()
    one.listeners = (fails, lambda name, change: heard.append(change.after))
    with caplog.at_level(logging.ERROR, "tidegate"):
        one.tell([change(0)])
    assert heard == ["open"]
    assert [r.getMessage() for r in caplog.records if r.levelno == logging.ERROR] == [
        "a listener of d failed"
    ]


def test_a_listener_may_ask_the_guard_it_is_told_of():
    guard = tidegate.guard("d", attempts=1, fallback=lambda: None)
    states = []
    guard.listen(lambda name, change: states.append(guard.snapshot().state))
    stub = scripted(*[ConnectionError] * 20)
    for _ in range(20):
        guard.call(stub.call)
    assert states == ["open"]


def test_a_change_of_state_is_one_line(caplog):
    dependency().tell([change(0)])
    (line,) = caplog.records
    assert line.levelno == logging.WARNING
    assert line.getMessage() == (
        "d: circuit_breaker is open, was closed: 20 of the last 20 calls failed"
    )


def test_a_circuit_that_flaps_does_not_fill_a_disk(caplog):
    one = dependency()
    for second in range(59):
        one.tell([change(second * SECOND)])
    assert len(caplog.records) == 20
    one.tell([change(61 * SECOND)])
    assert len(caplog.records) == 21
    assert caplog.records[-1].getMessage().endswith("(39 lines left out)")


def test_no_line_ever_has_an_argument_or_an_error_of_a_call(caplog):
    guard = tidegate.guard("d", attempts=3, fallback=lambda secret: None, budget=None)
    with caplog.at_level(logging.DEBUG):
        for _ in range(30):
            guard.call(scripted(*[ConnectionError("hunter2")] * 3).call, "hunter2")
    assert caplog.records
    assert "hunter2" not in caplog.text


def test_every_call_and_every_attempt_is_counted_once(clock):
    guard = tidegate.guard("d", attempts=2, limit=1, backoff=None, budget=None)
    guard.call(scripted("fine").call)
    guard.call(scripted(ConnectionError, "fine").call)
    with pytest.raises(TimeoutError):
        guard.call(scripted(ConnectionError, TimeoutError).call)
    with guard.attempt(), pytest.raises(LimitExceeded):
        guard.call(scripted().call)
    seen = guard.snapshot()
    assert (seen.started, seen.ok, seen.failed, seen.rejected, seen.fallback) == (5, 3, 1, 1, 0)
    assert (seen.pending, seen.attempts, seen.retries) == (0, 6, 2)
    assert seen.outcomes == {
        "success": 3, "failure": 2, "timeout": 1, "overloaded": 0, "ignored": 0,
    }  # fmt: skip
    assert seen.refused == {"limit": 1}
    assert (seen.state, seen.inflight, seen.limit) == ("closed", 0, 1)


def test_a_call_that_shares_another_s_end_is_a_call_without_an_attempt():
    one = dependency()
    for end in ("ok", "failed", "rejected", "fallback"):
        one.count_shared(end)
    seen = one.snapshot()
    assert (seen.started, seen.shared, seen.attempts, seen.pending) == (4, 4, 0, 0)
    assert seen.outcomes["success"] == 0


def test_nothing_that_is_switched_off_is_shown():
    seen = dependency(breaker=None, limit=None, budget=None).snapshot()
    assert (seen.state, seen.inflight, seen.limit, seen.retry_tokens) == (
        "closed",
        None,
        None,
        None,
    )


def test_a_token_is_paid_while_there_are_any():
    poor = dependency(budget=0.0)
    assert [poor.pay(), poor.pay()] == [False, False]
    assert dependency(budget=None).pay()


def test_beginning_afresh_keeps_the_settings_and_forgets_the_rest():
    guard = tidegate.guard("d", timeout=2.0, attempts=1, fallback=lambda: None)
    stub = scripted(*[ConnectionError] * 20)
    for _ in range(20):
        guard.call(stub.call)
    assert guard.snapshot().state == "open"
    guard.dependency.start_afresh()
    seen = guard.snapshot()
    assert (seen.started, seen.state) == (0, "closed")
    assert guard.settings.timeout == 2 * SECOND
    assert guard.call(scripted("fine").call) == "fine"
