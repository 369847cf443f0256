"""One service as a fluid: each option on its own, step by step, in numbers to check by hand."""

import math

import pytest

from tidegate.analysis.fluid.line import Change, Line, Run, jittered, run, series, smallest

STEP = 0.1


def at(line: Line, load: list[float], capacity: float | list[float], **limits: list[float]) -> Run:
    rooms = capacity if isinstance(capacity, list) else [capacity] * len(load)
    return run(line, load, rooms, dt=STEP, **limits)


def rounded(values: list[float]) -> list[float]:
    return [round(value, 9) + 0.0 for value in values]


def test_a_series_changes_and_comes_back() -> None:
    assert series(100, 0.5, STEP, Change(0.1, 0.2, 0.5)) == [100, 50, 50, 100, 100]
    assert series(100, 0.4, STEP, Change(0.2, factor=3)) == [100, 100, 300, 300]
    assert series(100, 0.3, STEP, Change(math.inf)) == [100, 100, 100]


def test_a_ramp_is_a_straight_line() -> None:
    ramp = series(100, 0.6, STEP, Change(0.1, 0.5, 0.0, ramp=0.4))
    assert ramp == pytest.approx([100, 75, 50, 25, 0, 0])


def test_two_changes_multiply() -> None:
    assert series(100, 0.2, STEP, Change(0, 1, 0.5), Change(0.1, 1, 0.5)) == [50, 25]


def test_what_is_not_answered_in_time_comes_again_and_stays() -> None:
    # At 0 ten arrive and nobody serves; at 0.2 they come again. From then on 20 are to be served,
    # and the first ten of these are too late.
    run_ = at(Line(timeout=0.2, attempts=2), [100, 0, 0, 0, 0], [0, 0, 50, 50, 100])
    assert rounded(run_.attempts) == [10, 0, 10, 0, 0]
    assert rounded(run_.backlog) == [10, 10, 15, 10, 0]
    assert rounded(run_.goodput) == [0, 0, 0, 0, 0]


def test_a_cohort_served_in_part_repeats_the_rest() -> None:
    run_ = at(Line(timeout=0.2, attempts=3), [100, 0, 0, 0, 0, 0], [40, 0, 0, 0, 0, 0])
    assert rounded(run_.attempts) == [10, 0, 6, 0, 6, 0]
    assert rounded(run_.goodput) == [4, 0, 0, 0, 0, 0]


def test_a_wait_before_the_retry() -> None:
    run_ = at(Line(timeout=0.1, attempts=2, gaps=(((0.1, 0.5), (0.3, 0.5)),)), [100] + [0] * 5, 0)
    assert rounded(run_.attempts) == [10, 0, 5, 0, 5, 0]


def test_the_last_wait_stands_for_all_later_retries() -> None:
    gaps = (((0.0, 1.0),), ((0.2, 1.0),))
    run_ = at(Line(timeout=0.1, attempts=4, gaps=gaps), [100] + [0] * 9, 0)
    assert rounded(run_.attempts) == [10, 10, 0, 0, 10, 0, 0, 10, 0, 0]


def test_a_full_queue_refuses_at_once() -> None:
    # Five places and room for three a step: eight of ten are taken, two come again a step later.
    run_ = at(Line(timeout=9, attempts=2, places=5), [100, 0, 0], 30)
    assert rounded(run_.attempts) == [10, 2, 0]
    assert rounded(run_.backlog) == [5, 4, 1]


def test_a_full_queue_that_is_silent_lets_the_timer_run() -> None:
    run_ = at(Line(timeout=0.2, attempts=2, places=5, full="silence"), [100, 0, 0, 0], 30)
    # The two that were swallowed and the two of the five that still wait come again after 0.2.
    assert rounded(run_.attempts) == [10, 0, 4, 0]


def test_newest_first() -> None:
    loads: list[float] = [100, 100, 100, 0]
    assert rounded(at(Line(timeout=0.2), loads, 50).goodput) == [5, 5, 5, 0]
    newest = at(Line(timeout=0.2, order="lifo"), loads, [0, 50, 50, 150])
    assert rounded(newest.goodput) == [0, 5, 5, 5]
    assert rounded(newest.backlog) == [10, 15, 20, 5]


