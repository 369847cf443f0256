"""A lane of 1 MB on a disk of 100 MB of which a tenth stays free."""

from random import Random
from typing import Any

import pytest

from tidegate.core.bounds import AGAIN_MAX, AGAIN_MIN, Bounds, Cause, Drop, Stock, promised
from tidegate.settings import spool as settings
from tidegate.units import DAY, HOUR, MINUTE, SECOND

MB = 1_000_000
DISK = 100 * MB


def bounds(seed: int = 1, **keywords: Any) -> Bounds:
    return Bounds(settings.Bounds(**{"bytes": MB, **keywords}), Random(seed), 0)


def stock(
    kept: int = 0,
    records: int | None = None,
    oldest: int | None = None,
    free: int = DISK,
    promised: int = 0,
) -> Stock:
    return Stock(kept, kept // 1000 if records is None else records, oldest, free, DISK, promised)


def test_it_takes_to_its_bound_and_not_a_byte_more() -> None:
    lane = bounds()
    lane.on_stock(0, stock(MB - 1000))
    assert lane.try_accept(0, 600) is None
    refusal = lane.try_accept(0, 401)  # what was taken since the stock counts
    assert refusal is not None
    assert refusal.why == "full: it keeps its 1MB"
    assert refusal.passes


def test_full_is_left_below_the_low_mark_and_not_before() -> None:
    lane = bounds()
    lane.on_stock(0, stock(MB))
    assert lane.full is not None
    lane.on_stock(1, stock(950_001))
    assert lane.try_accept(1, 10) is lane.full is not None
    lane.on_stock(2, stock(950_000))
    assert lane.try_accept(2, 10) is None
    changes = lane.drain_transitions()
    assert [(t.at, t.before, t.after) for t in changes] == [
        (0, "taking", "full"),
        (2, "full", "taking"),
    ]
    assert changes[0].reason == "full: it keeps its 1MB"
    assert lane.drain_transitions() == []


def test_one_that_is_too_large_for_what_is_left_is_refused_alone() -> None:
    lane = bounds()
    lane.on_stock(0, stock(900_000))
    assert lane.try_accept(0, 100_001) is not None
    assert lane.full is None
    assert lane.try_accept(0, 1000) is None


def test_what_never_fits_is_told_so() -> None:
    lane = bounds(records=10)
    large, many = lane.try_accept(0, MB + 1), lane.try_accept(0, 100, records=11)
    assert large is not None
    assert many is not None
    assert (large.why, large.passes) == ("larger than all that it may keep, 1MB", False)
    assert (many.why, many.passes) == ("more records than it may keep, 10", False)
    assert lane.full is None


def test_records_are_a_bound_as_well() -> None:
    lane = bounds(records=100, low=0.9)
    lane.on_stock(0, stock(1000, records=99))
    assert lane.try_accept(0, 1) is None
    refusal = lane.try_accept(0, 1)
    assert refusal is not None
    assert refusal.why == "full: it keeps its 100 records"
    lane.on_stock(1, stock(1000, records=91))
    assert lane.full is not None
    lane.on_stock(2, stock(1000, records=90))
    assert lane.full is None


def test_a_share_of_the_disk_stays_free() -> None:
    lane = bounds(bytes=None)
    lane.on_stock(0, stock(5 * MB, free=10 * MB + 1000))
    assert lane.try_accept(0, 1000) is None
    refusal = lane.try_accept(0, 1)
    assert refusal is not None
    assert refusal.why == "full: its disk has no room beyond the 10% that stays free"
    lane.on_stock(1, stock(5 * MB, free=10 * MB))
    assert lane.full is refusal
    lane.on_stock(2, stock(5 * MB, free=11 * MB))
    assert lane.full is None


def test_what_is_promised_to_others_is_not_its_own() -> None:
    shares = {"a": (0.5, 10 * MB), "b": (0.25, 30 * MB), "c": (0.0, 5 * MB)}
    assert promised("c", DISK, shares) == 40 * MB
    assert promised("a", DISK, shares) == 0  # the others have no more, or more than they were told
    lane = bounds(bytes=None, free=0.0)
    lane.on_stock(0, stock(5 * MB, free=40 * MB, promised=40 * MB))
    assert lane.full is not None
    lane.on_stock(1, stock(5 * MB, free=40 * MB, promised=0))
    assert lane.full is None


def test_a_lane_of_which_nothing_waits_is_not_full_by_its_own_bounds() -> None:
    lane = bounds(bytes=2000)
    lane.on_stock(0, stock(16 * MB, records=1))  # an open segment, with one record to go
    assert lane.full is not None
    lane.on_stock(1, stock(16 * MB, records=0))
    assert lane.try_accept(1, 100) is None


def test_a_disk_that_takes_no_write_is_full_whatever_it_says() -> None:
    lane = bounds()
    lane.on_stock(0, stock(1000))
    lane.on_no_space(1)
    lane.on_stock(2, stock(0))
    refusal = lane.try_accept(2, 1)
    assert refusal is not None
    assert refusal.why == "full: its disk takes no more"
    lane.on_space(3)
    assert lane.try_accept(3, 1) is None


def drained(lane: Bounds, rate: int) -> None:
    """A minute in which so many bytes a second went."""
    for second in range(60):
        lane.on_delivered(second * SECOND, rate)


def test_who_is_refused_is_told_how_long_the_lane_takes_to_its_low_mark() -> None:
    lane = bounds()
    drained(lane, 1000)
    lane.on_stock(60 * SECOND, stock(MB))
    told = [lane.retry_after(60 * SECOND) for _ in range(200)]
    # 50 kB to the low mark at 1 kB a second, but the window of a minute slides by tenths.
    assert all(0.8 * 50 * SECOND <= wait <= 1.2 * 56 * SECOND for wait in told)
    assert max(told) - min(told) > 15 * SECOND


def test_a_lane_with_too_many_records_says_how_long_they_take_to_go() -> None:
    lane = bounds(records=1000)
    drained(lane, 1000)
    lane.on_stock(60 * SECOND, stock(400_000, records=1000))  # 50 of 400 bytes have to go
    told = [lane.retry_after(60 * SECOND) for _ in range(100)]
    assert all(0.8 * 20 * SECOND <= wait <= 1.2 * 23 * SECOND for wait in told)


@pytest.mark.parametrize(("rate", "low", "high"), [(0, 200, 300), (10**9, 1, 1.5)])
def test_nobody_comes_at_once_and_nobody_is_sent_away_for_good(
    rate: int, low: float, high: float
) -> None:
    lane = bounds()
    drained(lane, rate)
    lane.on_stock(60 * SECOND, stock(MB))
    told = [lane.retry_after(60 * SECOND) / SECOND for _ in range(200)]
    assert low * 0.8333 <= min(told) < max(told) <= high + 1e-9
    assert min(told) >= AGAIN_MIN / SECOND
    assert max(told) <= AGAIN_MAX / SECOND


def test_a_disk_that_takes_no_write_gives_a_time_to_come_back_too() -> None:
    lane = bounds(bytes=None)
    drained(lane, 1000)
    lane.on_stock(60 * SECOND, stock(MB))
    lane.on_no_space(60 * SECOND)
    assert lane.retry_after(60 * SECOND) > 30 * SECOND  # a twentieth of what it keeps, to go


def test_it_says_when_it_will_be_full() -> None:
    lane = bounds()
    lane.on_stock(0, stock(400_000))
    assert lane.time_to_full(0) is None
    for second in range(60):
        assert lane.try_accept(second * SECOND, 2000) is None
        lane.on_delivered(second * SECOND, 1000)
    left = lane.time_to_full(60 * SECOND)  # 480 kB at 1 kB a second
    assert left is not None
    assert 470 * SECOND < left < 540 * SECOND
    lane.on_stock(60 * SECOND, stock(MB))
    assert lane.time_to_full(60 * SECOND) == 0


def test_it_says_when_it_will_have_too_many_records() -> None:
    lane = bounds(bytes=None, records=1000)
    lane.on_stock(0, stock(90_000, records=900))
    for second in range(10):
        lane.try_accept(second * SECOND, 500, records=5)
    left = lane.time_to_full(10 * SECOND)  # 50 records of 100 B at 500 B a second
    assert left is not None
    assert 9 * SECOND < left < 11 * SECOND


def test_what_is_too_old_expires_whatever_else_is_said() -> None:
    lane = bounds(age=HOUR)
    lane.on_stock(0, stock(1000, oldest=HOUR))
    assert lane.to_drop() is None
    lane.on_stock(0, stock(1000, oldest=HOUR + 1))
    assert lane.to_drop() == Drop(Cause.EXPIRED, age=HOUR)


def test_a_lane_that_drops_its_oldest_refuses_nobody_and_drops_to_its_low_mark() -> None:
    lane = bounds(full="drop_oldest", records=5000)
    lane.on_stock(0, stock(MB - 1))
    assert lane.to_drop() is None
    assert lane.try_accept(0, 1000) is None
    assert lane.to_drop() == Drop(Cause.DROPPED_OLDEST, bytes=50_999)
    lane.on_stock(1, stock(10_000, records=5000))
    assert lane.to_drop() == Drop(Cause.DROPPED_OLDEST, records=250)


def test_a_lane_that_refuses_drops_nothing() -> None:
    lane = bounds()
    lane.on_stock(0, stock(2 * MB, oldest=13 * DAY))
    assert lane.to_drop() is None


def test_a_lane_that_drops_its_oldest_makes_room_on_the_disk_while_it_can() -> None:
    lane = bounds(bytes=None, full="drop_oldest")
    lane.on_stock(0, stock(MB, free=9 * MB))
    assert lane.full is None
    assert lane.to_drop() == Drop(Cause.DROPPED_OLDEST, bytes=50_000)
    lane.on_stock(1, stock(0, free=9 * MB))  # others have filled it
    assert lane.to_drop() is None
    assert lane.full is not None


def test_a_snapshot_says_how_much_of_how_much() -> None:
    lane = bounds()
    drained(lane, 1000)
    lane.on_stock(MINUTE, stock(400_000))
    seen = lane.snapshot(MINUTE)
    assert (seen.kept, seen.room, seen.full, seen.why) == (400_000, MB, False, "")
    assert seen.accept_rate == 0
    assert 850 < seen.drain_rate <= 1000
    lane.on_stock(MINUTE, stock(MB))
    assert lane.snapshot(MINUTE).why == "full: it keeps its 1MB"
