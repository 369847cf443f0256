"""A `classify` or `judge` that raised, or gave nonsense, kept its call's place for ever.

After as many such calls as the limit allows, every further call was refused.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from tidegate import guard
from tidegate.core.outcome import Outcome
from tidegate.runtime.guard import Guard
from tidegate.runtime.registry import _forget
from tidegate.testing import instant


@pytest.fixture(autouse=True)
def clock() -> Iterator[None]:
    _forget()
    with instant():
        yield
    _forget()


def raising(_: object) -> Any:
    raise ZeroDivisionError


def fails() -> None:
    raise ConnectionError


def blocked(view: Guard, function: Callable[[], Any]) -> None:
    view.call(function)


def awaited(view: Guard, function: Callable[[], Any]) -> None:
    async def work() -> Any:
        return function()

    asyncio.run(view.acall(work))


def block(view: Guard, function: Callable[[], Any]) -> None:
    with view.attempt():
        function()


def async_block(view: Guard, function: Callable[[], Any]) -> None:
    async def work() -> None:
        async with view.attempt():
            function()

    asyncio.run(work())


def stream(view: Guard, function: Callable[[], Any]) -> None:
    @view
    def items() -> Iterator[Any]:
        yield function()

    list(items())


def async_stream(view: Guard, function: Callable[[], Any]) -> None:
    @view
    async def items() -> AsyncIterator[Any]:
        yield function()

    async def work() -> None:
        async for _ in items():
            pass

    asyncio.run(work())


@pytest.mark.parametrize("mode", ["enforce", "observe"])
@pytest.mark.parametrize("way", [blocked, awaited, block, async_block, stream, async_stream])
@pytest.mark.parametrize(
    ("classify", "error"), [(raising, ZeroDivisionError), (lambda _: "timeout", TypeError)]
)
def test_a_classifier_that_cannot(
    way: Callable[..., None], classify: Callable[..., Any], error: type[Exception], mode: Any
) -> None:
    licences = guard("licences", limit=2)
    for _ in range(3):
        with pytest.raises(error):
            way(licences.options(classify=classify, mode=mode), fails)
    seen = licences.snapshot()
    assert (seen.inflight, seen.pending, seen.failed) == (0, 0, 3)
    assert seen.outcomes[Outcome.IGNORED.name.lower()] == 3


@pytest.mark.parametrize("mode", ["enforce", "observe"])
@pytest.mark.parametrize("way", [blocked, awaited])
@pytest.mark.parametrize(
    ("judge", "error"), [(raising, ZeroDivisionError), (lambda _: False, TypeError)]
)
def test_a_judge_that_cannot(
    way: Callable[..., None], judge: Callable[..., Any], error: type[Exception], mode: Any
) -> None:
    licences = guard("licences", limit=2)
    for _ in range(3):
        with pytest.raises(error):
            way(licences.options(judge=judge, mode=mode), lambda: 1)
    seen = licences.snapshot()
    assert (seen.inflight, seen.pending, seen.failed) == (0, 0, 3)


class CoyError(ConnectionError):
    """As httpx has it: an attribute that is not set raises, and no AttributeError."""

    @property
    def response(self) -> Any:
        raise RuntimeError("the response property has not been set")


@pytest.mark.parametrize("way", [blocked, awaited, block, async_block, stream, async_stream])
def test_an_exception_whose_properties_raise_stays_itself(way: Callable[..., None]) -> None:
    def coy() -> None:
        raise CoyError

    licences = guard("licences", limit=2, attempts=1)
    for _ in range(3):
        with pytest.raises(CoyError):
            way(licences, coy)
    seen = licences.snapshot()
    assert (seen.inflight, seen.pending, seen.outcomes["failure"]) == (0, 0, 3)


def test_a_fallback_does_not_hide_the_mistake() -> None:
    licences = guard("licences", fallback=lambda: "unknown", classify=raising)
    with pytest.raises(ZeroDivisionError):
        licences.call(fails)


def test_one_item_later_the_place_comes_back_as_well() -> None:
    licences = guard("licences", limit=2, classify=raising)

    @licences
    def items() -> Iterator[int]:
        yield 1
        raise ConnectionError

    for _ in range(3):
        with pytest.raises(ConnectionError):
            list(items())
    assert licences.snapshot().inflight == 0
