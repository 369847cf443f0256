"""A baseline is the smallest median of the last hour of peace."""

from tidegate.core.medians import PEACE, Medians
from tidegate.units import MILLISECOND, SECOND

MS = MILLISECOND


def window(medians: Medians, start: int, *latencies: int, peace: bool = True) -> int:
    for latency in latencies:
        medians.on_answer(start, latency)
    assert medians.is_over(start + 5 * SECOND)
    return medians.close(peace=peace)


def test_of_a_window_the_median_counts() -> None:
    medians = Medians(5 * SECOND, MS)
    assert medians.baseline is None
    assert window(medians, 0, 4 * MS, 900 * MS, 5 * MS) == 5 * MS
    assert medians.last == medians.baseline == 5 * MS


def test_a_window_is_over_after_its_time_and_only_with_an_answer_in_it() -> None:
    medians = Medians(5 * SECOND, MS)
    assert not medians.is_over(SECOND * 3600)
    medians.on_answer(SECOND, MS)
    assert not medians.is_over(6 * SECOND - 1)
    assert medians.is_over(6 * SECOND)


def test_it_learns_in_peace_alone_but_for_the_very_first() -> None:
    medians = Medians(5 * SECOND, MS)
    window(medians, 0, 50 * MS, peace=False)
    assert medians.baseline == 50 * MS
    window(medians, 0, 20 * MS, peace=False)
    assert medians.baseline == 50 * MS
    window(medians, 0, 30 * MS)
    assert medians.baseline == 30 * MS
    window(medians, 0, 40 * MS)
    assert medians.baseline == 30 * MS


def test_a_new_normal_is_learned_within_twice_its_time() -> None:
    medians = Medians(5 * SECOND, MS)
    window(medians, 0, 10 * MS)
    for _ in range(2 * PEACE - 1):
        window(medians, 0, 30 * MS)
    assert medians.baseline == 10 * MS
    window(medians, 0, 30 * MS)
    assert medians.baseline == 30 * MS


def test_below_the_floor_differences_are_noise() -> None:
    medians = Medians(5 * SECOND, 2 * MS)
    window(medians, 0, MS // 10)
    assert medians.baseline == 2 * MS


def test_a_window_keeps_only_its_latest_answers() -> None:
    medians = Medians(5 * SECOND, MS)
    assert window(medians, 0, *[90 * MS] * 128, *[3 * MS] * 100) == 3 * MS
