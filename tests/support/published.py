"""Systems that others have published or measured, as runs of one seed each.

They stand here and not beside their tests because worker processes import them by name.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from tidegate.settings.policies import Backoff, Budget, Queue, RateLimit
from tidegate.settings.system import Call, Client, Service, System, Time, Trigger
from tidegate.sim.invariants import check
from tidegate.sim.world import World
from tidegate.units import MILLISECOND, SECOND

PROCESSES = 2


def spread(run: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
    """`run(*each)` for each of the arguments, in their order, on two processes."""
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
        return list(pool.map(run, *zip(*arguments, strict=True), chunksize=4))


def pool_of_ten(rate: float, timeout_ms: float, attempts: int, **more: Any) -> System:
    """Ten workers, exponential work of 10 ms, so 1,000/s; no backoff unless `call` says so."""
    call = Call(timeout=round(timeout_ms * MILLISECOND), attempts=attempts, **more.pop("call", {}))
    return System(
        clients={"people": Client(rate=rate, calls={"pool": call})},
        services={"pool": Service(workers=10, time=Time(mean=10 * MILLISECOND), **more)},
    )


def share_served(world: World, first: int, last: int) -> float:
    """Answers in time, to any of its attempts, per request that came in these seconds."""
    tally = next(iter(world.clients.values())).tally
    return sum(tally.eventual[first:last]) / sum(tally.offered[first:last])


def sojourns(timeout_ms: int, seconds: int, seed: int) -> tuple[float, float]:
    """The share that take longer than the timeout, and the mean number in the system."""
    world = World(pool_of_ten(800.0, timeout_ms, 1), seed=seed, horizon=seconds * SECOND)
    world.run(seconds * SECOND)
    tally, backlog = world.calls["pool"], world.services["pool"].tally.backlog[1:seconds]
    return tally.timeouts / tally.ended, sum(backlog) / len(backlog)


def seconds_until_it_falls(timeout_ms: int, seed: int) -> float:
    """Until the backlog exceeds three timeouts of work; four attempts at 800/s, no trigger."""
    world = World(pool_of_ten(800.0, timeout_ms, 4), seed=seed, horizon=7200 * SECOND)
    pool, limit, step = world.services["pool"], 3 * timeout_ms, 50 * MILLISECOND
    while pool.in_system <= limit:
        world.run(world.now + step)
    return world.now / SECOND


def served_after_stall(
    rate: float, stall_ms: int, after: tuple[int, int], seed: int, more: dict[str, Any]
) -> float:
    """Four attempts of 100 ms; all workers freeze at 5 s. The share served some seconds later."""
    end = 5 * SECOND + stall_ms * MILLISECOND
    last = end + after[1] * SECOND
    world = World(pool_of_ten(rate, 100, 4, **more), seed=seed, horizon=last + 2 * SECOND)
    stall = Trigger(service="pool", freeze=True, for_=stall_ms * MILLISECOND)
    world.plan("stall", stall, 5 * SECOND)
    world.run(last + SECOND)
    check(world)
    return share_served(world, (end + after[0] * SECOND) // SECOND, last // SECOND)


def served_with_places(places: int, full: Any, seed: int) -> float:
    """One worker of 10/s; 5/s, then 15/s for ten minutes, then 5/s again: the last ten minutes."""
    queue = Queue(limit=places, full=full)
    system = System(
        clients={"people": Client(rate=5.0, calls={"one": Call(timeout=5 * SECOND, attempts=6)})},
        services={"one": Service(workers=1, time=Time(mean=100 * MILLISECOND), queue=queue)},
    )
    world = World(system, seed=seed, horizon=2750 * SECOND)
    world.plan("peak", Trigger(client="people", load=3.0, for_=600 * SECOND), 300 * SECOND)
    world.run(2730 * SECOND)
    return share_served(world, 2100, 2700)


def answers_of_a_slowing_server(backoff: Backoff | None, seed: int) -> int:
    """A second and 10 ms more for each in flight; 40/s, 80/s for 5 s. Answers from 40 to 60 s."""
    call = Call(
        timeout=3 * SECOND,
        attempts=3,
        backoff=backoff,
        network=Time(mean=100 * MILLISECOND),
    )
    server = Service(time=Time(constant=SECOND), contention=10 * MILLISECOND)
    system = System(
        clients={"people": Client(rate=40.0, calls={"server": call})}, services={"server": server}
    )
    world = World(system, seed=seed, horizon=80 * SECOND)
    world.plan("surge", Trigger(client="people", load=2.0, for_=5 * SECOND), 20 * SECOND)
    world.run(70 * SECOND)
    return sum(world.clients["people"].tally.eventual[40:60])


def served_by_one(surge: bool, full: Any, seed: int) -> float:
    """One worker of 10/s, 100 places, 4 s, four attempts, 7/s; 30/s from 120 to 125 s."""
    queue = Queue(limit=100, full=full)
    system = System(
        clients={"people": Client(rate=7.0, calls={"one": Call(timeout=4 * SECOND, attempts=4)})},
        services={"one": Service(workers=1, time=Time(mean=100 * MILLISECOND), queue=queue)},
    )
    world = World(system, seed=seed, horizon=420 * SECOND)
    if surge:
        trigger = Trigger(client="people", load=30 / 7, for_=5 * SECOND)
        world.plan("surge", trigger, 120 * SECOND)
    world.run(416 * SECOND)
    return share_served(world, 340, 400)


def attempts_on_a_limit(backoff: Backoff, seed: int) -> tuple[float, float]:
    """1,010/s against 1,000/s, ten attempts: the share served and attempts/s, from 300 s on."""
    call = Call(attempts=10, backoff=backoff)
    system = System(
        clients={"people": Client(rate=1010.0, calls={"door": call})},
        services={"door": Service(rate_limit=RateLimit(rate=1000.0))},
    )
    world = World(system, seed=seed, horizon=430 * SECOND)
    world.run(425 * SECOND)
    attempts = world.calls["door"].attempts
    return share_served(world, 300, 400), sum(attempts[300:400]) / 100


CURES: dict[str, dict[str, Any]] = {
    "none": {},
    "backoff 50 ms": {"call": {"backoff": Backoff(base=50 * MILLISECOND)}},
    "backoff 1 s": {"call": {"backoff": Backoff(base=SECOND)}},
    "200 places": {"queue": Queue(limit=200)},
    "200 places, silent": {"queue": Queue(limit=200, full="silence")},
    "90 places": {"queue": Queue(limit=90)},
    "90 places, silent": {"queue": Queue(limit=90, full="silence")},
    "50 places": {"queue": Queue(limit=50)},
    "50 places, silent": {"queue": Queue(limit=50, full="silence")},
    "newest first": {"queue": Queue(order="lifo")},
    "skip what is abandoned": {"abandoned": "skip"},
    "budget 10%": {"call": {"budget": Budget(ratio=0.1)}},
    "budget 20%": {"call": {"budget": Budget(ratio=0.2)}},
    "budget 50%": {"call": {"budget": Budget(ratio=0.5)}},
}
"""What may be done about the pool of ten, as the settings that do it."""
