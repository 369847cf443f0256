"""Laws of the two pure decisions about a queue."""

from hypothesis import given
from hypothesis import strategies as st

from tidegate.core.queue_order import can_finish, takes_newest
from tidegate.settings.policies import Order
from tidegate.units import HOUR

INSTANTS = st.integers(0, HOUR)


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_adaptive_lifo_is_one_or_the_other(waiting: int, workers: int) -> None:
    as_which: Order = "lifo" if waiting > workers else "fifo"
    assert takes_newest("adaptive_lifo", waiting, workers) is takes_newest(
        as_which, waiting, workers
    )


@given(INSTANTS, INSTANTS, INSTANTS, st.integers(0, HOUR))
def test_waiting_longer_never_makes_it_more_worth_doing(
    now: int, later: int, leaves_at: int, mean: int
) -> None:
    first, second = sorted((now, later))
    assert can_finish(first, leaves_at, mean) or not can_finish(second, leaves_at, mean)


@given(INSTANTS, INSTANTS, st.integers(0, HOUR), INSTANTS)
def test_knowing_the_patience_only_ever_serves_more(
    now: int, leaves_at: int, mean: int, enqueued_at: int
) -> None:
    without = can_finish(now, leaves_at, mean)
    assert can_finish(now, leaves_at, mean, enqueued_at=min(enqueued_at, leaves_at)) or not without


@given(INSTANTS, st.integers(0, HOUR), st.integers(0, HOUR))
def test_what_comes_to_an_idle_server_is_always_served(now: int, patience: int, mean: int) -> None:
    assert can_finish(now, now + patience, mean, enqueued_at=now)


@given(st.integers(1, HOUR), INSTANTS, st.integers(0, HOUR))
def test_whose_caller_has_left_is_never_served(gone_for: int, leaves_at: int, mean: int) -> None:
    assert not can_finish(leaves_at + gone_for, leaves_at, mean)
    assert not can_finish(leaves_at + gone_for, leaves_at, mean, enqueued_at=0)
