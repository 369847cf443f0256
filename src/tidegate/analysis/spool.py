"""What becomes of a lane's backlog when its sink is back: whom does it hurt, and when is it gone?

Each lane of which the file knows the fleet is tried as it is configured, and in the ways in which
collectors replay that are not led. It fails if the lane as configured loses live records, if its
backlog is never gone or is kept for too short, or if what is promised (`within`) is not kept, or
would not be without one of the sink's brokers. A sink that cannot bear the loss of a broker makes
it vulnerable even so: then no time can be promised.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from tidegate.analysis.replays import (
    ALL_AT_ONCE,
    CONFIGURED,
    HEALTH,
    LOST_FOR_S,
    PEERS,
    Asked,
    Drain,
    case_of,
    led,
    replay,
)
from tidegate.analysis.runs import Runner
from tidegate.core import drain
from tidegate.findings import LanePlan, LaneResult, LaneWay, Measure, Verdict
from tidegate.settings.spool import Fleet, Lane, Spool
from tidegate.units import HOUR, SECOND, format_bytes, format_duration, format_share

__all__ = ["check_spool"]

RUNS: Final = 3
"""Of each way: the model is a fluid, and luck moves its figures by a few percent."""

_WORTH: Final = 0.9  # of the time: what saves less is not told as a cure
_LOST: Final = 0.0005  # of an hour's records: less is a step's rounding


def check_spool(spool: Spool, runner: Runner, seed: int) -> list[LaneResult]:
    """Every lane of which the fleet is known, as written."""
    return [
        _lane(name, lane, lane.fleet, runner, seed)
        for name, lane in spool.lanes.items()
        if lane.fleet is not None
    ]


def _lane(name: str, lane: Lane, fleet: Fleet, runner: Runner, seed: int) -> LaneResult:
    tried = _tried(lane, fleet)
    asked = [
        Asked(lane=one.lane, facts=fleet, way=one.way, seed=seed + i)
        for one in tried
        for i in range(RUNS)
    ]
    drains = runner.each(replay, asked, f"replay of {name}")
    ways = [
        _way(one.label, drains[place * RUNS : (place + 1) * RUNS], seed)
        for place, one in enumerate(tried)
    ]
    plan = _plan(lane, fleet, ways[0], drains[0].limit_s)
    verdict, says = _judged(_Seen(lane, fleet, ways[0], plan))
    fix, yaml = _fix(name, tried[1].lane, lane, ways)
    return LaneResult(
        lane=name,
        where=f"spool.lanes.{name}",
        verdict=verdict,
        says=says,
        plan=plan,
        ways=ways,
        fix=fix,
        yaml=yaml,
        assumptions=_assumptions(lane, fleet),
    )


class _Tried(NamedTuple):
    """One way: what it is called, with which settings, and by whom it is done."""

    label: str
    lane: Lane
    way: str


def _tried(lane: Lane, fleet: Fleet) -> list[_Tried]:
    """The lane as it is, what could be written instead if anything could, and what others do."""
    tried = [_Tried(CONFIGURED, lane, CONFIGURED)]
    better = led(lane, fleet)
    if better != lane:
        tried.append(_Tried(_changed(lane, better), better, CONFIGURED))
    at_once = lane.pace.speed == "at_once"
    return tried + [_Tried(way, lane, way) for way in PEERS if not (at_once and way == ALL_AT_ONCE)]


def _changed(lane: Lane, better: Lane) -> str:
    told = [f"pace: {better.pace.speed}"] if better.pace.speed != lane.pace.speed else []
    if better.turns.leases != lane.turns.leases:
        told.append(f"leases: {better.turns.leases}")
    return ", ".join(told)


# What was seen.


def _way(way: str, drains: Sequence[Drain], seed: int) -> LaneWay:
    runs = [drain.ran for drain in drains]
    first = runs[0]
    lost = _over([ran.lost for ran in runs], "share")
    ends = [drain.drained_s for drain in drains]
    ratios = [
        drain.drained_s / drain.limit_s
        for drain in drains
        if drain.drained_s is not None and drain.limit_s
    ]
    return LaneWay(
        way=way,
        configured=way == CONFIGURED,
        peak=_over([ran.peak for ran in runs], "x"),
        peak_of_capacity=_over([ran.peak_of_capacity for ran in runs], "x"),
        lost=lost,
        late=_over([ran.late for ran in runs], "share"),
        drained=_over([end for end in ends if end is not None], "s") if all(ends) else None,
        of_limit=_over(ratios, "x") if len(ratios) == len(runs) else None,
        p99=_over([ran.p99_s for ran in runs], "s"),
        overload=_over([ran.overload_s for ran in runs], "s"),
        resent=_over([ran.resent for ran in runs], "share"),
        holds=lost.value <= _LOST and all(ends),
        seconds=list(first.seconds),
        sent=list(first.sent),
        capacity=list(first.capacity),
        seed=seed,
    )


def _over(values: Sequence[float], unit: str) -> Measure:
    mean = sum(values) / len(values)
    low, high = min(values), max(values)
    return Measure(value=mean, low=low, high=high, unit=unit, runs=len(values), how="simulated")


# What can be known without luck.


def _plan(lane: Lane, fleet: Fleet, way: LaneWay, limit: float | None) -> LanePlan:
    found = drain.plan(lane, fleet)
    gone = None if way.drained is None else round(way.drained.value * SECOND)
    bound = lane.bounds.bytes
    each = found.kept * SECOND / fleet.outage  # bytes a second at one collector
    plan = LanePlan(
        backlog=_computed(found.backlog, "bytes"),
        limit=None if limit is None else _computed(limit, "s"),
        likely=None if found.likely is None else _computed(found.likely / SECOND, "s"),
        spare=_computed(found.after_loss, "x"),
        needs=_computed(found.kept, "bytes"),
        kept_for=None if bound is None else _computed(bound / each, "s"),
        too_old=_computed(drain.too_old(fleet.outage, gone, lane.bounds.age), "share"),
        turns=found.turns,
        says=[],
    )
    plan.says.extend(_told(lane, fleet, plan))
    return plan


def _computed(value: float, unit: str) -> Measure:
    return Measure(value=value, low=value, high=value, unit=unit)


def _told(lane: Lane, fleet: Fleet, plan: LanePlan) -> list[str]:
    wait = f"{_bytes(plan.backlog)} wait after {format_duration(fleet.outage)}"
    count = f"each of {fleet.collectors:,} collectors" if fleet.collectors > 1 else "the collector"
    told = [f"{wait}, {_bytes(plan.needs)} on the disk of {count}"]
    if plan.limit is None:
        told.append("no replay ever ends: the sink takes no more than what comes live")
    else:
        told.append(f"no replay can end within less than {_time(plan.limit)}")
    told.append(_head_room(fleet, plan))
    if lane.pace.speed != "at_once" and lane.turns.through and plan.turns > lane.turns.leases:
        told.append(
            f"{lane.turns.leases:,} collectors at a time cannot use what the sink has to spare:"
            f" `leases: {plan.turns}` could"
        )
    if plan.kept_for is not None:
        told.append(f"bounds of {_size(lane)} are enough for {_time(plan.kept_for)} of outage")
    if plan.too_old.value and plan.limit is not None:
        age = format_duration(lane.bounds.age)
        share = format_share(round(plan.too_old.value, 3))
        told.append(f"{share} of it is older than {age} at its turn, and is given up")
    return told


def _head_room(fleet: Fleet, plan: LanePlan) -> str:
    left = f"without one of {fleet.brokers:,} brokers the sink takes {plan.spare.value:.3g}x"
    if fleet.brokers == 1:
        left = "without its one broker the sink takes nothing"
    if plan.spare.value > 1:
        return f"{left} what comes live: a replay slows down then, and goes on"
    return f"{left}{' what comes live' if fleet.brokers > 1 else ''}: no time can be promised"


# What follows.


class _Seen(NamedTuple):
    """What a rule may look at: the lane as it is configured, and what came of it."""

    lane: Lane
    fleet: Fleet
    way: LaneWay
    plan: LanePlan


def _judged(seen: _Seen) -> tuple[Verdict, str]:
    _, fleet, way, plan = seen
    found = next((says for rule in _RULES if (says := rule(seen))), None)
    if found is not None:
        return "fails", found
    goes = (
        f"its backlog is gone within {_time(way.drained)} of the sink's return,"
        f" with at most {way.peak.high:.3g}x the live rate and no live record lost"
    )
    if plan.spare.value <= 1:
        return "vulnerable", f"{goes}; but {_head_room(fleet, plan)}"
    return "stable", goes


def _loses(seen: _Seen) -> str | None:
    way = seen.way
    if way.lost.value <= _LOST:
        return None
    end = (
        "and the backlog is never gone"
        if way.drained is None
        else f"until the backlog is gone, {_time(way.drained)} later"
    )
    return (
        f"its replay rises to {way.peak.high:.3g}x the live rate, and"
        f" {format_share(round(way.lost.value, 3))} of the live records of the first hour are"
        f" lost, {end}"
    )


def _never_ends(seen: _Seen) -> str | None:
    _, fleet, way, plan = seen
    if plan.limit is None:
        return (
            f"its backlog is never gone: the sink takes {fleet.capacity:.3g}x of what comes live,"
            " and nothing is left for a replay"
        )
    return "its backlog is never gone" if way.drained is None else None


def _keeps_too_little(seen: _Seen) -> str | None:
    lane, fleet, _, plan = seen
    if plan.kept_for is not None and plan.kept_for.value < fleet.outage / SECOND:
        return (
            f"its bounds of {_size(lane)} are met after {_time(plan.kept_for)}, and the outage"
            f" lasts {format_duration(fleet.outage)}: what comes then is"
            f" {'refused' if lane.bounds.full == 'refuse' else 'paid for with the oldest'}"
        )
    if plan.too_old.value > _LOST:
        return (
            f"{format_share(round(plan.too_old.value, 3))} of its backlog is older than"
            f" {format_duration(lane.bounds.age)} before its turn comes, and is given up"
        )
    return None


def _breaks_its_word(seen: _Seen) -> str | None:
    _, fleet, way, plan = seen
    if fleet.within is None or way.drained is None:
        return None
    promised = format_duration(fleet.within)
    if way.drained.high > fleet.within / SECOND:
        return f"its backlog takes {_time(way.drained)}, and {promised} are promised"
    if plan.spare.value <= 1:
        return f"{promised} are promised, but {_head_room(fleet, plan)}"
    return None


_RULES: Final = (_loses, _never_ends, _keeps_too_little, _breaks_its_word)


def _fix(name: str, better: Lane, lane: Lane, ways: Sequence[LaneWay]) -> tuple[str, str]:
    """What to write in place of what the lane has, where that holds and is worth it."""
    now, then = ways[0], ways[1]
    if better == lane or not then.holds or then.drained is None:
        return "", ""
    if now.holds and now.drained is not None and then.drained.value > _WORTH * now.drained.value:
        return "", ""
    says = (
        f"with {then.way} it rises to {then.peak.high:.3g}x, loses no live record and is gone after"
        f" {_time(then.drained)}"
    )
    yaml = f"spool:\n  lanes:\n    {name}:\n"
    if better.pace.speed != lane.pace.speed:
        yaml += f"      pace: {better.pace.speed}\n"
    if better.turns.leases != lane.turns.leases:
        turns = f"{{leases: {better.turns.leases}, through: '{better.turns.through}'}}"
        yaml += f"      turns: {turns}\n"
    return says, yaml


def _assumptions(lane: Lane, fleet: Fleet) -> list[str]:
    case = case_of(lane, fleet)
    sick = format_share(fleet.sick)
    back = f"the sink comes back with {format_share(HEALTH)} of its health, takes {sick} of its"
    said = [f"{back} capacity at the worst, and heals within 10 min where it has room"]
    if case.lost is not None:
        said.append(
            f"one of its {fleet.brokers:,} brokers is lost after {_time_s(case.lost[0])}, for"
            f" {_time_s(LOST_FOR_S)}"
        )
    if case.collectors < fleet.collectors:
        said.append(f"{case.collectors} collectors stand for all {fleet.collectors:,}")
    if fleet.outage > HOUR:
        said.append("1h of the backlog was simulated; the rest goes as that did at its end")
    said.append(
        "live records are tried 4 times, a second apart, and then lost, in the ways that are not"
        " led; lost and late are of the first hour"
    )
    return said


def _bytes(measure: Measure) -> str:
    return format_bytes(float(f"{measure.value:.3g}"))


def _size(lane: Lane) -> str:
    return format_bytes(lane.bounds.bytes or 0)


def _time(measure: Measure | None) -> str:
    return "never" if measure is None else _time_s(measure.value)


def _time_s(seconds: float) -> str:
    """To three digits, as the tables have it."""
    return format_duration(float(f"{seconds:.3g}") * SECOND)
