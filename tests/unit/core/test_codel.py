"""A queue may be long for a moment and never for long: 5 ms once it has stood for 100 ms."""

from tidegate.core.codel import CoDel
from tidegate.settings import policies as settings
from tidegate.units import HOUR, MILLISECOND

MS = MILLISECOND


def standing(since: int = 0) -> CoDel:
    """A queue that was empty until `since` and has not been since."""
    judge = CoDel(settings.CoDel())
    assert judge.on_dequeue(since, since, queue_empty=False)
    return judge


def test_a_burst_is_served_however_long_it_waited() -> None:
    judge = standing()
    assert judge.on_dequeue(99 * MS, 0, queue_empty=False)


def test_a_standing_queue_drops_what_waited_longer_than_the_target() -> None:
    judge = standing()
    assert not judge.on_dequeue(100 * MS, 95 * MS - 1, queue_empty=False)
    assert judge.on_dequeue(100 * MS, 95 * MS, queue_empty=False)


def test_the_last_in_the_queue_is_served_and_ends_it() -> None:
    judge = standing()
    assert judge.on_dequeue(200 * MS, 0, queue_empty=True)
    assert judge.snapshot(200 * MS) == (None, False, 0)


def test_after_a_pause_a_burst_is_a_burst_again() -> None:
    judge = standing()
    judge.on_dequeue(200 * MS, 0, queue_empty=True)
    # Fifty come at once after an hour in which nothing was taken from the queue.
    assert all(judge.on_dequeue(HOUR + n * MS, HOUR, queue_empty=False) for n in range(50)), (
        "the hour without a queue was taken for a standing one"
    )


def test_it_drops_again_only_after_another_interval() -> None:
    judge = standing()
    judge.on_dequeue(200 * MS, 0, queue_empty=True)
    judge.on_dequeue(210 * MS, 205 * MS, queue_empty=False)  # stands since 205 ms
    assert judge.on_dequeue(304 * MS, 210 * MS, queue_empty=False)
    assert not judge.on_dequeue(305 * MS, 210 * MS, queue_empty=False)


def test_the_first_ever_taken_starts_the_reckoning() -> None:
    judge = CoDel(settings.CoDel())
    assert not judge.on_dequeue(100 * MS, 0, queue_empty=False)


def test_the_snapshot_says_since_when_it_stands_and_how_many_fell() -> None:
    judge = standing(since=50 * MS)
    assert judge.snapshot(149 * MS) == (50 * MS, False, 0)
    judge.on_dequeue(150 * MS, 60 * MS, queue_empty=False)
    assert judge.snapshot(150 * MS) == (50 * MS, True, 1)
