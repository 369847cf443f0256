"""What does a guarded HTTP client cost a request, over the same client alone?

    python benchmarks/adapters.py [rounds]

Microseconds of CPU time per request. Each client asks an in-memory transport, so that neither a
server nor a socket is in the figure, for one small answer; a guard has its default protection. The
cases run in turn, round after round, so that a busy neighbour slows all of them alike; the smallest
round counts, and the middle one shows the spread.
"""

import asyncio
import platform
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import Any

import httpx
import httpx2

import tidegate
from tidegate.adapters import httpx as httpx_adapter
from tidegate.adapters import httpx2 as httpx2_adapter

REQUESTS = 300
URL = "https://shop.example/orders"


def answers(library: Any) -> Any:
    return library.MockTransport(lambda request: library.Response(200, content=b"ok"))


def cases() -> list[tuple[str, Any, bool, float | None]]:
    """Name, client, whether it blocks, and the deadline it runs under."""
    return [
        (
            "httpx2, async, alone",
            httpx2.AsyncClient(transport=answers(httpx2)),
            False,
            None,
        ),
        (
            "httpx2, async, guarded",
            httpx2.AsyncClient(transport=httpx2_adapter.AsyncTransport(wrapped=answers(httpx2))),
            False,
            None,
        ),
        (
            "httpx2, async, guarded, under a deadline that is propagated",
            httpx2.AsyncClient(
                transport=httpx2_adapter.AsyncTransport(
                    tidegate.guard("told", propagate=True), wrapped=answers(httpx2)
                )
            ),
            False,
            60.0,
        ),
        ("httpx2, blocking, alone", httpx2.Client(transport=answers(httpx2)), True, None),
        (
            "httpx2, blocking, guarded",
            httpx2.Client(transport=httpx2_adapter.Transport(wrapped=answers(httpx2))),
            True,
            None,
        ),
        ("httpx, async, alone", httpx.AsyncClient(transport=answers(httpx)), False, None),
        (
            "httpx, async, guarded, in safe mode",
            httpx.AsyncClient(transport=httpx_adapter.AsyncTransport(wrapped=answers(httpx))),
            False,
            None,
        ),
    ]


async def ask(get: Callable[[str], Awaitable[Any]]) -> float:
    started = time.thread_time_ns()
    for _ in range(REQUESTS):
        await get(URL)
    return (time.thread_time_ns() - started) / REQUESTS / 1000


def ask_blocking(get: Callable[[str], Any]) -> float:
    started = time.thread_time_ns()
    for _ in range(REQUESTS):
        get(URL)
    return (time.thread_time_ns() - started) / REQUESTS / 1000


async def main(rounds: int) -> None:
    found: dict[str, list[float]] = {}
    all_cases = cases()
    for _ in range(rounds):
        for name, client, blocks, deadline in all_cases:
            with tidegate.deadline(deadline) if deadline else nullcontext():
                took = ask_blocking(client.get) if blocks else await ask(client.get)
            found.setdefault(name, []).append(took)
    print(f"CPython {platform.python_version()}, {rounds} rounds of {REQUESTS} requests")
    alone = 0.0
    for name, figures in found.items():
        best, middle = min(figures), statistics.median(figures)
        if name.endswith("alone"):
            alone = best
            print(f"{best:7.1f} us  {name} (middle {middle:.1f})")
        else:
            print(f"{best - alone:+7.1f} us  {name} (in all {best:.1f}, middle {middle:.1f})")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 25))
