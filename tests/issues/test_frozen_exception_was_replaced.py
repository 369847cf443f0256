"""An exception that is a frozen dataclass came out of the guard as FrozenInstanceError."""

import asyncio
import dataclasses
from collections.abc import Iterator

import pytest

import tidegate
from tidegate.runtime.registry import _forget
from tidegate.testing import instant


@pytest.fixture(autouse=True)
def clock() -> Iterator[None]:
    _forget()
    with instant():
        yield
    _forget()


@dataclasses.dataclass(frozen=True)
class SoldOutError(Exception):
    item: str


def test_it_stays_itself_in_a_function() -> None:
    def sell() -> None:
        raise SoldOutError("tea")

    with pytest.raises(SoldOutError):
        tidegate.guard("licences", attempts=2, backoff=None).call(sell)


def test_it_stays_itself_in_a_task() -> None:
    async def sell() -> None:
        raise SoldOutError("tea")

    with pytest.raises(SoldOutError):
        asyncio.run(tidegate.guard("licences", attempts=2, backoff=None).acall(sell))
