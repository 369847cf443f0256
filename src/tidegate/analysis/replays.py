"""Which ways of giving a lane's backlog back are tried, and in which case?

The case is made from what the file says of the lane's fleet: the sink comes back with three of four
replicas in step, and later one of its brokers is lost for five minutes, since a sink that has just
been down is seldom done with it. A backlog of more than an hour is cut to one hour, which is enough
to see how high a replay rises and what it leaves of the sink; the rest goes as fast as that hour
went at its end, and so does what is not gone after six hours. A few dozen collectors stand for
more: each can send as much as one of the many, and has more waiting.
"""

from typing import Final

import msgspec
from msgspec.structs import replace

from tidegate.core.drain import plan
from tidegate.settings.spool import Fleet as Facts
from tidegate.settings.spool import Lane, Speed
from tidegate.sim.fleet.crowd import AllAtOnce, Crowd, EachAimd, Law, Some, Static
from tidegate.sim.fleet.guided import Guided
from tidegate.sim.fleet.run import HOUR_S, Fleet, Ran, limit_s, run
from tidegate.sim.fleet.sink import Case
from tidegate.units import SECOND

__all__ = [
    "ALL_AT_ONCE",
    "CONFIGURED",
    "PEERS",
    "Asked",
    "Drain",
    "case_of",
    "led",
    "replay",
    "stand_ins",
]

ALL_AT_ONCE: Final = "all at once"
CONFIGURED: Final = "as configured"
JITTER: Final = "all at once, after up to 10min"
STATIC: Final = "at a fixed 0.8x"
TURNS: Final = "one collector at a time"
EACH: Final = "each feels its own way"
PEERS: Final = (ALL_AT_ONCE, JITTER, STATIC, TURNS, EACH)
"""What a lane is compared with: what collectors do that are not led."""

HEALTH: Final = 0.75
LOST_FOR_S: Final = 300.0

_FEW: Final = 20
_LEASES: Final = 25  # the most that are simulated
_LEASES_MOST: Final = 1000  # what the settings take
_JITTER_S: Final = 600.0
_STATIC: Final = 0.8
_LOST_AT: Final = 0.25  # of the least possible time to the end
_LOST_AT_S: Final = 60.0  # but no sooner: what is still coming back is one event, not two
_LOOK_S: Final = 6 * HOUR_S
_LOOK_LIMITS: Final = 4.0


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One run: which lane, which way, which luck."""

    lane: Lane
    facts: Facts
    way: str
    seed: int


class Drain(msgspec.Struct, frozen=True):
    """A run, and the end of the whole backlog where only an hour of it was simulated."""

    ran: Ran
    drained_s: float | None
    limit_s: float | None


def led(lane: Lane, facts: Facts) -> Lane:
    """The lane with a pace, and with enough leases to use what the sink has to spare."""
    speed: Speed = "normal" if lane.pace.speed == "at_once" else lane.pace.speed
    pace = replace(lane.pace, speed=speed)
    if lane.turns.through in {None, "slots"}:
        return replace(lane, pace=pace)
    enough = min(plan(replace(lane, pace=pace), facts).turns, facts.collectors, _LEASES_MOST)
    turns = replace(lane.turns, leases=max(lane.turns.leases, enough))
    return replace(lane, pace=pace, turns=turns)


def stand_ins(lane: Lane, facts: Facts) -> int:
    """How many collectors are simulated: enough that most of them wait for a turn."""
    return min(facts.collectors, max(_FEW, 2 * min(lane.turns.leases, _LEASES)))


def case_of(lane: Lane, facts: Facts) -> Case:
    """The fleet and its sink in the hour that is simulated."""
    live = facts.rate * facts.record
    backlog = live * min(facts.outage / SECOND, HOUR_S)
    case = Case(
        live=live,
        backlog=backlog,
        capacity=facts.capacity * live,
        collapsed=facts.capacity * facts.sick * live,
        collectors=stand_ins(lane, facts),
        # Where so many have a turn that fewer stand for them, each is that much faster.
        each=facts.speed * live / facts.collectors * max(1.0, lane.turns.leases / _LEASES),
        brokers=facts.brokers,
        record=facts.record,
        speed=facts.speed,
        health=HEALTH,
    )
    least = limit_s(case, _LOOK_S)
    if facts.brokers == 1 or least is None:
        return case
    start = max(_LOST_AT_S, round(_LOST_AT * least))
    return case._replace(lost=(start, start + LOST_FOR_S))


def replay(asked: Asked) -> Drain:
    """Let it run; a function of what is asked alone."""
    facts, case = asked.facts, case_of(asked.lane, asked.facts)
    least = limit_s(case, _LOOK_S)
    most = max(_LOOK_S, _LOOK_LIMITS * least) if least is not None else HOUR_S
    ran = run(case, _fleet(asked, case), seed=asked.seed, most_s=most)
    rest = max(0.0, facts.outage / SECOND - HOUR_S)
    limit = None if ran.limit_s is None else ran.limit_s + rest / (facts.capacity - 1)
    if ran.drained_s is not None and not rest:
        return Drain(ran, ran.drained_s, limit)
    if ran.cruise is None:
        return Drain(ran, None, limit)
    if ran.drained_s is not None:
        return Drain(ran, ran.drained_s + rest / ran.cruise, limit)
    return Drain(ran, most + (ran.left_s + rest) / ran.cruise, limit)


def _fleet(asked: Asked, case: Case) -> Fleet:
    if asked.way == CONFIGURED and asked.lane.pace.speed != "at_once":
        turns = replace(asked.lane.turns, leases=min(asked.lane.turns.leases, _LEASES))
        return Guided(case, replace(asked.lane, turns=turns), asked.seed)
    laws: dict[str, Law] = {
        CONFIGURED: AllAtOnce(case, asked.seed),
        ALL_AT_ONCE: AllAtOnce(case, asked.seed),
        JITTER: AllAtOnce(case, asked.seed, _JITTER_S),
        STATIC: Static(_STATIC * case.live),
        TURNS: Some(case),
        EACH: EachAimd(case, asked.seed),
    }
    return Crowd(case, laws[asked.way])
