"""A gate: slow to open, and at once to close."""

from random import Random

import pytest
from tests.support.sinks_health import WHOLE, health, view

from tidegate.core.gate import WINDOW, Gate
from tidegate.core.health import Health, View
from tidegate.core.outcome import FAILURE, IGNORED, OVERLOADED, SUCCESS, TIMEOUT, Outcome
from tidegate.settings import spool as settings
from tidegate.units import MILLISECOND, SECOND

MS = MILLISECOND
EXACT = settings.Gate(jitter=0)
LOOK = 5 * SECOND


def watched(gate: Gate, since: int, until: int, seen: Health = WHOLE) -> int:
    """Looks every five seconds, up to and with `until`."""
    for now in range(since, until + 1, LOOK):
        gate.on_health(now, seen)
    return until


def opened(settings: settings.Gate = EXACT, **of: float) -> tuple[Gate, int]:
    gate = Gate(settings, Random(1), **of)
    now = watched(gate, 0, 60 * SECOND)
    assert gate.is_open(now)
    return gate, now


def test_it_opens_when_all_was_well_for_its_hold_and_not_a_moment_before() -> None:
    gate = Gate(EXACT, Random(1))
    assert gate.why(0) == "closed: nothing is known of the sink's health yet"
    watched(gate, SECOND, 60 * SECOND)
    assert gate.next_wakeup() == 61 * SECOND
    assert not gate.is_open(61 * SECOND - 1)
    assert gate.is_open(61 * SECOND)
    assert gate.why(61 * SECOND) == "open"
    (change,) = gate.drain_transitions()
    assert (change.at, change.after, change.reason) == (
        61 * SECOND,
        "open",
        "all was well for 1min",
    )
    assert gate.drain_transitions() == []


def test_no_two_of_a_fleet_open_at_one_moment() -> None:
    opens = set()
    for seed in range(20):
        gate = Gate(settings.Gate(), Random(seed))
        gate.on_health(0, WHOLE)
        opens.add(gate.next_wakeup() if gate.next_wakeup() != 15 * SECOND else None)
        watched(gate, 0, 60 * SECOND)
        at = gate.snapshot(60 * SECOND).opens
        assert at is not None
        assert 60 * SECOND <= at <= 90 * SECOND
        opens.add(at)
    assert len(opens) > 15


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (health(in_sync=2), "events-7 has 2 of 3 replicas in step"),
        (Health((view("a"), view("b", leader="2"))), "a and b disagree on events-7"),
        (Health((view("a"),), silent=("c",)), "c does not answer"),
        (Health(()), "nobody answers"),
        (Health((View("a", "one", "1", 2),)), "a knows 2 of 3 brokers"),
    ],
)
def test_a_flaw_closes_it_and_keeps_it_closed_until_it_is_mended(seen: Health, why: str) -> None:
    gate, now = opened()
    gate.on_health(now + SECOND, seen)
    assert not gate.is_open(now + SECOND)
    assert gate.why(now + SECOND) == f"closed: {why}"
    watched(gate, now + SECOND, now + 200 * SECOND, seen)
    assert gate.snapshot(now + 200 * SECOND).opens is None
    mended = now + 201 * SECOND
    watched(gate, mended, mended + 55 * SECOND)
    assert not gate.is_open(mended + 60 * SECOND - 1)
    assert gate.is_open(mended + 60 * SECOND)


def test_brokers_that_are_expected_need_not_have_been_seen() -> None:
    gate = Gate(settings.Gate(jitter=0, brokers=5), Random(1))
    gate.on_health(0, WHOLE)
    assert gate.why(0) == "closed: a knows 3 of 5 brokers"


def test_a_leader_that_moves_begins_the_time_anew_but_closes_nothing() -> None:
    gate = Gate(EXACT, Random(1))
    moved = Health((view("a", leader="2"), view("b", leader="2")))
    watched(gate, 0, 30 * SECOND)
    watched(gate, 31 * SECOND, 91 * SECOND - 1, moved)
    assert not gate.is_open(91 * SECOND - 1)
    gate.on_health(91 * SECOND - 1, moved)
    assert gate.is_open(91 * SECOND)
    gate.on_health(92 * SECOND, WHOLE)
    assert gate.is_open(92 * SECOND)


@pytest.mark.parametrize(
    ("outcome", "starved", "why"),
    [
        (OVERLOADED, True, "it has refused a batch for want of replicas"),
        (TIMEOUT, False, "it has not answered a batch in time"),
        (FAILURE, False, "1 of its last 1 answers failed (100%)"),
    ],
)
def test_an_answer_closes_it_at_once(outcome: Outcome, starved: bool, why: str) -> None:
    gate, now = opened()
    gate.on_answer(now, outcome, MS, starved=starved)
    assert not gate.is_open(now)
    assert gate.why(now) == f"closed for another 1min: {why}"
    (*_, change) = gate.drain_transitions()
    assert (change.at, change.before, change.after) == (now, "open", "closed")


def test_a_few_errors_among_many_answers_leave_it_open() -> None:
    gate, now = opened()
    for _ in range(999):
        gate.on_answer(now, SUCCESS, MS)
    gate.on_answer(now, FAILURE, MS)
    gate.on_answer(now, FAILURE, MS)
    assert gate.is_open(now)  # 2 of 1001 are 0.2%
    gate.on_answer(now, FAILURE, MS)
    assert not gate.is_open(now)


