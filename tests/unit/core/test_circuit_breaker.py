"""The circuit, told in instants. Defaults: 50 % of 20 in 10 s, 5 s open, 3 probes, ramp 10 s."""

import gc
import tracemalloc
from random import Random

import pytest

from tidegate.core.circuit_breaker import (
    CLOSED,
    HALF_OPEN,
    HELD,
    OPEN,
    RAMPING,
    TRANSITIONS,
    CircuitBreaker,
    State,
)
from tidegate.core.outcome import (
    FAILURE,
    IGNORED,
    OVERLOADED,
    REJECTIONS,
    SUCCESS,
    TIMEOUT,
    Outcome,
    Permit,
    Reason,
)
from tidegate.settings import policies as settings
from tidegate.units import DAY, MILLISECOND, SECOND

MS = MILLISECOND


class Scripted(Random):
    """Luck that is known beforehand."""

    def __init__(self, *draws: float) -> None:
        super().__init__(0)
        self.draws = list(draws)

    def random(self) -> float:
        return self.draws.pop(0)


def breaker(*draws: float, **changes: object) -> CircuitBreaker:
    return CircuitBreaker(settings.Breaker(**changes), Scripted(*draws))


def permit(circuit: CircuitBreaker, now: int) -> Permit:
    answer = circuit.try_acquire(now)
    assert isinstance(answer, Permit), answer
    return answer


def calls(circuit: CircuitBreaker, now: int, *outcomes: Outcome) -> None:
    for outcome in outcomes:
        circuit.release(now, permit(circuit, now), outcome)


def opened(*draws: float, at: int = 0, **changes: object) -> CircuitBreaker:
    """Opened at `at` by twenty failures."""
    circuit = breaker(*draws, **changes)
    calls(circuit, at, *[FAILURE] * 20)
    assert circuit.state(at) is OPEN
    return circuit


def ramping(*draws: float, **changes: object) -> CircuitBreaker:
    """Opened at 0, closed by three probes at 5 s; fully back at 15 s."""
    circuit = opened(*draws, **changes)
    calls(circuit, 5 * SECOND, SUCCESS, SUCCESS, SUCCESS)
    return circuit


def reason(circuit: CircuitBreaker, now: int) -> Reason | None:
    answer = circuit.try_acquire(now)
    return None if isinstance(answer, Permit) else answer.reason


