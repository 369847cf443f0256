"""A loop that is not ours asks the guard: tenacity's and stamina's, in virtual time."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stamina
import tenacity

import tidegate
from tidegate.adapters.again import may_go_on, worth_it
from tidegate.adapters.stamina import retry_within
from tidegate.adapters.tenacity import retry_if_worth_it, stop_when_spent, wait_as_asked
from tidegate.runtime import registry
from tidegate.runtime.clock import current
from tidegate.settings.policies import Breaker
from tidegate.testing import ManualClock, instant
from tidegate.units import SECOND

PLAIN: dict[str, Any] = {"attempts": 1, "breaker": None, "limit": None}


@pytest.fixture(autouse=True)
def clock() -> Iterator[ManualClock]:
    with instant() as clock, stamina.set_testing(True, attempts=4):
        yield clock
    registry._forget()


class Busy(Exception):  # noqa: N818 - a word of the far side
    def __init__(self, retry_after: float = 0.0) -> None:
        self.retry_after = retry_after


Loop = Callable[[tidegate.Guard, Callable[[], Any]], Any]


def by_tenacity(guard: tidegate.Guard, function: Callable[[], Any]) -> Any:
    return tenacity.Retrying(
        retry=retry_if_worth_it(guard),
        stop=tenacity.stop_after_attempt(4) | stop_when_spent(guard),
        wait=wait_as_asked(),
        sleep=lambda seconds: current().sleep(round(seconds * SECOND)),
        reraise=True,
    )(function)


def by_stamina(guard: tidegate.Guard, function: Callable[[], Any]) -> Any:
    return stamina.RetryingCaller(attempts=4)(retry_within(guard), function)


@pytest.fixture(params=[by_tenacity, by_stamina])
def loop(request: pytest.FixtureRequest) -> Loop:
    return request.param  # type: ignore[no-any-return]


def failing(guard: tidegate.Guard, error: Exception) -> Callable[[], Any]:
    @guard
    def function() -> None:
        raise error

    return function


def sent(name: str = "asked") -> int:
    return tidegate.snapshots()[name].attempts


def test_a_storm_is_held_by_the_budget(loop: Loop) -> None:
    """Retries deposit like first attempts here, so they are a ninth and not a tenth."""
    guard = tidegate.guard("asked", **PLAIN)
    function = failing(guard, ConnectionError())
    for _ in range(300):
        with pytest.raises(ConnectionError):
            loop(guard, function)
    assert 300 * 1.05 < sent() < 300 * 1.12


def test_a_good_answer_ends_the_loop(loop: Loop) -> None:
    guard = tidegate.guard("asked", **PLAIN)
    answers = iter([ConnectionError(), 7])

    @guard
    def function() -> int:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert loop(guard, function) == 7


@pytest.mark.parametrize("error", [TypeError(), tidegate.CircuitOpen("further in", "closed")])
def test_what_is_not_worth_it_is_not_repeated(loop: Loop, error: Exception) -> None:
    guard = tidegate.guard("asked", **PLAIN)
    with pytest.raises(type(error)):
        loop(guard, failing(guard, error))
    assert sent() == 1


def test_an_open_circuit_ends_the_loop(loop: Loop) -> None:
    guard = tidegate.guard("asked", attempts=1, breaker=Breaker(volume=1), limit=None)
    with pytest.raises(ConnectionError):
        loop(guard, failing(guard, ConnectionError()))
    assert sent() == 1


def test_nothing_starts_after_the_deadline(loop: Loop, clock: ManualClock) -> None:
    guard = tidegate.guard("asked", **PLAIN)

    @guard
    def function() -> None:
        clock.advance(2.0)
        raise ConnectionError

    with tidegate.deadline(1.0), pytest.raises((ConnectionError, tidegate.DeadlineExceeded)):
        loop(guard, function)
    assert sent() == 1


def test_who_asks_for_longer_than_anybody_waits_is_left_alone(loop: Loop) -> None:
    guard = tidegate.guard("asked", **PLAIN)
    with pytest.raises(Busy):
        loop(guard, failing(guard, Busy(3600)))
    assert sent() == 1


def test_tenacity_waits_as_long_as_it_is_asked_to(clock: ManualClock) -> None:
    guard = tidegate.guard("asked", **PLAIN)
    with pytest.raises(Busy):
        by_tenacity(guard, failing(guard, Busy(3.0)))
    assert clock.seconds == 3.0, "one wait: there was one token"
    state: Any = tenacity.RetryCallState(tenacity.Retrying(), None, (), {})
    assert wait_as_asked(tenacity.wait_fixed(2))(state) == 2


def test_stamina_is_told_how_long() -> None:
    guard = tidegate.guard("asked", **PLAIN)
    with pytest.raises(Busy):
        guard.call(failing(guard, Busy()))
    assert retry_within(guard)(Busy(3.0)) == 3.0


def test_an_outer_guard_pays_too(loop: Loop) -> None:
    outer = tidegate.guard("outer", **PLAIN)
    guard = tidegate.guard("asked", **PLAIN)
    function = failing(guard, ConnectionError())
    for _ in range(300):
        with pytest.raises(ConnectionError):
            outer.call(lambda: loop(guard, function))
    assert 300 * 1.05 < sent() < 300 * 1.12


def test_a_guard_that_has_seen_nothing_is_a_mistake(loop: Loop) -> None:
    guard = tidegate.guard("asked", **PLAIN)

    def bare() -> None:
        raise ConnectionError

    with pytest.raises(tidegate.SettingsError, match="no call has gone through guard"):
        loop(guard, bare)


def test_a_result_that_is_repeated_costs_a_token_as_well() -> None:
    guard = tidegate.guard("asked", **PLAIN)
    polled = guard(lambda: None)
    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_result(lambda result: result is None), stop=stop_when_spent(guard)
    )
    with pytest.raises(tenacity.RetryError):
        retrying(polled)
    assert sent() == 2


def test_coroutines_go_the_same_way() -> None:
    guard = tidegate.guard("asked", **PLAIN)

    @tenacity.retry(retry=retry_if_worth_it(guard), stop=stop_when_spent(guard), reraise=True)
    @guard
    async def first() -> None:
        raise ConnectionError

    @stamina.retry(on=retry_within(guard))
    @guard
    async def second() -> None:
        raise ConnectionError

    for function in (first, second):
        with pytest.raises(ConnectionError):
            asyncio.run(function())
    assert 2 <= sent() <= 4


def test_what_refuses_is_counted() -> None:
    guard = tidegate.guard("asked", **PLAIN)
    with pytest.raises(ConnectionError):
        guard.call(failing(guard, ConnectionError()))
    error = ConnectionError()
    assert worth_it(guard, error)
    assert [may_go_on(guard, error, 0.0) for _ in range(3)] == [True, False, False]
    assert tidegate.snapshots()["asked"].refused == {"budget": 2}