def test_abandoned_work_is_finished_skipped_or_cancelled() -> None:
    loads: list[float] = [100, 0, 0, 100, 0]
    rooms: list[float] = [0, 0, 0, 50, 100]
    finish, skip, cancel = (
        at(Line(timeout=0.2, abandoned=what), loads, rooms)  # type: ignore[arg-type]
        for what in ("finish", "skip", "cancel")
    )
    assert rounded(finish.goodput) == [0, 0, 0, 0, 5]
    assert rounded(finish.backlog) == [10, 10, 10, 15, 5]
    assert rounded(skip.goodput) == rounded(cancel.goodput) == [0, 0, 0, 5, 5]
    assert rounded(skip.backlog) == [10, 10, 10, 5, 0]  # gone at its turn
    assert rounded(cancel.backlog) == [10, 10, 0, 5, 0]  # gone when its caller left


def test_a_budget_lets_through_what_it_has_saved() -> None:
    line = Line(timeout=0.1, attempts=3, budget=0.1, saved=0.5)
    # Half a token is saved; ten first attempts would add one, but the bucket holds a half.
    run_ = at(line, [100, 100, 50, 0], 0)
    assert rounded(run_.attempts) == [10, 10.5, 5.5, 0]


def test_refusals_at_the_door_take_capacity_first() -> None:
    line = Line(timeout=9, attempts=1, refusal_cost=0.5)
    run_ = at(line, [100, 0, 0], 30, limit=[60, 60, 60])
    # Four are refused and take two of the three places of this step; six wait.
    assert rounded(run_.goodput) == [1, 3, 2]


def test_refusals_can_take_more_than_there_is() -> None:
    line = Line(timeout=9, attempts=1, refusal_cost=1)
    run_ = at(line, [100, 0, 0, 0], 30, limit=[60, 60, 60, 60])
    assert rounded(run_.goodput) == [0, 2, 3, 1]


def test_a_refused_call_waits_at_least_a_step() -> None:
    run_ = at(Line(timeout=9, attempts=3), [100, 0, 0, 0], 100, limit=[40, 40, 40, 40])
    assert rounded(run_.attempts) == [10, 6, 2, 0]


def test_thrashing_divides_the_capacity() -> None:
    run_ = at(Line(timeout=9, thrash=0.1), [100, 0, 0], 50)
    # Nothing waits at first: 5 of 10. Then 5 wait, so that a step serves 5/1.5.
    assert run_.goodput == pytest.approx([5, 5 / 1.5, 5 / 3])


def test_shares_and_rates_of_a_window() -> None:
    run_ = at(Line(timeout=0.2, attempts=2), [100, 100, 100, 100], [100, 100, 0, 0])
    assert run_.share(0) == 0.5
    assert run_.share(0, 0.2) == 1
    assert run_.share(0.2) == 0
    assert run_.rate(0.2) == 100
    assert Run(STEP, [0.0], [0.0], [0.0], [0.0]).share(0) == 1


def test_when_goodput_is_back() -> None:
    run_ = at(Line(timeout=0.1), [100] * 6, [100, 0, 200, 100, 0, 0])
    assert run_.back_at(0.99) == math.inf
    assert at(Line(timeout=0.1), [100] * 5, [100, 0, 0, 300, 100]).back_at(0.99) == pytest.approx(
        0.3
    )
    assert at(Line(timeout=0.1), [100] * 3, 100).back_at(0.99, 0.1) == 0.1


def test_jitter_spreads_each_retry_over_twice_the_width() -> None:
    first, second = jittered(1, 2, bins=4)
    assert first == ((0.125, 0.25), (0.375, 0.25), (0.625, 0.25), (0.875, 0.25))
    assert [gap for gap, _ in second] == [0.25, 0.75, 1.25, 1.75]


def test_the_smallest_that_tips() -> None:
    assert smallest(lambda x: x > 0.3, 0, 1, tolerance=1e-6) == pytest.approx(0.3, abs=1e-6)
    assert smallest(lambda _: False, 0, 1, tolerance=0.1) == math.inf


@pytest.mark.parametrize(
    ("load", "capacity", "limit"), [([1.0], [1.0, 2.0], None), ([1.0], [1.0], [1.0, 1.0])]
)
def test_series_of_unequal_length(
    load: list[float], capacity: list[float], limit: list[float] | None
) -> None:
    with pytest.raises(ValueError, match="as many steps"):
        run(Line(timeout=1), load, capacity, dt=STEP, limit=limit)


def test_a_step_longer_than_the_timeout() -> None:
    with pytest.raises(ValueError, match="shorter than the timeout"):
        run(Line(timeout=0.01), [1.0], [1.0], dt=STEP)
