"""Live answers against live answers in peace; those of a replay where there are no others."""

from tidegate.core.latency import Latency
from tidegate.units import MILLISECOND, SECOND

MS = MILLISECOND


def second(latency: Latency, now: int, *, live: int | None, replayed: int | None) -> bool:
    """A second's answers; whether a window that counts has ended before them."""
    counts = latency.roll(now, peace=replayed is None)
    if live is not None:
        latency.on_answer(now, live * MS, replayed=False)
    if replayed is not None:
        latency.on_answer(now, replayed * MS, replayed=True)
    return counts


def test_a_replay_of_large_batches_does_not_make_the_sink_look_slow() -> None:
    latency = Latency(SECOND, MS)
    for now in range(5):
        second(latency, now * SECOND, live=5, replayed=None)
    for now in range(5, 10):
        assert second(latency, now * SECOND, live=6, replayed=90)
    now = 10 * SECOND
    assert latency.is_live(now)
    assert latency.recent(now) == 6 * MS
    assert latency.medians(now).baseline == 5 * MS


def test_without_live_answers_those_of_the_replay_count_against_their_own() -> None:
    latency = Latency(SECOND, MS)
    second(latency, 0, live=5, replayed=None)
    for now in range(1, 6):
        second(latency, now * SECOND, live=None, replayed=40 if now < 4 else 300)
    assert second(latency, 6 * SECOND, live=None, replayed=300)
    assert not latency.is_live(6 * SECOND)
    assert latency.recent(6 * SECOND) == 300 * MS
    assert latency.medians(6 * SECOND).baseline == 40 * MS
    assert latency.live.baseline == 5 * MS


def test_a_window_of_the_replay_does_not_count_beside_live_ones() -> None:
    latency = Latency(SECOND, MS)
    latency.on_answer(0, 5 * MS, replayed=True)
    latency.on_answer(SECOND - 1, 5 * MS, replayed=False)
    assert not latency.roll(SECOND, peace=True)
    assert latency.recent(SECOND) is None


def test_what_is_two_windows_old_says_nothing_of_now() -> None:
    latency = Latency(SECOND, MS)
    latency.on_answer(0, 5 * MS, replayed=False)
    assert latency.roll(SECOND, peace=True)
    assert latency.recent(3 * SECOND - 1) == 5 * MS
    assert latency.recent(3 * SECOND) is None
