"""How much memory does a simulated storm take, for each attempt that waits and over time?

    python benchmarks/simulator_memory.py

The first table lets the backlog of a frozen service grow, and divides what the process allocates by
what waits there: first alive, then given up by its caller, as nearly all of a storm is. The bar is
200 bytes. The second runs on at a constant backlog, with each way to treat what is abandoned: a
leak would grow with the attempts made.
"""

import gc
import tracemalloc

from tidegate.settings.policies import Queue
from tidegate.settings.system import Call, Client, Service, System, Time, Trigger
from tidegate.sim.world import World
from tidegate.units import MILLISECOND, SECOND

BAR = 200


def system(timeout_s: float, attempts: int, **service: object) -> System:
    """Ten workers of 10 ms, 800/s."""
    call = Call(timeout=round(timeout_s * SECOND), attempts=attempts)
    return System(
        clients={"people": Client(rate=800.0, calls={"pool": call})},
        services={"pool": Service(workers=10, time=Time(mean=10 * MILLISECOND), **service)},
    )


def allocated() -> int:
    """Bytes that Python has in use, when what is only a cycle has been collected."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def each_waiting(timeout_s: float, seconds: int, policy: str) -> tuple[int, float]:
    """How many wait in a frozen service after so long, and bytes for each."""
    world = World(system(timeout_s, 4), seed=1, horizon=(seconds + 1) * SECOND)
    world.begin(policy, Trigger(service="pool", freeze=True))
    world.run(SECOND // 2)
    before, few = allocated(), world.services["pool"].in_system
    world.run(seconds * SECOND)
    waiting = world.services["pool"].in_system - few
    return waiting, (allocated() - before) / waiting


def over_time(abandoned: str, order: str) -> list[str]:
    """Kilobytes in use after 20, 40 and 60 s of overload with 200 places, and attempts made."""
    queue = Queue(limit=200, order=order)
    world = World(system(0.1, 4, abandoned=abandoned, queue=queue), seed=1, horizon=61 * SECOND)
    world.begin("surge", Trigger(client="people", load=2.0))
    seen = []
    for second in (20, 40, 60):
        world.run(second * SECOND)
        seen.append(f"{allocated() / 1000:,.0f} kB")
    return [*seen, f"{world.calls['pool'].sent.count:,} attempts"]


def main() -> None:
    """Print both tables."""
    tracemalloc.start()
    for name, timeout_s, seconds in (("alive", 60.0, 30), ("given up", 0.05, 10)):
        waiting, each = each_waiting(timeout_s, seconds, name)
        print(f"{name:10} {waiting:8,} waiting  {each:6.0f} bytes each  (bar {BAR} given up)")
    for abandoned in ("finish", "skip", "cancel"):
        for order in ("fifo", "lifo"):
            print(f"{abandoned:7} {order:5}", *over_time(abandoned, order), sep="  ")


if __name__ == "__main__":
    main()
