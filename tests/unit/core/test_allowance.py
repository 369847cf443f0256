"""A bucket of one second, in bytes."""

from hypothesis import given
from hypothesis import strategies as st

from tidegate.core.allowance import UNBOUNDED, Allowance
from tidegate.units import HOUR, MILLISECOND, SECOND

ALL = {"wanted": 10**9, "batch": 10**6}


def test_it_saves_a_second_at_most() -> None:
    allowance = Allowance()
    assert allowance.ask(HOUR, 1000.0, **ALL) == 1000
    allowance.spend(1000)
    assert allowance.ask(HOUR + SECOND // 2, 1000.0, **ALL) == 500


def test_less_than_a_quarter_of_a_second_is_not_worth_a_request() -> None:
    allowance = Allowance()
    allowance.end(0)
    assert allowance.ask(248 * MILLISECOND, 1000.0, **ALL) == 0
    ready = allowance.ready_at(1000.0, **ALL)
    assert ready == 249 * MILLISECOND + 1
    assert allowance.ask(ready, 1000.0, **ALL) == 249


@given(st.floats(100, 1e9))
def test_who_asks_four_times_a_second_is_never_late_by_a_rounding(rate: float) -> None:
    allowance = Allowance()
    allowance.end(0)
    assert allowance.ask(SECOND // 4, rate, **ALL) >= min(int(rate / 4) - 1, 10**6)


def test_but_a_batch_is_and_so_is_the_last_of_it() -> None:
    for wanted, batch, allowed in ((10**9, 50, 60), (50, 10**6, 50)):
        allowance = Allowance()
        allowance.end(0)
        assert allowance.ask(40 * MILLISECOND, 1000.0, wanted=wanted, batch=batch) == 0
        assert allowance.ask(60 * MILLISECOND, 1000.0, wanted=wanted, batch=batch) == allowed


def test_what_went_too_early_is_paid_back() -> None:
    allowance = Allowance()
    assert allowance.ask(HOUR, 1000.0, **ALL) == 1000
    allowance.spend(5000)
    assert allowance.ask(HOUR + 4 * SECOND, 1000.0, **ALL) == 0
    allowance.end(HOUR + 4 * SECOND)
    assert allowance.ready_at(1000.0, **ALL) == HOUR + 4 * SECOND + 249 * MILLISECOND + 1


def test_what_was_saved_up_ends_with_the_rate() -> None:
    allowance = Allowance()
    assert allowance.ask(HOUR, 1000.0, **ALL) == 1000
    allowance.end(HOUR)
    assert allowance.ask(HOUR, 1000.0, **ALL) == 0


def test_without_a_bound_all_may_go() -> None:
    allowance = Allowance()
    assert allowance.ask(0, UNBOUNDED, **ALL) == 10**9
    assert allowance.ready_at(UNBOUNDED, **ALL) == 0


@given(st.lists(st.tuples(st.integers(0, 3 * SECOND), st.floats(1.0, 1e6)), max_size=40))
def test_over_any_time_no_more_goes_than_its_rates_and_one_second(
    steps: list[tuple[int, float]],
) -> None:
    allowance, now, spent, most = Allowance(), 0, 0, 0.0
    highest = 0.0
    for after, rate in steps:
        now += after
        most += rate * after / SECOND
        highest = max(highest, rate)
        size = allowance.ask(now, rate, **ALL)
        assert size <= rate
        allowance.spend(size)
        spent += size
        assert spent <= most + highest
