"""A lane: what is new goes by the circuit, what was kept by circuit, gate, turn and budget."""

from itertools import pairwise
from random import Random

import pytest
from tests.support.sinks_health import WHOLE, health

from tidegate.core.errands import Budget, Publish
from tidegate.core.lane import CRUISE, DIRECT, HOLD, RAMP, SPILL, WAIT
from tidegate.core.leases import Leases
from tidegate.core.outcome import (
    FAILURE,
    IGNORED,
    OVERLOADED,
    SUCCESS,
    TIMEOUT,
    Outcome,
    Permit,
    Reason,
    Rejection,
)
from tidegate.core.replay import Replay
from tidegate.settings import spool as settings
from tidegate.settings.policies import Breaker
from tidegate.units import HOUR, MILLISECOND, SECOND

MS = MILLISECOND
LIVE = 1_000_000
GATE = settings.Gate(jitter=0)
BREAKER = Breaker(volume=3)


class Rig:
    """A lane in seconds: a megabyte comes in, is sent, and what may be replayed is."""

    def __init__(self, backlog: int = 10**9, **of: object) -> None:
        wanted = {"to": "file:x", "gate": GATE, "breaker": BREAKER, **of}
        self.lane = Replay(settings.Lane(**wanted), Random(1))  # type: ignore[arg-type]
        self.now = 0
        self.backlog = backlog
        self.latency = self.replayed_in = 5 * MS
        self.outcome: Outcome = SUCCESS
        self.sent = 0
        self.seen = WHOLE
        self.lane.on_backlog(0, backlog)

    def run(self, seconds: int, *, live: bool = True) -> int:
        """Bytes that were replayed in this time."""
        before = self.sent
        for _ in range(seconds * 10):
            if live and self.now % SECOND == 0:
                self.lane.on_live(self.now, LIVE)
                self.live()
            if self.now % (5 * SECOND) == 0:
                self.lane.on_health(self.now, self.seen)
            self.replay()
            self.now += SECOND // 10
        return self.sent - before

    def live(
        self,
        outcome: Outcome | None = None,
        *,
        poison: bool = False,
        retry_after: int | None = None,
    ) -> Permit | Rejection:
        permit = self.lane.try_live(self.now)
        if type(permit) is Permit:
            ended, outcome = self.now + self.latency, outcome or self.outcome
            self.lane.on_answer(ended, permit, outcome, poison=poison, retry_after=retry_after)
        return permit

    def replay(self) -> None:
        size = self.lane.allowance(self.now)
        if size:
            assert size <= self.backlog
            permit = self.lane.on_sent(self.now, size)
            self.sent += size
            self.backlog -= size
            self.lane.on_backlog(self.now, self.backlog)
            self.lane.on_answer(self.now + self.replayed_in, permit, self.outcome)


def ramping(**of: object) -> Rig:
    rig = Rig(**of)  # type: ignore[arg-type]
    rig.run(70)
    assert rig.lane.state(rig.now) is RAMP
    return rig


def test_it_waits_for_the_gate_ramps_cruises_and_is_direct_again() -> None:
    rig = Rig(backlog=80 * LIVE)
    assert rig.run(60) == 0
    assert rig.lane.why(rig.now - 1).startswith("the gate is closed for another 1s")
    assert rig.run(30) > 0
    rig.run(200)
    changes = [c for c in rig.lane.drain_transitions() if c.policy == "replay"]
    assert [c.after for c in changes] == ["wait", "ramp", "cruise", "direct"]
    assert changes[1].at == 60 * SECOND
    assert rig.lane.state(rig.now) is DIRECT
    assert rig.lane.why(rig.now) == "nothing waits"
    assert rig.backlog == 0


def test_it_never_sends_more_than_its_cap_and_a_second_of_it() -> None:
    rig = Rig()
    rig.run(200)
    assert rig.lane.state(rig.now) is CRUISE
    assert rig.run(60) <= 1.05 * 61 * LIVE


