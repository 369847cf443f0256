"""Where do the figures of the throttle and of the hedge come from?

    python benchmarks/client_laws.py

Throttle: one service of ten workers with exponential service of 10 ms, so 1000/s, which admits
900/s. To refuse a request takes a fifth of the work of an answer, from the same workers. Callers
who leave after 100 ms and ask once.

Hedge: ten replicas of ten workers each, found at random; service is lognormal with a median of
10 ms and a p99 of 100 ms, so 6130/s in all. Callers who leave after 2 s.

Poisson arrivals. Simulated with the shipped policies; mean and range over the seeds.
"""

from statistics import mean
from typing import Any, Final
from unittest.mock import patch

from tidegate.settings.policies import Budget, Hedge, RateLimit, Throttle
from tidegate.settings.system import Call, Client, Service, System, Time, Trigger
from tidegate.sim.parts.client import Client as SimulatedClient
from tidegate.sim.world import World
from tidegate.units import MILLISECOND, SECOND

SEEDS: Final = (1, 2, 3, 4, 5)
WORKERS: Final = 10
BACK: Final = 0.95  # of what is offered, for five seconds running
FROM: Final = 20  # when half a minute of trouble begins

THROTTLES: Final[dict[str, Throttle | None]] = {
    "none": None,
    "2x over 10 s, at most 90 %": Throttle(),
    "1.2x over 10 s": Throttle(ratio=1.2),
    "4x over 10 s": Throttle(ratio=4),
    "2x over 30 s": Throttle(window=30 * SECOND),
    "2x over 2 min": Throttle(window=120 * SECOND),
    "2x over 10 s, no most": Throttle(most=1),
}


def system(rate: float, throttle: Throttle | None) -> System:
    """The callers and what they call."""
    call = Call(to="shop", timeout=100 * MILLISECOND, throttle=throttle)
    shop = Service(
        workers=WORKERS,
        time=Time(mean=10 * MILLISECOND),
        rate_limit=RateLimit(rate=900),
        refusal_cost=0.2,
    )
    return System(
        clients={"users": Client(rate=rate, calls={"buy": call})}, services={"shop": shop}
    )


def good(world: World, first: int, last: int) -> float:
    """Answers in time per second."""
    return mean(world.clients["users"].tally.good[first:last])


def overloaded(rate: float, throttle: Throttle | None, seed: int) -> float:
    """Served per second of half a minute, once it has settled."""
    world = World(system(rate, throttle), seed=seed, horizon=60 * SECOND)
    world.run(60 * SECOND)
    return good(world, 30, 58)


def outage(throttle: Throttle | None, seed: int) -> float:
    """Seconds until 800/s are served again, after half a minute in which nothing moved."""
    horizon = 200 * SECOND
    world = World(system(800, throttle), seed=seed, horizon=horizon)
    world.run(FROM * SECOND)
    stop = Trigger(service="shop", freeze=True)
    world.begin("stop", stop)
    world.run((FROM + 30) * SECOND)
    world.end("stop", stop)
    world.run(horizon)
    tally = world.clients["users"].tally
    run = 0
    for second in range(FROM + 30, 199):
        well = tally.good[second] >= BACK * tally.offered[second]
        run = run + 1 if well else 0
        if run == 5:
            return second - 4 - FROM - 30
    return float("inf")


HEDGES: Final[dict[str, tuple[Hedge | None, float]]] = {
    "none": (None, 0.1),
    "after 50 ms, budget 10 %": (Hedge(after=50 * MILLISECOND), 0.1),
    "after 33 ms, budget 10 %": (Hedge(after=33 * MILLISECOND), 0.1),
    "after 10 ms, budget 10 %": (Hedge(after=10 * MILLISECOND), 0.1),
    "after 10 ms, no bound": (Hedge(after=10 * MILLISECOND), 10.0),
}


def hedged(rate: float, hedge: Hedge | None, ratio: float, seed: int) -> list[float]:
    """Milliseconds at p50, p99 and p99.9 of a minute, and attempts per call."""
    call = Call(to="shop", timeout=2 * SECOND, hedge=hedge, budget=Budget(ratio=ratio))
    work = Time(median=10 * MILLISECOND, p99=100 * MILLISECOND)
    shop = Service(replicas=10, workers=WORKERS, balance="random", time=work)
    client = Client(rate=rate, calls={"buy": call})
    world = World(
        System(clients={"users": client}, services={"shop": shop}), seed=seed, horizon=60 * SECOND
    )
    took: list[int] = []
    done = SimulatedClient.call_done

    def timed(self: Any, now: int, frame: Any, optional: bool, ok: bool) -> None:
        if ok:
            took.append(now - frame.born)
        done(self, now, frame, optional, ok)

    with patch.object(SimulatedClient, "call_done", timed):
        world.run(60 * SECOND)
    took.sort()
    tally = world.calls["buy"]
    figures = [took[int(len(took) * share)] / MILLISECOND for share in (0.5, 0.99, 0.999)]
    return [*figures, tally.sent.count / tally.begun.count]


def tails() -> None:
    print("\nmilliseconds at p50, p99, p99.9, and attempts per call")
    for rate in (2000, 5000):
        for name, (hedge, ratio) in HEDGES.items():
            runs = [hedged(rate, hedge, ratio, seed) for seed in SEEDS]
            ms = [spread([run[column] for run in runs]) for column in range(3)]
            load = mean(run[3] for run in runs)
            print(f"{rate}/s {name:26}", *(f"{column:24}" for column in ms), f"{load:.2f}")


def spread(values: list[float]) -> str:
    """Mean and range."""
    return f"{mean(values):5.0f} ({min(values):.0f} to {max(values):.0f})"


def refusals() -> None:
    print("answers in time per second, and seconds until all is well after an outage of 30 s")
    for name, throttle in THROTTLES.items():
        columns = [spread([overloaded(r, throttle, s) for s in SEEDS]) for r in (1500, 3000, 6000)]
        back = spread([outage(throttle, s) for s in SEEDS])
        print(f"{name:28}", *(f"{column:24}" for column in columns), back)


if __name__ == "__main__":
    refusals()
    tails()