class TestClosed:
    def test_half_of_twenty_open_it(self) -> None:
        circuit = breaker()
        calls(circuit, 0, *[SUCCESS] * 10, *[FAILURE] * 9)
        assert circuit.state(0) is CLOSED
        calls(circuit, 0, FAILURE)
        assert circuit.state(0) is OPEN

    def test_fewer_than_the_volume_prove_nothing(self) -> None:
        circuit = breaker()
        calls(circuit, 0, *[FAILURE] * 19)
        assert circuit.state(0) is CLOSED

    def test_a_success_never_opens_it(self) -> None:
        circuit = breaker()
        calls(circuit, 0, *[FAILURE] * 19, SUCCESS)
        assert circuit.state(0) is CLOSED  # the volume is full, and the last word was good

    @pytest.mark.parametrize("outcome", [FAILURE, TIMEOUT, OVERLOADED])
    def test_errors_timeouts_and_refusals_count_alike(self, outcome: Outcome) -> None:
        circuit = breaker()
        calls(circuit, 0, *[outcome] * 20)
        assert circuit.state(0) is OPEN

    def test_cancelled_calls_say_nothing(self) -> None:
        circuit = breaker()
        calls(circuit, 0, *[IGNORED] * 1000, *[FAILURE] * 19)
        snapshot = circuit.snapshot(0)
        assert (snapshot.state, snapshot.calls, snapshot.failed) == (CLOSED, 19, 19)

    def test_what_left_the_window_does_not_count(self) -> None:
        circuit = breaker()
        calls(circuit, 0, *[FAILURE] * 19)
        calls(circuit, 10 * SECOND, FAILURE)
        assert circuit.state(10 * SECOND) is CLOSED
        assert circuit.snapshot(10 * SECOND).calls == 1

    def test_a_result_at_the_edge_of_a_bucket_is_of_the_later_one(self) -> None:
        circuit = breaker()
        calls(circuit, 0, FAILURE)
        calls(circuit, SECOND, *[FAILURE] * 3)
        calls(circuit, 9 * SECOND, FAILURE)
        assert circuit.snapshot(10 * SECOND - 1).calls == 5
        assert circuit.snapshot(10 * SECOND).calls == 4
        assert circuit.snapshot(11 * SECOND).calls == 1

    def test_good_calls_that_left_the_window_excuse_nothing(self) -> None:
        circuit = breaker()
        calls(circuit, 0, *[SUCCESS] * 100)
        calls(circuit, 10 * SECOND, *[FAILURE] * 20)
        assert circuit.state(10 * SECOND) is OPEN

    def test_a_share_is_met_exactly(self) -> None:
        # 0.07 * 100 is above 7 in floats.
        circuit = breaker(failures=0.07, volume=100)
        calls(circuit, 0, *[SUCCESS] * 93, *[FAILURE] * 7)
        assert circuit.state(0) is OPEN

    def test_a_permit_counts_once(self) -> None:
        circuit = breaker()
        one = permit(circuit, 0)
        for _ in range(100):
            circuit.release(0, one, FAILURE)
        assert circuit.snapshot(0).calls == 1

    def test_its_permits_have_no_lease(self) -> None:
        assert permit(breaker(), 5).lease == 0

    def test_time_alone_never_opens_it(self) -> None:
        # Three failures of ten, then seven successes leave the window before the failures do.
        circuit = breaker(volume=3, failures=1.0)
        calls(circuit, 0, *[SUCCESS] * 7)
        calls(circuit, SECOND, *[FAILURE] * 3)
        assert circuit.state(10 * SECOND) is CLOSED
        assert circuit.next_wakeup() is None


class TestOpen:
    def test_it_refuses_everybody_for_five_seconds(self) -> None:
        circuit = opened()
        assert reason(circuit, 0) is Reason.CIRCUIT_OPEN
        assert circuit.try_acquire(5 * SECOND - 1) is REJECTIONS[Reason.CIRCUIT_OPEN]
        assert circuit.retry_after(2 * SECOND) == 3 * SECOND
        assert reason(circuit, 5 * SECOND) is None

    def test_a_late_success_does_not_close_it(self) -> None:
        circuit = breaker()
        slow = permit(circuit, 0)
        calls(circuit, 0, *[FAILURE] * 20)
        circuit.release(SECOND, slow, SUCCESS)
        assert circuit.state(SECOND) is OPEN

    def test_a_late_result_counts_for_no_later_era(self) -> None:
        circuit = breaker()
        slow = [permit(circuit, 0) for _ in range(100)]
        calls(circuit, 0, *[FAILURE] * 20)
        calls(circuit, 5 * SECOND, SUCCESS, SUCCESS)  # half-open, one probe missing
        for late in slow[:50]:
            circuit.release(5 * SECOND, late, SUCCESS)
        assert circuit.state(5 * SECOND) is HALF_OPEN
        calls(circuit, 5 * SECOND, SUCCESS)
        for late in slow[50:]:
            circuit.release(5 * SECOND, late, FAILURE)
        assert circuit.state(5 * SECOND) is RAMPING
        assert circuit.snapshot(5 * SECOND).calls == 0

    def test_saying_no_ten_thousand_times_keeps_nothing(self) -> None:
        circuit = opened()
        circuit.drain_transitions()
        gc.collect()
        tracemalloc.start()
        for _ in range(10_000):
            circuit.try_acquire(SECOND)
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert held < 1_000