@pytest.mark.parametrize(
    ("outcome", "said"),
    [(FAILURE, {}), (TIMEOUT, {}), (OVERLOADED, {"starved": True})],
)
def test_one_answer_ends_a_replay_in_its_instant(outcome: Outcome, said: dict[str, bool]) -> None:
    rig = ramping()
    rig.now += SECOND
    assert rig.lane.allowance(rig.now) > 0
    permit = rig.lane.on_sent(rig.now, 1)
    rig.lane.on_answer(rig.now, permit, outcome, **said)
    assert rig.lane.allowance(rig.now) == 0
    assert rig.lane.state(rig.now) is WAIT
    assert rig.run(59) == 0
    assert rig.run(10) < 1.2 * LIVE  # and then it begins anew: 1% and 2% more each second


def test_batches_that_take_long_because_they_are_large_do_not_slow_it_down() -> None:
    rig = ramping()
    rig.replayed_in = 90 * MS
    rig.run(80)
    assert rig.lane.state(rig.now) is CRUISE
    assert rig.run(20) == pytest.approx(20 * LIVE, rel=0.05)


def test_live_batches_that_take_long_slow_it_down() -> None:
    rig = ramping()
    rig.run(30)
    rig.latency = 70 * MS
    assert rig.run(20) < 15 * LIVE
    assert rig.run(20) < 8 * LIVE


def test_without_live_batches_its_own_slow_it_down() -> None:
    rig = ramping(pace=settings.Pace(least=LIVE))
    rig.run(30, live=False)
    rig.replayed_in = 70 * MS
    assert rig.run(20, live=False) < 15 * LIVE
    assert rig.run(20, live=False) < 8 * LIVE


def test_a_live_answer_ends_it_as_well() -> None:
    rig = ramping()
    rig.live(TIMEOUT)
    rig.now += rig.latency
    assert rig.lane.allowance(rig.now) == 0


def test_a_flaw_of_its_health_ends_it() -> None:
    rig = ramping()
    rig.lane.on_health(rig.now, health(in_sync=2))
    assert rig.lane.allowance(rig.now) == 0
    assert rig.lane.why(rig.now) == "the gate is closed: events-7 has 2 of 3 replicas in step"


def test_silence_of_its_health_ends_it_though_nobody_says_so() -> None:
    rig = ramping()
    now = rig.now
    seen = now - 5 * SECOND
    assert rig.lane.allowance(seen + 15 * SECOND - 1) > 0
    assert rig.lane.allowance(seen + 15 * SECOND) == 0


def test_poison_says_nothing_of_the_sink() -> None:
    rig = ramping()
    permit = rig.lane.on_sent(rig.now, 1)
    rig.lane.on_answer(rig.now, permit, FAILURE, poison=True)
    rig.live(FAILURE, poison=True)
    assert rig.lane.state(rig.now) is RAMP


def test_live_records_go_first() -> None:
    rig = ramping()
    rig.now += SECOND
    rig.lane.on_waiting(10**6 + 1)
    assert rig.lane.allowance(rig.now) == 0
    woken = rig.lane.next_wakeup(rig.now)
    assert woken is None or woken > rig.now
    rig.lane.on_waiting(10**6)
    assert rig.lane.allowance(rig.now) > 0


