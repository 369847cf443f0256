"""The window slides by whole buckets: at 10 s long, one bucket is one second."""

import pytest

from tidegate.core.window import BUCKETS, Window
from tidegate.units import DAY, SECOND


def slid(*steps: tuple[int, int]) -> int:
    """What the counter read at the window's start, after these (second, counter) steps."""
    window = Window(10 * SECOND)
    start = 0
    for second, counter in steps:
        start = window.slide(second * SECOND, counter)
    return start


def test_nothing_leaves_for_nine_buckets_after_the_one_it_was_counted_in() -> None:
    assert slid((0, 0), (9, 7)) == 0  # seven in second 0: seconds 0 to 9 are the window


def test_what_a_bucket_counted_leaves_as_a_whole() -> None:
    assert slid((0, 0), (10, 7)) == 7
    assert slid((0, 0), (1, 7), (10, 9)) == 7  # the two of second 1 are still in


def test_a_pause_longer_than_the_window_leaves_nothing() -> None:
    assert slid((0, 0), (5, 7), (5 + 365 * DAY // SECOND, 9)) == 9


def test_it_ends_with_its_bucket() -> None:
    window = Window(10 * SECOND)
    window.slide(3 * SECOND + 1, 0)
    assert window.ends == 4 * SECOND
    assert BUCKETS == 10


def test_it_starts_from_the_counter_it_is_given() -> None:
    assert Window(10 * SECOND, counter=5).slide(SECOND, 5) == 5


def test_sliding_too_early_is_a_bug_of_the_owner() -> None:
    window = Window(10 * SECOND)
    window.slide(SECOND, 0)
    with pytest.raises(AssertionError):
        window.slide(SECOND, 0)
