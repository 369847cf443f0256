"""The cases of a fleet's replay that have bars to hold, and how they are held."""

from typing import NamedTuple

from tidegate.settings.spool import Lane, Pace, Speed, Turns
from tidegate.sim.fleet.guided import Guided
from tidegate.sim.fleet.run import Ran, run
from tidegate.sim.fleet.sink import Case
from tidegate.units import SECOND

LIVE = 5e6
SIX_HOURS = 6 * 3600.0

A = Case(
    live=LIVE,
    backlog=3600 * LIVE,
    capacity=2 * LIVE,
    collapsed=LIVE,
    health=0.75,
    lost=(900.0, 1200.0),
)
TIGHT = A._replace(capacity=1.4 * LIVE, health=1.0, lost=None)
ROOMY = A._replace(capacity=4 * LIVE, health=1.0, lost=None)


class Bar(NamedTuple):
    """What is run and what it must hold: multiples of live, of capacity, of the limit."""

    case: Case
    speed: Speed
    of_limit: float
    peak: float = 2.0
    cap: float = 1.0


BARS = {
    "A, normal": Bar(A, "normal", 1.5),
    "A, fast": Bar(A, "fast", 1.25),
    "A, gentle": Bar(A, "gentle", 1.75),
    "1.4x, normal": Bar(TIGHT, "normal", 1.5, peak=1.54),
    "1.4x, fast": Bar(TIGHT, "fast", 1.25, peak=1.54),
    # As fast as live records come, and no faster: then it takes an hour, three limits.
    "4x, normal": Bar(ROOMY, "normal", 3.2),
    "4x, normal, cap 3x": Bar(ROOMY, "normal", 1.5, peak=4.0, cap=3.0),
}


def given_back(bar: Bar, seed: int) -> tuple[Ran, Guided]:
    turns = Turns(through="nats://127.0.0.1:4222")
    lane = Lane(to="file:out", pace=Pace(speed=bar.speed, cap=bar.cap), turns=turns)
    fleet = Guided(bar.case, lane, seed)
    return run(bar.case, fleet, seed=seed, most_s=SIX_HOURS), fleet


def hold(name: str, bar: Bar, seed: int) -> None:
    ran, fleet = given_back(bar, seed)
    assert ran.drained_s is not None
    assert ran.of_limit is not None
    print(
        f"\n{name}, seed {seed}: peak {ran.peak:.3f}x live, {ran.peak_of_capacity:.3f}x capacity;"
        f" live lost {ran.lost:.2%}, late {ran.late:.3%}; gone after {ran.drained_s / 60:.1f} min,"
        f" {ran.of_limit:.3f} of the limit; p99 {1000 * ran.p99_s:.0f} ms; overload"
        f" {ran.overload_s:.0f} s"
    )
    assert ran.peak <= bar.peak * 1.01  # one percent: the live rate is measured, too
    assert ran.peak_of_capacity <= 1.1
    assert ran.lost == 0
    assert ran.of_limit <= bar.of_limit
    assert fleet.closest is None or fleet.closest >= SECOND
