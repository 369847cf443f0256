"""Where do the figures of the throttle come from: what is served when refusing has its price?

    python benchmarks/client_laws.py

One service of ten workers with exponential service of 10 ms, so 1000/s, which admits 900/s. To
refuse a request takes a fifth of the work of an answer, from the same workers. Poisson arrivals,
callers who leave after 100 ms and ask once. Simulated with the shipped policies; mean and range
over the seeds.
"""

from statistics import mean
from typing import Final

from tidegate.settings.policies import RateLimit, Throttle
from tidegate.settings.system import Call, Client, Service, System, Time, Trigger
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


def spread(values: list[float]) -> str:
    """Mean and range."""
    return f"{mean(values):5.0f} ({min(values):.0f} to {max(values):.0f})"


def main() -> None:
    print("answers in time per second, and seconds until all is well after an outage of 30 s")
    for name, throttle in THROTTLES.items():
        columns = [spread([overloaded(r, throttle, s) for s in SEEDS]) for r in (1500, 3000, 6000)]
        back = spread([outage(throttle, s) for s in SEEDS])
        print(f"{name:28}", *(f"{column:24}" for column in columns), back)


if __name__ == "__main__":
    main()
