"""What does the door of a service do in a storm, and what does it cost in health?

    python benchmarks/doors.py [seeds]

Simulated: eight workers of 40 ms (exponential), callers with a timeout of 500 ms and three
immediate retries. In the storm 140/s come and the service is three times slower for 20 s, so 66.7/s
is all that it can do; in health 180/s come to the 200/s that it can. Answers in time per second,
the mean over the seeds and their range. The first two seconds of the storm are not counted.
"""

import sys
from statistics import mean

from tidegate.settings.admission import Admission
from tidegate.settings.policies import Adaptive, CoDel, Gradient, Limit, Vegas
from tidegate.settings.system import Call, Client, Service, System, Time, Trigger
from tidegate.sim.invariants import check
from tidegate.sim.world import World
from tidegate.units import MILLISECOND, SECOND

EIGHT = Limit(max=8)
SLOW = Trigger(service="shop", slowdown=3, for_=20 * SECOND)
BEGINS, ENDS, HORIZON = 20, 40, 80

DOORS: dict[str, dict[str, object]] = {
    "no door": {},
    "limit: 8, no door": {"limit": EIGHT},
    "admission: {limit: 8}": {"admission": Admission(limit=EIGHT)},
    "  no waiting places": {"admission": Admission(limit=EIGHT, queue=0)},
    "  queue: 50": {"admission": Admission(limit=EIGHT, queue=50)},
    "  queue: 200": {"admission": Admission(limit=EIGHT, queue=200)},
    "  wait: 500ms": {"admission": Admission(limit=EIGHT, wait=500 * MILLISECOND)},
    "  wait: 2s": {"admission": Admission(limit=EIGHT, wait=2 * SECOND)},
    "  order: fifo": {"admission": Admission(limit=EIGHT, order="fifo")},
    "  target 10 ms, interval 100 ms": {
        "admission": Admission(
            limit=EIGHT, codel=CoDel(target=10 * MILLISECOND, interval=100 * MILLISECOND)
        )
    },
    "  target 40 ms, interval 400 ms": {
        "admission": Admission(
            limit=EIGHT, codel=CoDel(target=40 * MILLISECOND, interval=400 * MILLISECOND)
        )
    },
    "admission: {} (by the gradient of latency)": {"admission": Admission()},
    "  by vegas": {"admission": Admission(limit=Limit(vegas=Vegas()))},
    "  by timeouts alone": {"admission": Admission(limit=Limit(adaptive=Adaptive()))},
    "  by the gradient, at most 40": {
        "admission": Admission(limit=Limit(gradient=Gradient(max=40)))
    },
}


def good(door: dict[str, object], rate: float, seed: int, *, storm: bool) -> list[int]:
    """Answers in time, second by second."""
    call = Call(timeout=500 * MILLISECOND, attempts=4)
    system = System(
        clients={"users": Client(rate=rate, calls={"shop": call})},
        services={"shop": Service(workers=8, time=Time(mean=40 * MILLISECOND), **door)},
    )
    world = World(system, seed=seed, horizon=HORIZON * SECOND)
    if storm:
        world.plan("slow", SLOW, BEGINS * SECOND)
    world.run(HORIZON * SECOND)
    check(world)
    return world.clients["users"].tally.good


def told(values: list[float]) -> str:
    return f"{mean(values):6.1f} ({min(values):5.1f} to {max(values):5.1f})"


def main() -> None:
    seeds = range(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
    print(f"answers in time per second; {len(seeds)} seeds, mean (lowest to highest)")
    print(f"{'':44}{'storm, of 66.7':24}{'after it, of 140':24}{'health, of 180'}")
    for name, door in DOORS.items():
        storms = [good(door, 140.0, seed, storm=True) for seed in seeds]
        during = [mean(one[BEGINS + 2 : ENDS]) for one in storms]
        after = [mean(one[ENDS + 5 : HORIZON - 2]) for one in storms]
        calm = [mean(good(door, 180.0, seed, storm=False)[10 : HORIZON - 2]) for seed in seeds]
        print(f"{name:44}{told(during)}  {told(after)}  {told(calm)}")


if __name__ == "__main__":
    main()