def test_a_failed_live_batch_is_not_tried_at_once_again() -> None:
    rig = Rig(backlog=0)
    tries = []
    for _ in range(30_000 // 10):
        if type(rig.live(FAILURE)) is Permit:
            tries.append(rig.now)
        rig.now += 10 * MS
    waits = [after - before for before, after in pairwise(tries)]
    assert len(tries) <= 10
    assert 50 * MS <= waits[0] <= 110 * MS
    assert 100 * MS <= waits[1] <= 210 * MS
    assert rig.lane.state(rig.now) is SPILL
    assert rig.lane.why(rig.now).startswith("the sink is sick: ")


def test_a_sink_that_asks_for_a_pause_has_it() -> None:
    rig = ramping()
    rig.live(SUCCESS, retry_after=20 * SECOND)
    answer = rig.lane.try_live(rig.now + SECOND)
    assert type(answer) is Rejection
    assert answer.reason is Reason.RETRY_AFTER
    assert rig.lane.allowance(rig.now + SECOND) == 0
    assert rig.lane.why(rig.now + SECOND).startswith("the sink asks for a pause: another 19")
    assert rig.lane.is_live_shut(rig.now + SECOND)
    later = rig.now + 21 * SECOND
    rig.lane.on_health(later, WHOLE)
    assert not rig.lane.is_live_shut(later)
    assert type(rig.lane.try_live(later)) is Permit


def test_a_sink_may_ask_for_five_minutes_and_no_more() -> None:
    rig = Rig(backlog=0)
    rig.live(SUCCESS, retry_after=HOUR)
    assert rig.lane.next_wakeup(rig.now + SECOND) == rig.now + rig.latency + 300 * SECOND


def test_errors_that_the_gate_bears_with_do_not_slow_it_down() -> None:
    rig = ramping(gate=settings.Gate(jitter=0, errors=0.2))
    for _ in range(20):
        for _ in range(5):
            rig.live()
        rig.live(FAILURE)
        rig.now += SECOND // 10
        rig.run(1)
    assert rig.lane.state(rig.now) is RAMP


def test_a_sick_sink_is_tried_by_canaries_and_comes_back_through_the_gate() -> None:
    rig = Rig()
    rig.outcome = FAILURE
    rig.run(60)
    assert rig.lane.state(rig.now) is SPILL
    rig.outcome = SUCCESS
    rig.run(30)
    assert rig.lane.state(rig.now) is WAIT
    assert rig.sent == 0
    rig.run(60)
    assert rig.lane.state(rig.now) is RAMP


def test_a_ramp_of_live_records_goes_before_the_backlog() -> None:
    gate = settings.Gate(hold=0, jitter=0)
    rig = Rig(gate=gate)
    for _ in range(3):
        rig.live(FAILURE)
        rig.now += SECOND
    rig.now += 5 * SECOND
    rig.lane.on_health(rig.now, WHOLE)
    for _ in range(3):
        rig.live()
        rig.now += SECOND
    rig.lane.on_health(rig.now, WHOLE)
    assert rig.lane.why(rig.now) == "live records come back first"
    rig.run(11)
    assert rig.lane.state(rig.now) is RAMP


def test_a_hold_lets_nothing_out_until_it_is_freed_and_then_through_canaries() -> None:
    rig = ramping()
    rig.lane.hold(rig.now, "we move the cluster")
    assert rig.lane.state(rig.now) is HOLD
    assert rig.lane.why(rig.now) == "held: we move the cluster"
    assert rig.run(120) == 0
    answer = rig.lane.try_live(rig.now)
    assert type(answer) is Rejection
    assert answer.reason is Reason.HELD
    assert rig.lane.is_live_shut(rig.now)
    rig.lane.free(rig.now)
    assert rig.lane.state(rig.now) is SPILL
    rig.run(30)
    assert rig.sent == 0 or rig.lane.state(rig.now) in {RAMP, WAIT}


def test_kept_in_order_all_goes_as_backlog_at_the_rate_at_which_it_comes_in() -> None:
    rig = Rig(order="kept")
    rig.run(20)
    answer = rig.lane.try_live(rig.now)
    assert type(answer) is Rejection
    assert answer.reason is Reason.RATE
    assert rig.run(20) == pytest.approx(20 * LIVE, rel=0.1)
    rig.run(100)
    assert rig.run(20) == pytest.approx(40 * LIVE, rel=0.1)  # and the budget on top


def test_kept_in_order_a_sick_sink_is_tried_by_canaries() -> None:
    rig = Rig(order="kept")
    rig.run(20)
    rig.outcome = FAILURE
    for _ in range(40):
        rig.run(1)
        rig.live()
    sent = rig.sent
    rig.lane.on_backlog(rig.now, rig.backlog)
    assert rig.sent == sent


def test_at_once_knows_neither_gate_nor_budget() -> None:
    rig = Rig(pace=settings.Pace(speed="at_once"))
    assert rig.lane.allowance(0) == 10**9
    assert rig.lane.state(0) is CRUISE


def test_what_went_too_early_is_waited_for() -> None:
    rig = ramping()
    rig.now += SECOND
    share = rig.lane.snapshot(rig.now).share
    rig.lane.allowance(rig.now)
    rig.lane.on_sent(rig.now, int(3 * share))
    assert rig.lane.allowance(rig.now + SECOND) == 0
    woken = rig.lane.next_wakeup(rig.now)
    assert woken is not None
    assert rig.lane.allowance(rig.now + 3 * SECOND) > 0


def test_the_live_rate_is_that_of_the_last_minute() -> None:
    rig = Rig()
    assert rig.lane.live_rate(0) == 0
    rig.run(3)
    assert rig.lane.live_rate(rig.now - SECOND) == pytest.approx(LIVE, rel=0.05)
    rig.run(120)
    assert rig.lane.live_rate(rig.now) == pytest.approx(LIVE, rel=0.05)
    assert rig.lane.live_rate(rig.now + HOUR) < 1


def test_it_says_all_of_itself() -> None:
    rig = ramping()
    shot = rig.lane.snapshot(rig.now)
    assert (shot.state, shot.gate, shot.turns, shot.lease) == (RAMP, "open", "alone", None)
    assert shot.budget == shot.share > 0
    assert shot.live == pytest.approx(LIVE, rel=0.1)
    assert shot.baseline == 5 * MS
    assert shot.backlog == rig.backlog


def test_it_wakes_when_its_gate_opens_and_when_its_health_is_stale() -> None:
    rig = Rig()
    rig.run(60, live=False)
    assert rig.lane.next_wakeup(rig.now - 1) == 60 * SECOND
    rig.lane.on_wakeup(60 * SECOND)
    assert rig.lane.state(60 * SECOND) is RAMP
    rig.lane.on_wakeup(70 * SECOND)
    assert rig.lane.state(70 * SECOND) is WAIT


def test_in_a_fleet_it_asks_and_closes_with_a_word() -> None:
    turns = settings.Turns(through="nats://a:1")
    rig, leases = Rig(turns=turns), Leases()

    def ask() -> list[object]:
        asked: list[object] = []
        while (errand := rig.lane.errand(rig.now)) is not None:
            asked.append(errand)
            rig.lane.on_errand(rig.now, errand, leases.run(rig.now, errand, "here"))
        return asked

    for _ in range(75):
        ask()
        rig.run(1)
    ask()
    assert rig.lane.state(rig.now) is RAMP
    assert rig.lane.snapshot(rig.now).lease == 0
    rig.live(TIMEOUT)
    rig.now += rig.latency
    first = ask()[0]
    assert type(first) is Publish
    assert leases.budget == Budget(first.budget.number, 0.0, 1, 1)
    assert leases.holder(rig.now, 0) is None
    errand = rig.lane.errand(rig.now + 20 * SECOND)
    assert errand is not None
    rig.lane.on_lost(rig.now + 20 * SECOND)
    assert rig.lane.snapshot(rig.now + 20 * SECOND).turns == "the coordinator is lost"
    assert rig.lane.errand(rig.now + 20 * SECOND) is None


def test_what_a_user_cancels_says_nothing() -> None:
    rig = ramping()
    rig.live(IGNORED)
    assert rig.lane.state(rig.now) is RAMP


def test_slots_go_by_the_wall_clock() -> None:
    rig = Rig(turns=settings.Turns(through="slots", members=40, leases=4))
    rig.lane.on_wall(0, 0)
    sent = [rig.run(60) > 0 for _ in range(21)]
    assert sum(sent) == 2  # ten slots of a minute, twice


def test_changes_that_nobody_drains_are_bounded() -> None:
    rig = Rig(gate=settings.Gate(hold=0, jitter=0))
    for second in range(200):
        rig.lane.on_health(second * SECOND, WHOLE)
        rig.lane.on_health(second * SECOND, health(in_sync=1))
    assert len(rig.lane.changes) == 64