class TestHalfOpen:
    def test_of_a_thousand_waiting_three_get_in(self) -> None:
        circuit = opened()
        reasons = [reason(circuit, 5 * SECOND) for _ in range(1000)]
        assert reasons == [None] * 3 + [Reason.CIRCUIT_PROBING] * 997

    def test_a_success_makes_no_room_for_another_probe(self) -> None:
        circuit = opened()
        first, _, _ = (permit(circuit, 5 * SECOND) for _ in range(3))
        circuit.release(5 * SECOND, first, SUCCESS)
        assert reason(circuit, 5 * SECOND) is Reason.CIRCUIT_PROBING

    def test_three_successes_close_it(self) -> None:
        circuit = opened()
        calls(circuit, 5 * SECOND, SUCCESS, SUCCESS)
        assert circuit.state(5 * SECOND) is HALF_OPEN
        calls(circuit, 5 * SECOND, SUCCESS)
        assert circuit.state(5 * SECOND) is RAMPING

    @pytest.mark.parametrize("outcome", [FAILURE, TIMEOUT, OVERLOADED])
    def test_one_failure_opens_it_again(self, outcome: Outcome) -> None:
        circuit = opened()
        calls(circuit, 6 * SECOND, SUCCESS, SUCCESS, outcome)
        assert circuit.state(6 * SECOND) is OPEN
        assert circuit.retry_after(6 * SECOND) == 5 * SECOND

    def test_the_probes_of_a_failed_round_say_nothing_in_the_next(self) -> None:
        circuit = opened()
        bad, good, better = (permit(circuit, 5 * SECOND) for _ in range(3))
        circuit.release(5 * SECOND, bad, FAILURE)
        assert reason(circuit, 10 * SECOND) is None
        circuit.release(10 * SECOND, good, SUCCESS)
        circuit.release(10 * SECOND, better, FAILURE)
        snapshot = circuit.snapshot(10 * SECOND)
        assert (snapshot.state, snapshot.probes_ok, snapshot.probes_out) == (HALF_OPEN, 0, 1)

    def test_a_cancelled_probe_gives_its_place_to_another(self) -> None:
        circuit = opened()
        probes = [permit(circuit, 5 * SECOND) for _ in range(3)]
        circuit.release(5 * SECOND, probes[0], IGNORED)
        assert reason(circuit, 5 * SECOND) is None
        assert reason(circuit, 5 * SECOND) is Reason.CIRCUIT_PROBING

    def test_a_probe_told_twice_counts_once(self) -> None:
        circuit = opened()
        probe = permit(circuit, 5 * SECOND)
        for _ in range(5):
            circuit.settle(5 * SECOND, probe.start, probe.generation, SUCCESS)
        assert circuit.snapshot(5 * SECOND).probes_ok == 1

    def test_a_hung_probe_opens_it_again_and_does_not_shut_it_for_good(self) -> None:
        circuit = opened()
        hung = permit(circuit, 5 * SECOND)
        assert hung.lease == 35 * SECOND
        assert circuit.state(35 * SECOND - 1) is HALF_OPEN
        assert circuit.state(35 * SECOND) is OPEN
        assert reason(circuit, 40 * SECOND) is None

    def test_a_probe_that_ends_with_its_lease_is_too_late(self) -> None:
        circuit = opened(probes=1)
        hung = permit(circuit, 5 * SECOND)
        circuit.release(35 * SECOND, hung, SUCCESS)
        assert circuit.state(35 * SECOND) is OPEN

    def test_the_first_lease_to_run_out_counts(self) -> None:
        circuit = opened()
        first = permit(circuit, 5 * SECOND)
        permit(circuit, 7 * SECOND)
        assert circuit.next_wakeup() == 35 * SECOND
        circuit.release(8 * SECOND, first, IGNORED)
        assert circuit.next_wakeup() == 37 * SECOND

    def test_without_traffic_it_waits(self) -> None:
        circuit = opened()
        assert circuit.state(DAY) is HALF_OPEN
        assert circuit.next_wakeup() is None

    def test_it_cannot_say_when_the_probes_will_be_back(self) -> None:
        circuit = opened()
        assert circuit.retry_after(5 * SECOND) == 0
        for _ in range(3):
            permit(circuit, 5 * SECOND)
        assert circuit.retry_after(6 * SECOND) == 5 * SECOND


