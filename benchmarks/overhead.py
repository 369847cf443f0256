"""What does a guard cost a call that succeeds, and one that is refused, beside its peers?

One command: it makes `.venv-guards` with every peer in it and runs itself there. All cases take
turns in one process, round after round, in CPU time of one thread; printed are the smallest round
and the middle one, the bare call taken off, and ratios to our guard. The peers differ in what they
do: the column says it. Ours is the default policy whole: budget, backoff, breaker, adaptive limit,
attempt timeout armed, counters, thread-safe. So with a server's request: ours is admission whole.

    python benchmarks/overhead.py [rounds]
"""

import asyncio
import statistics
import subprocess
import sys
import threading
import time
import tracemalloc
import venv
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
ENVIRONMENT = ROOT / ".venv-guards"
REQUIREMENTS = HERE / "peers" / "guards.txt"
CALLS = 4_000  # in a round, per case

Case = tuple[str, str, Callable[..., Any]]


def prepare(environment: Path = ENVIRONMENT, requirements: Path = REQUIREMENTS) -> None:
    """The environment with every peer, made once and again when the pins change."""
    pins, made_from = requirements.read_text(), environment / "made-from"
    if made_from.exists() and made_from.read_text() == pins:
        return
    print(f"making {environment.name}", file=sys.stderr)
    venv.create(environment, with_pip=True, clear=True)
    pip = [str(environment / "bin/python"), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, "-r", str(requirements), "hatchling", "editables"], check=True)
    ours = ["--no-build-isolation", "--no-deps", "-e", str(ROOT)]
    subprocess.run([*pip, *ours], check=True)
    made_from.write_text(pins)


def bare() -> int:
    return 1


async def bare_async() -> int:
    return 1


def plain_cases() -> list[Case]:
    """Our guard first, then each peer as its own documentation sets it up."""
    import aiobreaker
    import backoff
    import circuitbreaker
    import interlock
    import nopanic
    import purgatory
    import pybreaker
    import pyresilience
    import stamina
    import tenacity

    import tidegate

    lock = threading.Lock()

    def locked() -> None:
        with lock:
            pass

    shut = interlock.CircuitBreaker(name="overhead")
    pipeline = interlock.PipelineBuilder().circuit_breaker(shut).bulkhead(max_concurrent=100)
    whole = nopanic.compose(
        nopanic.retry(3, budget=nopanic.RetryBudget()),
        nopanic.CircuitBreaker(),
        nopanic.bulkhead(100),
    )
    tenacious = tenacity.retry(stop=tenacity.stop_after_attempt(3))
    breaker = pybreaker.CircuitBreaker()
    return [
        ("tidegate", "everything", tidegate.guard("overhead")(bare)),
        ("with lock: pass", "for scale", locked),
        ("nopanic", "retry, budget, breaker, bulkhead", whole(bare)),
        (
            "pyresilience",
            "retry, breaker, bulkhead",
            pyresilience.resilient(
                retry=pyresilience.RetryConfig(),
                circuit_breaker=pyresilience.CircuitBreakerConfig(),
                bulkhead=pyresilience.BulkheadConfig(max_concurrent=100),
            )(bare),
        ),
        ("tenacity + pybreaker", "retry, breaker", tenacious(breaker(bare))),
        ("interlock", "breaker, bulkhead", _interlock(pipeline)),
        ("tenacity", "retry", tenacious(bare)),
        ("stamina", "retry", stamina.retry(on=ConnectionError)(bare)),
        ("backoff", "retry", backoff.on_exception(backoff.expo, OSError, max_tries=3)(bare)),
        ("pybreaker", "breaker", pybreaker.CircuitBreaker()(bare)),
        ("circuitbreaker", "breaker", circuitbreaker.circuit(bare)),
        ("aiobreaker", "breaker", aiobreaker.CircuitBreaker()(bare)),
        ("purgatory", "breaker", purgatory.SyncCircuitBreakerFactory()("overhead")(bare)),
    ]


