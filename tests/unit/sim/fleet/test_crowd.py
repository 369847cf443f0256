"""Fleets that nobody leads: what each of them sends, and what becomes of its live records."""

from random import Random

import pytest

from tidegate.sim.fleet.crowd import AllAtOnce, Crowd, EachAimd, Law, Some, Static, WhenWhole
from tidegate.sim.fleet.sink import STEP, STEP_S, Case, Sink

CASE = Case(live=1e6, backlog=900e6, capacity=2e6, collapsed=1e6)


def rates(law: Law, case: Case, seconds: float, offered: float | None = None) -> list[float]:
    """What the law allows, step by step, with a sink that gets live records alone."""
    sink, found = Sink(case, Random(1)), []
    for step in range(round(seconds / STEP_S)):
        found.append(law.rate(step * STEP, sink, case.backlog))
        sink.step((case.live if offered is None else offered) * STEP_S)
    return found


def test_all_at_once_is_every_collector_at_its_own_speed() -> None:
    assert rates(AllAtOnce(CASE, 1), CASE, 1) == pytest.approx([12e6] * 4)


def test_with_jitter_one_after_the_other_begins() -> None:
    found = rates(AllAtOnce(CASE, 1, jitter_s=60.0), CASE, 70)
    assert found == sorted(found)
    assert found[0] < 1e6
    assert 4e6 < found[120] < 8e6  # about half have begun after half of the time
    assert found[-1] == pytest.approx(12e6)


def test_turns_are_taken_by_so_many_and_by_no_more_than_have_something() -> None:
    law, sink = Some(CASE, 4), Sink(CASE, Random(1))
    assert law.rate(0, sink, CASE.backlog) == pytest.approx(4 * 0.6e6)
    assert law.rate(0, sink, CASE.backlog / 20) == pytest.approx(0.6e6)
    assert law.rate(0, sink, 0.0) == 0


def test_each_by_itself_rises_while_answers_are_quick_and_halves_when_not() -> None:
    quick = rates(EachAimd(CASE, 1), CASE, 60)
    assert quick == sorted(quick)
    assert quick[-1] == pytest.approx(1e6 * (0.01 + 60 * 0.005))
    slow = rates(EachAimd(CASE, 1), CASE, 60, offered=3e6)
    assert slow[-1] == pytest.approx(0.01e6)


def test_a_law_waits_until_the_replicas_have_been_in_step_for_long_enough() -> None:
    case = CASE._replace(health=0.9, lost=(200.0, 210.0))
    found = rates(WhenWhole(Static(1e6), case), case, 300)
    obeyed = [step * STEP_S for step, rate in enumerate(found) if rate]
    # Healed at 54 s (0.99), seen 5 s later, held 60 s; lost at 200 s, and 5 s later seen so.
    assert obeyed[0] == pytest.approx(119, abs=1)
    gap = [s for s in obeyed if s < 250]
    assert gap[-1] == pytest.approx(205, abs=1)
    assert next(s for s in obeyed if s > 210) == pytest.approx(275, abs=1)


def test_who_is_not_told_of_a_pause_comes_back_with_a_blow() -> None:
    case = CASE._replace(lost=(70.0, 200.0))
    kept, told = EachAimd(case, 1), EachAimd(case, 1)
    blow = rates(WhenWhole(kept, case), case, 270)[-1]
    gentle = rates(WhenWhole(told, case, on_close=told.reset), case, 270)[-1]
    assert blow > 1e6
    assert gentle < 0.4e6


def send(crowd: Crowd, failing: list[float]) -> None:
    sink = Sink(CASE, Random(1))
    for step, failed in enumerate(failing):
        sent = crowd.send(step * STEP, sink)
        sink.failed = failed
        crowd.on_sent(step * STEP, sent, sink)


def test_a_live_record_is_tried_four_times_and_then_lost() -> None:
    crowd = Crowd(CASE, Static(0.0))
    send(crowd, [1.0] * 12)
    assert crowd.lost == 0
    send(crowd, [1.0])
    assert crowd.lost == pytest.approx(CASE.live * STEP_S)
    sent = crowd.send(0, Sink(CASE, Random(1)))
    assert sent.live == pytest.approx(4 * sent.fresh)


def test_with_spill_nothing_is_lost_and_a_tenth_is_tried_again() -> None:
    crowd = Crowd(CASE, Static(0.0), spill=True)
    send(crowd, [1.0] * 40)
    assert crowd.lost == 0
    assert crowd.send(0, Sink(CASE, Random(1))).live <= 1.11 * CASE.live * STEP_S
    assert crowd.left > CASE.backlog + 0.7 * CASE.live * 10


def test_what_fails_of_a_replay_stays() -> None:
    crowd = Crowd(CASE, Static(1e6))
    send(crowd, [0.0, 1.0, 0.5, 0.0])
    assert crowd.left == pytest.approx(CASE.backlog - 2.5 * 1e6 * STEP_S)
