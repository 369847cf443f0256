"""Who is next, who is dropped, and who has gone: the line before the workers."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.settings.policies import CoDel, Queue
from tidegate.settings.system import Service, Time
from tidegate.sim.parts.line import Line
from tidegate.sim.parts.work import OVER, Attempt
from tidegate.units import MILLISECOND

MS = MILLISECOND


def attempt(
    sent: int = 0, leaves_at: int = 10**12, *, propagate: bool = False, left: bool = False
) -> Attempt:
    site: Any = SimpleNamespace(propagate=propagate)
    return Attempt(site, None if left else object(), sent * MS, leaves_at * MS, 0, None)


def line(*waiting: Attempt, workers: int = 2, replicas: int = 1, **service: Any) -> Line:
    made = Line(Service(time=Time(mean=10 * MS), **service), replicas=replicas)
    made.workers = workers
    made.items.extend(waiting)
    return made


def taken(it: Line) -> list[int]:
    """The instants at which those who are served were sent, in their order."""
    order = []
    while (one := it.next()) is not None:
        order.append(one.sent // MS)
    return order


@pytest.mark.parametrize(
    ("order", "served"),
    [("fifo", [1, 2, 3, 4, 5]), ("lifo", [5, 4, 3, 2, 1]), ("adaptive_lifo", [5, 4, 3, 1, 2])],
)
def test_the_order_in_which_five_are_served(order: Any, served: list[int]) -> None:
    """Adaptive: newest first while more wait than the two workers there are."""
    it = line(*map(attempt, range(1, 6)), queue=Queue(order=order))
    assert taken(it) == served


def test_who_has_gone_is_passed_over_and_takes_no_place() -> None:
    waiting = [attempt(sent) for sent in range(5)]
    it = line(*waiting, queue=Queue(limit=5), abandoned="cancel")
    assert it.full()
    for index in (1, 3):
        waiting[index].work = OVER
        it.leave()
    assert (it.waiting, len(it.items), it.full()) == (3, 5, False)
    assert taken(it) == [0, 2, 4]
    assert it.gone == 0


@given(st.lists(st.integers(0, 40), max_size=60))
def test_at_most_half_of_it_is_ghosts(leaving: list[int]) -> None:
    waiting = [attempt(sent) for sent in range(41)]
    it = line(*waiting, abandoned="cancel")
    for index in leaving:
        if waiting[index].work is not OVER:
            waiting[index].work = OVER
            it.leave()
        assert it.gone * 2 <= len(it.items)
    assert it.waiting == 41 - len(set(leaving))
    assert taken(it) == sorted({*range(41)} - {*leaving})


def test_refusals_take_places_too() -> None:
    it = line(attempt(), queue=Queue(limit=3))
    it.refusals.extend([attempt(), attempt()])
    assert it.full()
    assert line(attempt(), attempt()).places is None


def test_a_line_for_several_replicas_has_their_places_together() -> None:
    assert line(queue=Queue(limit=3), replicas=4).places == 12


def test_clearing_gives_those_who_still_stood_in_it() -> None:
    waiting = [attempt(sent) for sent in range(3)]
    it = line(*waiting, abandoned="cancel")
    waiting[1].work = OVER
    it.leave()
    assert it.clear(0) == [waiting[0], waiting[2]]
    assert (it.waiting, it.gone, len(it.items)) == (0, 0, 0)


# Worth serving?


def test_first_come_first_served_and_everybody_is_plain() -> None:
    assert line().plain
    for queue in (Queue(order="lifo"), Queue(late=True), Queue(codel=CoDel())):
        assert not line(queue=queue).plain
    assert not line(abandoned="skip").plain
    assert line(queue=Queue(limit=3, full="silence")).plain


def test_whose_caller_has_left_is_served_unless_that_is_skipped() -> None:
    assert line().worth_serving(0, attempt(left=True))
    assert not line(abandoned="skip").worth_serving(0, attempt(left=True))
    assert line(abandoned="skip").worth_serving(0, attempt())


def test_what_cannot_finish_in_time_is_dropped_if_the_caller_says_when_it_leaves() -> None:
    """Mean 10 ms, so 50 ms must be left: of a second's patience, at 950 ms yes, at 951 ms no."""
    it = line(queue=Queue(late=True))
    told = attempt(0, 1000, propagate=True)
    assert it.worth_serving(950 * MS, told)
    assert not it.worth_serving(951 * MS, told)
    assert it.worth_serving(951 * MS, attempt(0, 1000))
    brief = attempt(900, 980, propagate=True)  # of 80 ms no more than half is asked as margin
    assert it.worth_serving(940 * MS, brief)
    assert not it.worth_serving(941 * MS, brief)


def test_codel_drops_from_a_line_that_stands() -> None:
    it = line(queue=Queue(codel=CoDel(target=5 * MS, interval=100 * MS)))
    it.items.extend(attempt(sent) for sent in range(3))
    assert it.worth_serving(90 * MS, it.items.popleft())  # it stands since 0, for less than 100
    assert not it.worth_serving(110 * MS, it.items.popleft())
    assert it.worth_serving(110 * MS, it.items.popleft())  # nothing waits behind it


@pytest.mark.parametrize("how", ["skipped", "gone", "cleared"])
def test_codel_sees_that_a_line_is_empty_however_it_became_so(how: str) -> None:
    """Else what comes much later would be dropped from a line that it thinks has stood since 0."""
    it = line(
        queue=Queue(codel=CoDel(target=5 * MS, interval=100 * MS)),
        abandoned="finish" if how == "cleared" else "skip",
    )
    it.items.extend([attempt(0), attempt(1, left=how == "skipped")])
    first = it.next()
    assert first is not None
    assert it.worth_serving(10 * MS, first)
    if how == "gone":
        it.items[0].work = OVER
        it.leave()
        it.items.append(attempt(1, left=True))
    if how == "cleared":
        it.clear(20 * MS)
    else:
        last = it.next()
        assert last is not None
        assert not it.worth_serving(20 * MS, last)
    it.items.extend([attempt(500), attempt(501)])
    later = it.next()
    assert later is not None
    assert it.worth_serving(510 * MS, later)