class TestRamping:
    def test_the_share_grows_from_a_tenth_to_all(self) -> None:
        # At 5 s 10 %, at 10 s 55 %, at 14.999 s nearly all.
        circuit = ramping(0.099, 0.1, 0.549, 0.551, 0.9998)
        assert reason(circuit, 5 * SECOND) is None
        assert reason(circuit, 5 * SECOND) is Reason.CIRCUIT_RAMPING
        assert reason(circuit, 10 * SECOND) is None
        assert reason(circuit, 10 * SECOND) is Reason.CIRCUIT_RAMPING
        assert reason(circuit, 15 * SECOND - 1_000) is None

    def test_afterwards_it_is_closed_and_asks_no_luck(self) -> None:
        circuit = ramping()
        assert reason(circuit, 15 * SECOND) is None
        assert circuit.state(15 * SECOND) is CLOSED

    def test_it_can_say_when_it_will_be_over(self) -> None:
        circuit = ramping()
        assert circuit.retry_after(8 * SECOND) == 7 * SECOND
        assert circuit.retry_after(15 * SECOND) == 0

    def test_failures_open_it_again_by_the_same_rule(self) -> None:
        circuit = ramping(*[0.0] * 20)
        calls(circuit, 6 * SECOND, *[FAILURE] * 19)
        assert circuit.state(6 * SECOND) is RAMPING
        calls(circuit, 6 * SECOND, FAILURE)
        assert circuit.state(6 * SECOND) is OPEN

    def test_calls_of_the_ramp_count_on_when_it_is_over(self) -> None:
        circuit = ramping(*[0.0] * 20)
        slow = [permit(circuit, 14 * SECOND) for _ in range(20)]
        for one in slow:
            circuit.release(15 * SECOND, one, FAILURE)
        assert circuit.state(15 * SECOND) is OPEN

    @pytest.mark.parametrize("changes", [{"ramp": 0}, {"ramp_from": 1.0}])
    def test_without_a_ramp_it_closes_at_once(self, changes: dict[str, object]) -> None:
        circuit = ramping(**changes)
        assert circuit.state(5 * SECOND) is CLOSED
        assert circuit.snapshot(5 * SECOND).calls == 0  # the failures of before are forgotten

    def test_a_quick_recovery_begins_to_count_at_once(self) -> None:
        # All within one bucket of the window, a second long.
        now = 100 * SECOND
        circuit = opened(at=now, open_for=MS, ramp=0)
        calls(circuit, now + MS, SUCCESS, SUCCESS, SUCCESS)
        calls(circuit, now + 2 * MS, *[SUCCESS] * 10)
        assert circuit.snapshot(now + SECOND).calls == 10


class TestHeld:
    def test_nobody_gets_in_until_it_is_freed(self) -> None:
        circuit = breaker()
        circuit.hold(0, "the database is being moved")
        assert reason(circuit, DAY) is Reason.HELD
        assert circuit.retry_after(DAY) == 5 * SECOND
        assert circuit.snapshot(DAY).reason == "the database is being moved"
        circuit.free(DAY)
        assert circuit.state(DAY) is HALF_OPEN

    def test_freeing_what_is_not_held_changes_nothing(self) -> None:
        circuit = opened()
        circuit.free(SECOND)
        assert circuit.state(SECOND) is OPEN

    def test_holding_again_changes_the_reason_alone(self) -> None:
        circuit = breaker()
        circuit.hold(0, "a")
        circuit.hold(SECOND, "b")
        assert [change.reason for change in circuit.drain_transitions()] == ["a"]
        assert circuit.snapshot(SECOND).reason == "b"

    def test_calls_that_were_out_say_nothing_after_it(self) -> None:
        circuit = breaker()
        out = permit(circuit, 0)
        circuit.hold(0, "a")
        circuit.release(SECOND, out, FAILURE)
        assert circuit.snapshot(SECOND).calls == 0

    def test_what_was_due_before_it_still_happened(self) -> None:
        circuit = opened()
        circuit.hold(6 * SECOND, "a")
        assert [(change.at, change.after) for change in circuit.drain_transitions()][1:] == [
            (5 * SECOND, "half-open"),
            (6 * SECOND, "held"),
        ]

    @pytest.mark.parametrize("start", [opened, ramping])
    def test_no_timer_ends_it(self, start: object) -> None:
        circuit = start()
        circuit.hold(6 * SECOND, "a")
        assert circuit.next_wakeup() is None
        assert circuit.state(DAY) is HELD