def _interlock(builder: Any) -> Callable[[], Any]:
    built = builder.build()
    return lambda: built.call(bare)


def async_cases() -> list[tuple[str, str, Callable[[], Awaitable[Any]]]]:
    import aiobreaker
    import backoff
    import circuitbreaker
    import nopanic
    import purgatory
    import pyresilience
    import stamina
    import tenacity
    from hyx.retry import retry as hyx_retry

    import tidegate

    async def timed() -> int:
        async with asyncio.timeout(10):
            return await bare_async()

    whole = nopanic.compose(
        nopanic.retry(3, budget=nopanic.RetryBudget()),
        nopanic.CircuitBreaker(),
        nopanic.bulkhead(100),
        nopanic.timeout(10),
    )
    return [
        ("tidegate", "everything", tidegate.guard("overhead async")(bare_async)),
        ("asyncio.timeout", "for scale", timed),
        ("nopanic", "retry, budget, breaker, bulkhead, timeout", whole(bare_async)),
        (
            "pyresilience",
            "retry, breaker, bulkhead",
            pyresilience.resilient(
                retry=pyresilience.RetryConfig(),
                circuit_breaker=pyresilience.CircuitBreakerConfig(),
                bulkhead=pyresilience.BulkheadConfig(max_concurrent=100),
            )(bare_async),
        ),
        ("tenacity", "retry", tenacity.retry(stop=tenacity.stop_after_attempt(3))(bare_async)),
        ("stamina", "retry", stamina.retry(on=ConnectionError)(bare_async)),
        ("backoff", "retry", backoff.on_exception(backoff.expo, OSError, max_tries=3)(bare_async)),
        ("hyx", "retry", hyx_retry(on=OSError)(bare_async)),
        ("circuitbreaker", "breaker", circuitbreaker.circuit(bare_async)),
        ("aiobreaker", "breaker", aiobreaker.CircuitBreaker()(bare_async)),
        ("purgatory", "breaker", purgatory.AsyncCircuitBreakerFactory()("a")(bare_async)),
    ]


def rate_cases() -> list[tuple[str, str, Callable[[], Awaitable[Any]]]]:
    """A rate for each client of a server, in front of the same application of Starlette."""
    from slowapi import Limiter
    from starlette.requests import Request
    from starlette.responses import Response

    from tidegate.server.asgi import LoadShedder, by_address

    answer = Response()

    def scope() -> dict[str, Any]:
        path = {"method": "GET", "path": "/", "raw_path": b"/", "query_string": b""}
        return {"type": "http", "client": ("127.0.0.1", 1), "headers": [], "app": None, **path}

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        pass

    async def view(request: Request) -> Response:
        return answer

    limited = Limiter(key_func=lambda request: request.client.host).limit("1000000/second")(view)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await (await view(Request(scope, receive, send)))(scope, receive, send)

    async def app_of_slowapi(scope: Any, receive: Any, send: Any) -> None:
        await (await limited(Request(scope, receive, send)))(scope, receive, send)

    ours = {"client": by_address, "client_rate": 1_000_000, "cancel_on_disconnect": False}
    shedder = LoadShedder(app, **ours)
    return [
        ("tidegate", "admission, a rate for each client", lambda: shedder(scope(), receive, send)),
        ("slowapi", "a rate", lambda: app_of_slowapi(scope(), receive, send)),
        ("the application", "", lambda: app(scope(), receive, send)),
    ]


def refused() -> Callable[[], None]:
    """Our guard with its circuit open, called as a caller has to: within a try."""
    import tidegate
    from tidegate.settings.policies import Breaker
    from tidegate.units import HOUR

    guard = tidegate.guard("overhead refused", attempts=1, breaker=Breaker(open_for=HOUR))

    @guard
    def fails() -> None:
        raise ConnectionError

    def call() -> None:
        try:  # noqa: SIM105 - what a caller writes, and cheaper
            fails()
        except (ConnectionError, tidegate.Rejected):
            pass

    for _ in range(30):
        call()
    assert guard.snapshot().state == "open"
    return call


