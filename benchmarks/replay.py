"""What does a fleet do to its sink when all collectors have a backlog, by how it is given back?

    python benchmarks/replay.py [seed]

In virtual time, twenty collectors with an hour of backlog each. The sink takes twice the live load,
comes back with 75 % of its health, and one of its three brokers is lost from 15 to 20 minutes;
then the same where the sink takes 1.4 and 4 times the live load, is well, and stays so. The led
fleets decide with the controller that a spool runs; the others do what collectors do. A stress
model: compare its rows with each other. A minute or two of processor time.
"""

import sys
from collections.abc import Iterator
from typing import Final

from tidegate.settings.spool import Lane, Pace, Speed, Turns
from tidegate.sim.fleet.crowd import AllAtOnce, Crowd, EachAimd, Law, Some, Static, WhenWhole
from tidegate.sim.fleet.guided import Guided
from tidegate.sim.fleet.run import Fleet, Ran, run
from tidegate.sim.fleet.sink import Case

LIVE: Final = 5e6
SIX_HOURS: Final = 6 * 3600.0
COORDINATOR: Final = "nats://127.0.0.1:4222"

A: Final = Case(
    live=LIVE,
    backlog=3600 * LIVE,
    capacity=2 * LIVE,
    collapsed=LIVE,
    health=0.75,
    lost=(900.0, 1200.0),
)
CASES: Final = {
    "2x, hardly well, a broker lost": A,
    "1.4x, well": A._replace(capacity=1.4 * LIVE, health=1.0, lost=None),
    "4x, well": A._replace(capacity=4 * LIVE, collapsed=2 * LIVE, health=1.0, lost=None),
}
HEAD: Final = "| {:<44} | {:>6} | {:>9} | {:>6} | {:>8} | {:>8} | {:>7} | {:>9} | {:>8} |"


def laws(case: Case, seed: int) -> Iterator[tuple[str, Law]]:
    """What is done by fleets that are not led."""
    yield "all at once", AllAtOnce(case, seed)
    yield "all at once, start jitter 10 min", AllAtOnce(case, seed, 600.0)
    for part in (0.3, 0.8, 2.0):
        yield f"static {part:g}x live", Static(part * LIVE)
    yield "one at a time", Some(case, 1)
    yield "four at a time", Some(case, 4)
    yield "AIMD in each", EachAimd(case, seed)


def led(speed: Speed, *, through: str | None = COORDINATOR, cap: float = 1.0) -> Lane:
    """A lane with the defaults but for what is said."""
    pace = Pace(speed=speed, cap=cap)
    return Lane(to="file:out", pace=pace, turns=Turns(through=through))


def fleets(case: Case, seed: int) -> Iterator[tuple[str, Fleet]]:
    """All rows of one table."""
    for name, law in laws(case, seed):
        yield name, Crowd(case, law)
    yield "all at once, retry budget and spill", Crowd(case, AllAtOnce(case, seed), spill=True)
    for name, law in laws(case, seed):
        if isinstance(law, EachAimd):
            kept = EachAimd(case, seed)
            yield "AIMD in each, gate, state kept", Crowd(case, WhenWhole(kept, case))
            gated = WhenWhole(law, case, on_close=law.reset)
            yield "AIMD in each, gate, reset", Crowd(case, gated)
        elif "jitter" not in name:
            yield f"{name}, gate", Crowd(case, WhenWhole(law, case))
    speeds: tuple[Speed, ...] = ("gentle", "normal", "fast")
    for speed in speeds:
        yield f"led: {speed}, turns", Guided(case, led(speed), seed)
    yield "led: normal, turns, cap 3x", Guided(case, led("normal", cap=3.0), seed)
    yield "led: normal, each alone", Guided(case, led("normal", through=None), seed)


def row(name: str, ran: Ran) -> str:
    """One line of a table."""
    return HEAD.format(
        name,
        f"{ran.peak:.2f}x",
        f"{ran.peak_of_capacity:.2f}x",
        f"{ran.lost:.1%}",
        f"{ran.late:.2%}",
        "never" if ran.drained_s is None else f"{ran.drained_s / 60:.0f} min",
        "-" if ran.of_limit is None else f"{ran.of_limit:.2f}",
        f"{1000 * ran.p99_s:.0f} ms",
        f"{ran.overload_s:.0f} s",
    )


def main() -> int:
    """Print the tables."""
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    heads = ("", "peak", "of cap.", "lost", "late", "gone", "/ limit", "p99", "overload")
    for title, case in CASES.items():
        print(f"\nThe sink takes {title}; seed {seed}\n")
        print(HEAD.format(*heads))
        print(f"|{'---|' * len(heads)}")
        for name, fleet in fleets(case, seed):
            print(row(name, run(case, fleet, seed=seed, most_s=SIX_HOURS)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
