"""The guard as a user's type checkers see it: mypy and pyright read this file, nothing runs.

What is guarded keeps its arguments, its result and its kind; what would be a mistake is refused by
the checker before it is one at run time.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import assert_type

import tidegate
from tidegate import testing

licences = tidegate.guard("licences", timeout=0.25, attempts=3)
assert_type(licences, tidegate.Guard)


class Licence:
    pass


@licences
def check(app: str, *, fresh: bool = False) -> Licence:
    return Licence()


@licences
async def check_async(app: str, *, fresh: bool = False) -> Licence:
    return Licence()


@licences.options(idempotent=False, attempts=1)
def buy(app: str) -> int:
    return 1


def plain() -> None:
    assert_type(check("a", fresh=True), Licence)
    assert_type(buy("a"), int)
    assert_type(licences.call(len, "abc"), int)
    check(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    check("a", fast=True)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    licences.call(len)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


async def awaited() -> None:
    assert_type(await check_async("a"), Licence)
    assert_type(await licences.acall(asyncio.sleep, 0.1, "x"), str)
    await check_async(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    async with licences.attempt() as attempt:
        assert_type(attempt.remaining(), float | None)
        attempt.record(tidegate.Outcome.OVERLOADED)
    # A coroutine, not merely something to await: it can be made a task.
    assert_type(await asyncio.create_task(check_async("a")), Licence)


def blocks() -> None:
    with tidegate.deadline(2.0) as limit, tidegate.criticality("sheddable"):
        assert_type(limit.remaining(), float | None)
        assert_type(tidegate.remaining(), float | None)
    tidegate.criticality("cheap")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with licences.attempt() as attempt:
        attempt.record("slow")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def refused(error: tidegate.TidegateError) -> float | None:
    if isinstance(error, tidegate.Rejected):
        assert_type(error.dependency, str)
        return error.retry_after
    if isinstance(error, TimeoutError):
        return None
    return None


def seen() -> None:
    seen = licences.snapshot()
    assert_type(seen.pending, int)
    assert_type(seen.refused, dict[str, int])
    carried = tidegate.carry(check)
    assert_type(carried("a"), Licence)


# Streams, stale answers and what tests need.


@licences
def items(app: str) -> Iterator[int]:
    yield 1


@licences.stream(first_item=1.0, idle=0.5)
async def items_async(app: str) -> AsyncIterator[int]:
    yield 1


@licences.stale(3600.0, entries=10, key=lambda app: app)
def kept(app: str) -> Licence:
    return Licence()


@licences.stale(3600.0)
async def kept_async(app: str) -> Licence:
    return Licence()


async def second_best() -> None:
    assert_type(items("a"), Iterator[int])
    assert_type(items_async("a"), AsyncIterator[int])
    items(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with tidegate.degradation() as seen:
        assert_type(kept("a"), Licence)
        assert_type(await kept_async("a"), Licence)
    assert_type(seen.names, tuple[str, ...])
    assert_type(seen.age("licences"), float | None)
    tidegate.listen(lambda name, change: print(name, change.after))()


async def answer() -> int:
    return 42


def in_tests() -> None:
    with testing.instant(seed=7) as clock, testing.capture() as captured:
        clock.advance(5.0)
        assert_type(clock.seconds, float)
        assert_type(captured.states("licences"), list[str])
    assert_type(testing.run(answer()), int)
    with testing.refusing(licences):
        assert_type(testing.scripted(1, testing.after(0.5, KeyError)).instants, list[float])
