"""What is said of a lane: by the rules alone, and once by a whole check of a spool."""

from pathlib import Path

import pytest
from made_runs import client, made_run
from msgspec.structs import replace
from systems import store

from tidegate.analysis import spool as analysis
from tidegate.analysis.check import Check
from tidegate.analysis.replays import CONFIGURED, PEERS, Asked, Drain, case_of, stand_ins
from tidegate.analysis.replays import replay as real_replay
from tidegate.analysis.runs import Runner
from tidegate.findings import CheckReport, LaneResult
from tidegate.settings.load import loads
from tidegate.settings.spool import Bounds, Fleet, Lane, Pace, Spool, Turns
from tidegate.sim.fleet.run import Ran
from tidegate.units import DAY, HOUR, MINUTE

FLEET = Fleet(rate=1000.0, collectors=4, outage=HOUR)
GENTLE = Ran(
    peak=1.9,
    peak_of_capacity=0.95,
    lost=0.0,
    late=0.0,
    drained_s=4800.0,
    limit_s=3900.0,
    p99_s=0.1,
    overload_s=2.0,
    resent=0.0,
    cruise=0.8,
    seconds=(0.0, 1.0),
    sent=(1.0, 1.9),
    capacity=(2.0, 2.0),
)
HARSH = GENTLE._replace(peak=15.9, lost=0.9, drained_s=None)


def lane(**keys: object) -> Lane:
    return Lane(**{"to": "file:out", "fleet": FLEET, **keys})  # type: ignore[arg-type]


def judged(
    monkeypatch: pytest.MonkeyPatch, settings: Lane, ways: dict[str, Ran] | None = None
) -> LaneResult:
    """The result where each way goes as told: gently, if nothing is told."""

    def told(asked: Asked) -> Drain:
        name = "better" if asked.lane != settings else asked.way
        ran = (ways or {}).get(name, GENTLE)
        return Drain(ran, ran.drained_s, 3900.0)

    monkeypatch.setattr(analysis, "replay", told)
    (result,) = analysis.check_spool(Spool(lanes={"events": settings}), Runner(1), 1)
    return result


def test_a_gentle_lane_is_stable(monkeypatch: pytest.MonkeyPatch) -> None:
    result = judged(monkeypatch, lane())
    assert result.verdict == "stable"
    assert result.says == (
        "its backlog is gone within 1.33h of the sink's return, with at most 1.9x the live rate"
        " and no live record lost"
    )
    assert [way.way for way in result.ways] == [CONFIGURED, *PEERS]
    assert result.ways[0].of_limit is not None
    assert result.ways[0].of_limit.value == pytest.approx(4800 / 3900)
    assert (result.fix, result.yaml) == ("", "")


def test_one_that_loses_live_records_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    result = judged(monkeypatch, lane(), {CONFIGURED: HARSH})
    assert result.verdict == "fails"
    assert "rises to 15.9x the live rate" in result.says
    assert "90% of the live records" in result.says
    assert result.says.endswith("the backlog is never gone")


def test_all_at_once_is_shown_what_being_led_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    result = judged(monkeypatch, lane(pace=Pace(speed="at_once")), {CONFIGURED: HARSH})
    assert [way.way for way in result.ways][:2] == [CONFIGURED, "pace: normal"]
    assert "rises to 1.9x" in result.fix
    assert loads("tidegate: 1\n" + result.yaml.replace("pace:", "to: file:out\n      pace:"), "f")


def test_what_never_ends_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    never = GENTLE._replace(drained_s=None)
    assert judged(monkeypatch, lane(), {CONFIGURED: never}).says == "its backlog is never gone"


def test_what_keeps_for_too_short_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    small = judged(monkeypatch, lane(bounds=Bounds(bytes=500 * 10**6)))
    assert small.verdict == "fails"
    assert "its bounds of 500MB are met after 33.3min, and the outage lasts 1h" in small.says
    old = judged(monkeypatch, lane(bounds=Bounds(age=30 * MINUTE)))
    assert old.verdict == "fails"
    assert "100% of its backlog is older than 30min" in old.says
    assert judged(monkeypatch, lane(bounds=Bounds(bytes=10**9))).verdict == "stable"


@pytest.mark.parametrize(("brokers", "capacity"), [(3, 1.5), (1, 4.0), (2, 2.0)])
def test_a_sink_that_cannot_bear_the_loss_of_a_broker_is_vulnerable(
    monkeypatch: pytest.MonkeyPatch, brokers: int, capacity: float
) -> None:
    fleet = replace(FLEET, brokers=brokers, capacity=capacity)
    result = judged(monkeypatch, lane(fleet=fleet))
    assert result.verdict == "vulnerable"
    assert "no time can be promised" in result.says
    promised = judged(monkeypatch, lane(fleet=replace(fleet, within=DAY)))
    assert promised.verdict == "fails"
    assert "1d are promised" in promised.says