class TestTime:
    def test_what_is_due_happens_at_its_own_instant_however_late_it_is_noticed(self) -> None:
        circuit = opened()
        permit(circuit, 5 * SECOND)
        circuit.on_wakeup(DAY)
        assert [(change.at, change.after) for change in circuit.drain_transitions()] == [
            (0, "open"),
            (5 * SECOND, "half-open"),
            (35 * SECOND, "open"),
            (40 * SECOND, "half-open"),
        ]

    def test_a_wake_up_too_early_does_nothing(self) -> None:
        circuit = opened()
        assert circuit.next_wakeup() == 5 * SECOND
        circuit.on_wakeup(5 * SECOND - 1)
        assert circuit.snapshot(5 * SECOND - 1).until == 5 * SECOND

    def test_a_now_from_before_does_no_harm(self) -> None:
        circuit = ramping(0.05, 0.15)
        assert reason(circuit, 5 * SECOND - 1) is None  # lost a race to the lock
        assert reason(circuit, 5 * SECOND - 1) is Reason.CIRCUIT_RAMPING


class TestTransitions:
    def test_they_are_told_once_and_in_order(self) -> None:
        circuit = ramping()
        circuit.on_wakeup(15 * SECOND)
        assert [tuple(change) for change in circuit.drain_transitions()] == [
            (0, "circuit_breaker", "closed", "open", "20 of the last 20 calls failed"),
            (5 * SECOND, "circuit_breaker", "open", "half-open", "time to probe"),
            (5 * SECOND, "circuit_breaker", "half-open", "ramping", "3 probes succeeded"),
            (15 * SECOND, "circuit_breaker", "ramping", "closed", "the ramp is over"),
        ]
        assert circuit.drain_transitions() == []

    def test_a_probe_that_fails_says_how(self) -> None:
        circuit = opened()
        calls(circuit, 5 * SECOND, TIMEOUT)
        assert circuit.drain_transitions()[-1].reason == "a probe ended in timeout"

    def test_those_that_nobody_drains_are_bounded_and_counted(self) -> None:
        circuit = breaker()
        for second in range(100):
            circuit.hold(second * SECOND, "a")
            circuit.free(second * SECOND)
        assert circuit.snapshot(100 * SECOND).transitions_lost == 200 - 64
        kept = circuit.drain_transitions()
        assert [change.at for change in kept] == [
            second * SECOND for second in range(68, 100) for _ in ("held", "half-open")
        ]

    def test_every_state_can_be_left_and_held(self) -> None:
        assert set(TRANSITIONS) == set(State)
        assert all(HELD in after for before, after in TRANSITIONS.items() if before is not HELD)


# Copies in other processes.


def heard(one: CircuitBreaker, now: int, *others: CircuitBreaker) -> None:
    """`one` hears of the others what a table would tell it."""
    rows = [other.totals(now) for other in others]
    for row in rows:
        one.adopt(now, row.generation, row.state, row.due)
    same = [row for row in rows if row.generation == one.totals(now).generation]
    one.on_others(
        now,
        calls=sum(row.calls for row in same),
        failed=sum(row.failed for row in same),
        probes_out=sum(row.probes_out for row in same),
        probes_ok=sum(row.probes_ok for row in same),
        lease=min((row.lease for row in same if row.lease), default=0),
    )


