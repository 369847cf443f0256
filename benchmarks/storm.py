"""How much of what a slow server can still do is kept in a storm, by which protection?

    python benchmarks/storm.py [runs] [seconds] [words of a variant's name]

The storm of `examples/storm.yaml` on real processes: 8 workers of 40 ms, 140 requests a second, 500
ms, three retries at once, three times slower for 20 seconds (or as many as are given). Of each
variant the median of three runs (or as many as are given) with their range, over the whole trigger:
goodput as a share of what the server can still do, seconds from its end until 95 % of what is
offered is answered in time for five seconds running, and attempts a second while it lasts. Beside
it what the simulator says of the same story, where it can play it.

Each run takes the trigger's time and 16 seconds. A run that was starved of the processor is marked.
"""

import os
import platform
import sys
import time
from pathlib import Path
from typing import NamedTuple

import msgspec

from tidegate.findings import Measure
from tidegate.lab.live import live
from tidegate.lab.storm import Series, Storm, behind, guarded, predicted, story, told
from tidegate.settings.admission import Admission
from tidegate.settings.load import load
from tidegate.settings.policies import Limit
from tidegate.settings.system import Client, Time
from tidegate.sim.world import World
from tidegate.units import MILLISECOND, SECOND

EXAMPLE = Path(__file__).parents[1] / "examples" / "storm.yaml"
BAR, BACK = 0.90, 5  # of the guarded variants: live, median of three, whole trigger
DOOR = Admission(limit=Limit(max=8), queue=16)  # what the server has: 8 workers, twice that waits


class Variant(NamedTuple):
    """One protection: who is guarded, what the clients tell, in how many processes they are.

    `callers` is how many keep policies of their own in the simulation; 0: it cannot play it.
    """

    name: str
    storm: Storm
    guard: bool = False
    marks: bool = False
    processes: int = 1
    callers: int = 1


def apart(storm: Storm, seed: int, callers: int) -> Series:
    """What the simulator says of as many clients, each with its part of the load and a guard.

    Their limits know of each other, as those of a host's processes do.
    """
    if callers == 1:
        return predicted(storm, seed)
    rate = storm.rate / callers
    call = msgspec.structs.replace(storm.call, to=storm.service_name)
    clients = {
        f"{storm.client} {number}": Client(rate=rate, calls={f"{storm.call_name} {number}": call})
        for number in range(callers)
    }
    world = World(
        msgspec.structs.replace(storm.system, clients=clients, triggers={}),
        seed=seed,
        horizon=storm.whole + SECOND,
    )
    for site in (site for sites in world.sites.values() for site in sites):
        if site.pipeline.limiter is not None:
            site.pipeline.limiter.on_others(0, callers - 1)
    world.plan(storm.trigger_name, storm.trigger, storm.before)
    world.run(storm.whole + SECOND)
    seconds = storm.whole // SECOND
    tallies = [client.tally for client in world.clients.values()]
    rows = [[t.offered for t in tallies], [t.good for t in tallies], [t.eventual for t in tallies]]
    rows.append([call.attempts for call in world.calls.values()])
    return Series(*([sum(s) for s in zip(*row, strict=True)][:seconds] for row in rows), seed=seed)


def variants(storm: Storm) -> list[Variant]:
    with_guard = guarded(storm)
    limited = msgspec.structs.replace(with_guard.call, limit=Limit(max=24))
    together = with_guard._replace(call=limited)  # 24 of 67/s are 360 ms: in time, as one must know
    exponential = msgspec.structs.replace(storm.service, time=Time(mean=40 * MILLISECOND))
    lucky = with_guard._replace(
        service=exponential,
        system=msgspec.structs.replace(storm.system, services={storm.service_name: exponential}),
    )
    door, both = behind(storm, DOOR), behind(with_guard, DOOR)
    four = "guarded clients, in four processes"
    return [
        Variant("no protection", storm),
        Variant("guarded clients", with_guard, guard=True),
        Variant(four, with_guard, guard=True, processes=4, callers=4),
        Variant("the same, and one limit of 24 for the host", together, guard=True, processes=4),
        Variant("guarded clients, work of exponential length", lucky, guard=True),
        Variant("guarded server, retries not marked", door, callers=0),
        Variant("guarded server, retries marked", door, marks=True),
        Variant("guarded server, clients in four processes", door, processes=4, callers=0),
        Variant("both, retries not marked", both, guard=True, callers=0),
        Variant("both, retries marked", both, guard=True, marks=True),
    ]


def share(measure: Measure) -> str:
    return f"{measure.value:6.1%} ({measure.low:.1%}..{measure.high:.1%})"


def seconds(measure: Measure | None) -> str:
    return "never" if measure is None else f"{measure.value:.0f} s (..{measure.high:.0f})"


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    lasts = int(sys.argv[2]) * SECOND if len(sys.argv) > 2 else None
    storm = story(load(EXAMPLE).system(), lasts=lasts)
    print(
        f"{platform.python_implementation()} {platform.python_version()}, {os.cpu_count()} cores,"
        f" load {os.getloadavg()[0]:.1f}; {storm.slowdown:g}x slower for"
        f" {storm.lasts // SECOND} s, {storm.left:.1f}/s of {storm.rate:g}/s are left;"
        f" seeds 1..{runs}, simulated 1..20; bar {BAR:.0%}, back within {BACK} s\n"
    )
    print(f"{'':46} {'kept of what is left':26} {'simulated':24} {'back':12} attempts/s")
    wanted = " ".join(sys.argv[3:])
    for name, played, guard, marks, processes, callers in variants(storm):
        if wanted not in name:
            continue
        seen = [
            live(played, seed, guard=guard, marks=marks, processes=processes)
            for seed in range(1, runs + 1)
        ]
        measured = told(played, "guarded", "measured", seen)
        said = "-"
        if callers:
            model = [apart(played, seed, callers) for seed in range(1, 21)]
            said = share(told(played, "guarded", "simulated", model).kept)
        doubt = sum(bool(series.doubt) for series in seen)
        print(
            f"{name:46} {share(measured.kept):26} {said:24} {seconds(measured.back_after):12}"
            f" {measured.attempts.value:.0f}"
            + (f"   ({doubt} of {runs} runs starved)" if doubt else ""),
            flush=True,
        )


if __name__ == "__main__":
    begun = time.monotonic()
    main()
    print(f"\n{time.monotonic() - begun:.0f} s")
