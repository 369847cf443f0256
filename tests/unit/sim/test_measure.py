"""Totals and what they grew by in each second."""

from hypothesis import given
from hypothesis import strategies as st

from tidegate.sim.measure import CallTally, ClientTally, ServiceTally, Total
from tidegate.units import SECOND


@given(st.lists(st.integers(0, 9), min_size=1, max_size=20))
def test_each_second_has_what_came_in_it(counts: list[int]) -> None:
    total = Total(len(counts) * SECOND)
    for second, count in enumerate(counts):
        for _ in range(count):
            total.count += 1
            total.note(second)  # looked at in between, which changes nothing
        total.turn(second)
    assert total.by_second[: len(counts)] == counts
    assert total.count == sum(counts)


def test_a_tally_knows_its_totals_and_shows_them_as_lists() -> None:
    client, call, service = ClientTally(SECOND), CallTally(SECOND), ServiceTally(SECOND)
    assert [len(tally.totals) for tally in (client, call, service)] == [1, 2, 4]
    service.wasted.count += 3
    service.wasted.note(1)
    assert service.late == [0, 3, 0]


def test_what_has_ended_is_in_one_of_five() -> None:
    tally = CallTally(SECOND)
    tally.successes, tally.timeouts, tally.failures = 1, 2, 4
    tally.overloaded, tally.cancelled = 8, 16
    assert tally.ended == 31
