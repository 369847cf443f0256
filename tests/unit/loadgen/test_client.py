"""In virtual time: a client does what its block in the system file says, and tells of it."""

import asyncio
from random import Random

import pytest
from virtual_seconds import SecondsClock, run

from tidegate.core.outcome import FAILURE, OVERLOADED, SUCCESS, Outcome
from tidegate.loadgen.client import Client, Guarded, guard_for
from tidegate.runtime import clock
from tidegate.settings.policies import Backoff, Limit
from tidegate.settings.system import Call
from tidegate.units import MILLISECOND, SECOND, Instant

CLOCK = SecondsClock()


class Told:
    """What a client tells of one request."""

    def __init__(self) -> None:
        self.said: list[tuple[Instant, str]] = []

    def sent(self, *, retry: bool) -> None:
        self.said.append((CLOCK.now() // MILLISECOND, "retry" if retry else "first"))

    def ended(self, outcome: str) -> None:
        self.said.append((CLOCK.now() // MILLISECOND, outcome))

    def rejected(self) -> None:
        self.said.append((CLOCK.now() // MILLISECOND, "rejected"))


class Far:
    """The far side: one answer after another, each in so many milliseconds."""

    def __init__(self, *answers: tuple[int, Outcome]) -> None:
        self.answers = list(answers)
        self.numbers: list[int] = []
        self.abandoned = 0

    async def __call__(self, number: int) -> Outcome:
        self.numbers.append(number)
        after, outcome = self.answers.pop(0)
        try:
            await asyncio.sleep(after / 1000)
        except asyncio.CancelledError:
            self.abandoned += 1
            raise
        return outcome


def request(call: Call, far: Far) -> tuple[bool, list[tuple[Instant, str]]]:
    async def once() -> bool:
        return await Client(call, far, Random(1), CLOCK)(told)

    told = Told()
    return run(once()), told.said


def test_who_gives_up_at_the_timeout_leaves_and_tries_again_at_once() -> None:
    far = Far((900, SUCCESS), (900, SUCCESS), (100, SUCCESS))
    ok, said = request(Call(timeout=500 * MILLISECOND, attempts=4), far)
    assert ok
    assert said == [
        (0, "first"),
        (500, "timeout"),
        (500, "retry"),
        (1000, "timeout"),
        (1000, "retry"),
        (1100, "success"),
    ]
    assert (far.numbers, far.abandoned) == ([1, 2, 3], 2)


def test_all_attempts_used_is_no_answer() -> None:
    far = Far((10, FAILURE), (10, OVERLOADED))
    ok, said = request(Call(attempts=2), far)
    assert not ok
    assert [what for _, what in said] == ["first", "failure", "retry", "overloaded"]


def test_a_backoff_is_waited_for() -> None:
    far = Far((10, FAILURE), (10, SUCCESS))
    backoff = Backoff(base=200 * MILLISECOND, jitter="none")
    ok, said = request(Call(attempts=2, backoff=backoff), far)
    assert (ok, said[2]) == (True, (210, "retry"))


def test_without_a_timeout_it_waits_as_long_as_it_takes() -> None:
    ok, said = request(Call(), Far((3_600_000, SUCCESS)))
    assert (ok, said[-1]) == (True, (3_600_000, "success"))


def test_a_policy_of_its_own_refuses_on_this_side() -> None:
    async def both() -> tuple[bool, bool]:
        client = Client(Call(limit=Limit(max=1)), far, Random(1), CLOCK)
        return tuple(await asyncio.gather(client(told), client(told)))  # type: ignore[return-value]

    far, told = Far((10, SUCCESS)), Told()
    assert run(both()) == (True, False)
    assert [what for _, what in told.said] == ["first", "rejected", "success"]
    assert far.numbers == [1]


def test_a_request_that_is_cut_off_gives_its_place_back() -> None:
    async def cut() -> bool:
        client = Client(Call(limit=Limit(max=1)), far, Random(1), CLOCK)
        first = asyncio.create_task(client(told))
        await asyncio.sleep(0.1)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        return await client(told)

    far, told = Far((10 * SECOND, SUCCESS), (10, SUCCESS)), Told()
    assert run(cut())
    assert far.abandoned == 1


def guarded(call: Call, far: Far, count: int = 1) -> tuple[list[bool], list[str]]:
    async def all_at_once() -> list[bool]:
        before = clock.use(CLOCK)
        try:
            client = Guarded(guard_for("far", call), far)
            return await asyncio.gather(*(client(told) for _ in range(count)))
        finally:
            clock.use(before)

    told = Told()
    return run(all_at_once()), [what for _, what in told.said]


def test_behind_a_guard_the_attempts_are_the_same() -> None:
    far = Far((900, SUCCESS), (10, FAILURE), (100, SUCCESS))
    ok, said = guarded(Call(timeout=500 * MILLISECOND, attempts=4), far)
    assert ok == [True]
    assert said == ["first", "timeout", "retry", "failure", "retry", "success"]
    assert (far.numbers, far.abandoned) == ([1, 2, 3], 1)


def test_behind_a_guard_all_attempts_used_is_no_answer() -> None:
    assert guarded(Call(attempts=1), Far((10, OVERLOADED)))[0] == [False]
    timeout = Call(timeout=MILLISECOND)
    assert guarded(timeout, Far((10, SUCCESS))) == ([False], ["first", "timeout"])


def test_what_the_guard_refuses_is_never_sent() -> None:
    far = Far((10, SUCCESS))
    ok, said = guarded(Call(limit=Limit(max=1)), far, count=3)
    assert sorted(ok) == [False, False, True]
    assert sorted(said) == ["first", "rejected", "rejected", "success"]
