"""`guard(lambda: fetch())` counted a success before anything was sent, whatever came of it."""

from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

import tidegate
from tidegate.runtime.guard import Guard
from tidegate.runtime.registry import _forget
from tidegate.testing import instant


@pytest.fixture(autouse=True)
def clock() -> Iterator[None]:
    _forget()
    with instant():
        yield
    _forget()


async def fetch() -> None:
    raise ConnectionError


@pytest.mark.parametrize(
    "on_terms",
    [
        lambda licences: licences,  # the flat path
        lambda licences: licences.options(judge=lambda _: None),  # by the book
        lambda licences: licences.options(fallback=lambda: None),
    ],
)
def test_it_is_said_and_nothing_is_counted_as_well(on_terms: Callable[[Guard], Guard]) -> None:
    licences = tidegate.guard("licences")

    def give() -> Coroutine[Any, Any, None]:
        return fetch()

    with pytest.raises(TypeError, match=r"await guard\.acall"):
        on_terms(licences).call(give)  # type: ignore[unused-coroutine]
    seen = licences.snapshot()
    assert (seen.ok, seen.attempts, seen.inflight) == (0, 1, 0)
