"""Any sequence of events of a lane, against what must hold before a byte of backlog goes."""

from random import Random
from typing import Final, get_args

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.support.sinks_health import WHOLE, health

from tidegate.core.health import Health
from tidegate.core.lane import DIRECT, TRANSITIONS, WAIT, LaneState
from tidegate.core.leases import Leases
from tidegate.core.outcome import FAILURE, IGNORED, OVERLOADED, SUCCESS, TIMEOUT, Outcome, Permit
from tidegate.core.replay import Replay
from tidegate.settings import spool as settings
from tidegate.settings.policies import Breaker
from tidegate.units import MILLISECOND, SECOND

LIVE: Final = 200_000
OUTCOMES: Final = [SUCCESS] * 12 + [FAILURE, TIMEOUT, OVERLOADED, IGNORED]


class ReplayMachine(RuleBasedStateMachine):
    """The world: a sink that may be sick, and a lane that is asked after each event."""

    @initialize(
        through=st.sampled_from([None, "nats://a:1", "slots"]),
        order=st.sampled_from(get_args(settings.LaneOrder)),
        cap=st.sampled_from([0.5, 1.0, 3.0]),
    )
    def begin(self, through: str | None, order: settings.LaneOrder, cap: float) -> None:
        lane = settings.Lane(
            to="file:x",
            order=order,
            breaker=Breaker(volume=3, open_for=SECOND, ramp=2 * SECOND),
            gate=settings.Gate(hold=3 * SECOND, jitter=SECOND, stale=4 * SECOND, look=SECOND),
            pace=settings.Pace(cap=cap, start=0.05, step=0.2),
            turns=settings.Turns(through=through, members=8, slice=10 * SECOND),
        )
        self.lane = Replay(lane, Random(3))
        self.kept, self.cap, self.through = order == "kept", cap, through
        self.leases = Leases()
        self.now = 10**15
        self.lane.on_wall(self.now, self.now)
        self.backlog = 0
        self.waiting = 0
        self.held = False
        self.looked: int | None = None
        self.flawed = False
        self.permits: list[Permit] = []
        self.replayed: list[tuple[int, int]] = []
        self.at = DIRECT
        self.leave_behind(10**9)
        self.live_well(20, whole=True)

    # What happens.

    @rule(after=st.sampled_from([0, 1, 50, 250, 1000]))
    def pass_time(self, after: int) -> None:
        self.live(after)

    @rule(after=st.sampled_from([250, 1000, 5000]))
    def sleep(self, after: int) -> None:
        """Nobody wakes it: what time has ended must have ended all the same."""
        self.now += after * MILLISECOND
        self.nothing_goes_but_when_all_holds()

    @rule(seconds=st.sampled_from([1, 20, 30]), whole=st.sampled_from([True, True, False]))
    def live_well(self, seconds: int, whole: bool) -> None:
        """A stretch in which all is well, so that gates open and something can go wrong."""
        self.held = False
        self.lane.free(self.now)
        if whole:
            self.leave_behind(10**9)
        for _ in range(4 * seconds):
            self.live(250)
            if whole and (self.looked is None or self.now - self.looked >= SECOND):
                self.look(WHOLE)
            permit = self.lane.try_live(self.now)
            if type(permit) is Permit:
                self.lane.on_answer(self.now, permit, SUCCESS)
            self.send(10**9)
            self.ask()

    def live(self, after_ms: int) -> None:
        self.now += after_ms * MILLISECOND
        self.lane.on_live(self.now, LIVE * after_ms // 1000)
        self.lane.on_wakeup(self.now)

    @rule(size=st.sampled_from([0, 1, 10_000, 10**9, 10**9, 10**9]))
    def leave_behind(self, size: int) -> None:
        self.backlog = size
        self.lane.on_backlog(self.now, size)

    @rule(size=st.sampled_from([0, 10**6, 10**6 + 1]))
    def wait(self, size: int) -> None:
        self.waiting = size
        self.lane.on_waiting(size)

    @rule(seen=st.sampled_from([WHOLE, WHOLE, WHOLE, health(in_sync=2), Health(())]))
    def look(self, seen: Health) -> None:
        self.looked, self.flawed = self.now, seen is not WHOLE
        self.lane.on_health(self.now, seen, 3 * MILLISECOND)
        if self.flawed:
            self.must_have_stopped()

    @rule()
    def send_live(self) -> None:
        permit = self.lane.try_live(self.now)
        if type(permit) is Permit:
            self.permits.append(permit)
            assert not self.held

    @precondition(lambda self: self.permits)
    @rule(
        which=st.integers(0, 5),
        outcome=st.sampled_from(OUTCOMES),
        starved=st.booleans(),
        poison=st.sampled_from([False, False, True]),
        retry_after=st.sampled_from([None, None, None, SECOND]),
    )
    def answer(
        self,
        which: int,
        outcome: Outcome,
        starved: bool,
        poison: bool,
        retry_after: int | None,
    ) -> None:
        permit = self.permits.pop(which % len(self.permits))
        self.lane.on_answer(
            self.now,
            permit,
            outcome,
            starved=starved and outcome is OVERLOADED,
            poison=poison,
            retry_after=retry_after,
        )
        bad = outcome is TIMEOUT or (starved and outcome is OVERLOADED)
        if (bad and not poison) or retry_after:
            self.must_have_stopped()

    @rule(share=st.sampled_from([0.3, 1.0, 2.0]))
    def send_backlog(self, share: float) -> None:
        allowed = self.lane.allowance(self.now)
        self.send(int(allowed * share))

    def send(self, most: int) -> None:
        size = min(self.lane.allowance(self.now), most, self.backlog)
        if size:
            self.permits.append(self.lane.on_sent(self.now, size))
            self.replayed.append((self.now, size))
            self.backlog -= size
            self.lane.on_backlog(self.now, self.backlog)
            if len(self.permits) > 3:
                self.lane.on_answer(self.now, self.permits.pop(0), SUCCESS)

    @rule()
    def ask(self) -> None:
        for _ in range(20):
            errand = self.lane.errand(self.now)
            if errand is None:
                return
            self.lane.on_errand(self.now, errand, self.leases.run(self.now, errand, "here"))
        raise AssertionError("it does not stop to ask")

    @rule()
    def lose(self) -> None:
        if self.lane.errand(self.now) is not None:
            self.lane.on_lost(self.now)

    @rule(keeps=st.booleans())
    def hold(self, keeps: bool) -> None:
        self.lane.hold(self.now, "by hand")
        assert self.lane.allowance(self.now) == 0
        self.held = keeps
        if not keeps:
            self.lane.free(self.now)

    @rule()
    def free(self) -> None:
        self.held = False
        self.lane.free(self.now)

    # What must hold.

    def must_have_stopped(self) -> None:
        assert not self.lane.gate.is_open(self.now) or self.lane._live.is_paused(self.now)
        if not self.kept:
            assert self.lane.allowance(self.now) == 0

    @invariant()
    def nothing_goes_but_when_all_holds(self) -> None:
        allowed = self.lane.allowance(self.now)
        assert 0 <= allowed <= self.backlog
        if not allowed:
            return
        assert not self.held
        assert self.lane._live.is_well(self.now) or self.kept
        if self.kept:
            return
        assert self.waiting <= 10**6
        assert self.lane.gate.is_open(self.now)
        assert not self.flawed
        assert self.looked is not None
        assert self.now - self.looked < 4 * SECOND
        share = self.lane.snapshot(self.now).share
        assert 0 < allowed <= share
        if self.through == "nats://a:1":
            slot = self.lane.member.slot(self.now)
            assert slot is not None
            assert self.leases.holder(self.now, slot) == "here"

    @invariant()
    def no_second_has_more_than_its_cap_and_what_a_second_saves(self) -> None:
        recent = [(at, size) for at, size in self.replayed if at > self.now - 5 * SECOND]
        self.replayed = recent
        live = max(100_000, 1.3 * self.lane.live_rate(self.now), LIVE * 1.3)
        rate = self.cap * live * (2 if self.through == "slots" else 1) + (live if self.kept else 0)
        assert sum(size for _, size in recent) <= rate * 7 + 10

    @invariant()
    def changes_follow_the_table_one_after_the_other(self) -> None:
        state = self.lane.state(self.now)
        for change in self.lane.drain_transitions():
            if change.policy == "replay":
                assert change.before == self.at
                after = LaneState(change.after)
                assert after in TRANSITIONS[self.at]
                assert change.reason
                self.at = after
        assert state is self.at

    @invariant()
    def what_it_says_is_so(self) -> None:
        shot = self.lane.snapshot(self.now)
        assert shot.why
        assert (shot.state is DIRECT) <= (self.backlog == 0)
        assert shot.backlog == self.backlog
        if shot.state is WAIT and not self.kept:
            assert self.lane.allowance(self.now) == 0

    @invariant()
    def once_awake_it_wants_to_wake_later(self) -> None:
        """Else a shell that sleeps until then never sleeps."""
        self.ask()
        if self.lane.allowance(self.now):
            return
        self.lane.on_wakeup(self.now)
        at = self.lane.next_wakeup(self.now)
        assert at is None or at > self.now


TestReplayMachine = pytest.mark.slow(ReplayMachine.TestCase)  # a hundred lanes, some for minutes
