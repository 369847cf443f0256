"""A dependency that does what is written down."""

import asyncio

import pytest

import tidegate
from tidegate.testing import after, instant, run, scripted


def test_it_gives_raises_takes_its_time_and_notes_what_it_was_sent():
    with instant() as clock:
        stub = scripted("one", ValueError("two"), after(2.0, "three"), KeyError)
        assert stub.call(1, b=2) == "one"
        with pytest.raises(ValueError, match="two"):
            stub.call()
        assert stub.call() == "three"
        with pytest.raises(KeyError):
            stub.call()
        assert clock.seconds == 2.0
        assert stub.instants == [0, 0, 0, 2.0]
        assert stub.sent[0] == (0, (1,), {"b": 2})


def test_async_it_is_the_same():
    async def main():
        stub = scripted(after(2.0, "one"), ValueError, "three")
        assert await stub.acall() == "one"
        with pytest.raises(ValueError):  # noqa: PT011 - the class alone was asked for
            await stub.acall()
        assert await stub.acall("x") == "three"
        return stub

    stub = run(main())
    assert stub.instants == [0, 2.0, 2.0]
    assert stub.sent[2].args == ("x",)


def test_a_call_too_many_is_a_mistake_that_no_guard_repeats():
    guard = tidegate.guard("test_scripts.many", attempts=5, budget=None)
    stub = scripted()
    with instant(), pytest.raises(AssertionError, match="called 1 times, with 0 steps"):
        guard.call(stub.call)
    with instant(), pytest.raises(AssertionError, match="called 1 times"):
        asyncio.run(guard.acall(stub.acall))
    assert stub.sent == []