def test_errors_are_forgotten_after_two_windows() -> None:
    gate, now = opened()
    for _ in range(400):
        gate.on_answer(now, SUCCESS, MS)
    now = watched(gate, now, now + 2 * WINDOW)
    for _ in range(400):
        gate.on_answer(now, SUCCESS, MS)
    gate.on_answer(now, FAILURE, MS)
    assert not gate.is_open(now)  # 1 of 401, the first 400 are no excuse


def test_what_a_user_cancels_says_nothing() -> None:
    gate, now = opened()
    gate.on_answer(now, IGNORED, 10 * SECOND)
    assert gate.is_open(now)


def test_a_sink_that_always_fails_a_few_is_borne_with_if_the_settings_say_so() -> None:
    gate = Gate(settings.Gate(jitter=0, errors=0.02), Random(1))
    for tick in range(61 * 10):
        if tick % 50 == 0:
            gate.on_health(tick * SECOND // 10, WHOLE)
        gate.on_answer(tick * SECOND // 10, FAILURE if tick % 100 == 99 else SUCCESS, MS)
    assert gate.is_open(60 * SECOND)


def test_an_error_while_it_is_closed_begins_the_time_anew() -> None:
    gate = Gate(EXACT, Random(1))
    watched(gate, 0, 50 * SECOND)
    gate.on_answer(55 * SECOND, FAILURE, MS)
    watched(gate, 55 * SECOND, 110 * SECOND)
    assert not gate.is_open(115 * SECOND - 1)
    assert gate.is_open(115 * SECOND)


def test_silence_closes_it_at_the_instant_at_which_health_is_stale() -> None:
    gate, now = opened()
    assert gate.next_wakeup() == now + 15 * SECOND
    gate.on_wakeup(now + 15 * SECOND - 1)
    assert gate.is_open(now + 15 * SECOND - 1)
    gate.on_wakeup(now + 40 * SECOND)
    (*_, change) = gate.drain_transitions()
    assert (change.at, change.reason) == (
        now + 15 * SECOND,
        "nothing was heard of its health for 15s",
    )
    assert gate.snapshot(now + 40 * SECOND).opens is None
    gate.on_health(now + 50 * SECOND, WHOLE)
    assert gate.snapshot(now + 50 * SECOND).opens == now + 110 * SECOND


def test_throttling_closes_it_in_the_second_window_running() -> None:
    gate, now = opened()
    now = now // WINDOW * WINDOW
    for window in (0, 2, 3):
        assert gate.is_open(now + window * WINDOW)
        gate.on_health(now + window * WINDOW, WHOLE)
        gate.on_answer(now + window * WINDOW, SUCCESS, MS, throttled=MS)
        gate.on_answer(now + window * WINDOW + 1, SUCCESS, MS, throttled=MS)
    assert gate.why(now + 3 * WINDOW + 1).endswith("it throttles who sends")


def answers(gate: Gate, since: int, windows: int, latency: int, *, peace: bool) -> int:
    for second in range(windows * 5):
        now = since + second * SECOND
        gate.on_answer(now, SUCCESS, latency, peace=peace)
        if second % 5 == 0:
            gate.on_health(now, WHOLE)
    return since + windows * WINDOW


def test_slow_answers_close_it_in_the_second_window_running() -> None:
    gate = Gate(EXACT, Random(1), slow=12.0)
    now = answers(gate, 0, 13, 5 * MS, peace=True)
    assert gate.is_open(now)
    assert gate.latency.live.baseline == 5 * MS
    now = answers(gate, now, 1, 61 * MS, peace=False)
    now = answers(gate, now, 2, 59 * MS, peace=False)
    assert gate.is_open(now)
    now = answers(gate, now, 2, 61 * MS, peace=False)
    gate.on_answer(now, SUCCESS, MS, peace=False)
    assert not gate.is_open(now)
    assert gate.why(now).endswith("an answer takes 61ms, in peace 5ms")
    assert gate.latency.live.baseline == 5 * MS


def test_closed_it_wants_calm_and_while_others_replay_no_more_than_their_pace_allows() -> None:
    for peace, latency, opens in [(True, 11, False), (True, 9, True), (False, 59, True)]:
        gate = Gate(EXACT, Random(1))
        now = answers(gate, 0, 2, 5 * MS, peace=True)
        gate.shut(now, "a reason of the lane")
        now = answers(gate, now, 14, latency * MS, peace=peace)
        assert gate.is_open(now) is opens


def test_looks_that_take_longer_are_no_calm_either() -> None:
    gate = Gate(EXACT, Random(1))
    for now in range(0, 40 * SECOND, LOOK):
        gate.on_health(now, WHOLE, 10 * MS)
    for now in range(40 * SECOND, 90 * SECOND, LOOK):
        gate.on_health(now, WHOLE, 25 * MS)
    assert not gate.is_open(90 * SECOND)
    assert "a look at it takes 25ms, in peace 10ms" in gate.why(85 * SECOND)


def test_changes_that_nobody_drains_are_bounded() -> None:
    gate = Gate(settings.Gate(hold=0, jitter=0), Random(1))
    for second in range(100):
        gate.on_health(second * SECOND, WHOLE)
        assert gate.is_open(second * SECOND)
        gate.shut(second * SECOND, "again")
    assert len(gate.drain_transitions()) == 64