def timed(function: Callable[[], Any]) -> float:
    began = time.thread_time_ns()
    for _ in range(CALLS):
        function()
    return (time.thread_time_ns() - began) / CALLS


async def timed_async(function: Callable[[], Awaitable[Any]]) -> float:
    began = time.thread_time_ns()
    for _ in range(CALLS):
        await function()
    return (time.thread_time_ns() - began) / CALLS


def table(title: str, cases: list[Any], rounds: dict[str, list[float]], base: list[float]) -> None:
    floor, ours = min(base), min(rounds[cases[0][0]]) - min(base)
    print(f"\n{title}: ns over a bare call of {floor:.0f} ns      smallest  middle   of ours")
    for name, what, _ in cases:
        least = min(rounds[name]) - floor
        middle = statistics.median(rounds[name]) - floor
        print(f"  {name:22}{what:42}{least:8.0f}{middle:9.0f}{least / ours:9.1f}x")


def contention() -> None:
    """Eight threads through one guard, and through none."""
    import tidegate

    guarded = tidegate.guard("overhead threads")(bare)

    def per_call(function: Callable[[], Any]) -> float:
        began = time.process_time_ns()
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: timed(function), range(8)))
        return (time.process_time_ns() - began) / (8 * CALLS)

    alone = min(per_call(bare) for _ in range(5))
    together = min(per_call(guarded) for _ in range(5))
    print(f"\neight threads on one guard: {together - alone:.0f} ns over bare, process CPU time")


def many() -> None:
    """Ten thousand guards, each called once; and what a million refusals leave behind."""
    import tidegate

    tracemalloc.start()
    began = time.process_time_ns()
    for number in range(10_000):
        tidegate.guard(f"many {number}")(bare)()
    took = (time.process_time_ns() - began) / 10_000
    print(f"10,000 guards: {took / 1000:.0f} us each to make and call once,", end=" ")
    print(f"{tracemalloc.get_traced_memory()[0] / 10_000:.0f} bytes each")
    call = refused()
    call()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(1_000_000):
        call()
    left = tracemalloc.get_traced_memory()[0] - before
    print(f"1,000,000 refusals leave {left} bytes")
    tracemalloc.stop()


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 25
    if Path(sys.prefix).resolve() != ENVIRONMENT.resolve():
        prepare()
        state = {"TIDEGATE_STATE_DIR": "off", "PATH": "/usr/bin:/bin"}
        command = [str(ENVIRONMENT / "bin/python"), __file__, str(rounds)]
        sys.exit(subprocess.run(command, env=state, check=False).returncode)
    cases = plain_cases()
    seen: dict[str, list[float]] = {name: [] for name, _, _ in cases}
    no = refused()
    base: list[float] = []
    noes: list[float] = []
    for _ in range(rounds):
        base.append(timed(bare))
        noes.append(timed(no))
        for name, _, function in cases:
            seen[name].append(timed(function))
    print(f"CPython {sys.version.split()[0]}, {rounds} rounds of {CALLS}, state not shared")
    table("plain", cases, seen, base)
    least, middle = min(noes) - min(base), statistics.median(noes) - min(base)
    print(f"  {'tidegate, refused':64}{least:8.0f}{middle:9.0f}")

    async def tasks() -> None:
        cases = async_cases()
        seen: dict[str, list[float]] = {name: [] for name, _, _ in cases}
        base: list[float] = []
        for _ in range(rounds):
            base.append(await timed_async(bare_async))
            for name, _, function in cases:
                seen[name].append(await timed_async(function))
        table("async", cases, seen, base)
        cases = rate_cases()
        seen = {name: [] for name, _, _ in cases}
        for _ in range(rounds):
            for name, _, function in cases:
                seen[name].append(await timed_async(function))
        table("a server's request", cases[:-1], seen, seen[cases[-1][0]])

    asyncio.run(tasks())
    contention()
    many()


if __name__ == "__main__":
    main()
