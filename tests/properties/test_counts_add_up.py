"""Whatever happens to calls, attempts, blocks and streams, each is counted once and gives back.

Tasks of every kind at once, which fail, hang, are cancelled and meet deadlines further out, under
drawn settings, in virtual time. Afterwards nothing is under way, every call has one end and every
attempt one outcome, and the whole is the same when it is run again.
"""

import asyncio
from collections.abc import AsyncIterator
from random import Random
from typing import Any

import pytest

import tidegate
from tidegate.runtime.dependency import GuardSnapshot
from tidegate.runtime.guard import Guard
from tidegate.runtime.registry import _forget
from tidegate.settings.policies import Backoff, Breaker, Limit, RateLimit
from tidegate.testing import run
from tidegate.units import MILLISECOND

SEEDS = range(60)
TASKS = 40
MS = MILLISECOND


class OverloadedError(Exception):
    status = 503


def drawn(luck: Random) -> dict[str, Any]:
    def maybe(value: Any) -> Any:
        return value if luck.random() < 0.5 else None

    return {
        "attempts": luck.randint(1, 4),
        "timeout": maybe(0.05),
        "deadline": maybe(luck.choice([0.06, 0.2])),
        "backoff": maybe(Backoff(base=10 * MS)),
        "budget": maybe(0.5),
        "breaker": maybe(Breaker(volume=luck.randint(5, 30), open_for=50 * MS)),
        "limit": maybe(Limit(max=luck.randint(1, 20))),
        "rate_limit": maybe(RateLimit(rate=50.0, burst=10)),
        "idempotent": luck.random() < 0.8,
    }


class World:
    """Tasks around one guard, and what there is to draw for them."""

    def __init__(self, seed: int) -> None:
        self.luck = Random(seed)
        self.guard = tidegate.guard("d", **drawn(self.luck))
        self.ended: dict[str, int] = {}
        views = [self.guard] * 3
        views.append(self.guard.options(fallback=self.fallback))
        views.append(self.guard.options(mode="observe"))
        views.append(self.guard.options(expected=(LookupError,)))
        self.views = views
        self.kept = self.guard.stale(0.1, entries=2)(self.keyed)

    def fallback(self) -> str:
        return "instead"

    async def attempt(self) -> str:
        """Takes its time, and then answers or fails."""
        await asyncio.sleep(self.luck.choice([0.0, 0.001, 0.02, 0.07]) * self.luck.random())
        error = self.luck.choice(
            [None] * 4 + [ConnectionError, OverloadedError, KeyError, TypeError]
        )
        if error is not None:
            raise error
        return "fine"

    async def keyed(self, key: int) -> str:
        return await self.attempt()

    async def items(self) -> AsyncIterator[str]:
        for _ in range(self.luck.randint(0, 4)):
            yield await self.attempt()

    async def call(self, guard: Guard) -> None:
        await guard.acall(self.attempt)

    async def block(self, guard: Guard) -> None:
        async with guard.attempt() as attempt:
            if self.luck.random() < 0.3:
                attempt.record(self.luck.choice(list(tidegate.Outcome)))
            await self.attempt()

    async def plain_block(self, guard: Guard) -> None:
        with guard.attempt():
            await self.attempt()

    async def stream(self, guard: Guard) -> None:
        if guard.fallback is not None:
            guard = self.guard
        stream: Any = guard.stream(idle=self.luck.choice([None, 0.03]))(self.items)()
        try:
            async for _ in stream:
                await asyncio.sleep(0.01 * self.luck.random())
                if self.luck.random() < 0.2:
                    break
        finally:
            await stream.aclose()

    async def stale(self, guard: Guard) -> None:
        await self.kept(self.luck.randint(0, 3))

    async def one(self) -> None:
        """One task, perhaps with a limit of its own around it."""
        await asyncio.sleep(0.3 * self.luck.random())
        kinds = [self.call, self.block, self.plain_block, self.stream, self.stale]
        work = self.luck.choice(kinds)(self.luck.choice(self.views))
        end = "well"
        try:
            match self.luck.choice(["bare", "bare", "deadline", "timeout"]):
                case "deadline":
                    with tidegate.deadline(0.001 + 0.05 * self.luck.random()):
                        await work
                case "timeout":
                    async with asyncio.timeout(0.05 * self.luck.random()):
                        await work
                case _:
                    await work
        except Exception as error:  # noqa: BLE001 - whatever it is, it is counted
            end = type(error).__name__
        except asyncio.CancelledError:
            self.ended["cancelled"] = self.ended.get("cancelled", 0) + 1
            raise
        self.ended[end] = self.ended.get(end, 0) + 1

    async def main(self) -> GuardSnapshot:
        tasks = [asyncio.create_task(self.one()) for _ in range(TASKS)]
        for task in tasks:
            if self.luck.random() < 0.2:
                delay = 0.4 * self.luck.random()
                asyncio.get_running_loop().call_later(delay, task.cancel)
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(1)  # for what is found out a little later
        return self.guard.snapshot()


def lived(seed: int) -> tuple[GuardSnapshot, dict[str, int]]:
    _forget()
    world: list[World] = []

    async def main() -> GuardSnapshot:
        world.append(World(seed))
        return await world[0].main()

    seen = run(main(), seed=seed)
    _forget()
    return seen, world[0].ended


@pytest.mark.slow  # sixty worlds of forty tasks
def test_every_call_has_one_end_and_every_attempt_one_outcome() -> None:
    kinds: set[str] = set()
    for seed in SEEDS:
        seen, ended = lived(seed)
        where = f"seed {seed}: {seen}, {ended}"
        assert seen.pending == 0, where
        assert sum(seen.outcomes.values()) == seen.attempts, where
        assert not seen.inflight, where
        assert min(seen.started, seen.ok, seen.failed, seen.rejected, seen.fallback) >= 0, where
        kinds |= ended.keys()
        kinds |= {name for name in ("shared", "fallback", "retries") if getattr(seen, name)}
    met = {"well", "cancelled", "TimeoutError", "AttemptTimeout", "DeadlineExceeded"}
    met |= {"shared", "fallback", "retries"}  # else the worlds would be too tame to show it
    assert kinds >= met | {"CircuitOpen", "LimitExceeded", "RateLimited", "KeyError"}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_it_is_the_same_when_it_is_run_again(seed: int) -> None:
    assert lived(seed) == lived(seed)
