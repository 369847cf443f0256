"""Who is served next, and whether it is still worth it."""

import pytest

from tidegate.core.queue_order import FINISH_MARGIN, can_finish, takes_newest
from tidegate.settings.policies import Order
from tidegate.units import MILLISECOND

MS = MILLISECOND


@pytest.mark.parametrize(
    ("order", "waiting", "newest"),
    [
        ("fifo", 1, False),
        ("fifo", 1000, False),
        ("lifo", 1, True),
        ("lifo", 1000, True),
        ("adaptive_lifo", 1, False),
        ("adaptive_lifo", 10, False),
        ("adaptive_lifo", 11, True),
    ],
)
def test_who_is_next_of_those_waiting_for_ten_workers(
    order: Order, waiting: int, newest: bool
) -> None:
    assert takes_newest(order, waiting, 10) is newest


def test_five_mean_service_times_must_be_left() -> None:
    assert FINISH_MARGIN == 5
    assert can_finish(50 * MS, 100 * MS, 10 * MS)
    assert not can_finish(50 * MS + 1, 100 * MS, 10 * MS)


def test_an_instant_service_may_start_until_the_end() -> None:
    assert can_finish(100 * MS, 100 * MS, 0)
    assert not can_finish(100 * MS + 1, 100 * MS, 0)


def test_a_slow_service_asks_for_half_of_the_patience_at_most() -> None:
    # 50 ms of work for callers who wait 200 ms: five times the mean would refuse everybody.
    assert not can_finish(0, 200 * MS, 50 * MS)
    assert can_finish(0, 200 * MS, 50 * MS, enqueued_at=0)
    assert can_finish(100 * MS, 200 * MS, 50 * MS, enqueued_at=0)
    assert not can_finish(100 * MS + 1, 200 * MS, 50 * MS, enqueued_at=0)


def test_the_patience_of_the_patient_does_not_matter() -> None:
    assert can_finish(950 * MS, 1000 * MS, 10 * MS, enqueued_at=0)
    assert not can_finish(950 * MS + 1, 1000 * MS, 10 * MS, enqueued_at=0)
