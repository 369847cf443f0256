"""What do blocks, streams, stale answers and metrics cost, over the bare code?

    python benchmarks/library.py [rounds]

Nanoseconds of CPU time, the bare code's own taken off, with the default protection. The cases run
in turn, round after round, so that a busy neighbour slows all of them alike; the smallest round
counts, and the middle one shows the spread. Functions alone are `overhead.py`'s.
"""

import asyncio
import os
import platform
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator

os.environ.setdefault("TIDEGATE_STATE_DIR", "off")  # what sharing costs is measured by `shared.py`

import tidegate
from tidegate.runtime import metrics

TIMES = 2_000
ITEMS = 1_000

guard = tidegate.guard("measured")


def one(key: int) -> int:
    return key


async def one_async(key: int) -> int:
    return key


def items() -> Iterator[int]:
    yield from range(ITEMS)


async def items_async() -> AsyncIterator[int]:
    for item in range(ITEMS):
        yield item


stale = guard.stale(60.0)(one)
stale_async = guard.stale(60.0)(one_async)
stream = guard(items)
stream_async = guard(items_async)
attempt, attempt_async = guard(one), guard(one_async)


def bare() -> int:
    for number in range(TIMES):
        one(number & 7)
    return TIMES


def function() -> int:
    for number in range(TIMES):
        attempt(number & 7)
    return TIMES


def block() -> int:
    for number in range(TIMES):
        with guard.attempt():
            one(number & 7)
    return TIMES


def with_stale() -> int:
    for number in range(TIMES):
        stale(number & 7)
    return TIMES


def bare_items() -> int:
    return sum(1 for _ in items())


def guarded_items() -> int:
    return sum(1 for _ in stream())


def scraped() -> int:
    for _ in range(20):
        for seen in tidegate.snapshots().values():
            for metric in metrics.METRICS:
                metric.read(seen)
    return 20


async def bare_async() -> int:
    for number in range(TIMES):
        await one_async(number & 7)
    return TIMES


async def function_async() -> int:
    for number in range(TIMES):
        await attempt_async(number & 7)
    return TIMES


async def block_async() -> int:
    for number in range(TIMES):
        async with guard.attempt():
            await one_async(number & 7)
    return TIMES


async def with_stale_async() -> int:
    for number in range(TIMES):
        await stale_async(number & 7)
    return TIMES


async def bare_items_async() -> int:
    return len([item async for item in items_async()])


async def guarded_items_async() -> int:
    return len([item async for item in stream_async()])


loop = asyncio.new_event_loop()


def in_a_loop(main: Callable[[], object]) -> Callable[[], int]:
    return lambda: loop.run_until_complete(main())  # type: ignore[arg-type, call-overload]


CASES: list[tuple[str, Callable[[], int], str | None]] = [
    ("(a call)", bare, None),
    ("a function", function, "(a call)"),
    ("a block", block, "(a call)"),
    ("a function with its last answers kept", with_stale, "(a call)"),
    ("(an item of a generator)", bare_items, None),
    ("an item of a stream", guarded_items, "(an item of a generator)"),
    ("(a call that is awaited)", in_a_loop(bare_async), None),
    ("a coroutine function", in_a_loop(function_async), "(a call that is awaited)"),
    ("an async block", in_a_loop(block_async), "(a call that is awaited)"),
    (
        "the same with its last answers kept",
        in_a_loop(with_stale_async),
        "(a call that is awaited)",
    ),
    ("(an item of an async generator)", in_a_loop(bare_items_async), None),
    (
        "an item of an async stream, its timer set",
        in_a_loop(guarded_items_async),
        "(an item of an async generator)",
    ),
    ("all figures of one guard, when they are scraped", scraped, None),
]


def nanoseconds(case: Callable[[], int]) -> float:
    begun = time.process_time_ns()
    times = case()
    return (time.process_time_ns() - begun) / times


def main(rounds: int) -> None:
    taken: dict[str, list[float]] = {name: [] for name, _, _ in CASES}
    for _ in range(rounds):
        for name, case, _ in CASES:
            taken[name].append(nanoseconds(case))
    print(
        f"CPython {platform.python_version()}, {rounds} rounds: smallest (middle), ns of CPU time"
    )
    for name, _, base in CASES:
        least = [0.0] if base is None else taken[base]
        small = min(taken[name]) - min(least)
        middle = statistics.median(taken[name]) - statistics.median(least)
        print(f"{name:<50}{small:>10,.0f} ({middle:,.0f})")
    loop.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
