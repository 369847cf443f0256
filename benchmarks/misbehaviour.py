"""What do popular breakers do in a storm? The same questions to each, and to our guard.

One command: it makes `.venv-guards` (as `overhead.py` does) and asks there, in real time, one peer
after the other. Each is set up to open at five failures, or at half of five calls, and to try again
after 0.2 s. `tests/integration/test_misbehaviour.py` holds our own answers.

    python benchmarks/misbehaviour.py
"""

import asyncio
import datetime as dt
import gc
import itertools
import logging
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from overhead import ENVIRONMENT, prepare

AGAIN_S = 0.2
CALLERS = 50
FAILURES = 25
REFUSALS = 20_000


class Peer(NamedTuple):
    """`plain` and `tasks` make a fresh breaker and give its decorator; None: it has no such."""

    name: str
    plain: Callable[[], Callable[[Callable[..., Any]], Callable[..., Any]]] | None
    tasks: Callable[[], Callable[[Callable[..., Any]], Callable[..., Awaitable[Any]]]] | None


def peers() -> list[Peer]:
    import aiobreaker
    import circuitbreaker
    import hyx.circuitbreaker
    import interlock
    import nopanic
    import purgatory
    import pybreaker
    import pyresilience

    import tidegate
    from tidegate.settings.policies import Breaker
    from tidegate.units import MILLISECOND

    numbers = itertools.count(1)

    def name() -> str:
        return f"misbehaviour {next(numbers)}"

    def ours() -> Any:
        pause = 200 * MILLISECOND
        settings = Breaker(volume=5, open_for=pause, lease=pause)  # no peer has leases
        return tidegate.guard(name(), attempts=1, breaker=settings, limit=None)

    def theirs_interlock() -> Any:
        settings = interlock.Config(minimum_number_of_calls=5, wait_duration_in_open=AGAIN_S)
        return interlock.CircuitBreaker(name=name(), config=settings)

    def theirs_pyresilience() -> Any:
        settings = pyresilience.CircuitBreakerConfig(
            failure_threshold=5, recovery_timeout=AGAIN_S, success_threshold=1
        )
        return pyresilience.resilient(circuit_breaker=settings)

    def theirs_nopanic() -> Any:
        return nopanic.CircuitBreaker(min_calls=5, reset_timeout=AGAIN_S)

    def theirs_circuitbreaker() -> Any:
        return circuitbreaker.CircuitBreaker(failure_threshold=5, recovery_timeout=AGAIN_S)

    def theirs_pybreaker() -> Any:
        return pybreaker.CircuitBreaker(fail_max=5, reset_timeout=AGAIN_S)

    def theirs_aiobreaker() -> Any:
        pause = timedelta(seconds=AGAIN_S)
        return aiobreaker.CircuitBreaker(fail_max=5, timeout_duration=pause)()

    def purgatory_plain() -> Any:
        return purgatory.SyncCircuitBreakerFactory(5, AGAIN_S)(name())

    def purgatory_tasks() -> Any:
        return purgatory.AsyncCircuitBreakerFactory(5, AGAIN_S)(name())

    def theirs_hyx() -> Any:
        return hyx.circuitbreaker.consecutive_breaker(
            failure_threshold=5, recovery_time_secs=AGAIN_S, recovery_threshold=1
        )

    return [
        Peer("tidegate", ours, ours),
        Peer("pybreaker", theirs_pybreaker, theirs_pybreaker),
        Peer("circuitbreaker", theirs_circuitbreaker, theirs_circuitbreaker),
        Peer("aiobreaker", theirs_aiobreaker, theirs_aiobreaker),
        Peer("purgatory", purgatory_plain, purgatory_tasks),
        Peer("hyx", None, theirs_hyx),
        Peer("pyresilience", theirs_pyresilience, theirs_pyresilience),
        Peer("nopanic", theirs_nopanic, theirs_nopanic),
        Peer("interlock", theirs_interlock, theirs_interlock),
    ]


def fails() -> None:
    raise ConnectionError


def threads_together(peer: Peer) -> str:
    """Of eight threads in a call of 50 ms, the most that were in it at once."""
    assert peer.plain is not None
    inside, most, lock = 0, 0, threading.Lock()

    def call() -> None:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        time.sleep(0.05)
        with lock:
            inside -= 1

    guarded = peer.plain()(call)
    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(guarded) for _ in range(8)]:
            future.exception()
    return str(most)


async def quietly(awaitable: Awaitable[Any]) -> bool:
    """Whether it ended without an error."""
    try:
        await awaitable
    except Exception:  # noqa: BLE001 - whatever each raises
        return False
    return True


class Target:
    """A coroutine function whose end a test sets, guarded by one breaker."""

    def __init__(self, peer: Peer) -> None:
        assert peer.tasks is not None
        self.reached, self.fail, self.take = 0, False, 0.0
        self.guarded = peer.tasks()(self._call)

    async def _call(self) -> None:
        self.reached += 1
        fail = self.fail
        if self.take:
            await asyncio.sleep(self.take)
        if fail:
            raise ConnectionError

    async def is_let_in(self) -> bool:
        """Whether one more call reaches the dependency."""
        before = self.reached
        await quietly(self.guarded())
        return self.reached > before

    async def open(self) -> bool:
        """Fail until it should be open; whether it is."""
        self.fail = True
        for _ in range(FAILURES):
            await quietly(self.guarded())
        self.fail = False
        before = self.reached
        await quietly(self.guarded())
        return self.reached == before


