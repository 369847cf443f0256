"""In observe mode nothing is in the way, and what would have been is counted."""

import pytest

import tidegate
from tidegate import Outcome, Verdict
from tidegate.runtime.registry import _forget
from tidegate.testing import capture, instant, refusing, run, scripted


@pytest.fixture(autouse=True)
def clock():
    _forget()
    with instant() as still:
        yield still
    _forget()


def test_every_call_goes_through_once_and_what_would_be_refused_is_counted():
    guard = tidegate.guard("seen", mode="observe", fallback=lambda: "never", attempts=3)
    assert guard.call(scripted("fine").call) == "fine"
    with pytest.raises(ConnectionError):
        guard.call(scripted(ConnectionError).call)
    with refusing(guard):
        assert guard.call(scripted("all the same").call) == "all the same"
    seen = guard.snapshot()
    assert (seen.started, seen.ok, seen.failed, seen.pending) == (3, 2, 1, 0)
    assert seen.outcomes["failure"] == 1
    assert (seen.attempts, seen.retries, seen.rejected, seen.fallback) == (3, 0, 0, 0)
    assert seen.would_refuse == {"held": 1}
    assert seen.refused == {}


def test_the_policies_learn_as_if_they_ruled():
    guard = tidegate.guard("seen", mode="observe")
    with capture() as seen:
        stub = scripted(*[ConnectionError] * 25)
        for _ in range(25):
            with pytest.raises(ConnectionError):
                guard.call(stub.call)
    assert seen.states("seen") == ["open"]
    assert guard.snapshot().would_refuse == {"circuit_open": 5}


def test_a_result_is_judged():
    def judge(status):
        return Verdict(Outcome.OVERLOADED) if status == 503 else None

    guard = tidegate.guard("seen", mode="observe", judge=judge)
    assert guard.call(scripted(503).call) == 503
    assert guard.call(scripted(200).call) == 200
    assert guard.snapshot().outcomes["overloaded"] == 1
    assert guard.snapshot().ok == 1


def test_off_nothing_is_even_counted():
    guard = tidegate.guard("seen", mode="off")
    with refusing(guard):
        assert guard.call(scripted("fine").call) == "fine"
    with pytest.raises(ConnectionError):
        guard.call(scripted(ConnectionError).call)
    assert guard.snapshot().started == 0


@pytest.mark.parametrize("mode", ["observe", "off"])
def test_a_coroutine_function_is_let_through_as_well(mode):
    async def main():
        guard = tidegate.guard("seen", mode=mode)
        with refusing(guard):
            return await guard.acall(scripted("fine").acall)

    assert run(main()) == "fine"
