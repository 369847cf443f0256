"""Which open number decides a verdict, and in what share of the draws it holds."""

import pytest

from tidegate.analysis.uncertainty import effects, holding
from tidegate.settings.unknowns import Unknown

TIME = Unknown(path=("services", "db", "time"), kind="duration", low=1e6, high=1e9, where="f:1:1")
QUEUE = Unknown(path=("services", "db", "queue"), kind="count", low=0, high=1000, where="f:2:1")


def test_a_threshold_on_one_number_decides_all() -> None:
    draws = [
        {TIME.path: float(t), QUEUE.path: float(q)} for t, q in [(1, 5), (2, 9), (3, 5), (4, 9)]
    ]
    time, queue = effects([QUEUE, TIME], draws, [False, False, True, True])
    assert (time.path, time.decides) == ("services.db.time", 1.0)
    assert "high values" in time.says
    assert (queue.path, queue.decides) == ("services.db.queue", 0.0)


def test_low_values_can_be_the_bad_ones() -> None:
    draws = [{TIME.path: 1.0}, {TIME.path: 2.0}]
    (time,) = effects([TIME], draws, [True, False])
    assert time.decides == 1.0
    assert "low values" in time.says


def test_half_ordered_pairs_decide_half() -> None:
    draws = [{TIME.path: float(value)} for value in (1, 2, 3, 4)]
    (time,) = effects([TIME], draws, [False, True, False, True])
    assert time.decides == pytest.approx(0.5)  # of four pairs three are in order, one is not


def test_nothing_decides_where_all_draws_agree() -> None:
    draws = [{TIME.path: 1.0}, {TIME.path: 2.0}]
    (time,) = effects([TIME], draws, [True, True])
    assert time.decides == 0.0
    assert "the same over all of its range" in time.says


def test_a_range_is_shown_as_people_write_it() -> None:
    (time,) = effects([TIME], [{TIME.path: 1.0}], [True])
    assert (time.low, time.high) == ("1ms", "1s")


def test_the_verdict_holds_in_the_share_of_draws_that_agree() -> None:
    held = holding([True, True, True, False], verdict_is_bad=True)
    assert (held.value, held.runs) == (0.75, 4)
    assert holding([True, True, True, False], verdict_is_bad=False).value == 0.25