def open_copy(at: int = 0) -> CircuitBreaker:
    circuit = CircuitBreaker(settings.Breaker(volume=1), Random(1))
    circuit.settle(at, at, circuit.admit(at), FAILURE)
    assert circuit.state(at) is OPEN
    return circuit


def test_a_copy_opens_with_the_one_that_has_opened_and_closes_with_it() -> None:
    one, other = CircuitBreaker(settings.Breaker(), Random(1)), open_copy()
    heard(one, SECOND, other)
    assert (one.state(SECOND), one.retry_after(SECOND)) == (OPEN, 4 * SECOND)
    assert one.snapshot(SECOND).reason == "another process has seen it"
    now = 5 * SECOND
    for _ in range(3):
        other.settle(now, now, other.admit(now), SUCCESS)
    heard(one, now, other)
    assert one.state(now) is RAMPING
    assert [change.after for change in one.drain_transitions()] == [
        "open",
        "half-open",
        "ramping",
    ]


def test_probes_of_a_copy_take_places() -> None:
    one, other = open_copy(), open_copy()
    now = 5 * SECOND
    assert other.admit(now) >= 0
    assert other.admit(now) >= 0
    heard(one, now, other)
    generation = one.admit(now)
    assert generation >= 0
    assert one.admit(now) == ~int(Reason.CIRCUIT_PROBING)
    one.settle(now, now, generation, SUCCESS)
    other.settle(now, now, generation, SUCCESS)
    other.settle(now, now, generation, SUCCESS)
    heard(one, now, other)
    assert one.state(now) is RAMPING  # the third success is one of the other copy's


def test_a_probe_that_hangs_in_a_copy_opens_the_circuit_here_too() -> None:
    one, other = open_copy(), open_copy()
    now = 5 * SECOND
    assert other.admit(now) >= 0
    heard(one, now, other)
    assert one.next_wakeup() == now + 30 * SECOND
    assert one.state(now + 30 * SECOND) is OPEN


def test_evidence_of_all_copies_opens_the_one_that_sees_a_failure() -> None:
    one, other = (CircuitBreaker(settings.Breaker(volume=4), Random(1)) for _ in range(2))
    for _ in range(3):
        other.settle(0, 0, other.admit(0), FAILURE)
    heard(one, 0, other)
    assert one.state(0) is CLOSED  # hearing alone opens nothing
    one.settle(0, 0, one.admit(0), FAILURE)
    assert one.state(0) is OPEN
    assert one.snapshot(0).reason == "4 of the last 4 calls failed"


def test_of_two_that_part_the_more_careful_is_right() -> None:
    one, other = open_copy(), open_copy()
    now = 5 * SECOND
    for _ in range(3):
        one.settle(now, now, one.admit(now), SUCCESS)
    other.settle(now, now, other.admit(now), FAILURE)
    late = one.totals(now).generation
    heard(other, now, one)
    assert other.state(now) is OPEN
    heard(one, now, other)
    assert one.state(now) is OPEN
    one.settle(now, now, late, FAILURE)  # of the ramp that is no more
    assert one.state(now) is OPEN


def test_a_ramp_that_is_over_here_is_not_taken_up_again() -> None:
    one, other = open_copy(), open_copy()
    now = 5 * SECOND
    for _ in range(3):
        one.settle(now, now, one.admit(now), SUCCESS)
    row = one.totals(now)
    other.adopt(now, row.generation, row.state, row.due)
    assert other.state(now + 10 * SECOND) is CLOSED
    other.adopt(now + 10 * SECOND, row.generation, row.state, row.due)
    assert other.state(now + 10 * SECOND) is CLOSED


def test_no_copy_can_shut_it_for_longer_than_it_would_itself() -> None:
    one = CircuitBreaker(settings.Breaker(), Random(1))
    one.adopt(0, 7, OPEN, 1 << 61)
    assert one.retry_after(0) == 5 * SECOND


def test_what_is_held_here_stays_held() -> None:
    one = CircuitBreaker(settings.Breaker(), Random(1))
    one.hold(0, "by hand")
    heard(one, 0, open_copy())
    assert one.state(0) is HELD
