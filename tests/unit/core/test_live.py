"""The way of live records: a breaker, pauses that double, and three failures that are an outage."""

from random import Random

from tidegate.core.live import SICK, Live
from tidegate.core.outcome import FAILURE, IGNORED, SUCCESS, Outcome, Permit, Reason, Rejection
from tidegate.settings.policies import Breaker
from tidegate.units import HOUR, MILLISECOND, MINUTE, SECOND

MS = MILLISECOND


def send(live: Live, now: int, outcome: Outcome) -> None:
    permit = live.try_send(now)
    assert type(permit) is Permit
    live.on_answer(now, permit, outcome)


def reason(live: Live, now: int) -> Reason:
    answer = live.try_send(now)
    assert type(answer) is Rejection
    return answer.reason


def test_after_each_failure_it_pauses_twice_as_long_up_to_five_seconds() -> None:
    live, now = Live(Breaker(), Random(1)), 0
    pauses = []
    for _ in range(12):
        send(live, now, FAILURE)
        assert live.is_paused(now)
        assert reason(live, now) is Reason.RETRY_AFTER
        until = live.next_wakeup(now)
        assert until is not None
        pauses.append(until - now)
        now = until
        assert not live.is_paused(now)
    for number, pause in enumerate(pauses):
        longest = min(5 * SECOND, 100 * MS << number)
        assert longest // 2 <= pause <= longest
    send(live, now, SUCCESS)
    send(live, now, FAILURE)
    again = live.next_wakeup(now)
    assert again is not None
    assert again - now <= 100 * MS


def test_three_failures_in_a_row_are_an_outage_though_a_hundred_went_well() -> None:
    live = Live(Breaker(), Random(1))
    for _ in range(100):
        send(live, 0, SUCCESS)
    now = 0
    for number in range(SICK):
        assert not live.is_sick(now)
        send(live, now, FAILURE)
        assert live.is_sick(now) is (number + 1 == SICK)
        now += SECOND
    assert live.why(now) == "the sink is sick: 3 batches in a row have failed"
    assert not live.is_shut(now)
    send(live, now, IGNORED)
    assert live.is_sick(now)
    send(live, now, SUCCESS)
    assert not live.is_sick(now)
    assert live.is_well(now)
    assert live.why(now) == ""


def test_what_needed_no_permit_counts_as_well() -> None:
    live = Live(Breaker(), Random(1))
    for _ in range(SICK):
        live.on_outcome(0, FAILURE)
    assert live.is_sick(0)


def test_a_sink_that_asks_for_a_pause_has_it_and_no_more_than_five_minutes() -> None:
    live = Live(Breaker(), Random(1))
    live.on_retry_after(0, 20 * SECOND)
    assert live.why(SECOND) == "the sink asks for a pause: another 19s"
    assert live.is_shut(SECOND)
    assert not live.is_sick(SECOND)
    live.on_retry_after(SECOND, SECOND)  # shorter than what is there
    assert live.next_wakeup(SECOND) == 20 * SECOND
    live.on_retry_after(SECOND, HOUR)
    assert live.next_wakeup(SECOND) == SECOND + 5 * MINUTE


def test_an_open_circuit_is_shut_and_then_tried_by_canaries() -> None:
    live = Live(Breaker(volume=2, open_for=5 * SECOND), Random(1))
    send(live, 0, FAILURE)
    send(live, SECOND, FAILURE)
    assert live.is_shut(2 * SECOND)
    assert live.is_sick(2 * SECOND)
    assert live.why(2 * SECOND) == "the sink is sick: 2 of the last 2 calls failed"
    assert live.next_wakeup(2 * SECOND) == 6 * SECOND
    assert not live.is_shut(6 * SECOND)
    for _ in range(3):
        send(live, 6 * SECOND, SUCCESS)
    assert live.flows(6 * SECOND)
    assert not live.is_well(6 * SECOND)  # a ramp
    assert live.why(6 * SECOND) == "live records come back first"
    assert live.is_well(16 * SECOND)
    assert [change.after for change in live.drain_transitions()] == [
        "open",
        "half-open",
        "ramping",
        "closed",
    ]


def test_held_it_is_shut_until_it_is_freed() -> None:
    live = Live(Breaker(), Random(1))
    live.hold(0, "we move the cluster")
    assert live.is_held(0)
    assert live.is_shut(0)
    assert live.why(0) == "held: we move the cluster"
    assert reason(live, 0) is Reason.HELD
    live.free(SECOND)
    assert live.is_sick(SECOND)
    assert not live.is_shut(SECOND)
