"""How long does a backlog take to go, and can that be promised?

    L  live rate, bytes a second of the whole fleet       B  backlog, L x the outage
    C  what the sink can take, L x capacity               rho  how far it may be used

    least possible     B / (C - L), and for a sink with nothing to spare: never
    with care          gate + (rho C - L) / 2a + max(B / (rho C - L), the slowest collector,
                       B / K s + N h / K)

The gate holds for so long before anything goes. The pace grows by `a` bytes a second each second,
so it takes (rho C - L) / a to be there and loses half of that. A collector alone has B / N and
sends at most s = `speed` x L / N; K of them have turns, and each hands over in h. rho is what the
wanted latency leaves: with answers m times as slow as in peace, rho = 1 - 1/m (the mean time in an
M/M/1 queue is 1 / (1 - rho)).

A promise that the loss of one of n brokers breaks is none: what is left of the sink, C (n - 1)/n,
must still be more than L. And records have an age: those of a backlog that takes longer to go than
they may wait are lost, whatever is promised.

Everything here is arithmetic on what the file says: `settings.spool.Fleet` and the lane's own.
"""

from math import ceil, inf
from typing import Final, NamedTuple

from tidegate.settings.spool import Fleet, Lane, Pace
from tidegate.units import SECOND, Bytes, Duration, format_duration, format_share

__all__ = ["HANDOVER", "Plan", "endangered", "eta", "least", "plan", "too_old", "utilisation"]

HANDOVER: Final[Duration] = SECOND
"""From one holder of a turn to the next: releases are seen when the next looks, once a second."""


class Plan(NamedTuple):
    """What a replay takes, and what it rests on. Times are None where there is no end.

    `refusal` says in words why no time can be promised; None if one can be.
    """

    backlog: Bytes  # of the fleet after the outage
    least: Duration | None  # if the sink gave all it has to spare
    likely: Duration | None  # behind the gate, at the lane's pace, in turns
    utilisation: float  # how far the sink is used meanwhile
    turns: int  # leases that it takes to use it so far
    kept: Bytes  # by one collector at the end of the outage
    age_bytes: Bytes  # by one collector, if the sink is away for as long as records may wait
    too_old: float  # share of the backlog that is too old before its turn
    after_loss: float  # what is left of the sink without one broker, in live rates
    refusal: str | None


def utilisation(pace: Pace, capacity: float) -> float:
    """How far a replay uses a sink of so many live rates, live records included."""
    threshold = pace.THRESHOLDS.get(pace.speed)
    if threshold is None:
        return 1.0  # all at once knows no cap
    return min(1 - 1 / threshold, (1 + pace.cap) / capacity)


def plan(lane: Lane, fleet: Fleet) -> Plan:
    """The plan of a lane for the outage that its fleet is to outlive."""
    live = fleet.rate * fleet.record
    capacity = live * fleet.capacity
    backlog = live * fleet.outage / SECOND
    used = utilisation(lane.pace, fleet.capacity)
    pace = used * capacity - live  # what is left for the replay
    likely = _likely(lane, fleet, backlog, pace)
    each = live / fleet.collectors
    after_loss = fleet.capacity * (fleet.brokers - 1) / fleet.brokers
    return Plan(
        backlog=round(backlog),
        least=_whole(_time(backlog, capacity - live)),
        likely=_whole(likely),
        utilisation=used,
        turns=max(1, ceil(pace / (each * fleet.speed))),
        kept=round(backlog / fleet.collectors),
        age_bytes=round(each * lane.bounds.age / SECOND),
        too_old=too_old(fleet.outage, _whole(likely), lane.bounds.age),
        after_loss=after_loss,
        refusal=_refusal(lane, fleet, likely, after_loss),
    )


def eta(backlog: Bytes, rate: float) -> Duration | None:
    """When a backlog is gone that goes at this rate, bytes a second; None for never.

    Less than a byte a second is what is left of a rate that was smoothed, and no rate.
    """
    return _whole(_time(backlog, rate if rate >= 1 else 0))


def least(backlog: Bytes, fleet: Fleet) -> Duration | None:
    """The least possible for what one collector has, if each of its fleet has as much."""
    spare = fleet.rate * fleet.record * (fleet.capacity - 1)
    return _whole(_time(backlog * fleet.collectors, spare))


def endangered(records: int, oldest: Duration | None, gone: Duration | None, age: Duration) -> int:
    """How many of the records that wait will be too old before their turn, at the present rate.

    While nothing goes nobody knows when it will (`gone` is None), and none are counted.
    """
    if oldest is None or gone is None:
        return 0
    return ceil(records * too_old(oldest, gone, age))


def too_old(oldest: Duration, gone: Duration | None, age: Duration) -> float:
    """The share of a backlog that is older than `age` when its turn comes.

    It came evenly, the oldest `oldest` ago and the newest now, and goes evenly, oldest first, the
    last of it after `gone` (None: never). What stands at the share x of the line is then
    oldest (1 - x) + gone x old, which runs straight from one to the other.
    """
    if gone is None:
        return 1.0
    low, high = sorted((oldest, gone))
    if age >= high:
        return 0.0
    return 1.0 if age < low else (high - age) / (high - low)


def _likely(lane: Lane, fleet: Fleet, backlog: float, pace: float) -> float:
    """In nanoseconds, infinite where it never ends."""
    if pace <= 0:
        return inf
    live = fleet.rate * fleet.record
    growth = lane.pace.step * live
    each = fleet.speed * live / fleet.collectors
    leases = min(lane.turns.leases, fleet.collectors) if lane.turns.through else fleet.collectors
    work = max(
        _time(backlog, pace),
        _time(backlog / fleet.collectors, min(each, pace)),
        _time(backlog, leases * each) + _handovers(lane, fleet, backlog, leases),
    )
    gate = lane.gate.hold + lane.gate.jitter / 2
    return gate + _time(pace / 2, growth) + work


def _handovers(lane: Lane, fleet: Fleet, backlog: float, leases: int) -> float:
    """N h / K, and one more for each slice after the first."""
    if lane.turns.through is None:
        return 0
    slices = max(1, ceil(backlog / fleet.collectors / lane.turns.amount))
    return fleet.collectors * slices * HANDOVER / leases


def _refusal(lane: Lane, fleet: Fleet, likely: float, after_loss: float) -> str | None:
    if lane.pace.speed == "at_once":
        return "no time can be promised: all at once, with no gate and no budget, a sink may fall"
    if fleet.capacity <= 1:
        return (
            f"it never ends: the sink takes {fleet.capacity:g} times the live rate, and live"
            " records take all of that"
        )
    if likely == inf:
        used = utilisation(lane.pace, fleet.capacity)
        return (
            f"it never ends: at {format_share(used)} of a sink of {fleet.capacity:g} times the live"
            " rate nothing is left for a replay"
        )
    if after_loss <= 1:
        return (
            f"no time can be promised: without one of {fleet.brokers} brokers the sink takes"
            f" {after_loss:.3g} times the live rate, less than what comes in"
        )
    if likely > lane.bounds.age:
        return (
            f"it takes {format_duration(likely)}, and records may wait"
            f" {format_duration(lane.bounds.age)}"
        )
    return None


def _time(size: float, rate: float) -> float:
    return size / rate * SECOND if rate > 0 else inf


def _whole(time: float) -> Duration | None:
    return None if time == inf else round(time)