async def coroutine_functions_open(peer: Peer) -> str:
    return "yes" if await Target(peer).open() else "never"


async def let_in_at_half_open(peer: Peer) -> str:
    target = Target(peer)
    if not await target.open():
        return "-"
    await asyncio.sleep(AGAIN_S * 1.5)
    target.take, before = 0.05, target.reached
    await asyncio.gather(*(quietly(target.guarded()) for _ in range(CALLERS)))
    return f"{target.reached - before} of {CALLERS}"


async def opens_by_a_timeout_around(peer: Peer) -> str:
    target = Target(peer)
    target.take = 5.0
    for _ in range(FAILURES):
        try:
            async with asyncio.timeout(0.005):
                await target.guarded()
        except Exception:  # noqa: BLE001 - only whether it counts matters
            pass
        await asyncio.sleep(0)
    target.take = 0.0
    return "never" if await target.is_let_in() else "yes"


async def a_late_success(peer: Peer) -> str:
    target = Target(peer)
    target.take = AGAIN_S / 4
    late = asyncio.create_task(quietly(target.guarded()))
    await asyncio.sleep(0.005)
    target.take = 0.0
    if not await target.open():
        return "-"
    await late
    return "closes it" if await target.is_let_in() else "changes nothing"


async def a_hung_probe(peer: Peer) -> str:
    """Is anybody let in three times the pause after a probe that never ends?"""
    target = Target(peer)
    if not await target.open():
        return "-"
    await asyncio.sleep(AGAIN_S * 1.5)
    target.take = 60.0
    hung = [asyncio.create_task(quietly(target.guarded())) for _ in range(CALLERS)]
    await asyncio.sleep(AGAIN_S * 3)
    target.take = 0.0
    let_in = await target.is_let_in()
    for task in hung:
        task.cancel()
    await asyncio.gather(*hung, return_exceptions=True)
    return "lets in" if let_in else "shut"


def bytes_of_a_refusal(peer: Peer) -> str:
    assert peer.plain is not None
    guarded = peer.plain()(fails)

    def call() -> None:
        with suppress(Exception):  # failures at first, then refusals
            guarded()

    for _ in range(FAILURES):
        call()
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    end = time.monotonic() + AGAIN_S / 4  # well before it is tried again
    count = 0
    while time.monotonic() < end and count < REFUSALS:
        call()
        count += 1
    gc.collect()
    left = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return f"{max(0, left) / count:.0f}"


class Tomorrow(dt.datetime):
    """What a library reads as now, after the wall clock was set a day ahead."""

    @classmethod
    def now(cls, tz: dt.tzinfo | None = None) -> dt.datetime:
        return dt.datetime.now(tz) + dt.timedelta(days=1)

    @classmethod
    def utcnow(cls) -> dt.datetime:
        return cls.now(dt.UTC).replace(tzinfo=None)


async def a_step_of_the_wall_clock(peer: Peer) -> str:
    """Set a day ahead just after the circuit has opened: is somebody let in?"""
    target = Target(peer)
    if not await target.open():
        return "-"
    now, wall = time.time() + 86_400, time.time
    with ExitStack() as patches:
        patches.enter_context(mock.patch.object(time, "time", return_value=now))
        for name, module in list(sys.modules.items()):
            if name.split(".")[0] != peer.name:
                continue
            for key, value in list(vars(module).items()):
                if value is dt.datetime:
                    patches.enter_context(mock.patch.object(module, key, Tomorrow))
                elif value is wall:
                    patches.enter_context(mock.patch.object(module, key, return_value=now))
        return "half-opens it" if await target.is_let_in() else "nothing"


QUESTIONS: list[tuple[str, Callable[[Peer], Any]]] = [
    ("8 threads: in at once", threads_together),
    ("opens for async def", coroutine_functions_open),
    ("let in at half-open", let_in_at_half_open),
    ("opens by asyncio.timeout", opens_by_a_timeout_around),
    ("late success while open", a_late_success),
    ("probes that hang for ever", a_hung_probe),
    ("bytes kept per refusal", bytes_of_a_refusal),
    ("a step of the wall clock", a_step_of_the_wall_clock),
]


def asked(question: Callable[[Peer], Any], peer: Peer) -> str:
    if asyncio.iscoroutinefunction(question):
        return "-" if peer.tasks is None else str(asyncio.run(question(peer)))
    return "-" if peer.plain is None else str(question(peer))


def main() -> None:
    if Path(sys.prefix).resolve() != ENVIRONMENT.resolve():
        prepare()
        state = {"TIDEGATE_STATE_DIR": "off", "PATH": "/usr/bin:/bin"}
        command = [str(ENVIRONMENT / "bin/python"), __file__]
        sys.exit(subprocess.run(command, env=state, check=False).returncode)
    logging.disable()
    print(f"CPython {sys.version.split()[0]}")
    print(f"{'':16}" + "".join(f"{title:>27}" for title, _ in QUESTIONS))
    for peer in peers():
        answers = [asked(question, peer) for _, question in QUESTIONS]
        print(f"{peer.name:16}" + "".join(f"{answer:>27}" for answer in answers), flush=True)


if __name__ == "__main__":
    main()