def test_a_promise_is_kept_or_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = judged(monkeypatch, lane(fleet=replace(FLEET, within=2 * HOUR)))
    assert kept.verdict == "stable"
    broken = judged(monkeypatch, lane(fleet=replace(FLEET, within=HOUR)))
    assert broken.verdict == "fails"
    assert broken.says == "its backlog takes 1.33h, and 1h are promised"


def test_too_few_turns_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    many = replace(FLEET, collectors=200)
    turns = Turns(through="nats://127.0.0.1:4222")
    slow = GENTLE._replace(drained_s=20_000.0)
    result = judged(monkeypatch, lane(fleet=many, turns=turns), {CONFIGURED: slow})
    assert "`leases: 14` could" in " ".join(result.plan.says)
    assert "20 collectors stand for all 200" in result.assumptions
    assert result.verdict == "stable"
    assert result.fix.startswith("with leases: 14 it rises to 1.9x")
    assert "turns: {leases: 14, through: 'nats://127.0.0.1:4222'}" in result.yaml
    # What saves next to nothing is no cure.
    assert judged(monkeypatch, lane(fleet=many, turns=turns)).fix == ""


def test_a_few_stand_for_many_and_are_as_fast_together() -> None:
    many = replace(FLEET, collectors=1000)
    few, some = lane(turns=Turns(leases=4)), lane(turns=Turns(leases=100))
    assert (stand_ins(few, many), stand_ins(some, many)) == (20, 50)
    assert case_of(few, many).one == pytest.approx(12 * 1e6 / 1000)
    assert case_of(some, many).one * 25 == pytest.approx(100 * 12 * 1e6 / 1000)


def test_the_worst_of_services_and_lanes_has_the_word(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Check(store(rate=20.0), source="f", repeat="again", runner=Runner(1))
    whole.rest = [made_run(clients={"shoppers": client(100, 100, 100)})]
    assert whole.report().verdict == "stable"
    whole.lanes.append(judged(monkeypatch, lane()))
    assert whole.report().says == "nothing that was tried harms anybody for long"
    whole.lanes.append(judged(monkeypatch, lane(), {CONFIGURED: HARSH}))
    report = whole.report()
    assert (report.verdict, report.exit_code) == ("fails", 1)
    assert report.says.startswith("events: its replay rises to 15.9x")
    assert len(report.lanes) == 2


def test_a_check_of_a_spool_that_was_stopped_says_so() -> None:
    only = loads("tidegate: 1\nspool: {lanes: {events: {to: 'file:out', fleet: {rate: 1/s}}}}", "f")
    stopped = Check(only, source="f", repeat="again", runner=Runner(1))
    stopped.interrupted = True
    report = stopped.report()
    assert (report.verdict, report.exit_code) == ("not judged", 130)
    assert report.says == "stopped before any replay was tried to its end"


def check(text: str) -> CheckReport:
    with Runner(1) as runner:
        return Check(loads(text, "f"), source="f", repeat="again", runner=runner).run()


def test_without_a_fleet_there_is_nothing_to_judge() -> None:
    report = check("tidegate: 1\nspool: {lanes: {events: {to: 'file:out'}}}\n")
    assert report.verdict == "not judged"
    assert report.exit_code == 0
    assert "write its `fleet`" in report.says


@pytest.mark.slow
def test_a_long_backlog_goes_on_as_its_hour_ended() -> None:
    facts = replace(FLEET, outage=10 * HOUR, collectors=2)
    way = "each feels its own way"
    hour = real_replay(Asked(lane=lane(), facts=replace(FLEET, collectors=2), way=way, seed=1))
    long = real_replay(Asked(lane=lane(), facts=facts, way=way, seed=1))
    assert hour.drained_s is not None
    assert long.drained_s is not None
    assert hour.limit_s is not None
    assert long.limit_s == pytest.approx(hour.limit_s + 9 * 3600)
    assert 9 * 3600 < long.drained_s - hour.drained_s < 1.6 * 9 * 3600


@pytest.mark.slow
def test_what_is_not_gone_after_six_hours_goes_on() -> None:
    slow = replace(FLEET, speed=0.1, capacity=4.0, collectors=1)
    drain = real_replay(Asked(lane=lane(), facts=slow, way="all at once", seed=1))
    assert drain.ran.drained_s is None
    assert drain.drained_s == pytest.approx(36_000, rel=0.01)  # an hour at a tenth


@pytest.mark.slow
def test_a_whole_check_of_a_spool_that_has_no_services() -> None:
    text = (Path(__file__).parents[3] / "examples" / "collectors.yaml").read_text("utf-8")
    report = check(text)
    assert (report.verdict, report.exit_code) == ("fails", 1)
    assert report.says.startswith("events: its replay rises to 13")
    assert not report.triggers
    assert report.seeds == [1, 2, 3]
